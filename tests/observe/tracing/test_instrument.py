"""Tracing on and off: what is loaded, what is called, and the errors."""

from __future__ import annotations

import builtins
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM
from sigwire.observe import callbacks
from sigwire.observe.otel import instrument, uninstrument

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys, sigwire
from sigwire.observe import callbacks
lm = sigwire.FakeLM([{"answer": "4"}])
sigwire.Predict("question -> answer", lm=lm)(question="2+2?")
assert callbacks.watched_call("lm", lm, {}) is callbacks.watched_call("tool", len, {})
print(sorted(name for name in sys.modules if "opentelemetry" in name or name.startswith("sigwire.observe.tracing.")))
"""


@pytest.mark.long
def test_tracing_that_is_off_loads_nothing_and_keeps_the_fast_path() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_tracing_that_is_off_keeps_the_shared_object_of_unwatched_calls() -> None:
    assert callbacks.EVERYWHERE == []
    assert callbacks.watched_call("lm", object(), {}) is callbacks.watched_call("adapter_parse", object(), {})


def test_tracing_that_was_switched_off_makes_no_span(telemetry: Any) -> None:
    uninstrument()
    FakeLM(["x"])("Hello")
    assert telemetry.spans == []
    assert callbacks.EVERYWHERE == []


def test_second_call_of_instrument_replaces_the_first(telemetry: Any) -> None:
    telemetry.start()
    FakeLM(["x"])("Hello")
    assert telemetry.tree == ["chat fake"]


def test_call_that_is_under_way_is_traced_to_its_end_after_uninstrument(telemetry: Any) -> None:
    def answer(request: object) -> str:
        uninstrument()
        return "x"

    FakeLM(answer)("Hello")
    assert telemetry.tree == ["chat fake"]


def test_instrument_without_opentelemetry_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(sigwire.ConfigurationError, match=r'pip install "sigwire\[otel\]"'):
        instrument()


def test_listener_that_fails_does_not_end_the_call(telemetry: Any) -> None:
    class Broken:
        def on_lm_start(self, **facts: object) -> None:
            raise ValueError("broken")

    callbacks.EVERYWHERE.insert(0, broken := Broken())
    try:
        with pytest.warns(RuntimeWarning, match=r"Broken\.on_lm_start failed"):
            FakeLM(["x"])("Hello")
    finally:
        callbacks.EVERYWHERE.remove(broken)
    assert telemetry.tree == ["chat fake"]
