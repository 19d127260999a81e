"""A recorded RLM goes on where it ended: no text is asked twice, no tool runs twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sigwire import FakeLM, Journal, ProgramOfThought
from sigwire.errors import LMServerError
from tests.modules.code.lives import REQUESTS, RESULT, reading_program, recorded

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("mode", ["sync", "async", "stream"])
@pytest.mark.parametrize("fails_at", [2, 5, 7])
def test_failed_run_goes_on_without_asking_twice(mode: str, fails_at: int, tmp_path: Path) -> None:
    answered: list[str] = []
    measured: list[str] = []

    def asked(text: str) -> None:
        if len(answered) == fails_at - 1 and not failed:
            failed.append(text)
            raise LMServerError("down")
        answered.append(text)

    failed: list[str] = []
    program = reading_program(asked, lambda: measured.append("run"))
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(LMServerError):
            recorded(mode, journal, program)
        assert recorded(mode, journal, program) == RESULT
        assert recorded(mode, journal, program) == RESULT  # a finished run
    assert (answered, measured, failed) == (REQUESTS, ["run"], [REQUESTS[fails_at - 1]])


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_killed_run_goes_on_without_asking_twice(mode: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.modules.code.lives", mode],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lives = [json.loads(line) for line in done.stdout.splitlines()]
    assert lives == [[True, True, REQUESTS, ["run"], RESULT]] * len(REQUESTS)


@pytest.mark.parametrize("mode", ["sync", "async", "stream"])
def test_failed_program_of_thought_goes_on_with_its_repair(mode: str, tmp_path: Path) -> None:
    answers: list[Any] = [
        {"reasoning": "r", "generated_code": "submit(text=log / 0, size=1)"},
        LMServerError("down"),
        {"reasoning": "r", "generated_code": "submit(text=log.upper(), size=len(log))"},
    ]
    program: Any = ProgramOfThought("log -> text, size: int")
    program.set_lm(lm := FakeLM(answers))
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(LMServerError):
            recorded(mode, journal, program)
        assert recorded(mode, journal, program) == {"text": "ABC", "size": 3}
    assert len(lm.requests) == 3
