"""Histories that real providers refuse, and the fake ones as well, with the text of the real provider."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sigwire.testing.fake_provider import PLACES
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import ReceivedRequest

ASKED: Any = {"role": "user", "content": "q"}
LONG = "x" * 65


def chat_turn(call_id: str) -> list[Any]:
    function = {"name": "f", "arguments": "{}"}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "1"},
    ]


def items(*kinds: str, call_id: str = "c1") -> list[Any]:
    known: dict[str, Any] = {
        "reasoning": {"type": "reasoning", "id": "rs_1", "summary": []},
        "call": {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"},
        "result": {"type": "function_call_output", "call_id": call_id, "output": "1"},
        "user": ASKED,
        "assistant": {"role": "assistant", "content": "a"},
    }
    return [ASKED, *(known[kind] for kind in kinds)]


def claude(*turns: Any, **options: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 4096, "messages": [ASKED, *turns], **options}


USE: dict[str, Any] = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
DONE = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
CALLED: dict[str, Any] = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
ANSWERED = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": 1}}}]}
QUESTION = {"role": "user", "parts": [{"text": "q"}]}
LOST = "was provided without its required following item"
TURN_ORDER = "function call turn comes immediately after a user turn or after a function response turn"

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "id of 41 characters": (
        "openai",
        {"messages": [ASKED, *chat_turn("x" * 41)]},
        r"Invalid 'messages\[1\]\.tool_calls\[0\]\.id': string too long. Expected a string with maximum length 40",
    ),
    "call_id of 65 characters": (
        "openai-responses",
        {"input": items("call", "result", call_id=LONG)},
        r"Invalid 'input\[1\]\.call_id': string too long. Expected a string with maximum length 64",
    ),
    "reasoning at the end": ("openai-responses", {"input": items("reasoning")}, LOST),
    "reasoning before the user": ("openai-responses", {"input": items("reasoning", "user")}, LOST),
    "reasoning before a result": ("openai-responses", {"input": items("call", "reasoning", "result")}, LOST),
    "text of white space": (
        "anthropic",
        claude({"role": "user", "content": [{"type": "text", "text": " \n"}]}),
        "text content blocks must contain non-whitespace text",
    ),
    "loop without thinking": (
        "anthropic",
        claude(USE, DONE, **THINKS),
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
    "call first": ("gemini", {"contents": [CALLED, ANSWERED]}, TURN_ORDER),
    "call behind a turn of the model": (
        "gemini",
        {"contents": [QUESTION, {"role": "model", "parts": [{"text": "a"}]}, CALLED, ANSWERED]},
        TURN_ORDER,
    ),
}

ACCEPTED: dict[str, tuple[str, dict[str, Any]]] = {
    "id of 40 characters": ("openai", {"messages": [ASKED, *chat_turn("x" * 40)]}),
    "long id on a compatible host": ("compatible", {"messages": [ASKED, *chat_turn(LONG)]}),
    "call_id of 64 characters": ("openai-responses", {"input": items("call", "result", call_id="x" * 64)}),
    "reasoning before a call": ("openai-responses", {"input": items("reasoning", "call", "result")}),
    "reasoning before a text": ("openai-responses", {"input": items("reasoning", "assistant", "user")}),
    "loop without thinking, thinking off": ("anthropic", claude(USE, DONE)),
    "ended loop without thinking": (
        "anthropic",
        claude(USE, DONE, {"role": "assistant", "content": "a"}, ASKED, **THINKS),
    ),
    "call behind results": ("gemini", {"contents": [QUESTION, CALLED, ANSWERED, CALLED, ANSWERED]}),
}
PATHS = {"gemini": "/v1beta/models/gemini-2.5-flash:generateContent"}


def read(wire: str, body: dict[str, Any]) -> None:
    exchange = ReceivedRequest("POST", PATHS.get(wire, ""), {}, {"anthropic-version": "2023-06-01"})
    PLACES[wire].read(RequestNode({"model": "m", **body} if wire != "gemini" else body), exchange)


@pytest.mark.parametrize(("wire", "body", "text"), REFUSED.values(), ids=REFUSED)
def test_history_is_refused_with_the_text_of_the_provider(wire: str, body: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read(wire, body)
    assert re.search(text, PLACES[wire].describe(refused.value).message or "")


@pytest.mark.parametrize(("wire", "body"), ACCEPTED.values(), ids=ACCEPTED)
def test_history_that_the_provider_accepts_is_accepted(wire: str, body: dict[str, Any]) -> None:
    read(wire, body)
