"""Anthropic Messages: what holds for any request and any answer."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import COMPATIBLE_MESSAGES, MessagesProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.anthropic.reading import read_request
from tests.lm.codecs.anthropic.wire import (
    ALWAYS_ON,
    ASKED,
    BY_BUDGET,
    CITATION,
    FOUND,
    SCHEMA,
    SEARCHED,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_OK,
    WIRE_THOUGHT,
    answer,
    assistant,
    decoded,
    target,
    text,
    user,
)
from tests.lm.codecs.any_request import (
    attempt,
    audio,
    calls_with,
    files,
    json_values,
    objects,
    places,
    requests_of,
    results_with,
    wild_text,
)
from tests.lm.codecs.encoding import features, results_for

shown = st.builds(ImagePart, places, places, st.sampled_from([None, "image/png", "x/y"]))
families = st.sampled_from([None, "anthropic", "openai-chat"])
thinking = st.builds(ThinkingPart, wild_text, st.none() | st.text(), st.none() | st.text(), families)
members = st.dictionaries(st.text(max_size=5), json_values.filter(lambda value: value is not None), max_size=3)
opaque = st.builds(OpaquePart, st.just("anthropic"), members)
requests = requests_of(
    {
        "system": st.builds(TextPart, wild_text) | opaque,
        "user": st.builds(TextPart, wild_text) | shown | files | audio | opaque,
        "assistant": st.builds(TextPart, wild_text) | calls_with(st.none() | objects) | thinking | opaque,
        "tool": results_with(shown | st.builds(TextPart, wild_text), most=2),
    },
    {
        "temperature": st.floats(0, 1),
        "max_tokens": st.integers(0, 5000),
        "stop": st.text(max_size=3) | st.lists(st.text(max_size=3), max_size=3),
        "prompt_cache": st.sampled_from(["auto", False, {}, {"ttl": "5m"}]),
        "logprobs": st.just(True),
        "seed": st.integers(),
        "extra_body": st.fixed_dictionaries({"x": objects}),
    },
    formats=(ResponseFormat(), ResponseFormat(SCHEMA, "x y"), ResponseFormat({"type": "object"})),
)
targets = st.sampled_from(
    [target(), BY_BUDGET, ALWAYS_ON, target(COMPATIBLE_MESSAGES), target(later_system=True, able=Capabilities())]
)


@given(requests, targets)
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request, to: Target[MessagesProfile]) -> None:
    sent = attempt(anthropic, request, to)
    if isinstance(sent, str):
        refused = ("no place for", "no option 'logprobs'", "An image needs", "A file needs", "not base64")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)
    budget = sent.body.get("thinking", {})
    assert isinstance(budget, dict)
    limit = sent.body["max_tokens"]
    assert isinstance(limit, int)
    assert "budget_tokens" not in budget or 1024 <= int(str(budget["budget_tokens"])) < limit


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@given(requests, targets)
def test_encoded_turns_keep_the_rules_of_the_provider(request: Request, to: Target[MessagesProfile]) -> None:
    sent = attempt(anthropic, replace(request, options={}), to)
    if isinstance(sent, str):
        return
    written: Any = sent.body["messages"]
    roles = [message["role"] for message in written]
    assert roles[0] == "user"
    assert all(role != following for role, following in itertools.pairwise(roles))
    waiting: list[str] = []
    seen: set[str] = set()
    for message in written:
        blocks = blocks_of(message)
        assert blocks
        assert all(block["text"].strip() for block in blocks if block.get("type") == "text")
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        assert results == waiting, "every call is answered at once, in order"
        assert results == [block.get("tool_use_id") for block in blocks[: len(results)]], "before anything else"
        waiting = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        assert seen.isdisjoint(waiting)
        seen.update(waiting)
    assert waiting == []
    later = [number for number, role in enumerate(roles) if role == "system"]
    assert all(
        roles[number - 1] == "user" and roles[number + 1 : number + 2] in ([], ["assistant"]) for number in later
    )


def cited(said: str) -> dict[str, Any]:
    return {**text(said), "citations": [CITATION]}


def thought(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def redacted(data: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": data}


def used(name: str, given: dict[str, Any], caller: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": given, **caller}


words = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
callers: st.SearchStrategy[Any] = st.sampled_from([{}, {"caller": {"type": "direct"}}])
answer_block: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(text, words),
    st.builds(cited, words),
    st.builds(thought, st.text(), words),
    st.builds(redacted, words),
    st.builds(used, st.sampled_from(["f", "g"]), objects, callers),
    st.sampled_from([SEARCHED, FOUND]),
)
answer_blocks = st.lists(answer_block, min_size=1, max_size=6)


def with_ids(blocks: list[dict[str, Any]], turn: int = 0) -> list[dict[str, Any]]:
    return [
        {**block, "id": f"toolu_{turn}_{number}"} if block["type"] == "tool_use" else block
        for number, block in enumerate(blocks)
    ]


@given(st.lists(answer_blocks, min_size=1, max_size=4))
def test_answers_put_into_history_are_sent_as_they_came(answers: list[list[dict[str, Any]]]) -> None:
    history: list[Message] = [ASKED]
    came: list[list[dict[str, Any]]] = []
    for turn, blocks in enumerate(answers):
        wire = with_ids(blocks, turn)
        message = decoded(answer(*wire)).choices[0].message()
        history += [message, *results_for(message), Message.user("and?")]
        came.append(wire)
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    written: Any = anthropic.encode(Request(tuple(stored)), target()).body["messages"]
    assert [blocks_of(message) for message in written if message["role"] == "assistant"] == came


@example(
    Request(
        (
            Message("assistant", (ToolCall("a", "f", {}),)),
            Message("tool", (ToolResult("a", "f", "", media=(ImagePart(url=""),)),)),
        )
    )
)
@given(requests)
def test_encoded_request_is_equal_when_read_and_encoded_again(request: Request) -> None:
    sent = attempt(anthropic, replace(request, options={}, response_format=None), target())
    if isinstance(sent, str):
        return
    again = anthropic.encode(read_request(sent.body), target())
    assert again.body == sent.body


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    for turn in range(10):
        blocks: list[JsonObject] = [{**WIRE_THOUGHT, "signature": f"S{turn}"}, {**WIRE_CALL, "id": f"toolu_{turn}"}]
        sent = anthropic.encode(Request(tuple(history)), target())
        assert sent.body["messages"] == came
        choice = anthropic.decode(answer(*blocks, stop_reason="tool_use"), sent, target()).choices[0]
        history += [choice.message(), Message.tool(ToolResult(f"toolu_{turn}", "f", "ok"))]
        came += [assistant(*blocks), user({**WIRE_OK, "tool_use_id": f"toolu_{turn}"})]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert anthropic.encode(Request(tuple(stored)), target()).body["messages"] == came
