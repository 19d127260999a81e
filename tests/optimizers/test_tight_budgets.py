"""Tight budgets are used: searches spend them, GEPA gains with few calls, and texts of tools are tuned together."""

from __future__ import annotations

from statistics import mean

import pytest

from benchmarks.landscape import run_sigwire
from benchmarks.landscape.runs import Run, Side, run
from benchmarks.landscape.tasks import TASKS
from sigwire.optimizers.operators.racing import BLOCK
from sigwire.optimizers.reports.report import StopReason
from sigwire.optimizers.rules.gepa import GEPA
from tests.optimizers.stub import Stub, exact, rows
from tests.optimizers.table import CHOOSES, student
from tests.optimizers.writer import Writer

OTHER = 0.117
"""The mean gain of GEPA of DSPy 3.4.1 with ``max_metric_calls=150``, for 194 calls: benchmarks/landscape/README.md."""


@pytest.mark.parametrize("calls", [50, 90])
@pytest.mark.parametrize("name", CHOOSES)
def test_search_spends_its_budget_or_has_nothing_left_to_try(name: str, calls: int) -> None:
    optimizer = CHOOSES[name](budget=calls, num_threads=3)
    found = optimizer.compile(student(Stub()), trainset=rows(24), valset=rows(24, 100)).optimization
    assert found.spent.calls <= calls
    assert found.spent.calls > calls - 2 * BLOCK or found.reason == StopReason.FINISHED


@pytest.mark.parametrize("runs", [40, 80])
def test_metric_calls_are_spent_and_never_exceeded(runs: int) -> None:
    optimizer = GEPA(exact, max_metric_calls=runs, reflection_lm=Writer())
    test = rows(20, 500)
    found = optimizer.compile(student(Stub()), trainset=rows(24), valset=rows(24, 100), testset=test).optimization
    of_tests = len(test) * (2 if found.found != found.baseline else 1)
    assert runs - 2 * BLOCK < found.spent.runs - of_tests <= runs


@pytest.mark.long
def test_gain_of_150_calls_is_at_least_that_of_the_other_library() -> None:
    side = Side("sigwire", run_sigwire.SigwireSession)
    found = [run(side, TASKS[task], "GEPA", seed, 150) for task in ("tickets", "records", "tools") for seed in (0, 1)]
    assert mean(each.final - each.start for each in found) >= OTHER
    assert all(calls_of(each) <= 150 for each in found)
    assert mean(calls_of(each) for each in found) >= 0.9 * 150


@pytest.mark.long
def test_texts_of_tools_reach_60_points_with_few_calls() -> None:
    side = Side("sigwire", run_sigwire.SigwireSession)
    found = [run(side, TASKS["tools"], "GEPA", seed, 387) for seed in (0, 1)]
    assert min(each.final for each in found) >= 0.6
    assert all(calls_of(each) <= 387 for each in found)


def calls_of(done: Run) -> int:
    return done.task_calls + done.writing_calls
