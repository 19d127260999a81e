"""``StopRule``: the first reason ends an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sigwire import Budget
from sigwire.errors import BudgetSpent
from sigwire.evaluate.failures import Failure, FailureKind
from sigwire.evaluate.running.stop import StopRule

SPENT = BudgetSpent("spent", part="calls", spent=1, limit=1, needed=1)


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        (["metric"] * 2, None),
        (["metric"] * 3, "The metric failed on the first 3 examples"),
        ([None, *["metric"] * 3], None),
        (["program", *["metric"] * 3], None),
        (["program", None] * 4, None),
        (["program", None] * 5, "More than 4 examples failed (max_errors=4)"),
    ],
)
def test_rule_counts_failures_and_those_of_the_metric_at_the_start(
    kinds: Sequence[FailureKind | None], sentence: str | None
) -> None:
    rule = StopRule("score", max_errors=4)
    for kind in kinds:
        rule.add(None if kind is None else Failure(kind, "ValueError", "no"))
    assert rule.is_over() is (sentence is not None)
    assert (rule.reason.sentence if rule.reason is not None else None) == sentence


@pytest.mark.parametrize(
    ("errors", "budget", "error", "status"),
    [
        ("score", Budget(calls=1), SPENT, "budget"),
        ("score", None, SPENT, "aborted"),
        ("raise", None, ValueError("no"), "raised"),
        ("skip", None, ValueError("no"), "aborted"),
        ("raise", Budget(seconds=0), ValueError("no"), "budget"),
    ],
)
def test_raised_error_ends_the_evaluation(errors: str, budget: Any, error: Exception, status: str) -> None:
    rule = StopRule(errors, budget=budget)
    rule.end_by(error, "7")
    assert rule.reason is not None
    assert rule.reason.status == status
    assert "at example 7" in "".join(map(str, getattr(error, "__notes__", [])))


def test_first_reason_counts() -> None:
    rule = StopRule("score", max_errors=0)
    rule.end("cancelled")
    rule.add(Failure("program", "ValueError", "no"))
    assert rule.reason is not None
    assert rule.reason.status == "cancelled"


@pytest.mark.parametrize(
    ("kinds", "is_over"),
    [
        (["program"] * 30, False),
        (["provider"] * 10, False),
        (["provider"] * 11, True),
        ([*["provider"] * 10, None, *["provider"] * 10], False),
        ([*["provider"] * 10, "program", *["provider"] * 10], False),
        (["metric"] * 3, True),
    ],
)
def test_rule_of_the_provider_counts_its_failures_since_it_answered(
    kinds: Sequence[FailureKind | None], is_over: bool
) -> None:
    rule = StopRule("score", max_errors="provider")
    for kind in kinds:
        rule.add(None if kind is None else Failure(kind, "ValueError", "no"))
    assert rule.is_over() is is_over
