"""inspect_history prints the configured model's last calls."""

from __future__ import annotations

import io

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.errors import ConfigurationError, LMNotConfigured
from sigwire.lm.fake import FakeLM
from sigwire.modules.looking_back import inspect_history
from sigwire.settings import context


def printed(lm: object, n: int) -> str:
    out = io.StringIO()
    with context(lm=lm):
        inspect_history(n, out)
    return out.getvalue()


def test_the_last_calls_of_the_configured_model_are_printed() -> None:
    lm = FakeLM(["first answer", "second answer"])
    lm("first question")
    lm("second question")
    last, both = printed(lm, 1), printed(lm, 2)
    assert "second question" in last
    assert "second answer" in last
    assert "first question" not in last
    assert "first question" in both


def test_without_a_model_the_error_says_how_to_set_one() -> None:
    with context(lm=None), pytest.raises(LMNotConfigured, match="configure"):
        inspect_history()


def test_a_model_without_a_history_says_where_else_to_look() -> None:
    class Bare:
        model = "bare"
        capabilities = Capabilities()

        def respond(self, request: object) -> object:
            return request

        async def arespond(self, request: object) -> object:
            return request

    with context(lm=Bare()), pytest.raises(ConfigurationError, match="max_history_size"):
        inspect_history()
