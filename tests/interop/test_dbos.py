"""DBOS as the engine of a sigwire program, on its SQLite: the recipe of docs/journal.md, with a process that is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "pip install dbos"
pytestmark = pytest.mark.skipif(not find_spec("dbos"), reason=f"dbos is not installed: {COMMAND}")


def recipe() -> str:
    """Return the program of the page."""
    page = (ROOT / "docs" / "journal.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python no-run\n(.*?DBOS.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(program)


def test_killed_workflow_is_recovered_and_repeats_no_step(tmp_path: Path) -> None:
    path = tmp_path / "recipe.py"
    path.write_text(recipe())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def life(**more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", str(path)]
        return subprocess.run(
            command, cwd=tmp_path, env={**environment, **more}, capture_output=True, text=True, timeout=120
        )

    killed = life(KILLED="1")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    recovered = life()
    assert "the answer is 10" in recovered.stdout, recovered.stdout + recovered.stderr
    assert (tmp_path / "ran.txt").read_text().splitlines() == ["add 1 2", "add 3 7"]
    assert (tmp_path / "asked.txt").read_text().splitlines() == ["turn 0", "turn 1", "turn 2"]
