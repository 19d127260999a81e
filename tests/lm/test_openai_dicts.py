"""OpenAI-shaped dicts and objects, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import InputError
from sigwire.lm.openai_dicts import (
    decode_call,
    decode_messages,
    encode_call,
    encode_messages,
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
    messages, kwargs = encode_call(request_)
    assert decode_call(messages=messages, **kwargs) == request_


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
        decode_call(messages=[], response_format=int)


def test_response_format_is_read_from_both_forms_of_openai() -> None:
    described: dict[str, Any] = {"name": "answer", "schema": {"type": "object"}}
    for wanted in ({"type": "json_schema", **described}, {"type": "json_schema", "json_schema": described}):
        assert decode_call(messages=[], response_format=wanted).response_format == ResponseFormat(
            {"type": "object"}, "answer"
        )
    assert decode_call(messages=[], response_format={"type": "json_object"}).response_format == ResponseFormat()
    assert decode_call(messages=[], response_format={"type": "text"}).response_format is None
