"""The examples run: the quickstart ends well, over every wire too, and notices when an answer or a wire is wrong."""

from __future__ import annotations

import importlib
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import LM
from sigwire.testing import FakeProvider

ROOT = Path(__file__).resolve().parent.parent


def ways() -> Sequence[Any]:
    """The ways that the quickstart compares, those whose package is missing left out."""
    path = ROOT / "examples" / "wires.py"
    return [way for way in runpy.run_path(str(path))["WAYS"] if way.is_open]


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
    lines = [line for line in done.stdout.splitlines() if line.startswith("│")]
    for way in ways():
        (row,) = [line for line in lines if f" {way.model} " in line and f" {way.wire} " in line]
        assert row.rstrip(" │").endswith(" same")


def test_the_quickstart_runs_with_a_model_over_http(tmp_path: Path) -> None:
    with FakeProvider(LM("offline/lexical"), key="sk-mine") as provider:
        reached = {"OPENAI_BASE_URL": provider.url("openai"), "OPENAI_API_KEY": "sk-mine"}
        done = quickstart(tmp_path, SIGWIRE_LM="openai/gpt-5-mini", **reached)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "with the model openai/gpt-5-mini" in done.stdout
    assert "Every check passed." in done.stdout
    assert {(sent.path, sent.status) for sent in provider.requests} == {("/v1/chat/completions", 200)}
    assert {sent.body["model"] for sent in provider.requests if isinstance(sent.body, dict)} == {"gpt-5-mini"}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("offline/at-all", "offline/lexical"),
        ("openai/gpt-5-mini", "Set OPENAI_API_KEY in the environment"),
    ],
)
def test_the_quickstart_says_what_to_do_about_a_model_that_cannot_be_asked(
    tmp_path: Path, model: str, said: str
) -> None:
    done = quickstart(tmp_path, SIGWIRE_LM=model, OPENAI_API_KEY="", OPENAI_BASE_URL="")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wire_that_differs_fails_the_quickstart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    quickstart, wires = importlib.import_module("quickstart"), importlib.import_module("wires")
    shop = importlib.import_module("shop").Shop(tmp_path / "shop.sqlite")
    monkeypatch.setattr(wires, "WAYS", wires.WAYS[:1])
    asked: list[sigwire.LM] = []

    def forgetful(lm: sigwire.LM, shop: object) -> object:
        asked.append(lm)
        lm("Hello")
        calls = [] if len(asked) > 1 else [("check_stock", {})]
        return quickstart.Transcript(calls, [], [], quickstart.DELIVERY)

    monkeypatch.setattr(quickstart, "ask_everything", forgetful)
    monkeypatch.setattr(quickstart, "failures", [])
    quickstart.every_wire(shop)
    assert len(quickstart.failures) == 1
    assert "calls [] instead of" in capsys.readouterr().out


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
