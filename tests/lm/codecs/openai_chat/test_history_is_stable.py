"""Chat completions: cached turns of a conversation are encoded like new turns."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import COMPATIBLE, DEEPSEEK, MISTRAL, OPENAI, ChatProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.openai_chat.wire import ASKED, encoded, target


def _copies(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(Message.from_json(message.to_json()) for message in messages)


CONVERSATION = (
    Message.system("S"),
    Message.user("q"),
    Message("assistant", (ThinkingPart("hm"), TextPart("t"), ToolCall("a", "db.find", {"n": 1}))),
    Message.tool(ToolResult("a", "db.find", {"found": [1]})),
    Message.assistant(tool_calls=[ToolCall("b", "db_find", {}), ToolCall("c", "db.find", None, "{")]),
    Message.tool(ToolResult("b", "db_find", "boom", True), ToolResult("c", "db.find", "é")),
    Message.assistant("done"),
    Message.user("more"),
)
TARGETS = [target(profile) for profile in (OPENAI, COMPATIBLE, MISTRAL, DEEPSEEK, OPENAI)]


@given(st.lists(st.tuples(st.integers(1, len(CONVERSATION)), st.sampled_from(TARGETS)), max_size=12))
def test_cached_turns_are_encoded_like_new_turns(rounds: list[tuple[int, Target[ChatProfile]]]) -> None:
    for length, to in rounds:  # each request has other names and ids
        sent, new = (
            openai_chat.encode(Request(CONVERSATION[:length]), to),
            openai_chat.encode(Request(_copies(CONVERSATION[:length])), to),
        )
        assert (sent.body, sent.warnings, sent.call_ids) == (new.body, new.warnings, new.call_ids)


def test_new_tool_can_have_the_wire_name_of_an_old_call() -> None:
    talk = (
        ASKED,
        Message.assistant(tool_calls=[ToolCall("a", "db.find", {})]),
        Message.tool(ToolResult("a", "db.find", "")),
    )
    offer: JsonObject = {"type": "function", "function": {"name": "db_find", "description": "", "parameters": {}}}
    alone, beside = encoded(Request(talk)), encoded(Request(talk, (offer,)))
    names = [sent.body["messages"][1]["tool_calls"][0]["function"]["name"] for sent in (alone, beside)]  # type: ignore[index,call-overload]
    assert names[0] == "db_find" != names[1]
    assert beside.names.decode(str(names[1])) == "db.find"
