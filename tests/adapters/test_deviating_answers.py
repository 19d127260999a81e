"""The table of deviating answers on the page about adapters is what the adapters read now."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.answers import ADAPTERS, HABITS, outcomes, table

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"


def test_page_has_the_table_of_deviating_answers() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "run `python -m benchmarks.answers` and paste its table"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_no_deviating_answer_gives_a_wrong_value(adapter: str) -> None:
    assert [habit for habit in HABITS if outcomes(habit, adapter).wrong] == []


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_answer_in_the_requested_form_is_read_by_a_strict_adapter(adapter: str) -> None:
    assert outcomes("as asked", adapter).strict == outcomes("as asked", adapter).read == 6
