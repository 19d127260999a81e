"""Reprs and cards of conversations, requests, responses and tools."""

from __future__ import annotations

import io
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import CallError, ToolCall, ToolCalls, ToolResult, WebSearch
from sigwire.core.tools.tool import Tool
from sigwire.modules.predict import Predict
from sigwire.show.card import HasCard
from sigwire.show.numbers import money_text

CANARY = "canary-1f2e3d"


def text_of(shown: HasCard) -> str:
    file = io.StringIO()
    shown.show(file, width=80)
    return file.getvalue()


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


SHOWN: list[tuple[object, str]] = [
    (Usage(185, 29, 100, cost=0.0002), "Usage(185 in, 29 out, 100 cached, $0.0002)"),
    (Usage(), "Usage()"),
    (Response((Choice("4"),), Usage(185, 29), "openai/gpt-5-mini"), "Response(openai/gpt-5-mini, stop, 29 out)"),
    (Response((Choice(), Choice(finish_reason="length"))), "Response(2 choices, stop, length)"),
    (Choice("4", (ToolCall("a", "f", {}),)), "Choice(stop, '4', 1 call)"),
    (Request((Message.user("Hi"),)), "Request(1 message)"),
    (
        Request((Message.user("Hi"),) * 3, (Tool(add).spec,) * 2, response_format=ResponseFormat({"type": "object"})),
        "Request(3 messages, 2 tools, json_schema)",
    ),
    (Tool(add), "Tool(add(a: int, b: int = 2))"),
    (Tool.web_search(WebSearch(max_uses=2)), "Tool(web_search())"),
]


@pytest.mark.parametrize(("shown", "line"), SHOWN, ids=[line[:30] for _, line in SHOWN])
def test_repr_of_a_value_is_its_summary(shown: object, line: str) -> None:
    assert repr(shown) == line


def test_call_is_shown_with_its_result_of_the_same_turn() -> None:
    call = ToolCall("call_0", "add", {"a": 1})
    request = Request(
        (
            Message.user("first"),
            Message.assistant("", [call]),
            Message.tool(ToolResult("call_0", "add", {"sum": 3})),
            Message.assistant("", [call]),
            Message.tool(ToolResult("call_0", "add", "no", is_error=True)),
        )
    )
    text = text_of(request)
    assert "    add(a=1)                → {'sum': 3}\n" in text
    assert "    add(a=1)                ✗ no\n" in text
    assert "unanswered" not in text
    assert "result of" not in text


def test_call_without_a_result_is_a_warning() -> None:
    request = Request((Message.assistant("", [ToolCall("call_0", "find", {"id": 7})]), Message.user("Well?")))
    assert "unanswered  1 call without a result: find" in text_of(request)


def test_result_without_its_call_is_shown_alone() -> None:
    assert "result of find  here" in text_of(Request((Message.tool(ToolResult("call_9", "find", "here")),)))


def test_thinking_is_folded_with_its_signature() -> None:
    page = Message("assistant", (ThinkingPart("hm", signature="s", provider="anthropic"),))._repr_html_()
    assert "<details><summary><b>thinking</b> <small>signed by anthropic</small></summary>" in page


def test_image_by_url_is_a_text() -> None:
    message = Message.user("Look", ImagePart(url="http://example.com/x.png"))
    assert "<img" not in message._repr_html_()
    assert "image at http://example.com/x.png" in text_of(message)


def test_call_that_cannot_be_read_shows_the_reason() -> None:
    call = ToolCall("a", "f", None, '{"a": ', CallError("malformed_json", "It ends early."))
    assert "✗ malformed_json: It ends early." in text_of(Choice("", (call,)))
    assert "malformed_json" in text_of(ToolCalls([call]))


def test_card_of_a_response_has_text_warnings_and_folded_raw_json() -> None:
    choice = Choice("4", reasoning="2 and 2", finish_reason="length")
    response = Response((choice,), Usage(185, 29), "m", warnings=(LMWarning("seed", "dropped"),), raw={"id": "x"})
    text = text_of(response)
    assert "seed: dropped" in text
    assert "choice 0  length" in text
    assert "2 and 2" not in text
    page = response._repr_html_()
    assert "2 and 2" in page
    assert "{&quot;id&quot;: &quot;x&quot;}" in page


def test_card_of_a_tool_has_description_arguments_and_limits() -> None:
    tool = Tool.from_schema(
        "find",
        "Find an order.",
        {
            "type": "object",
            "properties": {
                "id": {"type": "integer", "description": "the number"},
                "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
                "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            },
            "required": ["id"],
        },
        timeout=5.0,
        parallel=False,
    )
    assert repr(tool) == "Tool(find(id: int, kinds: list['a' | 'b'] = …, when: str | None = None))"
    assert text_of(tool).splitlines()[1:] == [
        "  description  Find an order.",
        "  arguments    id: the number",
        "  limits       5 s, not in parallel",
    ]


@pytest.mark.parametrize("name", ["extra_headers", "extra_body", "api_key"])
def test_headers_bodies_and_keys_are_in_no_form(name: str) -> None:
    options: dict[str, Any] = {name: CANARY if name == "api_key" else {"x": CANARY}}
    request = Request((Message.user("Hi"),), options=options)
    shown: list[HasCard] = [request]
    if name != "api_key":
        shown.append(Predict("q -> a", **options))
    for each in shown:
        assert CANARY not in repr(each) + text_of(each) + each._repr_html_()
        assert f"{name}=…" in text_of(each)


@pytest.mark.parametrize(
    ("cost", "text"),
    [(None, "cost unknown"), (0, "$0"), (0.00021, "$0.00021"), (5e-7, "$0.0000005"), (1234.5, "$1,234.50")],
)
def test_money_is_never_shown_as_zero_when_it_is_small_or_unknown(cost: float | None, text: str) -> None:
    assert money_text(cost) == text
