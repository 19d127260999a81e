"""Recorded Anthropic Messages traffic: replies decode to their recorded reading, requests are read and encoded equally."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.names import NameMap
from sigwire.errors import LMError
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import ANTHROPIC, COMPATIBLE_MESSAGES, FINISH_REASONS, MessagesProfile
from sigwire.lm.codecs.shared.interface import EncodedRequest, ModelFacts, Target
from tests.conformance.readings import normal_form, reasoning_texts
from tests.conformance.recordings import ids, recorded
from tests.lm.codecs.anthropic.reading import read_request
from tests.lm.codecs.encoding import results_for

EXCHANGES = recorded("anthropic-messages.jsonl")
ABLE = Capabilities(json_schema=True, tools_with_json_schema=True, native_tools=True, tool_choice=True)

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")

HOSTS: dict[str, MessagesProfile] = {"minimax": replace(COMPATIBLE_MESSAGES, family="minimax")}
LATER_SYSTEM = frozenset({"claude-opus-4-8", "claude-sonnet-5"})


def target_of(exchange: dict[str, Any]) -> Target[MessagesProfile]:
    request: dict[str, Any] = exchange["request"] or {}
    thinking: dict[str, Any] = request.get("thinking") or {}
    facts = ModelFacts(
        thinking="budget" if thinking.get("type") == "enabled" else "effort",
        later_system=exchange["model"] in LATER_SYSTEM,
    )
    profile = HOSTS.get(exchange["provider"], ANTHROPIC)
    return Target(exchange["provider"], exchange["model"], profile, ABLE, facts)


def sent_of(exchange: dict[str, Any]) -> EncodedRequest:
    return EncodedRequest("", exchange["request"] or {}, {}, {}, (), NameMap((), ANTHROPIC.names))


def decoded(exchange: dict[str, Any]) -> Response:
    return anthropic.decode(exchange["response"], sent_of(exchange), target_of(exchange))


ANSWERS = [exchange for exchange in EXCHANGES if "error" not in exchange["expected"]]
FAILURES = [exchange for exchange in EXCHANGES if "error" in exchange["expected"]]


# --- replies


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_decodes_to_its_recorded_reading(exchange: dict[str, Any]) -> None:
    expected, response = exchange["expected"], decoded(exchange)
    assert len(response.choices) == expected["n_choices"] == 1
    choice = response.choices[0]
    assert choice.text == (expected["text"] or "")
    assert text_parts(choice) == [text for text in expected["text_parts"] if text]
    assert choice.reasoning == expected["reasoning"]
    assert reasoning_texts(choice) == expected["reasoning_parts"]
    assert choice.refusal == expected["refusal"]
    assert [(call.id, call.name, call.arguments) for call in choice.tool_calls] == [
        (call["id"], call["name"], call["arguments"]) for call in expected["tool_calls"]
    ]
    assert builtin(choice) == expected["builtin"]
    assert choice.finish_reason == FINISH_REASONS[expected["finish_reason"]]
    assert response.model == expected["response_model"]
    assert response.id == expected["response_id"]
    assert used(response) == expected_use(expected["usage"])
    assert response.warnings == ()
    assert response.raw is exchange["response"]


def text_parts(choice: Choice) -> list[str]:
    if not choice.parts:
        return [choice.text] if choice.text else []
    return [part.text for part in choice.parts if isinstance(part, TextPart)]


def builtin(choice: Choice) -> list[str]:
    opaque: list[Any] = [part.data for part in choice.parts if isinstance(part, OpaquePart)]
    return [kind_of(data) for data in opaque if "type" in data]


def kind_of(block: dict[str, Any]) -> str:
    return f"{block['type']}:{block['name']}" if block["type"] == "server_tool_use" else str(block["type"])


def used(response: Response) -> dict[str, Any]:
    usage = response.usage
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached_input": usage.cached_tokens,
        "cache_write": usage.cache_write_tokens,
        "reasoning": usage.reasoning_tokens,
    }


def expected_use(usage: dict[str, Any]) -> dict[str, Any]:
    """The reading has the native numbers; decoded input tokens include reads and writes of the cache."""
    read = usage["input"] + (usage["cached_input"] or 0) + (usage["cache_write"] or 0)
    return {**{name: usage[name] for name in ("output", "cached_input", "cache_write", "reasoning")}, "input": read}


@pytest.mark.parametrize("exchange", FAILURES, ids=ids(FAILURES))
@pytest.mark.parametrize("inside", [False, True], ids=["by status", "inside a success"])
def test_recorded_failure_is_an_error_with_its_message_and_code(exchange: dict[str, Any], inside: bool) -> None:
    expected, body, target = exchange["expected"]["error"], exchange["response"], target_of(exchange)
    error: LMError = anthropic.decode_error(exchange["status"], {}, json.dumps(body), target)
    if inside:
        with pytest.raises(type(error)) as caught:
            anthropic.decode(body, sent_of(exchange), target)
        error = caught.value
    assert expected["message"].rstrip(".") in error.message
    assert error.provider_code == (expected["code"] or expected["type"])
    assert error.status == expected["status"]
    assert error.request_id == body["request_id"]


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_in_history_is_sent_unchanged(exchange: dict[str, Any]) -> None:
    target = target_of(exchange)
    said = decoded(exchange).choices[0].message()
    stored = Message.from_json(json.loads(json.dumps(said.to_json())))
    # A turn of the user's behind it: an answer that comes last loses its trailing white space.
    history = (Message.user("q"), stored, *results_for(stored), Message.user("r"))
    written: Any = anthropic.encode(Request(history), target).body["messages"]
    replayed = as_blocks(next(message for message in written if message["role"] == "assistant"))["content"]
    came = [without_empty(block) for block in exchange["response"]["content"]]
    assert replayed == [block for block in came if block.get("text", "x").strip()]


def without_empty(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "citations" or value}


# --- requests

Body = dict[str, Any]
Rule = Callable[[Body], Body]


def as_blocks(message: Body) -> Body:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": blocks}


def neighbours_joined(body: Body) -> Body:
    joined: list[Body] = []
    for message in map(as_blocks, body["messages"]):
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**message, "content": joined[-1]["content"] + message["content"]}
        else:
            joined.append(message)
    return {**body, "messages": joined}


def system_as_blocks(body: Body) -> Body:
    system = body.get("system")
    return {**body, "system": [{"type": "text", "text": system}]} if isinstance(system, str) else body


def results_plain(body: Body) -> Body:
    def plain(block: Body) -> Body:
        if block["type"] != "tool_result":
            return block
        block = {name: value for name, value in block.items() if (name, value) != ("is_error", False)}
        match block["content"]:
            case [{"type": "text", "text": str(text), **more}] if not more:
                return {**block, "content": text}
            case _:
                return block

    messages = [{**message, "content": [plain(block) for block in message["content"]]} for message in body["messages"]]
    return {**body, "messages": messages}


def tools_without_nothing(body: Body) -> Body:
    def bare(tool: Body) -> Body:
        if tool.get("input_schema") == {"type": "object"}:
            tool = {**tool, "input_schema": {"type": "object", "properties": {}}}
        return {
            name: value for name, value in tool.items() if value is not None and (name, value) != ("description", "")
        }

    return {**body, **({"tools": [bare(tool) for tool in body["tools"]]} if "tools" in body else {})}


def without_stream(body: Body) -> Body:
    return {name: value for name, value in body.items() if (name, value) != ("stream", False)}


EQUAL_FORMS: dict[str, Rule] = {
    "stream: false is the default": without_stream,
    "a text is a list of one text, and neighbours of one role are one turn": neighbours_joined,
    "the system text is a list of one text": system_as_blocks,
    "is_error: false is the default, and a list of one text in a result is the text": results_plain,
    "null settings, an empty description and no properties of a tool say nothing": tools_without_nothing,
}
"""Differences without meaning between a recorded and an encoded request, removed before the comparison."""

ONE_ID_TWICE = "two calls of the conversation have one id; ours differ, the same for call and result"
ASSISTANT_FIRST = "it begins with the assistant's turn; a short turn of the user's is put first, as documented"
SUMMARIZED = "effort asks for the thinking's text as well, which newer models omit by default"
EXCEPTIONS: dict[str, str] = {
    "an-ab0f709ab6": SUMMARIZED,
    "an-758e2240af": ONE_ID_TWICE,
    "an-dbfba3aa01": ONE_ID_TWICE,
    "an-b12593f3f8": ASSISTANT_FIRST,
}
"""Recorded requests that are encoded differently, each with the reason."""


def normal_body(body: Body) -> Body:
    return normal_form(body, EQUAL_FORMS)


REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_request_is_read_and_encoded_equally(exchange: dict[str, Any]) -> None:
    if exchange["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[exchange["id"]])
    request = read_request(exchange["request"])
    sent = anthropic.encode(request, target_of(exchange))
    assert normal_body(sent.body) == normal_body(exchange["request"])
    assert sent.warnings == ()
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_exceptions_differ_only_as_their_reason_states() -> None:
    for exchange in (exchange for exchange in REQUESTS if exchange["id"] in EXCEPTIONS):
        sent = anthropic.encode(read_request(exchange["request"]), target_of(exchange))
        encoded, recorded_body = normal_body(sent.body), normal_body(exchange["request"])
        if EXCEPTIONS[exchange["id"]] is ASSISTANT_FIRST:
            assert [warning.feature for warning in sent.warnings] == ["messages"]
            assert encoded["messages"].pop(0)["role"] == "user"
        elif EXCEPTIONS[exchange["id"]] is SUMMARIZED:
            assert encoded["thinking"].pop("display") == "summarized"
        else:
            encoded = json.loads(json.dumps(encoded).replace('0usajhl5_2"', '0usajhl5"'))
        assert encoded == recorded_body


def test_recorded_requests_have_few_opaque_parts_and_extra_fields() -> None:
    """All blocks and fields are modelled, except these kinds of block and these fields."""
    requests = [read_request(exchange["request"]) for exchange in REQUESTS]
    parts = [part for request in requests for message in request.messages for part in message.parts]
    opaque: list[Any] = [part.data for part in parts if isinstance(part, OpaquePart)]
    kinds = {data.get("type", "fields") for data in opaque}
    assert kinds <= {
        "fields", "container_upload", "tool_addition", "server_tool_use", "mcp_tool_use", "web_search_tool_result",
        "web_fetch_tool_result", "tool_search_tool_result", "bash_code_execution_tool_result",
    }  # fmt: skip
    extras: list[Any] = [request.options.get("extra_body") or {} for request in requests]
    assert {name for extra in extras for name in extra} <= {
        "container", "context_management", "mcp_servers", "output_config", "thinking",
    }  # fmt: skip


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    answers, requests = (Counter(exchange["provider"] for exchange in part) for part in (ANSWERS, REQUESTS))
    missing = {exchange["id"] for exchange in REQUESTS} & EXCEPTIONS.keys()
    with capsys.disabled():
        print(
            f"\nanthropic: {len(ANSWERS)} answers, {len(FAILURES)} failures, {len(REQUESTS) - len(missing)} requests"
            f" of {len(REQUESTS)}"
        )
        print("  " + ", ".join(f"{name} {answers[name]}/{requests[name]}" for name in sorted(answers)))
    assert len(ANSWERS) + len(FAILURES) == len(EXCHANGES)
    assert EXCEPTIONS.keys() == missing
