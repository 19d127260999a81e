"""Choices of a search: models, adapters and options of requests by label, in candidates, journals and saved programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, StateError
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from tests.optimizers.stub import Stub, exact, label, number_of, pure_writer, rows, skill_of
from tests.optimizers.table import CHOOSES
from tests.optimizers.writer import Writer

TRAIN, VAL = rows(16), rows(16, 100)
pytestmark = pytest.mark.filterwarnings("ignore:Predict is saved")  # with a model that a plain load refuses


def good(request: Request) -> float:
    return 0.9


def by_temperature(request: Request) -> float:
    return 0.95 if request.options.get("temperature") == 0.2 else 0.3


def json_only(request: Request) -> str:
    """Answer right in JSON, and wrongly in the layout of chat."""
    number = number_of(request.messages[-1].text)
    assert number is not None
    if "JSON object" not in request.messages[0].text:
        return f"[[ ## answer ## ]]\n{label(number + 1)}\n\n[[ ## completed ## ]]"
    return json.dumps({"answer": label(number)})


def mipro(**options: Any) -> MIPROv2:
    return MIPROv2(exact, prompt_model=pure_writer(), max_labeled_demos=0, max_bootstrapped_demos=0, **options)


def optuna(**options: Any) -> BootstrapFewShotWithOptuna:
    return BootstrapFewShotWithOptuna(exact, max_labeled_demos=0, num_candidate_programs=8, **options)


def gepa(**options: Any) -> GEPA:
    return GEPA(exact, max_metric_calls=200, reflection_lm=Writer(("Be polite.", "Think of paint.")), **options)


MAKERS = pytest.mark.parametrize("make", [mipro, optuna, gepa])
Make = Callable[..., Any]


def student(**options: Any) -> Predict[..., Any]:
    return Predict("question -> answer", lm=Stub(**options))


def compiled(optimizer: Any, program: Any = None) -> Any:
    return optimizer.compile(program or student(), trainset=TRAIN, valset=VAL)


@MAKERS
def test_better_model_is_found_and_is_that_of_the_program(make: Make) -> None:
    models = {"small": Stub(), "large": Stub(skill=good)}
    before = student()
    program = compiled(make(choices={"model": models}), before)
    report = OptimizationReport.of(program)
    assert report.winner.choices == {"model": "large"}
    assert program.lm is models["large"]
    assert before.lm is not models["large"]
    assert "model=large" in report.winner.summary
    origin = {mipro: "instruction and demos", optuna: "sets of demos", gepa: "another choice"}[make]
    assert any(trial.candidate.choices for trial in report.trials if trial.origin == origin)
    assert report.winner.changes(report.baseline)["choices"] == {"model": ["large", None]}


def test_option_is_chosen_and_saved_with_the_program(tmp_path: Path) -> None:
    program = compiled(mipro(choices={"temperature": [0.2, 0.9]}), student(skill=by_temperature))
    assert OptimizationReport.of(program).winner.choices == {"temperature": "0.2"}
    assert program.config == {"temperature": 0.2}
    program.save(tmp_path / "program.json")
    loaded = student(skill=by_temperature)
    loaded.load(tmp_path / "program.json", lm=loaded.lm)
    assert loaded(question="colour of 3?")
    assert loaded.lm.requests[-1].options["temperature"] == 0.2
    loaded.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["options"] == {"temperature": 0.2}


def test_loaded_program_asks_for_the_adapter_that_was_chosen(tmp_path: Path) -> None:
    adapters = {"chat": ChatAdapter(), "json": JSONAdapter()}
    program = compiled(mipro(choices={"adapter": adapters}), Predict("question -> answer", lm=FakeLM(json_only)))
    assert OptimizationReport.of(program).winner.choices == {"adapter": "json"}
    assert program.adapter is adapters["json"]
    assert program(question="colour of 3?").answer == label(3)
    program.save(tmp_path / "program.json")
    loaded = student()
    with pytest.raises(StateError, match=r"adapter JSONAdapter, which is not saved\. Set predictor\.adapter"):
        loaded.load(tmp_path / "program.json", lm=loaded.lm)
    loaded.adapter = JSONAdapter()
    loaded.load(tmp_path / "program.json", lm=loaded.lm)


def test_saved_search_has_labels_and_no_key(tmp_path: Path) -> None:
    class Keyed(Stub):
        api_key = "sk-planted"

        def __repr__(self) -> str:
            return f"Keyed({self.api_key})"

    journal = tmp_path / "search.jsonl"
    program = compiled(mipro(choices={"model": {"large": Keyed(skill=good)}}, journal=journal))
    program.save(tmp_path / "program.json")
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    assert len(texts) == 2
    assert all("large" in text and "sk-planted" not in text for text in texts)
    assert "sk-planted" not in repr(OptimizationReport.of(program).winner)


def test_candidate_of_json_needs_the_values_of_its_choices() -> None:
    large = Stub(skill=good)
    candidate = Candidate().with_choice("model", "large", large)
    again = Candidate.from_json(json.loads(json.dumps(candidate.to_json())))
    assert again == candidate
    assert again.chosen == {}
    with pytest.raises(ConfigurationError, match="model='large', whose value is not in its JSON"):
        applied(student(), again)
    assert applied(student(), again, {"model": {"large": large}}).lm is large


def test_choice_is_applied_to_every_predictor_and_before_options_of_a_sample() -> None:
    class Two(Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Predict("question -> answer", lm=Stub())
            self.last = Predict("question -> answer", lm=Stub(), temperature=0.5)

        def forward(self, question: str) -> Any:
            return self.last(question=question)

    candidate = Candidate().with_choice("temperature", "low", 0.1)
    program = applied(Two(), candidate)
    assert [predictor.config for predictor in program.predictors()] == [{"temperature": 0.1}] * 2
    sampled = applied(Two(), candidate.with_lm_options({"temperature": 1.0}))
    assert sampled.last.config == {"temperature": 1.0}


def test_each_fourth_turn_of_gepa_changes_a_label_without_a_writing_call() -> None:
    optimizer = gepa(choices={"model": {"small": Stub(), "large": Stub(skill=good)}})
    found = OptimizationReport.of(compiled(optimizer))
    changed = [trial for trial in found.trials if trial.origin == "another choice"]
    assert changed
    by_digest = {trial.candidate.digest: trial.candidate for trial in found.trials}
    by_digest[found.baseline.digest] = found.baseline
    for trial in changed:
        (parent,) = trial.candidate.parents
        assert trial.candidate.texts == by_digest[parent].texts
        assert trial.candidate.choices != by_digest[parent].choices
    written = sum(trial.origin == "reflection" for trial in found.trials) + len(found.refused)
    assert len(optimizer.prompt_model.asked) == written


def test_task_model_runs_the_candidates_without_another_model() -> None:
    small, large = Stub(), Stub(skill=good)
    report = OptimizationReport.of(compiled(mipro(choices={"model": {"large": large}}, task_model=small), student()))
    assert small.requests
    assert large.requests
    assert report.winner.choices == {"model": "large"}


@pytest.mark.long
def test_search_with_choices_is_the_same_threaded_awaited_and_resumed(tmp_path: Path) -> None:
    journal = tmp_path / "search.jsonl"

    def search(**options: Any) -> MIPROv2:
        return mipro(choices={"model": {"small": Stub(), "large": Stub(skill=good)}}, **options)

    def outcome(program: Any) -> Any:
        report = OptimizationReport.of(program)
        return report.winner, [trial.candidate for trial in report.trials], report.scores, report.spent.runs

    first = outcome(compiled(search(num_threads=1, journal=journal)))
    assert outcome(compiled(search(num_threads=8))) == first
    assert outcome(asyncio.run(search().acompile(student(), trainset=TRAIN, valset=VAL))) == first
    lm = Stub()
    again = compiled(search(journal=journal), Predict("question -> answer", lm=lm))
    assert outcome(again) == first
    assert lm.requests == []


def test_journal_of_other_choices_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "search.jsonl"
    compiled(mipro(choices={"temperature": [0.2]}, journal=journal))
    with pytest.raises(StateError, match="choices"):
        compiled(mipro(choices={"temperature": {"0.2": 0.3}}, journal=journal))


@pytest.mark.parametrize("name", sorted({*CHOOSES} - {"MIPROv2", "BootstrapFewShotWithOptuna", "GEPA"}))
def test_other_optimizers_refuse_choices_by_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match="MIPROv2, BootstrapFewShotWithOptuna and GEPA choose"):
        CHOOSES[name](choices={"temperature": [0.2]})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "choices is a dict"),
        ({"modell": {"a": Stub()}}, "Did you mean model"),
        ({"model": {}}, "has models by label"),
        ({"model": {"a": "openai/gpt"}}, "has models by label"),
        ({"model": [Stub()]}, "has models by label"),
        ({"adapter": {"json": JSONAdapter}}, "has adapters by label"),
        ({"temperature": 0.2}, "has values by label"),
    ],
)
def test_choices_are_values_by_label(given: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        mipro(choices=given or [1])


@MAKERS
def test_calls_of_a_search_with_choices_are_within_the_plan(make: Make) -> None:
    search = make(choices={"model": {"small": Stub(), "large": Stub(skill=good)}})
    plan = search.plan(student(), TRAIN, VAL)
    spent = OptimizationReport.of(compiled(search)).spent
    assert plan.runs.min <= spent.runs <= plan.runs.max


@pytest.mark.long
def test_miprov2_finds_the_better_model_in_eight_of_ten_seeds() -> None:
    def better(request: Request) -> float:
        return skill_of(request) + 0.25

    def found(seed: int) -> str | None:
        models = {f"model {number}": Stub() for number in range(3)} | {"better": Stub(skill=better)}
        program = MIPROv2(exact, prompt_model=pure_writer(), max_labeled_demos=2, seed=seed, choices={"model": models})
        made = program.compile(student(), trainset=rows(24), valset=rows(40, 100))
        return OptimizationReport.of(made).winner.choices.get("model")

    assert [found(seed) for seed in range(10)].count("better") >= 8
