"""A driver that is killed at any moment loses no answer and pays no line twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sigwire.testing import FakeProvider
from tests.lm.batch.conftest import MODELS
from tests.lm.batch.test_batch_lm import batches_of, echo


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="lives are forks")
@pytest.mark.parametrize("wire", ["anthropic", "openai"])  # a list without marks, and one with them
def test_driver_that_is_killed_before_and_after_each_request_pays_no_line_twice(wire: str, tmp_path: Path) -> None:
    assert wire in MODELS
    with FakeProvider(echo) as provider:
        run = [sys.executable, "-m", "tests.lm.batch.lives", wire, provider.url(wire), str(tmp_path / "x.batch")]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        kills, answers = json.loads(done.stdout)
        assert answers == ["answer 0", "answer 1", "answer 2"]
        assert kills >= 4  # before the creation, after it, while polling
        assert sum(batches_of(provider).values()) == 3
