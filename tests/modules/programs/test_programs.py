"""Whole programs in files: saved by name, made again from a registry, equal in every request."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pydantic
import pytest

import sigwire
from sigwire import (
    LM,
    RLM,
    BestOfN,
    ChainOfThought,
    CodeAct,
    CodeLimits,
    ConfigurationError,
    FakeLM,
    InputField,
    Module,
    MontyInterpreter,
    MultiChainComparison,
    OutputField,
    Parallel,
    Predict,
    ProgramOfThought,
    ReAct,
    Refine,
    Signature,
    StateError,
    Tool,
    context,
    load_program,
    save_program,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class City(pydantic.BaseModel):
    name: str
    people: int = 0


class Rate(Signature):
    """Rate a text."""

    text: str = InputField()
    stars: int = OutputField(ge=1, le=5, desc="one to five")
    colour: Colour = OutputField()


def search(query: str) -> str:
    """Search."""
    return query


def shortness(inputs: object, prediction: Any) -> float:
    return -float(len(prediction.answer))


class Triage(Module):
    def __init__(self, labels: list[str], fallback: Module | None = None, k: int = 3) -> None:
        super().__init__()
        self.labels, self.fallback, self.k = labels, fallback, k
        self.classify = Predict(f"message -> topic: Literal[{', '.join(map(repr, labels))}]")

    def forward(self, message: str) -> Any:
        return self.classify(message=message)


def trained(program: Module) -> Module:
    """Change what optimizers change."""
    for number, predictor in enumerate(program.predictors()):
        predictor.signature = predictor.signature.with_instructions(f"Learned {number}.")
        predictor.demos = [dict.fromkeys(predictor.signature.spec.by_name, f"d{number}")]
    return program


CLASSES: list[type] = [Triage, Rate, Colour, City]
FUNCTIONS: list[Any] = [search, shortness]
LIBRARY_PROGRAMS: dict[str, Callable[[], Module]] = {
    "predict": lambda: Predict("question, k: int, when: list[str] | None -> answer: dict[str, float]", temperature=0.5),
    "signature class": lambda: Predict(Rate, max_reasks=2),
    "types by name": lambda: Predict(
        "city: City, colour: Colour -> code: Code['sql'], kind: Literal['a', 2], c: Literal[Colour.RED]"
    ),
    "chain of thought": lambda: ChainOfThought("question -> answer", temperature=0.0),
    "chain of thought of a class": lambda: ChainOfThought(Rate),
    "chain of thought, field changed": lambda: ChainOfThought("q -> a", OutputField(desc="why"), str),
    "agent": lambda: ReAct(Rate, [search], 7, parallel=False, on_tool_error="abort", max_output=None, seed=3),
    "agent without tools": lambda: ReAct("question -> answer"),
    "code act": lambda: CodeAct(Rate, [search], 7, max_calls=9, on_tool_error="abort", seed=3),
    "program of thought": lambda: ProgramOfThought("question -> answer: int", 5, temperature=0.1),
    "recursive model": lambda: RLM(Rate, max_llm_calls=9, tools=[search], parallel=2, extract=False, temperature=0.1),
    "multi chain": lambda: MultiChainComparison("question -> answer", M=2, temperature=0.3),
    "best of n": lambda: BestOfN(ChainOfThought("question -> answer"), 3, shortness, -5.0),
    "refine": lambda: Refine(Predict("question -> answer"), N=2, reward_fn=shortness, threshold=0.5, fail_count=1),
    "user's module": lambda: Triage(["spam", "it's"], Triage(["x"], k=5)),
}


def plain(module: Module) -> list[tuple[Any, ...]]:
    """Everything of the predictors that requests depend on."""
    return [
        (
            name,
            type(p),
            p.signature.spec.fields,
            p.signature.instructions,
            p.dump_state()["demos"],
            p.config,
            p.max_reasks,
        )
        for name, p in module.named_predictors()
    ]


@pytest.mark.parametrize("name", LIBRARY_PROGRAMS)
@pytest.mark.parametrize("is_trained", [False, True], ids=["new", "trained"])
def test_loaded_program_equals_the_saved_program(name: str, is_trained: bool, tmp_path: Path) -> None:
    program = LIBRARY_PROGRAMS[name]()
    if is_trained:
        trained(program)
    save_program(program, tmp_path / "p.json")
    loaded: Any = load_program(tmp_path / "p.json", classes=CLASSES, functions=FUNCTIONS)
    assert type(loaded) is type(program)
    assert plain(loaded) == plain(program)
    save_program(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "p.json").read_text()


@pytest.mark.parametrize("program", [CodeAct, ProgramOfThought, RLM])
def test_program_with_an_interpreter_of_its_own_is_not_saved(program: Any, tmp_path: Path) -> None:
    made = program("a -> b", interpreter=MontyInterpreter(CodeLimits(seconds=1)))
    with pytest.raises(StateError, match="MontyInterpreter with its limits is code"):
        save_program(made, tmp_path / "p.json")


def test_loaded_agent_sends_the_request_of_the_saved_agent(tmp_path: Path) -> None:
    agent: Any = trained(ReAct("question -> answer: int", [search], temperature=0.2))
    agent.react.demos = []
    agent.set_lm(LM("openai/gpt-4.1-mini", api_key="canary", cache=False, max_tokens=9))
    save_program(agent, tmp_path / "p.json")
    assert "canary" not in (tmp_path / "p.json").read_text()
    loaded = load_program(tmp_path / "p.json", functions=[Tool(search)])
    assert loaded.export("openai", question="Why?") == agent.export("openai", question="Why?")


@pytest.mark.parametrize("kind", [ReAct, CodeAct, RLM])
@pytest.mark.parametrize("setting", [None, "answer", "abort", shortness])
def test_loaded_agent_handles_errors_of_tools_as_the_saved_agent(setting: Any, kind: Any, tmp_path: Path) -> None:
    save_program(kind("question -> answer", tools=[search], on_tool_error=setting), tmp_path / "p.json")
    assert ("on_tool_error" in (tmp_path / "p.json").read_text()) == (setting is not None)
    loaded: Any = load_program(tmp_path / "p.json", functions=[search, shortness])
    assert loaded.toolbox.on_error == setting


def test_loaded_module_has_its_arguments_and_runs(tmp_path: Path) -> None:
    save_program(Triage(["spam", "ham"], Triage(["x"], k=5)), tmp_path / "p.json")
    loaded: Any = load_program(tmp_path / "p.json", classes=[Triage])
    assert (loaded.labels, loaded.k, loaded.fallback.k, loaded.fallback.labels) == (["spam", "ham"], 3, 5, ["x"])
    loaded.set_lm(FakeLM([{"topic": "ham"}]))
    assert loaded(message="Hi").topic == "ham"


def test_model_as_an_argument_is_saved_without_its_key(tmp_path: Path) -> None:
    save_program(Held([LM("openai/gpt-4.1-mini", api_key="canary", temperature=0.5)]), tmp_path / "p.json")
    assert "canary" not in (tmp_path / "p.json").read_text()
    loaded: Any = load_program(tmp_path / "p.json", classes=[Held])
    assert (loaded.value[0].model, loaded.value[0].kwargs["temperature"]) == ("openai/gpt-4.1-mini", 0.5)


def test_address_of_a_model_of_a_file_is_trusted_or_replaced_and_no_class_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    save_program(Held(LM("openai/gpt-4.1-mini", base_url="http://elsewhere.example/v1")), path)
    with pytest.raises(StateError, match=r"base_url='http://elsewhere\.example/v1'"):
        load_program(path, classes=[Held])
    trusted: Any = load_program(path, classes=[Held], allow_unsafe_lm_state=True)
    mine = FakeLM()
    replaced: Any = load_program(path, classes=[Held], lm=mine)
    assert trusted.value.base_url == "http://elsewhere.example/v1"
    assert replaced.value is mine
    path.write_text(path.read_text().replace("sigwire.lm.client.LM", "antigravity.LM"))
    with pytest.raises(StateError, match="would import code"):
        load_program(path, classes=[Held])


def test_loaded_parallel_has_its_options(tmp_path: Path) -> None:
    save_program(Parallel(num_threads=3, return_failed_examples=True), tmp_path / "p.json")
    loaded: Any = load_program(tmp_path / "p.json")
    assert (loaded.num_threads, loaded.max_errors, loaded.return_failed_examples) == (3, None, True)


def test_frozen_part_is_saved_with_its_state_and_stays_frozen(tmp_path: Path) -> None:
    program = Triage(["spam"], trained(Triage(["x"])))
    assert program.fallback is not None
    program.fallback._compiled = True  # pyright: ignore[reportPrivateUsage]
    save_program(program, tmp_path / "p.json")
    loaded: Any = load_program(tmp_path / "p.json", classes=[Triage])
    assert loaded.fallback._compiled
    assert loaded.fallback.classify.signature.instructions == "Learned 0."
    assert [name for name, _ in loaded.named_predictors()] == ["classify"]


# --- the registry --------------------------------------------------------------------------------------


def test_unknown_names_are_listed_before_any_constructor_runs(tmp_path: Path) -> None:
    made: list[str] = []

    class Noisy(Module):
        def __init__(self, inner: Module) -> None:
            super().__init__()
            made.append("made")
            self.inner = inner

    save_program(Noisy(BestOfN(ReAct(Rate, [search]), 2, shortness, 1.0)), tmp_path / "p.json")
    made.clear()
    with pytest.raises(
        StateError, match=r"names Rate, search, shortness.*classes=\[Rate\], functions=\[search, shortness\]"
    ):
        load_program(tmp_path / "p.json", classes=[Noisy, Colour])
    assert made == []


def test_type_of_a_field_must_be_registered(tmp_path: Path) -> None:
    save_program(Predict("city: City -> name"), tmp_path / "p.json")
    with pytest.raises(StateError, match=r"classes=\[City\]"):
        load_program(tmp_path / "p.json")


@pytest.mark.parametrize(
    "program",
    [
        {"$program": "os.system", "arguments": {"command": "true"}},
        {"$program": "Predict", "arguments": {"signature": {"$program": "subprocess.Popen", "arguments": {}}}},
        {
            "$program": "Predict",
            "arguments": {"signature": {"$signature": {"text": "a: os.PathLike -> b", "texts": {}}}},
        },
        {
            "$program": "Predict",
            "arguments": {"signature": {"$signature": {"text": "a: __import__ -> b", "texts": {}}}},
        },
        {"$program": "Predict", "arguments": {"signature": {"$signature": {"class": "Predict", "texts": {}}}}},
        {"$program": "ReAct", "arguments": {"signature": "a -> b", "tools": [{"$function": "eval"}]}},
        {
            "$program": "Predict",
            "arguments": {"signature": "a -> b", "callbacks": 3, "unknown": 1, "lm": {"$program": []}},
        },
        {"$program": "Predict", "arguments": {"signature": "a: inspect.Signature -> b"}},
        {"$program": "Predict", "arguments": {}},
        {"$program": "Predict", "arguments": []},
        {"$program": "Rate", "arguments": {}},
        {"$signature": {"text": "a -> b"}},
        {"$program": ["Predict"]},
        [],
        None,
    ],
)
def test_file_of_a_stranger_names_nothing_but_the_registry(program: Any, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"format": 1, "program": program, "state": {}}))
    with pytest.raises(StateError, match=r"loading a program"):
        load_program(path, classes=[Rate])


@pytest.mark.parametrize("is_given", [True, False])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"colour": "x"}, "colour"),
        ({"secret": "x" * 32}, "'secret' of ReAct.* is a secret"),
        ({"api_key": "x"}, "'api_key' of ReAct.* is a secret"),
        ({"__class__": "x"}, "__class__"),
        ({"max_iters": 10**30}, "max_iters"),
        ({"max_iters": -1}, "max_iters"),
        ({"max_iters": "20"}, "max_iters"),
        ({"max_reasks": -1}, "max_reasks"),
        ({"max_calls": 10**30}, "max_calls"),
        ({"parallel": -3}, "parallel"),
        ({"tool_timeout": -1}, "timeout"),
    ],
    ids=lambda each: str(each)[:24],
)
def test_unknown_argument_or_number_out_of_bounds_is_refused(
    arguments: Any, problem: str, is_given: bool, tmp_path: Path
) -> None:
    path, lm = tmp_path / "p.json", FakeLM()
    save_program(ReAct("question -> answer", tools=[search]), path)
    data = json.loads(path.read_text())
    data["program"]["arguments"] |= arguments
    path.write_text(json.dumps(data))
    with context(lm=None if is_given else lm), pytest.raises(StateError, match=problem):
        load_program(path, functions=[search], lm=lm if is_given else None)


@pytest.mark.parametrize(
    "data", [{"format": 2, "program": {}, "state": {}}, {"classify": {}}, {"format": 1, "state": []}]
)
def test_another_format_is_refused(data: Any, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(data))
    with pytest.raises(StateError, match="no program of format 1"):
        load_program(tmp_path / "p.json")


def test_state_that_does_not_fit_the_class_is_refused(tmp_path: Path) -> None:
    program = Triage(["a"])
    program.late = Predict("a -> b")  # type: ignore[attr-defined]  # not made by the constructor
    save_program(program, tmp_path / "p.json")
    with pytest.raises(StateError, match="late"):
        load_program(tmp_path / "p.json", classes=[Triage])


@pytest.mark.parametrize("frozen", ["self", [3], ["self.nothing"]])
def test_frozen_parts_of_the_file_must_exist(frozen: Any, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    save_program(Predict("a -> b"), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "frozen": frozen}))
    with pytest.raises(StateError, match="frozen parts"):
        load_program(path)


def test_arguments_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(110):
        value = [value]
    program = {"$program": "Predict", "arguments": {"signature": "a -> b", "stop": value}}
    (tmp_path / "p.json").write_text(json.dumps({"format": 1, "program": program, "state": {}}))
    with pytest.raises(StateError, match="deeper than 100"):
        load_program(tmp_path / "p.json")


def test_signature_without_texts_loads_with_those_of_its_class(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    save_program(Predict(Rate), path)
    data = json.loads(path.read_text())
    del data["program"]["arguments"]["signature"]["$signature"]["texts"]
    path.write_text(json.dumps(data))
    loaded: Any = load_program(path, classes=[Rate])
    assert loaded.signature.equals(Rate)


@pytest.mark.parametrize(
    ("registered", "problem"),
    [
        ({"classes": ["Triage"]}, "classes= has 'Triage'"),
        ({"functions": [3]}, "functions= has 3"),
        ({"functions": [search, Tool(len, name="search", description="x")]}, "another one named search"),
        ({"classes": [City, type("City", (), {})]}, "another one named City"),
    ],
)
def test_registry_refuses_what_has_no_unique_name(registered: dict[str, Any], problem: str, tmp_path: Path) -> None:
    save_program(Predict("a -> b"), tmp_path / "p.json")
    with pytest.raises(ConfigurationError, match=problem):
        load_program(tmp_path / "p.json", **registered)


def test_registry_takes_one_class_and_one_function(tmp_path: Path) -> None:
    save_program(ReAct("city: City -> answer", [search]), tmp_path / "p.json")
    classes: Any = City
    functions: Any = search
    loaded: Any = load_program(tmp_path / "p.json", classes=classes, functions=functions)
    assert list(loaded.tools) == ["search", "submit"]


# --- refused when saving ---------------------------------------------------------------------------------


class Forgetful(Module):
    def __init__(self, k: int = 3) -> None:
        super().__init__()
        self.limit = k


class Keyed(Module):
    def __init__(self, api_key: str) -> None:
        super().__init__()
        self.api_key = api_key


class Held(Module):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


SHARED = Predict("a -> b")
BOUND = Predict(Signature({"a": (str, InputField()), "n": (int, OutputField(ge=0))}))


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (Forgetful(), r"'k' of Forgetful.*self\.k = k"),
        (Keyed("x"), r"'api_key' of Keyed.*secret"),
        (Held(object()), r"Held\(value=\) is a object"),
        (Held(lambda: 1), r"Held\(value=\) is a function.*def"),
        (Held(int), r"Held\(value=\) is a type"),
        (Held({"$program": "x"}), r"key '\$program'"),
        (Held({1: 2}), "key 1"),
        (Held([SHARED, SHARED]), "twice"),
        (Held([search, Tool(len, name="search", description="x")]), "Two things are the function search"),
        (Held(type("Predict", (Module,), {})()), "class of sigwire"),
        (BOUND, "Declare the whole signature as a class"),
    ],
)
def test_program_that_a_file_could_not_make_again_is_refused(program: Module, problem: str, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=problem):
        save_program(program, tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_nearest_demos_by_a_vectorizer_are_refused(tmp_path: Path) -> None:
    from sigwire.modules.nearest import NearestDemos

    predict = Predict("a -> b")
    predict.nearest = NearestDemos(2, lambda texts: [[1.0] for _ in texts])
    with pytest.raises(StateError, match="vectorizer"):
        save_program(predict, tmp_path / "p.json")


def test_secrets_among_the_options_are_not_written(tmp_path: Path) -> None:
    save_program(Predict("a -> b", temperature=0.1, extra_body={"token": "canary", "user": "u"}), tmp_path / "p.json")
    assert "canary" not in (tmp_path / "p.json").read_text()
    loaded: Any = load_program(tmp_path / "p.json")
    assert loaded.config == {"temperature": 0.1, "extra_body": {"user": "u"}}


def test_modules_of_the_door_are_saved_under_their_own_names(tmp_path: Path) -> None:
    import sigwire.dspy as dspy

    save_program(dspy.ChainOfThought("question -> answer"), tmp_path / "p.json")
    with pytest.raises(StateError, match=r"dspy\.ChainOfThought"):
        load_program(tmp_path / "p.json")
    assert type(load_program(tmp_path / "p.json", classes=[dspy.ChainOfThought])) is dspy.ChainOfThought


def test_whole_program_is_not_saved_by_pickle() -> None:
    with pytest.raises(StateError, match=r"save_program"):
        Predict("a -> b").save("program", save_program=True)


def test_front_door_has_both_functions() -> None:
    assert (sigwire.save_program, sigwire.load_program) == (save_program, load_program)
