"""Histories that real providers refuse, and the fake ones as well, with the text of the real provider."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sigwire.testing.families import check_family
from sigwire.testing.places import PLACES
from sigwire.testing.refusals import REFUSALS
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
DONE: dict[str, Any] = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
CALLED: dict[str, Any] = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
ANSWERED = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": 1}}}]}
QUESTION = {"role": "user", "parts": [{"text": "q"}]}

GEMINI_3 = "gemini-3-flash"
UNSIGNED = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}]}
TWICE = {"role": "user", "content": [DONE["content"][0], DONE["content"][0]]}

REFUSED: dict[str, list[dict[str, Any]]] = {
    "id of 41 characters": [{"messages": [ASKED, *chat_turn("x" * 41)]}],
    "call without a result": [
        {"messages": [ASKED, chat_turn("a")[0], ASKED]},
        {"messages": [ASKED, chat_turn("a")[0]]},
    ],
    "result without a call": [{"messages": [ASKED, chat_turn("a")[1]]}],
    "result with another id": [{"messages": [ASKED, chat_turn("a")[0], chat_turn("b")[1]]}],
    "user turn without content": [{"messages": [{"role": "user", "content": None}]}],
    "call_id of 65 characters": [{"input": items("call", "result", call_id=LONG)}],
    "reasoning at the end": [
        {"input": items("reasoning")},
        {"input": items("reasoning", "user")},
        {"input": items("call", "reasoning", "result")},
    ],
    "item without a result": [{"input": items("call", "user")}],
    "output without a call": [{"input": items("result")}],
    "no messages": [{"max_tokens": 9, "messages": []}],
    "assistant first": [{"max_tokens": 9, "messages": [{"role": "assistant", "content": "a"}, ASKED]}],
    "prefill with a blank at its end": [claude({"role": "assistant", "content": "a "})],
    "turn without content": [claude({"role": "user", "content": ""})],
    "text of white space": [claude({"role": "user", "content": [{"type": "text", "text": " \n"}]})],
    "empty text": [claude({"role": "user", "content": [{"type": "text", "text": ""}]})],
    "unsigned thinking": [claude(UNSIGNED, ASKED)],
    "loop without thinking": [claude(USE, DONE, **THINKS)],
    "id with a point": [claude({"role": "assistant", "content": [{**USE["content"][0], "id": "a.b"}]}, DONE)],
    "result of another call": [claude(DONE)],
    "two results of one call": [claude(USE, TWICE)],
    "use without a result": [claude(USE, ASKED), claude(USE)],
    "id twice": [claude(USE, DONE, USE, DONE)],
    "call behind a turn of the model": [
        {"contents": [CALLED, ANSWERED]},
        {"contents": [QUESTION, {"role": "model", "parts": [{"text": "a"}]}, CALLED, ANSWERED]},
    ],
    "fewer responses than calls": [{"contents": [QUESTION, CALLED]}, {"contents": [QUESTION, CALLED, QUESTION]}],
    "unsigned call": [{"contents": [QUESTION, CALLED, ANSWERED]}],
    "part without data": [{"contents": [{"role": "user", "parts": [{}]}]}],
    "name with a digit first": [
        {"contents": [QUESTION, {"role": "model", "parts": [{"functionCall": {"name": "3d"}}]}, ANSWERED]}
    ],
    "other role": [{"messages": [{"role": "wizard", "content": "x"}]}],
    "image as a URL": [{"messages": [{"role": "user", "content": "x", "images": ["https://a.example/b.png"]}]}],
}
"""Requests by the name of the rule that refuses them."""

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


def read(wire: str, body: dict[str, Any], model: str = "gemini-2.5-flash") -> None:
    path = f"/v1beta/models/{model}:generateContent" if wire == "gemini" else ""
    exchange = ReceivedRequest("POST", path, {}, {"anthropic-version": "2023-06-01"})
    check_family(PLACES[wire].read(RequestNode({"model": "m", **body} if wire != "gemini" else body), exchange), wire)


@pytest.mark.parametrize("name", REFUSALS)
def test_history_is_refused_with_the_text_of_the_provider(name: str) -> None:
    rule = REFUSALS[name]
    for body in REFUSED[name]:
        with pytest.raises(InvalidValue) as refused:
            read(rule.wire, body, GEMINI_3 if name == "unsigned call" else "gemini-2.5-flash")
        assert rule.text in (PLACES[rule.wire].describe(refused.value).message or "")


def test_each_rule_names_its_source() -> None:
    assert REFUSED.keys() == REFUSALS.keys()
    for rule in REFUSALS.values():
        place = r"https://github\.com/[^/]+/[^/]+/(issues/\d+|pull/\d+|blob/main/.+)"
        assert re.fullmatch(
            place if rule.basis == "reported" else r"https://[^/]*(claude|openai|google|ollama)[^ ]+", rule.source
        )
    assert len({rule.text for rule in REFUSALS.values()}) == len(REFUSALS)


@pytest.mark.parametrize(("wire", "body"), ACCEPTED.values(), ids=ACCEPTED)
def test_history_that_the_provider_accepts_is_accepted(wire: str, body: dict[str, Any]) -> None:
    read(wire, body)
