"""The examples with other models, and as they fail: each fails if a run differs. The killed agent goes on.

``cassettes/test_programs.py`` runs every program of ``examples`` with its own model."""

from __future__ import annotations

import doctest
import importlib
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import LM
from sigwire.testing import FakeProvider

ROOT = Path(__file__).resolve().parent.parent


def endpoints() -> Sequence[Any]:
    """Return the endpoints that the quickstart compares, without those whose package is missing."""
    path = ROOT / "examples" / "wires.py"
    return [endpoint for endpoint in runpy.run_path(str(path))["ENDPOINTS"] if endpoint.is_open]


def quickstart(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return example("quickstart.py", tmp_path, **environment)


def example(name: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **environment},
    )


def test_the_team_has_one_tree_and_refunds_once(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    done = example("team.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("4 requests: as many in the tree") == 2
    assert "the outer model read order 1042 refunded; refunded: [1042]" in done.stdout


def test_the_long_session_keeps_its_turns_and_finds_one(tmp_path: Path) -> None:
    done = example("long_session.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 turns are kept" in done.stdout
    assert "> Order 1003 is for Dara" in done.stdout


@pytest.mark.long
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
    ("model", "expected_text"),
    [
        pytest.param("offline/at-all", "offline/lexical", marks=pytest.mark.long),
        ("openai/gpt-5-mini", "Set OPENAI_API_KEY in the environment"),
    ],
)
def test_quickstart_gives_advice_for_an_unreachable_model(tmp_path: Path, model: str, expected_text: str) -> None:
    done = quickstart(tmp_path, SIGWIRE_LM=model, OPENAI_API_KEY="", OPENAI_BASE_URL="")
    assert done.returncode == 2
    assert expected_text in done.stderr
    assert "Traceback" not in done.stderr


def test_quickstart_fails_when_a_wire_differs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    quickstart, wires = importlib.import_module("quickstart"), importlib.import_module("wires")
    shop = importlib.import_module("shop").Shop(tmp_path / "shop.sqlite")
    monkeypatch.setattr(wires, "ENDPOINTS", wires.ENDPOINTS[:1])
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
def test_quickstart_distinguishes_right_and_wrong_answers(
    monkeypatch: pytest.MonkeyPatch, answer: str, expected: object, right: bool
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    assert importlib.import_module("quickstart").is_answer(answer, expected) is right


# --- the streamed agent ----------------------------------------------------------------------------------


def test_example_fails_when_a_streamed_agent_differs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    agent = importlib.import_module("stream_agent")
    shop = importlib.import_module("shop").Shop(tmp_path / "shop.sqlite")
    runs = [*agent.over_every_wire()][:2] + [*agent.in_dialects()][:1]
    good, wrong = agent.stream_all(lambda: iter(runs[:1]), shop, None)
    assert wrong == 0
    others = [
        (replace(good, answer="1"), "the answer is '1'"),
        (replace(good, calls=()), "the calls are ()"),
        (replace(good, streamed_calls=()), "the stream emitted ()"),
        (replace(good, requests=()), "not every answer was a whole stream"),
        (replace(good, text="<tool_call>"), "the streamed text is '<tool_call>'"),
    ]
    for outcome, expected_text in others:
        monkeypatch.setattr(agent, "run", lambda *_, outcome=outcome: outcome)
        assert agent.stream_all(lambda: iter(runs[:1]), shop, good)[1] == 1
        assert expected_text in capsys.readouterr().out
    monkeypatch.setattr(agent, "run", lambda *_: good)
    assert (
        agent.stream_all(lambda: iter(runs[1:]), shop, good)[1] == 2
    )  # another wire; tools that were offered natively
    assert "tools were offered natively" in capsys.readouterr().out


# --- the killed agent ------------------------------------------------------------------------------------


@pytest.mark.long  # `make demo` runs it as well
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs flock")
def test_killed_agent_pays_for_no_answer_and_runs_no_tool_twice(tmp_path: Path) -> None:
    done = example("resume_agent.py", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines.count("in all: 3 answers paid, 2 tools run: as in one life") == 3
    assert sum(line.endswith("; killed") for line in lines) == 2
    assert any(line.startswith("pending: convert_weight") for line in lines)
    assert "No answer was paid twice, no tool ran twice." in lines


def test_example_fails_when_a_killed_agent_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    agent = importlib.import_module("resume_agent")
    outcomes = iter([("36.817", 3, ["check_stock"]), ("36.817", 4, ["check_stock"]), ("36.817", 3, ["check_stock"])])
    monkeypatch.setattr(agent, "lives", lambda folder, kills: next(outcomes))
    assert agent.main() == 1
    assert capsys.readouterr().out.count("FAILED") == 1


# --- tool calls and code ---------------------------------------------------------------------------------


def test_example_fails_when_an_answer_in_one_of_the_ways_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    both = importlib.import_module("shop_both_ways")
    monkeypatch.setattr(both, "TASKS", both.TASKS[:1])
    rows = both.measured()
    assert all(cost.is_right for _, costs in rows for cost in costs)
    wrong = [(task, [replace(cost, is_right=False) for cost in costs]) for task, costs in rows]
    monkeypatch.setattr(both, "measured", lambda: wrong)
    assert both.main() == 1
    assert "Wrong: a weight in pounds." in capsys.readouterr().out


# --- the optimizations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["support_mail", "support_tools"])
def test_data_of_the_optimizations_are_in_three_parts_that_share_no_text(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    data = importlib.import_module(name)
    assert doctest.testmod(data).failed == 0
    texts = [row[next(iter(row.inputs()))] for part in data.split() for row in part]
    assert len(texts) == len(set(texts)) >= 120
    with pytest.raises(ValueError, match="two texts are nearly equal: Where is my parcel 7"):
        data.refuse_duplicates(["Where is my parcel 1042?", "Where is my parcel 7?"])


@pytest.mark.long
@pytest.mark.parametrize("name", ["optimize_extraction.py", "optimize_tools.py"])
def test_optimization_runs_with_a_model_over_http(tmp_path: Path, name: str) -> None:
    with FakeProvider(LM("offline/lexical"), key="sk-mine") as provider:
        reached = {"OPENAI_BASE_URL": provider.url("openai"), "OPENAI_API_KEY": "sk-mine"}
        done = example(name, tmp_path, SIGWIRE_LM="openai/gpt-5-mini", **reached)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("openai/gpt-5-mini: ")
    assert {sent.status for sent in provider.requests} == {200}


@pytest.mark.parametrize("name", ["optimize_extraction.py", "optimize_tools.py"])
@pytest.mark.long
def test_optimization_gives_advice_for_a_missing_key(tmp_path: Path, name: str) -> None:
    done = example(name, tmp_path, SIGWIRE_LM="openai/gpt-5-mini", OPENAI_API_KEY="", OPENAI_BASE_URL="")
    assert done.returncode == 2
    assert "Set OPENAI_API_KEY in the environment" in done.stderr
    assert "Traceback" not in done.stderr
