"""Options by other libraries' names: what reaches the wire is what the common name would have sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import InputError
from sigwire.lm.client import LM
from sigwire.lm.option_aliases import COMMON_OPTIONS, OPTION_NAMES, canonical_options
from sigwire.lm.providers.registry import PROVIDERS
from sigwire.testing import FakeProvider

SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"max_completion_tokens": 50}, {"max_tokens": 50}),
    ({"max_output_tokens": 50}, {"max_tokens": 50}),
    ({"max_completion_tokens": None, "max_output_tokens": 50}, {"max_tokens": 50}),
    ({"reasoning_effort": "high"}, {"reasoning": "high"}),
    ({"reasoning_effort": "none"}, {"reasoning": "off"}),
    ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"reasoning": {"budget": 2000}}),
    ({"thinking": {"type": "disabled"}}, {"reasoning": "off"}),
    ({"seed": 3, "max_tokens": 5}, {"seed": 3, "max_tokens": 5}),
]


@pytest.mark.parametrize(("given_names", "common"), SAME)
def test_alias_becomes_the_canonical_name(given_names: dict[str, Any], common: dict[str, Any]) -> None:
    assert canonical_options(given_names) == common


@given(st.dictionaries(st.sampled_from(["max_tokens", "reasoning", "seed", "stop", "extra_body"]), st.integers()))
def test_canonical_names_are_unchanged(options: dict[str, Any]) -> None:
    assert canonical_options(options) == options


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 1, "max_completion_tokens": 2},
        {"max_output_tokens": 1, "max_completion_tokens": 2},
        {"reasoning": "low", "thinking": {"type": "disabled"}},
    ],
)
def test_option_given_by_two_names_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        canonical_options(options)
    assert all(name in str(refused.value) for name in options)


def test_names_of_options_are_those_of_all_wires() -> None:
    wires = [wire for row in PROVIDERS.values() if not row.backend for wire in row.wires.values()]
    known = {name for wire in wires for name in wire.option_names() or ()}
    assert known <= OPTION_NAMES
    assert known | COMMON_OPTIONS == OPTION_NAMES


@pytest.mark.parametrize("thinking", [True, "high", {}, {"type": "enabled"}, {"type": "adaptive"}])
def test_thinking_of_unknown_form_is_refused(thinking: Any) -> None:
    with pytest.raises(InputError, match="budget_tokens"):
        canonical_options({"thinking": thinking})


@pytest.mark.parametrize("model", ["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"])
async def test_wire_request_is_equal_for_alias_and_canonical_name(model: str) -> None:
    asked = Request((Message.user("hello"),))
    with FakeProvider(["one", "two", "three"]) as server:
        own = {"api_key": "a key", "base_url": server.url(model.partition("/")[0])}
        LM(model, **own, max_tokens=2000, reasoning="low").respond(asked)
        LM(model, **own, max_completion_tokens=2000, reasoning_effort="low").respond(asked)
        lm = LM(model, **own, max_tokens=9)
        await lm.arespond(Request((Message.user("hello"),), options={"max_output_tokens": 2000, "reasoning": "low"}))
        bodies = [request.body for request in server.requests]
    assert bodies[0] == bodies[1] == bodies[2]
