"""Recorded chat completions of many hosts: replies decode to the recorded reading, requests are read and encoded equally."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.errors import LMError
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import COMPATIBLE, OPENAI, PROFILES, ChatProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.conformance.readings import USED, expected_call, normal_form, read_call, sent_of, used, without_space
from tests.conformance.recordings import ids, recorded
from tests.lm.codecs.openai_chat.reading import read_request

EXCHANGES = recorded("openai-chat.jsonl")
ABLE = Capabilities(
    json_schema=True, json_object=True, tools_with_json_schema=True, native_tools=True, tool_choice=True
)

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


HOSTS: dict[str, ChatProfile] = {
    **PROFILES,
    "ollama": PROFILES["ollama-chat"],
    "zai": replace(COMPATIBLE, family="zai", replay="reasoning_content"),
}


def target_of(exchange: dict[str, Any]) -> Target[ChatProfile]:
    profile = HOSTS.get(exchange["provider"], COMPATIBLE)
    return Target(exchange["provider"], exchange["model"], profile, ABLE)


def decoded(exchange: dict[str, Any]) -> Response:
    return openai_chat.decode(exchange["response"], sent_of(exchange), target_of(exchange))


ANSWERS = [exchange for exchange in EXCHANGES if "error" not in exchange["expected"]]
FAILURES = [exchange for exchange in EXCHANGES if "error" in exchange["expected"]]


# --- replies


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_decodes_to_its_recorded_reading(exchange: dict[str, Any]) -> None:
    expected, response = exchange["expected"], decoded(exchange)
    readings = expected.get("choices") or [expected]
    assert len(response.choices) == expected["n_choices"] == len(readings)
    for choice, reading in zip(response.choices, readings, strict=True):
        assert choice.text == (reading["text"] or "")
        assert without_space(choice.reasoning) == without_space(reading["reasoning"])
        assert choice.refusal == reading["refusal"]
        assert [read_call(call) for call in choice.tool_calls] == [
            expected_call(call) for call in reading["tool_calls"]
        ]
        assert choice.finish_reason == expected_finish(choice, reading)
    assert response.model == (expected["response_model"] or None)
    assert response.id == (expected["response_id"] or None)
    assert used(response) == {name: expected["usage"][name] for name in USED}
    assert response.raw is exchange["response"]


def expected_finish(choice: Choice, reading: dict[str, Any]) -> str:
    """Return the canonical finish reason. An empty or unknown one follows from the content."""
    if choice.tool_calls:
        return "tool_calls"
    if reading["refusal"]:
        return "content_filter"
    return str(reading["finish_reason"] or "stop")


@pytest.mark.parametrize("exchange", FAILURES, ids=ids(FAILURES))
def test_recorded_failure_is_an_error_with_its_message_and_code(exchange: dict[str, Any]) -> None:
    expected, body = exchange["expected"]["error"], exchange["response"]
    if exchange["status"] == 200:
        with pytest.raises(LMError) as caught:
            decoded(exchange)
        error = caught.value
    else:
        text = body if isinstance(body, str) else json.dumps(body)
        error = openai_chat.decode_error(exchange["status"], {}, text, target_of(exchange))
    assert expected["message"].rstrip(".") in error.message
    assert error.provider_code == (expected["code"] or expected["type"])
    assert error.status == expected["status"]


def test_recorded_rejected_call_has_the_complaint() -> None:
    (exchange,) = (one for one in FAILURES if one["expected"]["error"]["code"] == "tool_use_failed")
    text = json.dumps(exchange["response"])
    response = openai_chat.recover(exchange["status"], {}, text, sent_of(exchange), target_of(exchange))
    assert response is not None
    (call,) = response.choices[0].tool_calls
    assert (call.name, call.arguments) == ("get_something_by_name", {"foo": "bar"})
    assert call.error is not None
    assert call.error.message == exchange["expected"]["error"]["message"]


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_in_history_is_sent_unchanged(exchange: dict[str, Any]) -> None:
    target = target_of(exchange)
    target = replace(
        target, profile=replace(target.profile, history_rules=replace(target.profile.history_rules, ids=None))
    )
    came = exchange["response"]["choices"][0]["message"]
    choice = openai_chat.decode(exchange["response"], sent_of(exchange), target).choices[0]
    written: Any = openai_chat.encode(Request((Message.user("q"), choice.message())), target).body["messages"]
    replayed: dict[str, Any] = next((message for message in written if message["role"] == "assistant"), {})
    if target.profile.replay == "tags" and came.get("reasoning"):  # in the text
        came = {**came, "content": f"<think>\n{came['reasoning']}\n</think>\n{came['content']}"}
    assert comparable(replayed, target) == comparable(came, target)


def comparable(message: dict[str, Any], target: Target[ChatProfile]) -> dict[str, Any]:
    """Return the fields to compare: content, calls with their ids, and reasoning that the host wants again."""
    content = message.get("content")
    calls = [
        {
            "id": call["id"],
            "name": call["function"]["name"],
            "arguments": compact(call["function"].get("arguments", "")),
        }
        for call in message.get("tool_calls") or ()
    ]
    field = target.profile.replay
    details = message.get("reasoning_details") or None
    thinking = message.get(field) if field in ("reasoning", "reasoning_content") and not details else None
    return {"content": content or None, "calls": calls, "details": details, "thinking": thinking or None}


# --- requests

Rule = Callable[[dict[str, Any]], dict[str, Any]]


def each_message(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Rule:
    return lambda body: {**body, "messages": [change(message) for message in body["messages"]]}


def without_stream(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "stream" or value}


def without_empty_fields(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None and (name, value) != ("tools", [])}


def without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    message = {
        name: value for name, value in message.items() if value is not None and (name, value) != ("tool_calls", [])
    }
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [{name: value for name, value in part.items() if value is not None} for part in content]
    return {**message, "content": parts or None}


def plain_text(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
        return {**message, "content": content[0]["text"]}
    return message


def content_named(message: dict[str, Any]) -> dict[str, Any]:
    return {"content": None, **message} if message.get("tool_calls") else message


def without_prefix(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if (name, value) != ("prefix", False)}


def calls_bare(message: dict[str, Any]) -> dict[str, Any]:
    if not message.get("tool_calls"):
        return message
    calls = [{name: call[name] for name in call if name != "index"} for call in message["tool_calls"]]
    return {**message, "tool_calls": calls}


def arguments_compact(message: dict[str, Any]) -> dict[str, Any]:
    if not message.get("tool_calls"):
        return message
    calls = [
        {**c, "function": {**c["function"], "arguments": compact(c["function"]["arguments"])}}
        for c in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def compact(arguments: str) -> str:
    return json.dumps(json.loads(arguments or "{}"), ensure_ascii=False, separators=(",", ":"))


def tools_typed(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, **({"tools": [{"type": "function", **tool} for tool in body["tools"]]} if "tools" in body else {})}


def without_strict(body: dict[str, Any]) -> dict[str, Any]:
    def bare(tool: dict[str, Any]) -> dict[str, Any]:
        if "function" not in tool:  # run by the host
            return tool
        return {**tool, "function": {name: value for name, value in tool["function"].items() if name != "strict"}}

    return {**body, **({"tools": [bare(tool) for tool in body["tools"]]} if "tools" in body else {})}


def without_empty_descriptions(body: dict[str, Any]) -> dict[str, Any]:
    def bare(tool: dict[str, Any]) -> dict[str, Any]:
        if "function" not in tool:
            return tool
        function = tool["function"].items()
        return {**tool, "function": {name: value for name, value in function if (name, value) != ("description", "")}}

    return {**body, **({"tools": [bare(tool) for tool in body["tools"]]} if "tools" in body else {})}


def choice_typed(body: dict[str, Any]) -> dict[str, Any]:
    choice = body.get("tool_choice")
    return {**body, "tool_choice": {"type": "function", **choice}} if isinstance(choice, dict) else body


EQUAL_FORMS: dict[str, Rule] = {
    "stream: false is the default": without_stream,
    "null fields and empty lists of tools say nothing": without_empty_fields,
    "null fields and empty lists of calls or content say nothing": each_message(without_nulls),
    "a list of one text is the text": each_message(plain_text),
    "absent content beside calls is null": each_message(content_named),
    "prefix: false is the default": each_message(without_prefix),
    "a call's index is its place": each_message(calls_bare),
    "arguments are compared as JSON": each_message(arguments_compact),
    "a tool's type is function unless said": tools_typed,
    "a named choice's type is function": choice_typed,
    "an empty description says nothing": without_empty_descriptions,
    "strict is never sent for a caller's schema": without_strict,
}
"""Differences without meaning between a recorded and an encoded request, removed before the comparison."""

CACHED_RESULT = "a cache mark on a single result is not modelled"
EXCEPTIONS: dict[str, str] = {
    "oc-e7bfa8f073": CACHED_RESULT,
}
"""Recorded requests that are encoded differently, each with the reason."""


def normal_body(body: dict[str, Any]) -> dict[str, Any]:
    return normal_form(body, EQUAL_FORMS)


REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]


def rewritten(exchange: dict[str, Any]) -> tuple[Request, dict[str, Any]]:
    target = target_of(exchange)
    # The name of the token limit: the recorded program chose one, the encoder follows the host.
    if "max_completion_tokens" in exchange["request"] and target.profile.options.get("max_tokens"):
        target = replace(target, profile=replace(target.profile, options={}))
    request = read_request(exchange["request"], target.profile)
    return request, openai_chat.encode(request, target).body


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_request_is_read_and_encoded_equally(exchange: dict[str, Any]) -> None:
    if exchange["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[exchange["id"]])
    request, body = rewritten(exchange)
    assert normal_body(body) == normal_body(exchange["request"])
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_every_exception_differs_as_its_reason_states() -> None:
    for exchange in (exchange for exchange in REQUESTS if exchange["id"] in EXCEPTIONS):
        _, body = rewritten(exchange)
        encoded, recorded_body = normal_body(body), normal_body(exchange["request"])
        assert encoded != recorded_body
        assert without_marks(encoded) == without_marks(recorded_body)


def without_marks(value: Any) -> Any:
    """Remove cache marks, and replace a list of one text by the text."""
    if isinstance(value, list):
        return [without_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    return plain_text({name: without_marks(item) for name, item in value.items() if name != "cache_control"})


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    answers, requests = (Counter(exchange["provider"] for exchange in part) for part in (ANSWERS, REQUESTS))
    missing = {exchange["id"] for exchange in REQUESTS} & EXCEPTIONS.keys()
    with capsys.disabled():
        print(
            f"\nopenai-chat: {len(ANSWERS)} answers, {len(FAILURES)} failures, {len(REQUESTS) - len(missing)} requests"
        )
        print("  " + ", ".join(f"{name} {answers[name]}/{requests[name]}" for name in sorted(requests)))
    assert len(ANSWERS) + len(FAILURES) == len(EXCHANGES)
    assert EXCEPTIONS.keys() == missing
    assert OPENAI is PROFILES["openai"]
