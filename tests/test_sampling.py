"""The sample of a test with many cases has every value of its short arguments, and is the same in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import MOST, sample

TEST = """
import pytest
from tests.sampling import mark_rest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    mark_rest(items, str(config.rootpath))
"""
CASES = """
import pytest

@pytest.mark.parametrize("how", ["blocking", "awaited"])
@pytest.mark.parametrize("number", range(100))
def test_many(number, how):
    pass

@pytest.mark.parametrize("number", range(4))
def test_few(number):
    pass

@pytest.mark.parametrize("number", [pytest.param(n, marks=pytest.mark.long) for n in range(100)] + [1])
def test_long(number):
    pass
"""


@pytest.mark.parametrize("ways", [2, 3, 4])
def test_sample_has_every_value_of_a_short_argument(ways: int) -> None:
    cases = [(f"{n}-{way}", {"n": n, "way": way}) for n in range(64) for way in range(ways)]
    kept = sample(cases)
    assert {cases[place][1]["way"] for place in kept} == {*range(ways)}
    assert len(kept) == MOST


def test_sample_of_few_cases_is_all_of_them_and_a_new_case_moves_few() -> None:
    cases = [(str(n), {"n": n}) for n in range(100)]
    assert sample(cases[:MOST]) == {*range(MOST)}
    before, after = sample(cases), sample([*cases, ("new", {"n": 100})])
    assert len(before - after) <= 1


@pytest.mark.long
def test_other_cases_are_long_in_folders_and_quick_in_the_root(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(TEST, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long\n", encoding="utf-8")
    (tmp_path / "room").mkdir()
    for path in (tmp_path / "room" / "test_cases.py", tmp_path / "test_pages.py"):
        path.write_text(CASES, encoding="utf-8")

    def run(marks: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", marks]
        root = Path(__file__).resolve().parent.parent
        command += ["--import-mode=importlib", "-o", f"pythonpath={root}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    quick, rest = 3 * MOST + 1 + 200 + 1, 200 - MOST + 100 + 100
    assert f"{quick} passed, {rest} deselected" in run("not long")
    assert f"{rest} passed, {quick} deselected" in run("long")
