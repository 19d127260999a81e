"""No test compares elapsed time with a bound that a busy machine exceeds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.patience import PATIENCE, wait_until

TESTS = Path(__file__).resolve().parent
CLOCKS = frozenset({"monotonic", "perf_counter", "time"})


def short_bounds(source: str) -> list[int]:
    """Return the lines that compare elapsed time with a number of seconds below ``PATIENCE`` as the upper bound."""
    if not any(f".{clock}(" in source for clock in CLOCKS):  # to parse all tests takes seconds
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        for left, order, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        if isinstance(order, ast.Lt | ast.LtE) and is_elapsed(left)
        if isinstance(right, ast.Constant) and right.value < PATIENCE
    ]


def is_elapsed(node: ast.expr) -> bool:
    """Return True for the difference of a reading of a clock and another value."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and isinstance(node.left, ast.Call)
        and isinstance(node.left.func, ast.Attribute)
        and node.left.func.attr in CLOCKS
    )


def test_no_test_has_a_short_upper_bound_of_elapsed_time() -> None:
    found = {
        str(path.relative_to(TESTS)): lines
        for path in sorted(TESTS.rglob("*.py"))
        if (lines := short_bounds(path.read_text(encoding="utf-8")))
    }
    assert found == {}, "give the policy a clock, count requests, or bound the time by PATIENCE of tests/patience.py"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("assert time.monotonic() - began < 1", [1]),
        ("\nassert 0.03 < perf.perf_counter() - start <= 4", [2]),
        ("assert time.monotonic() - began < 60", []),
        ("assert time.monotonic() - began >= 0.1", []),
        ("assert time.monotonic() - began < PATIENCE", []),
    ],
)
def test_short_bounds_are_found(text: str, lines: list[int]) -> None:
    assert short_bounds(text) == lines


def test_wait_fails_when_the_condition_never_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.patience.PATIENCE", 0.01)
    with pytest.raises(AssertionError, match="did not hold in time"):
        wait_until(lambda: False)
    seen = iter([False, False, True])
    wait_until(lambda: next(seen))
