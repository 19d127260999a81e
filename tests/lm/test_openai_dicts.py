"""OpenAI-shaped dicts and objects, both ways."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError, LMUnexpectedError
from sigwire.lm.openai_dicts import (
    FINISH_REASONS,
    decode_answer,
    decode_messages,
    decode_request,
    encode_call,
    encode_messages,
    encode_outputs,
)

CALL = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
MESSAGES: list[tuple[Message, list[dict[str, Any]]]] = [
    (Message.system("be brief"), [{"role": "system", "content": "be brief"}]),
    (Message.user("hi"), [{"role": "user", "content": "hi"}]),
    (
        Message("user", (TextPart("see"), ImagePart(url="https://x/y.png", detail="low"))),
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
                ],
            }
        ],
    ),
    (
        Message(
            "user", (ImagePart(data="QQ==", media_type="image/jpeg"), AudioPart("QQ==", "mp3"), FilePart(file_id="f1"))
        ),
        [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QQ=="}},
                    {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
                    {"type": "file", "file": {"file_id": "f1"}},
                ],
            }
        ],
    ),
    (
        Message("assistant", (ThinkingPart("hm"), TextPart("yes"), ToolCall("call_0", "f", {"a": 1}, '{"a":1}'))),
        [{"role": "assistant", "content": "yes", "tool_calls": [CALL], "reasoning_content": "hm"}],
    ),
    (
        Message.assistant("", [ToolCall("call_0", "f", {"a": 1}, '{"a":1}')]),
        [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
    ),
    (
        Message.tool(ToolResult("call_0", "f", "one"), ToolResult("call_1", "g", "two")),
        [
            {"role": "tool", "tool_call_id": "call_0", "name": "f", "content": "one"},
            {"role": "tool", "tool_call_id": "call_1", "name": "g", "content": "two"},
        ],
    ),
]


@pytest.mark.parametrize(("message", "dicts"), MESSAGES)
def test_decoded_messages_equal_the_encoded_ones(message: Message, dicts: list[dict[str, Any]]) -> None:
    assert encode_messages([message]) == dicts
    assert decode_messages(dicts) == (message,)


def test_tool_result_without_name_gets_the_name_of_its_call() -> None:
    decoded = decode_messages(
        [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_0", "content": "one"}]
    )
    assert decoded[1].tool_results[0].name == "f"


texts = st.text(max_size=20)
arguments = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | texts, max_size=3)


@given(st.lists(st.sampled_from(["system", "user"]).flatmap(lambda r: st.builds(lambda t: (r, t), texts)), max_size=5))
def test_any_decoded_conversation_equals_the_encoded_one(turns: list[tuple[Any, str]]) -> None:
    messages = tuple(Message(role, (TextPart(text),) if text else ()) for role, text in turns)
    assert decode_messages(encode_messages(messages)) == messages


@given(arguments)
def test_any_decoded_arguments_equal_the_encoded_ones(given_arguments: dict[str, Any]) -> None:
    (message,) = decode_messages(encode_messages([Message.assistant("", [ToolCall("c", "f", given_arguments)])]))
    assert message.tool_calls[0].arguments == given_arguments


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
CALLS = [
    Request((Message.user("hi"),), options={"temperature": 0.5, "n": 2}),
    Request((Message.user("hi"),), (TOOL,), ToolChoice.AUTO, True),
    Request((Message.user("hi"),), (TOOL,), ToolChoice.named("f")),
    Request((Message.user("hi"),), (TOOL,), ToolChoice("auto", ("f", "g"))),
    Request((Message.user("hi"),), response_format=ResponseFormat()),
    Request((Message.user("hi"),), response_format=ResponseFormat({"type": "object"}, "answer")),
]


@pytest.mark.parametrize("request_", CALLS)
def test_decoded_call_equals_the_encoded_one(request_: Request) -> None:
    assert decode_request(*encode_call(request_)) == request_


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "wizard", "content": "x"}],
        [{"role": "user", "content": [{"type": "video"}]}],
        [{"role": "user", "content": 3}],
    ],
)
def test_decode_messages_names_unknown_roles_and_parts(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="decoding messages"):
        decode_messages(messages)


def test_response_format_of_wrong_type_is_refused() -> None:
    with pytest.raises(InputError, match="response_format is type"):
        decode_request([], {"response_format": int})


@pytest.mark.parametrize(("theirs", "ours"), FINISH_REASONS.items())
def test_finish_reasons_have_one_meaning(theirs: str, ours: str) -> None:
    answer = {"choices": [{"message": {"content": "x"}, "finish_reason": theirs}]}
    assert decode_answer(answer).choices[0].finish_reason == ours


def test_unknown_finish_reason_is_a_warning() -> None:
    response = decode_answer({"choices": [{"message": {"content": "x"}, "finish_reason": "bored"}]})
    assert response.choices[0].finish_reason == "stop"
    assert response.warnings[0].feature == "finish_reason"


def test_finish_reason_is_tool_calls_when_stop_has_calls() -> None:
    response = decode_answer(
        {"choices": [{"message": {"content": None, "tool_calls": [CALL]}, "finish_reason": "stop"}]}
    )
    assert response.choices[0].finish_reason == "tool_calls"
    assert response.choices[0].text == ""


def test_objects_and_dicts_decode_equally() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
    as_dict = {
        "id": "r",
        "model": "m",
        "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
        "usage": usage,
    }
    as_object = SimpleNamespace(
        id="r", model="m", choices=[SimpleNamespace(message=SimpleNamespace(content="x"), finish_reason="stop")],
        usage=SimpleNamespace(**{**usage, "prompt_tokens_details": SimpleNamespace(cached_tokens=1)}),
    )  # fmt: skip
    for answer in (as_dict, as_object):
        response = decode_answer(answer)
        assert (response.id, response.model, response.choices[0].text) == ("r", "m", "x")
        assert response.usage == Usage(3, 2, 1)


def test_malformed_arguments_stay_on_their_call() -> None:
    broken = {"id": "b", "function": {"name": "g", "arguments": '{"a": '}}
    response = decode_answer({"choices": [{"message": {"content": "text", "tool_calls": [CALL, broken]}}]})
    good, bad = response.choices[0].tool_calls
    assert good.arguments == {"a": 1}
    assert bad.error is not None
    assert bad.raw_arguments == '{"a": '


def test_decode_answer_accepts_text_completions_and_lists() -> None:
    assert decode_answer({"choices": [{"text": "x"}]}).choices[0].text == "x"
    assert decode_answer("x").choices == (Choice("x"),)
    assert [c.text for c in decode_answer(["x", {"text": "y", "reasoning_content": "z"}]).choices] == ["x", "y"]


@pytest.mark.parametrize("answer", [None, 3, object(), {"choices": "x"}, [3]])
def test_decode_answer_refuses_other_values(answer: Any) -> None:
    with pytest.raises(LMUnexpectedError):
        decode_answer(answer)


def test_decoded_outputs_equal_the_encoded_ones() -> None:
    choices = (
        Choice("a"),
        Choice("b", (ToolCall("call_0", "f", {"a": 1}, '{"a":1}'),), "why", finish_reason="tool_calls"),
    )
    assert decode_answer(encode_outputs(decode_answer(list(encode_outputs_of(choices))))).choices == choices


def encode_outputs_of(choices: tuple[Choice, ...]) -> list[Any]:
    from sigwire.core.response import Response

    return list(encode_outputs(Response(choices)))


def test_response_format_is_read_from_both_forms_of_openai() -> None:
    described: dict[str, Any] = {"name": "answer", "schema": {"type": "object"}}
    for wanted in ({"type": "json_schema", **described}, {"type": "json_schema", "json_schema": described}):
        assert decode_request([], {"response_format": wanted}).response_format == ResponseFormat(
            {"type": "object"}, "answer"
        )
    assert decode_request([], {"response_format": {"type": "json_object"}}).response_format == ResponseFormat()
    assert decode_request([], {"response_format": {"type": "text"}}).response_format is None
