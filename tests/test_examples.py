"""The examples run: the quickstart ends well with the embedded model, and notices when an answer is wrong."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def quickstart(tmp_path: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, str(ROOT / "examples" / "quickstart.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **environment},
    )


def test_the_quickstart_passes_its_own_checks_with_the_embedded_model(tmp_path: Path) -> None:
    done = quickstart(tmp_path, SIGWIRE_LM="offline/lexical")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every check passed." in done.stdout
    assert "FAILED" not in done.stdout


def test_the_quickstart_says_which_models_there_are_when_it_is_given_another(tmp_path: Path) -> None:
    done = quickstart(tmp_path, SIGWIRE_LM="offline/at-all")
    assert done.returncode != 0
    assert "offline/lexical" in done.stderr


@pytest.mark.parametrize(
    ("answer", "expected", "right"),
    [
        ("Berlin", "Berlin", True),
        ("berlin.", "Berlin", True),
        ("Berlin or Lisbon", "Berlin", False),
        ("853.18 euros", 853.18, True),
        ("1,853.18", 1853.18, True),
        ("853.18, or 900", 853.18, False),
        ("no idea", 853.18, False),
    ],
)
def test_the_quickstart_tells_a_right_answer_from_a_wrong_one(
    monkeypatch: pytest.MonkeyPatch, answer: str, expected: object, right: bool
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    assert importlib.import_module("quickstart").says(answer, expected) is right
