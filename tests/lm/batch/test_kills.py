"""A driver that is killed at any moment loses no answer and pays no line twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sigwire.testing import FakeProvider
from sigwire.testing.batches.desk import BatchPlan
from tests.lm.batch.conftest import MODELS
from tests.lm.batch.test_batch_lm import batches_of, echo

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="lives are forks")]


def live(wire: str, provider: FakeProvider, store: Path, lost: str = "") -> list[str]:
    """Return the answers of the last life."""
    run = [sys.executable, "-m", "tests.lm.batch.lives", wire, provider.url(wire), str(store), lost]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    kills, answers = json.loads(done.stdout)
    assert kills >= 4  # before the creation, after it, while polling
    return list(answers)


@pytest.mark.parametrize("wire", ["anthropic", "openai"])  # a list without marks, and one with them
def test_driver_that_is_killed_before_and_after_each_request_pays_no_line_twice(wire: str, tmp_path: Path) -> None:
    assert wire in MODELS
    with FakeProvider(echo, batches=BatchPlan(lag=0.05)) as provider:
        answers = live(wire, provider, tmp_path / "x.batch")
        assert answers == ["answer 0", "answer 1", "answer 2"]
        assert sum(batches_of(provider).values()) == 3


def test_driver_that_is_killed_before_and_after_each_request_pays_a_lost_line_twice(tmp_path: Path) -> None:
    with FakeProvider(echo) as provider:
        answers = live("openai", provider, tmp_path / "x.batch", "answer 1")
        assert answers == ["answer 0", "LMUnexpectedError", "answer 2"]
        assert sum(batches_of(provider).values()) == 4
