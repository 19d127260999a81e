"""Rows that must hold: a candidate that is worse than the student on one of them is not returned, whatever it gains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, InputError
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.engine.search import LOST
from sigwire.optimizers.judge import Judge, ScoreTable
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from tests.optimizers.stub import HINT, exact, label, number_of, rows, share
from tests.optimizers.writer import Writer

SAFE = "Think of paint."
TRAIN, VAL = rows(12), rows(24, 100)


def model(planted: int, flaky: float = 0.0) -> FakeLM:
    """Return a model that the hint makes right but for one row, and that a safe phrase makes better on the others.

    Demos are as the hint. ``flaky``: the share of runs with the hint that are wrong.
    """
    runs: dict[str, int] = {}

    def answer(request: Request) -> Any:
        number = number_of(request.messages[-1].text)
        assert number is not None
        text = request.messages[0].text
        is_hinted = HINT in text or len(request.messages) > 2
        right = number == planted or share(f"student/{number}") < 0.3
        if is_hinted:
            runs[str(number)] = runs.get(str(number), 0) + 1
            right = number != planted if not flaky else not (number == planted and runs[str(number)] == 1)
        elif SAFE in text:
            right = right or share(f"safe/{number}") < 0.6
        return {"answer": label(number if right else number + 1)}

    return FakeLM(answer)


def copro(**options: Any) -> COPRO:
    return COPRO(Writer((HINT, SAFE, "Be polite.")), exact, breadth=4, depth=2, **options)


def gepa(**options: Any) -> GEPA:
    writer = Writer((HINT, SAFE, "Be polite."))
    return GEPA(exact, **{"max_metric_calls": 220, "reflection_lm": writer, **options})


def demos(**options: Any) -> BootstrapFewShotWithRandomSearch:
    return BootstrapFewShotWithRandomSearch(exact, num_candidate_programs=3, max_labeled_demos=2, **options)


MAKERS = pytest.mark.parametrize("make", [copro, gepa, demos])
Make = Callable[..., Any]


def compiled(optimizer: Any, planted: int = 107, valset: Any = VAL, **options: Any) -> OptimizationReport:
    program = Predict("question -> answer", lm=model(planted, **options))
    return OptimizationReport.of(optimizer.compile(program, trainset=TRAIN, valset=valset))


def row_of(number: int) -> list[Example]:
    return [each for each in VAL if f" {number}?" in each.question]


def is_worse_on(report: OptimizationReport, number: int) -> bool:
    """Return True if the winner has demos or the hint: both answer the planted row wrongly."""
    return HINT in report.winner.texts.get("self.instructions", "") or bool(report.winner.demos.get("self"))


@MAKERS
def test_candidate_that_is_worse_on_a_row_that_must_hold_is_not_returned(make: Make) -> None:
    assert is_worse_on(compiled(make()), 107)
    found = compiled(make(must_hold=row_of(107)))
    assert not is_worse_on(found, 107)
    fates = [trial.fate for trial in found.trials]
    assert any(fate.startswith("must hold: row ") and "colour of 107?" in fate for fate in fates)
    assert found.winner != found.baseline or found.kept_student


def test_another_candidate_is_returned_in_place_of_one_that_fell() -> None:
    found = compiled(copro(must_hold=row_of(107), strategy="greedy"))
    assert found.winner.texts == {"self.instructions": SAFE}


def test_student_is_kept_with_the_reason_if_each_candidate_falls() -> None:
    search = COPRO(Writer((HINT,)), exact, breadth=2, depth=1, must_hold=row_of(107))
    found = compiled(search)
    assert found.winner == found.found == found.baseline
    assert found.kept_student == LOST


def test_rows_that_must_hold_may_be_chosen_by_a_function() -> None:
    assert compiled(copro(must_hold=lambda row: "107" in row.question)).winner.texts != {"self.instructions": HINT}
    everything = compiled(copro(must_hold=lambda row: True))
    assert not is_worse_on(everything, 107)


def test_row_that_must_hold_is_a_validation_row_if_the_search_sets_them_apart() -> None:
    program = Predict("question -> answer", lm=model(107))
    for number in range(100, 106):
        search = copro(must_hold=row_of(number), seed=number)
        found = OptimizationReport.of(search.compile(program, trainset=VAL))
        assert found.scores


def test_row_that_fell_once_by_chance_runs_twice_more_and_the_median_decides() -> None:
    program = Predict("question -> answer", lm=model(107, flaky=0.5))
    search = copro(must_hold=row_of(107), num_threads=1)
    found = OptimizationReport.of(search.compile(program, trainset=TRAIN, valset=VAL))
    assert found.winner.texts == {"self.instructions": HINT}
    asked = [request for request in program.lm.requests if "colour of 107?" in request.messages[-1].text]
    assert sum(HINT in request.messages[0].text for request in asked) == 3
    assert not any(trial.fate.startswith("must hold") for trial in found.trials)


@pytest.mark.parametrize("budget", [30, 60, 90])
def test_candidate_that_was_not_run_on_all_rows_that_must_hold_is_not_returned(budget: int) -> None:
    found = compiled(copro(must_hold=lambda row: True, budget=budget, if_worse="return", strategy="greedy"))
    assert found.spent.calls <= budget
    if found.winner != found.baseline:
        assert len(found.scores[found.winner.digest]) == len(VAL)


def test_search_with_rows_that_must_hold_is_the_same_threaded_awaited_and_resumed(tmp_path: Any) -> None:
    path = tmp_path / "search.jsonl"

    def outcome(report: OptimizationReport) -> Any:  # the writer proposes by the order of calls, which threads change
        fates = {tuple(trial.candidate.texts.items()): trial.fate for trial in report.trials}
        return report.winner, fates, report.spent.runs

    first = outcome(compiled(copro(must_hold=row_of(107), num_threads=1, journal=path)))
    assert outcome(compiled(copro(must_hold=row_of(107), num_threads=8))) == first
    program = Predict("question -> answer", lm=model(107))
    awaited = asyncio.run(copro(must_hold=row_of(107)).acompile(program, trainset=TRAIN, valset=VAL))
    assert outcome(OptimizationReport.of(awaited)) == first
    again = Predict("question -> answer", lm=model(107))
    resumed = copro(must_hold=row_of(107), journal=path).compile(again, trainset=TRAIN, valset=VAL)
    assert outcome(OptimizationReport.of(resumed)) == first
    assert again.lm.requests == []


@MAKERS
def test_calls_are_within_the_plan_if_rows_must_hold(make: Make) -> None:
    program = Predict("question -> answer", lm=model(107))
    search = make(must_hold=lambda row: True)
    plan = search.plan(program, TRAIN, VAL)
    spent = compiled(search).spent
    assert plan.runs.min <= spent.runs <= plan.runs.max


def test_demos_of_a_single_candidate_are_checked_on_the_validation_rows_that_are_given() -> None:
    assert is_worse_on(compiled(BootstrapFewShot(exact, max_labeled_demos=2)), 107)
    found = compiled(BootstrapFewShot(exact, max_labeled_demos=2, must_hold=row_of(107)))
    assert found.winner == found.baseline
    assert found.kept_student == LOST


def test_fallen_candidate_is_behind_every_other_one() -> None:
    table, names = ScoreTable(), [str(row) for row in range(10)]
    fallen, other, student = Candidate({"a": "fallen"}), Candidate({"a": "other"}), Candidate()
    for candidate, score in ((fallen, 1.0), (other, 0.4), (student, 0.5)):
        for row in names:
            table.put(candidate.digest, row, 0, score)
    judge = Judge(table)
    assert judge.is_better(fallen, student, names)
    judge.drop(fallen)
    for incumbent in (other, student):
        assert not judge.is_better(fallen, incumbent, names)
        assert judge.is_worse(fallen, incumbent, names)
        assert judge.advantage(fallen, incumbent, names) < 0 < judge.advantage(incumbent, fallen, names)
        assert not judge.gains(fallen, incumbent, names)
        assert not judge.may_be_better(fallen, incumbent, names)
    assert judge.ranked([fallen, other, student], names) == [student, other, fallen]
    assert judge.promising([fallen, other, student], student, names) == student
    assert judge.with_threshold(0.5).fell(fallen)


@pytest.mark.parametrize("strategy", ["paired", "greedy"])
def test_fallen_candidate_of_gepa_has_no_children(strategy: str) -> None:
    found = compiled(gepa(must_hold=row_of(107), strategy=strategy, max_metric_calls=300))
    fallen = {trial.candidate.digest for trial in found.trials if trial.fate.startswith("must hold")}
    assert fallen
    assert not any(fallen & {*trial.candidate.parents} for trial in found.trials)


def test_rows_that_must_hold_are_validation_rows() -> None:
    with pytest.raises(InputError, match=r"no validation row: .*colour of 3\?"):
        compiled(copro(must_hold=TRAIN[3:4]))
    with pytest.raises(InputError, match=r"set apart by hold_out="):
        compiled(copro(must_hold=VAL, hold_out=0.5))
    with pytest.raises(InputError, match="chooses no validation row"):
        compiled(copro(must_hold=lambda row: False))
    with pytest.raises(ConfigurationError, match="must_hold is a list"):
        copro(must_hold="row")
    with pytest.raises(ConfigurationError, match="must_hold needs a metric"):
        LabeledFewShot(must_hold=VAL[:1])


@pytest.mark.long
@pytest.mark.parametrize("make", [copro, gepa])
def test_no_planted_regression_is_returned(make: Make) -> None:
    """20 rows that the best instruction makes wrong: without the option it is returned, with it never."""
    returned = [is_worse_on(compiled(make(seed=number)), number) for number in range(100, 110)]
    assert sum(returned) >= 8
    for number in range(100, 120):
        assert not is_worse_on(compiled(make(seed=number, must_hold=row_of(number)), number), number)
