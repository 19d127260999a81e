"""Recorded Responses traffic: replies decode to the recorded reading, requests are read and encoded equally."""

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
from sigwire.errors import LMError
from sigwire.lm.codecs import openai_responses
from sigwire.lm.codecs.openai_responses import OPENAI, ResponsesProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.conformance.readings import USED, expected_call, normal_form, read_call, sent_of, used, without_space
from tests.conformance.recordings import ids, recorded
from tests.lm.codecs.openai_responses.reading import read_request

EXCHANGES = recorded("openai-responses.jsonl")
ABLE = Capabilities(
    json_schema=True, json_object=True, tools_with_json_schema=True, native_tools=True, tool_choice=True
)
ENCRYPTED = "reasoning.encrypted_content"

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


HOSTS: dict[str, ResponsesProfile] = {"azure": openai_responses.AZURE, "deepseek": openai_responses.DEEPSEEK}


def target_of(exchange: dict[str, Any]) -> Target[ResponsesProfile]:
    """The recorded program asked for encrypted reasoning if the model reasons."""
    reasons = ENCRYPTED in ((exchange["request"] or {}).get("include") or ())
    profile = HOSTS.get(exchange["provider"], OPENAI)
    return Target(exchange["provider"], exchange["model"], profile, replace(ABLE, reasoning=reasons))


def decoded(exchange: dict[str, Any]) -> Response:
    return openai_responses.decode(exchange["response"], sent_of(exchange), target_of(exchange))


ANSWERS = [exchange for exchange in EXCHANGES if "error" not in exchange["expected"]]
FAILURES = [exchange for exchange in EXCHANGES if "error" in exchange["expected"]]


# --- replies


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_decodes_to_its_recorded_reading(exchange: dict[str, Any]) -> None:
    expected, response = exchange["expected"], decoded(exchange)
    (choice,) = response.choices
    assert choice.text == (expected["text"] or "")
    assert texts_of(choice) == [text for text in expected["text_parts"] if text]
    assert without_space(choice.reasoning) == without_space(expected["reasoning"])
    assert items_of(choice, "reasoning") == ["reasoning"] * expected.get("reasoning_items", 0)
    assert builtin_of(choice) == expected["builtin"]
    assert choice.refusal == expected["refusal"]
    assert [read_call(call) for call in choice.tool_calls] == [expected_call(call) for call in expected["tool_calls"]]
    assert choice.finish_reason == expected_finish(choice, expected)
    assert response.model == (expected["response_model"] or None)
    assert response.id == (expected["response_id"] or None)
    assert used(response) == {name: (expected["usage"] or {}).get(name) for name in USED}
    assert response.raw is exchange["response"]


def texts_of(choice: Choice) -> list[str]:
    return [part.text for part in choice.parts if isinstance(part, TextPart)]


def items_of(choice: Choice, kind: str) -> list[str]:
    found = [part.data for part in choice.parts if isinstance(part, OpaquePart) and isinstance(part.data, dict)]
    return [str(data["type"]) for data in found if data["type"] == kind]


def builtin_of(choice: Choice) -> list[str]:
    found = [part.data for part in choice.parts if isinstance(part, OpaquePart) and isinstance(part.data, dict)]
    return [str(data["type"]) for data in found if data["type"] not in ("message", "reasoning")]


NOT_YET = ("queued", "in_progress")


def expected_finish(choice: Choice, reading: dict[str, Any]) -> str:
    """Return the canonical finish reason: by the content, else by the status."""
    if reading["finish_reason"] in NOT_YET:
        return "error"
    return "tool_calls" if choice.tool_calls else "stop"


@pytest.mark.parametrize("exchange", FAILURES, ids=ids(FAILURES))
def test_recorded_failure_is_an_error_with_its_message_and_code(exchange: dict[str, Any]) -> None:
    expected, body = exchange["expected"]["error"], exchange["response"]
    error: LMError = openai_responses.decode_error(exchange["status"], {}, json.dumps(body), target_of(exchange))
    assert expected["message"].rstrip(".") in error.message
    assert error.provider_code == (expected["code"] or expected["type"])
    assert error.status == expected["status"]


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_in_history_is_sent_unchanged(exchange: dict[str, Any]) -> None:
    target = replace(target_of(exchange), profile=OPENAI)
    choice = openai_responses.decode(exchange["response"], sent_of(exchange), target).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    written: Any = openai_responses.encode(Request((Message.user("q"), stored)), target).body["input"]
    replayed = [item for item in written[1:] if item["type"] != "function_call_output"]
    assert [comparable(item) for item in replayed] == [comparable(item) for item in exchange["response"]["output"]]


