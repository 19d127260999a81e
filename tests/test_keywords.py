"""Constructors refuse keywords that they do not know, with the nearest name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.modules.agents.react import ReAct
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.settings import configure

MISSPELT: list[tuple[Callable[[], object], str]] = [
    (lambda: ReAct("q -> a", max_iter=3), "ReAct has no option 'max_iter'.*Did you mean max_iters"),
    (lambda: ChainOfThought("q -> a", callback=[]), "Did you mean callbacks"),
    (lambda: Predict("q -> a", max_reask=1), "Did you mean max_reasks"),
    (lambda: Module(callback=[]), "Did you mean callbacks"),
    (lambda: ChatAdapter(stritc=True), "Did you mean strict"),
    (
        lambda: ChatAdapter(use_native_function_calling=True),
        "Did you mean native_tools, or the adapter of sigwire.dspy",
    ),
    (lambda: Tool(len, timout=1), "Did you mean timeout"),
    (lambda: HttpTransport(connect_timout=1), "Did you mean connect_timeout"),
    (lambda: RetryPolicy(retrys=1), "Did you mean retries"),
    (lambda: configure(num_thread=1), "Did you mean num_threads"),
]


@pytest.mark.parametrize(("make", "message"), MISSPELT, ids=[message for _, message in MISSPELT])
def test_misspelt_keyword_is_refused_with_the_nearest_name(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_keywords_of_a_function_that_takes_any_are_not_checked() -> None:
    class Program(Module):
        def __init__(self, size: int = 1, **options: object) -> None:
            super().__init__()
            self.options = options

    assert Program(sise=2).options == {"sise": 2}


WRONG_KINDS: list[Callable[[], object]] = [
    lambda: RetryPolicy(retries=-1),
    lambda: RetryPolicy(retries="3"),  # type: ignore[arg-type]
    lambda: RetryPolicy(retries=True),
    lambda: RetryPolicy(first_wait="soon"),  # type: ignore[arg-type]
    lambda: HttpTransport(timeout="5"),  # type: ignore[arg-type]
    lambda: HttpTransport(max_reply="much"),  # type: ignore[arg-type]
    lambda: Predict("q -> a", max_reasks="1"),  # type: ignore[arg-type]
    lambda: ReAct("q -> a", max_iters="3"),  # type: ignore[arg-type]
    lambda: ReAct("q -> a", parallel="no"),  # type: ignore[arg-type]
    lambda: ReAct("q -> a", parallel=-1),
    lambda: ReAct("q -> a", tool_timeout="1"),  # type: ignore[arg-type]
    lambda: ReAct("q -> a", max_output="much"),  # type: ignore[arg-type]
    lambda: ReAct("q -> a", on_tool_error="raise"),  # type: ignore[arg-type]
    lambda: Tool.from_schema("now", timeout="1"),
    lambda: Tool.from_schema("now", max_output=True),
    lambda: configure(num_threads="8"),
]


@pytest.mark.parametrize("make", WRONG_KINDS)
def test_value_of_another_kind_is_refused_where_it_is_written(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()
