"""Asking a model: inspect_history."""

from __future__ import annotations

import io

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.errors import ConfigurationError
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.modules.preview.history import inspect_history
from sigwire.settings import context


def printed(lm: object, n: int) -> str:
    out = io.StringIO()
    with context(lm=lm):
        inspect_history(n, out)
    return out.getvalue()


def test_inspect_history_prints_last_calls_of_configured_model() -> None:
    lm = FakeLM(["first answer", "second answer"])
    lm("first question")
    lm("second question")
    last, both = printed(lm, 1), printed(lm, 2)
    assert "second question" in last
    assert "second answer" in last
    assert "first question" not in last
    assert "first question" in both


def test_inspect_history_prints_the_calls_of_a_given_model() -> None:
    lm, out = FakeLM([{"a": "first answer"}]), io.StringIO()
    Predict("q -> a", lm=lm)(q="first question")
    with context(lm=None):
        inspect_history(file=out, lm=lm)
    assert "first question" in out.getvalue()
    assert "first answer" in out.getvalue()


def test_inspect_history_prints_the_calls_of_all_models_when_the_configured_one_has_none() -> None:
    lm = FakeLM([{"a": "first answer"}])
    Predict("q -> a", lm=lm)(q="first question")
    printed_calls = printed(FakeLM([]), 1)
    assert "first question" in printed_calls
    assert "first answer" in printed_calls


def test_inspect_history_names_alternatives_when_model_records_none() -> None:
    class Bare:
        model = "bare"
        capabilities = Capabilities()

        def respond(self, request: object) -> object:
            return request

        async def arespond(self, request: object) -> object:
            return request

    with context(lm=Bare()), pytest.raises(ConfigurationError, match="max_history_size"):
        inspect_history()
