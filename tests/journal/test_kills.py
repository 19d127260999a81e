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


def kills(how: str, mode: str, count: int) -> int:
    """Return the number of kills. ``tests/journal/kills.py`` has the checks."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.journal.kills", how, mode, str(count)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("mode", MODES)
def test_killed_run_goes_on_from_some_moments(mode: str) -> None:
    assert kills("moments", mode, 3) == 3


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_killed_run_goes_on_from_every_moment(mode: str) -> None:
    assert kills("moments", mode, 46) == 46


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_killed_run_goes_on_from_random_times(mode: str) -> None:
    assert kills("random", mode, 12) > 0


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_run_that_is_killed_in_every_life_reaches_its_end(mode: str) -> None:
    assert kills("chain", mode, 7) >= 7