def comparable(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without log probabilities, with arguments as JSON."""
    if item["type"] == "message":
        content = [{name: value for name, value in part.items() if name != "logprobs"} for part in item["content"]]
        return {**item, "content": content}
    return arguments_compact(item)


# --- requests

Rule = Callable[[dict[str, Any]], dict[str, Any]]


def each_item(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    return lambda body: {**body, "input": [change(item) for item in body["input"]]}


def each_tool(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    return lambda body: {**body, **({"tools": [change(tool) for tool in body["tools"]]} if "tools" in body else {})}


def without_nulls(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def without_defaults(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if (name, value) not in (("stream", False), ("store", True))}


def without_empty_texts(body: dict[str, Any]) -> dict[str, Any]:
    body = {name: value for name, value in body.items() if (name, value) != ("instructions", "")}
    return {**body, "input": [item for item in body["input"] if item.get("content") != ""]}


def without_null_effort(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, **({"reasoning": without_nulls(body["reasoning"])} if "reasoning" in body else {})}


def instructed(body: dict[str, Any]) -> dict[str, Any]:
    items = body["input"]
    first = items[0] if items else {}
    if (
        "instructions" in body
        or first.get("role") not in ("system", "developer")
        or not isinstance(first.get("content"), str)
    ):
        return body
    return {**body, "instructions": first["content"], "input": items[1:]}


def of_one_system_role(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "role": "developer"} if item.get("role") == "system" else item


def plain_text(item: dict[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
        return {**item, "content": content[0]["text"]} if content[0]["type"] == "input_text" else item
    return item


def arguments_compact(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type") != "function_call":
        return item
    arguments = json.loads(item["arguments"] or "{}")
    return {**item, "arguments": json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))}


def without_empty_description(tool: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tool.items() if (name, value) != ("description", "")}


def without_strict(tool: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tool.items() if name != "strict"} if tool["type"] == "function" else tool


EQUAL_FORMS: dict[str, Rule] = {
    "null fields say nothing": without_nulls,
    "a null effort says nothing": without_null_effort,
    "stream: false and store: true are the defaults": without_defaults,
    "empty instructions and messages of empty text say nothing": without_empty_texts,
    "a system item at the front is the instructions": instructed,
    "system and developer are one role": each_item(of_one_system_role),
    "null fields of an item say nothing": each_item(without_nulls),
    "a list of one text is the text": each_item(plain_text),
    "arguments are compared as JSON": each_item(arguments_compact),
    "null fields of a tool say nothing": each_tool(without_nulls),
    "an empty description says nothing": each_tool(without_empty_description),
    "strict is never sent for a caller's schema": each_tool(without_strict),
}
"""Differences without meaning between a recorded and an encoded request, removed before the comparison."""

EXCEPTIONS: dict[str, str] = {
    "or-70d868d1a6": "the host refused it: a turn may not go on after a call there, so we send the calls last",
}
"""Recorded requests that are encoded differently, each with the reason."""


def normal_body(body: dict[str, Any]) -> dict[str, Any]:
    return normal_form(body, EQUAL_FORMS)


REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_request_is_read_and_encoded_equally(exchange: dict[str, Any]) -> None:
    if exchange["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[exchange["id"]])
    target = target_of(exchange)
    request = read_request(exchange["request"], target.profile)
    body = openai_responses.encode(request, target).body
    assert normal_body(body) == normal_body(exchange["request"])
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_every_exception_has_the_same_items_in_another_order() -> None:
    for exchange in (exchange for exchange in REQUESTS if exchange["id"] in EXCEPTIONS):
        target = target_of(exchange)
        sent = openai_responses.encode(read_request(exchange["request"], target.profile), target)
        encoded, recorded_body = normal_body(sent.body), normal_body(exchange["request"])
        assert encoded["input"] != recorded_body["input"]
        items, recorded_items = (
            sorted(json.dumps(item, sort_keys=True) for item in body["input"]) for body in (encoded, recorded_body)
        )
        assert items == recorded_items


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    answers, requests = (Counter(exchange["provider"] for exchange in part) for part in (ANSWERS, REQUESTS))
    missing = {exchange["id"] for exchange in REQUESTS} & EXCEPTIONS.keys()
    with capsys.disabled():
        written = len(REQUESTS) - len(missing)
        print(f"\nopenai-responses: {len(ANSWERS)} answers, {len(FAILURES)} failures, {written} requests")
        print("  " + ", ".join(f"{name} {answers[name]}/{requests[name]}" for name in sorted(requests)))
    assert len(ANSWERS) + len(FAILURES) == len(EXCHANGES)
    assert EXCEPTIONS.keys() == missing
