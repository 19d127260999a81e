"""Conversations of many turns in a small window: what is recalled, what it costs, and that nothing is refused."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.conversations import Row, measured, table

SMALL: Any = {"turns": 60, "facts": 20, "window": 2_500}


def test_small_session_recalls_nearly_all_facts_and_is_never_refused() -> None:
    row = measured("default", 0, **SMALL)
    assert row.refused == 0
    assert row.folds >= 3
    assert row.recall >= 90
    assert measured("drop", 0, **SMALL).recall <= 50


def test_small_chat_without_tools_recalls_by_passages() -> None:
    row = measured("chat", 0, **SMALL)
    assert (row.refused, row.folds > 1) == (0, True)
    assert row.recall >= 80


def test_table_has_a_row_for_each_view() -> None:
    lines = list(table([[Row("a", 50.0, 10.0, 1, 0)], [Row("b", 75.0, 5.0, 2, 0), Row("b", 25.0, 5.0, 2, 1)]]))
    assert lines[2:] == ["| a | 50.0 % (50, 50) | 100.0 | 1.0 | 0 |", "| b | 50.0 % (25, 75) | 100.0 | 2.0 | 1 |"]


@pytest.mark.long
def test_default_recalls_95_percent_at_a_third_of_the_price_of_dropping_each_turn() -> None:
    """Five seeds of 200 turns in a window of 8,000, where larger requests are refused."""
    seeds = range(5)
    default, tiered, each = (
        [measured(view, seed) for seed in seeds] for view in ("default", "tiered", "drop each turn")
    )
    assert sum(row.refused for row in default) == 0
    assert sum(row.recall for row in default) / 5 >= 95
    price, of_tiered, of_each = (sum(row.units for row in rows) for rows in (default, tiered, each))
    assert price <= 0.3 * of_each
    assert price <= 1.1 * of_tiered


@pytest.mark.long
def test_chat_without_tools_recalls_90_percent() -> None:
    rows, each = ([measured(view, seed) for seed in range(5)] for view in ("chat", "chat, drop each turn"))
    assert sum(row.refused for row in rows) == 0
    assert sum(row.recall for row in rows) / 5 >= 90
    assert sum(row.units for row in rows) <= 0.3 * sum(row.units for row in each)
