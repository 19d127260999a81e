"""The door for DSPy programs: its names, its classes, its place above the core."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.missing import INSTEAD
from tests.figures import trees

ROOT = Path(__file__).resolve().parents[2]
DOOR = ROOT / "sigwire" / "dspy"

# The names that DSPy documents and that the core has, with those that only the door has.
DOCUMENTED = (
    "Signature InputField OutputField make_signature ensure_signature Image Audio File History Code Reasoning Tool ToolCalls "
    "Adapter ChatAdapter JSONAdapter XMLAdapter TwoStepAdapter LM BaseLM DummyLM Module Predict ChainOfThought ReAct "
    "Example Prediction Completions BaseCallback settings configure context inspect_history track_usage streamify streaming "
    "is_retryable_lm_error LMError AdapterParseError ContextWindowExceededError"
).split()
STREAMING = (
    "StreamListener StreamResponse StatusMessage StatusMessageProvider streaming_response apply_sync_streaming "
    "sync_send_to_stream streamify"
).split()
EVALUATE = (
    "EM CompleteAndGrounded Evaluate EvaluationResult SemanticF1 answer_exact_match answer_passage_match normalize_text"
).split()
METRICS = (
    "EM F1 HotPotF1 answer_exact_match answer_passage_match em_score f1_score hotpot_f1_score normalize_text precision_score"
).split()
CLASSES = (
    "LM BaseLM Adapter ChatAdapter JSONAdapter XMLAdapter TwoStepAdapter Module Predict ChainOfThought ReAct AgentRun Tool "
    "ToolCalls"
).split()


def test_every_documented_name_and_every_public_name_is_in_the_door() -> None:
    names = {*DOCUMENTED, *sigwire.__all__}
    assert [name for name in sorted(names) if getattr(dspy, name, None) is None] == []
    assert names - {*dir(dspy)} == set()


def test_names_of_dspy_streaming_are_in_the_module_of_that_name() -> None:
    assert [name for name in STREAMING if not hasattr(dspy.streaming, name)] == []


def test_names_of_dspy_evaluate_are_in_the_modules_of_that_name() -> None:
    assert [name for name in EVALUATE if not hasattr(dspy.evaluate, name)] == []
    assert [name for name in METRICS if not hasattr(dspy.evaluate.metrics, name)] == []
    assert dspy.evaluate.SemanticF1 is dspy.SemanticF1 is sigwire.SemanticF1


def test_submodules_do_not_hide_the_objects_of_their_name() -> None:
    for name in ("streamify", "settings"):
        importlib.import_module(f"sigwire.dspy.{name}")
        assert not hasattr(getattr(dspy, name), "__path__")
    assert callable(dspy.streamify)
    assert "lm" in dspy.settings


def test_optimizers_are_in_the_module_of_dspy_and_at_its_top() -> None:
    others = {
        "AvatarOptimizer", "BootstrapFinetune", "CandidateRuns", "DspyAdapter", "FailedPrediction", "GRPO",
        "MultiModalInstructionProposer", "ScoreWithFeedback", "Teleprompter", "bootstrap_trace_data",
        "eval_candidate_program", "prepare_models_for_resampling",
    }  # fmt: skip
    for name in {*dspy.teleprompt.__all__} - others:
        assert getattr(dspy.teleprompt, name) is getattr(dspy, name)
        assert issubclass(getattr(dspy, name), getattr(sigwire, name))
    assert dspy.teleprompt.Teleprompter is dspy.Teleprompter
    optimizers = {name for name in sigwire.__all__ if issubclass_of(getattr(sigwire, name), dspy.Teleprompter)}
    own = {"Calibrate", "Optimizer"}  # DSPy has none of these: they are at the top of the door only
    assert optimizers - own == {*dspy.teleprompt.__all__} - others
    assert all(getattr(dspy, name) is getattr(sigwire, name) for name in own)


def issubclass_of(value: Any, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("adapters.base", "Adapter"),
        ("adapters.baml_adapter", "BAMLAdapter"),
        ("adapters.chat_adapter", "ChatAdapter"),
        ("adapters.types", "Image"),
        ("adapters.types.history", "History"),
        ("adapters.types.tool", "ToolCallResults"),
        ("clients.base_lm", "BaseLM"),
        ("clients.cache", "Cache"),
        ("clients.lm", "LM"),
        ("evaluate.auto_evaluation", "SemanticF1"),
        ("evaluate.evaluate", "Evaluate"),
        ("experimental", "Citations"),
        ("predict.predict", "Predict"),
        ("predict.react", "ReAct"),
        ("primitives.example", "Example"),
        ("primitives.prediction", "Prediction"),
        ("primitives.sandbox_serializable", "build_repl_variable"),
        ("retrievers.embeddings", "Embeddings"),
        ("retrievers.retrieve", "Retrieve"),
        ("signatures.field", "InputField"),
        ("signatures.signature", "infer_prefix"),
        ("streaming.messages", "StatusMessage"),
        ("streaming.streaming_listener", "StreamListener"),
        ("teleprompt.gepa.gepa_utils", "ScoreWithFeedback"),
        ("teleprompt.random_search", "BootstrapFewShotWithRandomSearch"),
        ("teleprompt.teleprompt", "Teleprompter"),
        ("teleprompt.bootstrap_trace", "bootstrap_trace_data"),
        ("teleprompt.utils", "eval_candidate_program"),
        ("datasets.dataset", "Dataset"),
        ("utils.asyncify", "asyncify"),
        ("utils.langchain_tool", "convert_langchain_tool"),
        ("utils.mcp", "convert_mcp_tool"),
        ("utils.saving", "load"),
        ("utils.callback", "with_callbacks"),
        ("utils.dummies", "DummyLM"),
        ("utils.exceptions", "LMAuthError"),
        ("utils.syncify", "syncify"),
        ("utils.usage_tracker", "track_usage"),
    ],
)
def test_modules_that_scripts_import_by_their_path_have_the_names_of_dspy(module: str, name: str) -> None:
    assert getattr(importlib.import_module(f"sigwire.dspy.{module}"), name) is not None


@pytest.mark.parametrize("name", ["AvatarOptimizer", "BootstrapFinetune", "GRPO"])
def test_optimizers_out_of_scope_can_be_made_and_raise_the_reason_when_they_compile(name: str) -> None:
    program = dspy.Predict("question -> answer", lm=dspy.DummyLM([]))
    for module in (dspy, dspy.teleprompt):
        optimizer = getattr(module, name)(metric=len)
        assert isinstance(optimizer, dspy.Teleprompter)
        assert optimizer.get_params()["metric"] is len
        with pytest.raises(
            sigwire.ConfigurationError, match=rf"{name} is not in sigwire \(compiling\): it .* GEPA.*\.$"
        ):
            optimizer.compile(program, trainset=[])


def test_optimizers_out_of_scope_show_their_options_without_secrets_and_name_themselves_in_errors() -> None:
    shown = repr(dspy.GRPO(metric=len, seed=3, train_kwargs={"api_key": "sk-secret"}))
    assert shown.startswith("GRPO(metric=<built-in function len>, multitask=True, adapter=None")
    assert "seed=3" in shown
    assert "sk-secret" not in shown
    with pytest.raises(TypeError, match=r"AvatarOptimizer.*missing.*'metric'"):
        dspy.AvatarOptimizer()
    for name in ("AvatarOptimizer", "BootstrapFinetune", "GRPO"):
        with pytest.raises(TypeError, match=rf"{name}.*unexpected.*'steps'"):
            getattr(dspy, name)(metric=len, steps=3)
    base = importlib.import_module("sigwire.dspy.optimizers.unavailable").UnavailableOptimizer
    assert base().get_params() == {}


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from sigwire.dspy.propose import GroundedProposer", "propose"),
        ("from sigwire.dspy.propose.grounded_proposer import GroundedProposer", "propose"),
        ("import sigwire.dspy.propose", "propose"),
        ("from sigwire.dspy.utils.unbatchify import Unbatchify", "utils.unbatchify"),
        ("from sigwire.dspy.utils.magicattr import get", "utils.magicattr"),
        ("from sigwire.dspy.utils.lazy_import import require", "utils.lazy_import"),
        ("from sigwire.dspy import propose", "propose"),
        ("from sigwire.dspy import ColBERTv2", "ColBERTv2"),
        ("from sigwire.dspy.utils import magicattr", "utils.magicattr"),
        ("from sigwire.dspy.utils import Unbatchify", "utils.Unbatchify"),
        ("from sigwire.dspy import Assert", "Assert"),
        ("from sigwire.dspy.clients import Provider", "clients.Provider"),
        ("from sigwire.dspy.clients.provider import Provider", "clients.provider"),
        ("from sigwire.dspy.datasets import Colors", "datasets.Colors"),
    ],
)
def test_import_of_a_module_that_is_missing_on_purpose_has_the_advice(statement: str, name: str) -> None:
    with pytest.raises(
        ModuleNotFoundError, match=re.escape(f"sigwire.dspy has no {name!r} (importing it). {INSTEAD[name]}")
    ) as caught:
        exec(statement)
    assert caught.value.name == name


@pytest.mark.parametrize("name", ["propose", "utils.unbatchify", "utils.magicattr"])
def test_find_spec_of_a_module_that_is_missing_on_purpose_is_none(name: str) -> None:
    assert importlib.util.find_spec(f"sigwire.dspy.{name}") is None


def test_import_of_another_absent_module_is_the_error_of_python() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'sigwire\.dspy\.nothing'$"):
        importlib.import_module("sigwire.dspy.nothing")
    assert importlib.util.find_spec("sigwire.dspy.nothing") is None


@pytest.mark.parametrize("name", ["ColBERTv2", "utils.Unbatchify", "TypedPredictor", "clients.Provider"])
def test_import_of_a_name_that_is_missing_on_purpose_has_the_advice(name: str) -> None:
    package, _, last = f"sigwire.dspy.{name}".rpartition(".")
    with pytest.raises(AttributeError, match=re.escape(INSTEAD[name])):
        getattr(importlib.import_module(package), last)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(
        AttributeError,
        match=r"sigwire\.dspy has no public name 'Predictor' \(.+\)\. Did you mean Predict\? dir\(sigwire\.dspy\) lists",
    ):
        _ = dspy.Predictor  # type: ignore[attr-defined]


def test_a_name_that_is_missing_on_purpose_names_what_to_use_instead() -> None:
    with pytest.raises(AttributeError, match=r"no public name 'ColBERTv2' \(.+\)\. `Embeddings` searches a corpus"):
        _ = dspy.ColBERTv2  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_the_door_is_a_subclass_of_the_class_of_the_core(name: str) -> None:
    assert issubclass(getattr(dspy, name), getattr(sigwire, name))
    assert getattr(dspy, name) is not getattr(sigwire, name)


def test_instances_of_the_door_pass_every_isinstance_of_the_core() -> None:
    made: list[tuple[Any, str]] = [
        (dspy.LM("offline/lexical"), "LM BaseLM"),
        (dspy.DummyLM([]), "FakeLM BaseLM"),
        (dspy.ChatAdapter(), "ChatAdapter Adapter"),
        (dspy.TwoStepAdapter(dspy.DummyLM([])), "TwoStepAdapter Adapter"),
        (dspy.Predict("a -> b"), "Predict Module"),
        (dspy.ChainOfThought("a -> b"), "ChainOfThought Module"),
        (dspy.ReAct("a -> b", tools=[]), "ReAct Module"),
        (dspy.Tool(len, name="size", args={}), "Tool"),
        (dspy.ToolCalls(), "ToolCalls"),
    ]
    for value, names in made:
        assert all(isinstance(value, getattr(sigwire, name)) for name in names.split()), value
    assert isinstance(dspy.LM("offline/lexical"), dspy.BaseLM)
    assert isinstance(dspy.ChainOfThought("a -> b"), dspy.Module)


@pytest.mark.long
def test_no_file_below_imports_the_door() -> None:
    for path, tree in trees().items():
        if path.is_relative_to(DOOR):
            continue
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            assert not any(f"{name}.".startswith("sigwire.dspy.") for name in names), path


def test_core_names_the_other_library_in_three_files_only() -> None:
    package = ROOT / "sigwire"
    files = [path for path in package.rglob("*.py") if not path.is_relative_to(DOOR)]
    named = {str(path.relative_to(package)) for path in files if "dspy" in path.read_text(encoding="utf-8").lower()}
    assert named == {"__init__.py", "core/foreign_names.py", "door_names.py"}


def test_importing_the_door_loads_nothing_of_the_package() -> None:
    script = "import json, sys, sigwire.dspy; print(json.dumps([name for name in sys.modules if 'sigwire' in name]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout) == ["sigwire", "sigwire.dspy"]


# --- a program ---------------------------------------------------------------------------------------


class Review(dspy.Signature):
    """Rate the review."""

    review: str = dspy.InputField(desc="what a customer wrote")
    stars: int = dspy.OutputField(ge=1, le=5)


class Shop(dspy.Module):
    """A program as DSPy's tutorials write one."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = dspy.Predict(Review)
        self.reply = dspy.ChainOfThought("review, stars: int -> reply")

    def forward(self, review: str) -> Any:
        stars = self.rate(review=review).stars
        return self.reply(review=review, stars=stars)

    async def aforward(self, review: str) -> Any:
        stars = (await self.rate.acall(review=review)).stars
        return await self.reply.acall(review=review, stars=stars)


