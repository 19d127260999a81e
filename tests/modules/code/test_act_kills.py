"""A ``CodeAct`` whose process is killed at each call of its code ends with the same result, and no tool runs twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.modules.code.act_kills import CALLS, CHAINS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fifty_kills_at_the_calls_of_code_repeat_no_tool_and_give_the_same_result() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.modules.code.act_kills"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    whole, *chains = (json.loads(line) for line in done.stdout.splitlines())
    kills, calls, asked, result = whole
    assert (kills, calls, asked) == (0, CALLS, [0, 1])
    assert result[0] == sum(range(3, 8))
    assert len(chains) == len(CHAINS)
    assert sum(kills for kills, *_ in chains) >= 50
    for _, calls, asked, again in chains:
        assert (calls, asked) == (CALLS, [0, 1])
        assert again[0] == result[0]
        # The first result of each turn has a random number of the run's own.
        assert again[1][1:9] == result[1][1:9]
        assert again[1][10:] == result[1][10:]
