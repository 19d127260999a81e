"""Errors and reports that users get when they hold an optimizer or an evaluation wrong: each names what to write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import (
    COPRO,
    BootstrapFewShot,
    CallerError,
    Evaluate,
    Example,
    FakeLM,
    LabeledFewShot,
    MIPROv2,
    OptimizationReport,
    Predict,
    StateError,
)
from sigwire.evaluate.scores import read_score
from sigwire.optimizers.engine.plan import Amount, Forecast

ROWS = [Example(question=f"{n}+1?", answer=str(n + 1)).with_inputs("question") for n in range(12)]


def exact(example: Example, prediction: Any, trace: object = None) -> bool:
    return bool(example.answer == prediction.answer)


def program(answer: str = "1") -> Predict[Any, Any]:
    return Predict("question -> answer", lm=FakeLM(lambda request: {"answer": answer}))


@pytest.mark.parametrize(
    ("wrong", "expected_text"),
    [
        (lambda: BootstrapFewShot(exact, max_labelled_demos=3), "Did you mean max_labeled_demos?"),  # type: ignore[call-arg]
        (lambda: BootstrapFewShot(exact).compile(program(), trainset=ROWS, val_set=ROWS), "Did you mean valset?"),
        (lambda: LabeledFewShot().compile(program(), trainset=ROWS, testset=ROWS), "A testset needs a metric"),
        (lambda: OptimizationReport.of(program()), "Pass the program that compile returned"),
        (lambda: Evaluate(ROWS, exact), r"Write Evaluate\(devset=examples, metric=my_metric\)"),
        (lambda: Evaluate(devset=ROWS, metric=exact, progress=False)(Predict), "Pass Predict"),
        (lambda: Evaluate(devset=ROWS, metric=sigwire.tool_call_match), r"Write metric=tool_call_match\(\)"),
    ],
)
def test_error_states_what_to_write(wrong: Callable[[], object], expected_text: str) -> None:
    with pytest.raises(CallerError, match=expected_text):
        wrong()


def test_journal_of_another_search_is_refused_without_digests(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    BootstrapFewShot(exact, journal=path).compile(program(), trainset=ROWS)
    with pytest.raises(StateError, match=r"of another search: other rows \(resuming\)"):
        BootstrapFewShot(exact, journal=path).compile(program(), trainset=ROWS[1:])


@pytest.mark.parametrize(
    ("optimizer", "is_refused"), [(COPRO, True), (BootstrapFewShot, False)], ids=["writes", "writes nothing"]
)
def test_journal_of_texts_that_another_model_of_the_settings_wrote_is_refused(
    optimizer: Callable[..., Any], is_refused: bool, tmp_path: Path
) -> None:
    path, student = tmp_path / "search.jsonl", program()
    with sigwire.context(lm=FakeLM(model="a")):
        optimizer(metric=exact, journal=path, budget=1).compile(student, trainset=ROWS)
    with (
        sigwire.context(lm=FakeLM(model="b")),
        pytest.raises(StateError, match=r"of another search: .*model") if is_refused else nullcontext(),
    ):
        optimizer(metric=exact, journal=path, budget=1).compile(student, trainset=ROWS)


def test_labelled_demos_are_measured_on_a_testset_with_a_metric() -> None:
    found = OptimizationReport.of(LabeledFewShot(metric=exact).compile(program(), trainset=ROWS[:6], testset=ROWS[6:]))
    assert found.headline.startswith("0.000 → 0.000 on 6 test rows")


def test_headline_states_that_the_student_is_kept_or_was_not_measured() -> None:
    kept = MIPROv2(exact, tune={"demos"}).compile(program("no"), trainset=ROWS[:6], valset=ROWS[6:])
    assert OptimizationReport.of(kept).headline == (
        "The student is kept (no candidate was shown to be better): 0.000 on 6 rows on which candidates are chosen"
    )
    made = BootstrapFewShot(exact).compile(program(), trainset=ROWS)
    assert OptimizationReport.of(made).headline == "not measured (compile(..., testset=) measures it)"


def test_plan_omits_writing_calls_and_ranges_that_there_are_not() -> None:
    runs, none = Amount(4, 8, 12), Amount(0, 0, 0)
    assert str(Forecast(runs, none, runs)) == "4 to 12, about 8 calls (4 to 12, about 8 runs)"
    assert str(Forecast(Amount(4, 4, 4), Amount(2, 2, 2), Amount(6, 6, 6))) == "6 calls (4 runs; 2 writing calls)"


def test_further_numbers_of_a_score_are_subscores() -> None:
    assert read_score({"score": 0.5, "topic": 1.0, "why": "no order"}).subscores == {"topic": 1.0}


def test_metric_of_the_library_has_its_name_in_cards() -> None:
    evaluate = Evaluate(devset=ROWS, metric=sigwire.contains("answer"), progress=False)
    assert repr(evaluate(program())).startswith("EvaluationResult(contains=")
    assert repr(BootstrapFewShot(exact)) == "BootstrapFewShot(metric=exact)"


def test_record_has_the_outputs_and_the_score_of_its_run() -> None:
    (record, *_) = Evaluate(devset=ROWS[:2], metric=exact, progress=False)(program()).records
    assert (record.outputs, record.score, record.feedback) == ({"answer": "1"}, 1.0, "")