ANSWERS = [{"stars": 4}, {"reasoning": "Kind words.", "reply": "Thank you very much!"}]


async def test_a_program_in_the_style_of_dspy_runs_blocking_and_awaited() -> None:
    lm = dspy.DummyLM(ANSWERS * 3)
    trace: list[Any] = []
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False), trace=trace, track_usage=True):
        first = Shop()(review="Lovely.")
        second = await Shop().acall(review="Lovely.")
        examples = [dspy.Example(review="Lovely.").with_inputs("review")]
        (third,) = Shop().batch(examples, num_threads=1, disable_progress_bar=True)
    assert [result.reply for result in (first, second, third)] == ["Thank you very much!"] * 3
    assert first.reasoning == "Kind words."
    assert len(trace) == 6
    assert isinstance(lm.get_convo(0)[0], list)


async def test_a_program_in_the_style_of_dspy_is_streamed_and_saved(tmp_path: Path) -> None:
    program = Shop()
    program.set_lm(dspy.DummyLM(ANSWERS * 2))
    listener = dspy.streaming.StreamListener("reply")
    stream = dspy.streamify(program, stream_listeners=[listener])
    items = [item async for item in stream(review="Lovely.")]
    chunks = [item.chunk for item in items if isinstance(item, dspy.streaming.StreamResponse)]
    assert "".join(chunks) == "Thank you very much!"
    assert isinstance(items[-1], dspy.Prediction)
    program.set_lm(dspy.LM("offline/lexical"))
    program.save(tmp_path / "shop.json")
    loaded = Shop()
    loaded.load(tmp_path / "shop.json")
    assert isinstance(loaded.get_lm, object)
    assert all(isinstance(predictor.lm, dspy.LM) for predictor in loaded.predictors())
