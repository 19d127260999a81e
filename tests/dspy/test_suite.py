"""The command that runs DSPy's own tests: its rule of what is left out and its report."""

from __future__ import annotations

from pathlib import Path

from tests.dspy.suite.__main__ import Outcomes, join_peers, report
from tests.dspy.suite.left_out import left_out

SOURCE = """
from litellm import Choices
from unittest.mock import patch
import dspy
from dspy.adapters.types.audio import _normalize

def reply():
    return Choices()

def test_helper_of_a_service():
    assert reply()

def test_server(litellm_test_server):
    pass

def test_private_name():
    assert _normalize("x")

def test_private_attribute():
    assert dspy.ChatAdapter()._parse

def test_patch():
    with patch("dspy.predict.predict.logger"):
        pass

def test_patch_of_a_computed_name(monkeypatch):
    monkeypatch.setattr(f"dspy.clients.{'cache'}.Cache", None)

def test_storage():
    import diskcache
    assert diskcache.FanoutCache

class TestMore:
    def test_target(self):
        with patch("litellm.completion"):
            pass

    def test_public(self):
        self._own = dspy.Example(a=1)
        assert self._own.a == 1
"""


def test_rule_excludes_services_and_private_names(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(SOURCE, encoding="utf-8")
    assert left_out(tmp_path / "test_x.py") == {
        "reply": "litellm",
        "test_helper_of_a_service": "litellm",
        "test_server": "litellm",
        "test_private_name": "private",
        "test_private_attribute": "private",
        "test_patch": "private",
        "test_patch_of_a_computed_name": "private",
        "test_storage": "storage",
        "TestMore::test_target": "litellm",
    }


def test_report_counts_what_holds_on_the_peer() -> None:
    door: Outcomes = {"outcomes": {"a": "passed", "b": "failed"}, "left_out": {"d": "litellm"}, "errors": {"b": "no b"}}
    peer: Outcomes = {
        "outcomes": {"a": "passed", "b": "passed", "c": "failed", "e": "network", "w": "passed"},
        "left_out": {"d": "litellm"},
        "errors": {},
    }
    assert report(door, peer, {"w"}) == [
        "left out: 2 (litellm 1, network 1)",
        "DSPy: 3 of 4 hold on the peer",
        "door: 1 of 2 hold",
        "exact wording, not counted: 0 of 1 hold",
        "  b: no b",
    ]


def test_join_peers_keeps_only_tests_that_pass_on_each_peer() -> None:
    outcomes = [
        {"a": "passed", "b": "passed", "c": "skipped", "d": "passed"},
        {"a": "passed", "b": "network", "c": "passed"},
    ]
    joined = join_peers([{"outcomes": found, "left_out": {}, "errors": {}} for found in outcomes])
    assert joined is not None
    assert joined["outcomes"] == {"a": "passed", "b": "network", "c": "skipped", "d": "failed"}
    assert join_peers([]) is None
