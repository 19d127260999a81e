"""A process that is killed at each of its effects ends, started again, with the same result and no repeated effect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journal.order import MODES

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def kills(how: str, count: int, *modes: str) -> list[int]:
    """Return the number of kills of each mode. ``tests/journal/kills.py`` has the checks."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.journal.kills", how, str(count), *modes],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.splitlines()]


def test_killed_run_goes_on_from_one_moment() -> None:
    assert kills("moments", 1, *MODES) == [1] * len(MODES)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_killed_run_goes_on_from_every_moment(mode: str) -> None:
    count = 46 if mode == MODES[0] else 23  # one loop is driven in all modes
    assert kills("moments", count, mode) == [count]


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_killed_run_goes_on_from_random_times(mode: str) -> None:
    assert kills("random", 8, mode) > [0]


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_run_that_is_killed_in_every_life_reaches_its_end(mode: str) -> None:
    assert kills("chain", 7, mode) >= [7]
