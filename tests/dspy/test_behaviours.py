"""Behaviours of DSPy in this project's words: each that holds on DSPy 3.4.1 holds on the door, or its reason is listed.

``python -m tests.dspy.behaviours`` prints the counts, also for DSPy where it is installed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.dspy.behaviours.results import FAILS_ON_DSPY, FILES, LISTED, VERSION, load_behaviours
from tests.dspy.suite.door_as_dspy import door_as_dspy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from-dspy.md"
Loaded = tuple[list[str], Callable[[str], str]]


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    with door_as_dspy():
        yield load_behaviours()
        sys.modules["tests.dspy.behaviours.support"].close_providers()
    for name in [name for name in sys.modules if name.startswith("tests.dspy.behaviours.")]:
        del sys.modules[name]


@pytest.mark.parametrize("file", FILES)
def test_behaviours_of_a_file_hold_unless_listed(file: str, loaded: Loaded) -> None:
    names, failure_of = loaded
    mine = [name for name in names if name.startswith(f"{file}/") and name not in FAILS_ON_DSPY]
    failures = {name: error for name in mine if (error := failure_of(name))}
    assert {name: error for name, error in failures.items() if name not in LISTED} == {}
    assert [name for name in mine if name in LISTED and name not in failures] == []


def test_tables_name_behaviours_that_exist(loaded: Loaded) -> None:
    names, _ = loaded
    assert {*LISTED, *FAILS_ON_DSPY} <= {*names}
    assert LISTED.keys() & FAILS_ON_DSPY == set()


def test_page_has_the_counts(loaded: Loaded) -> None:
    names, _ = loaded
    counted = len(names) - len(FAILS_ON_DSPY)
    reasons = Counter(LISTED.values())
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"Of {counted} behaviours that hold on DSPy {VERSION}, {counted - len(LISTED)} hold on the door" in page
    for reason in ("exact wording", "on purpose", "not built"):
        assert f"{reasons[reason]} {reason}" in page
