"""``calls_alone``: a call with other text is text, in a stream too; no event of a call is emitted at any moment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.events import ToolCallDelta, ToolCallEnd, ToolCallStart
from tests.adapters.streaming.emitting import cut_at, cuts
from tests.adapters.streaming.test_streaming import MARKS, PING, WithTools, check, plan_of
from tests.grids import grid

ADAPTERS: list[Adapter] = [ChatAdapter(calls_alone=True), JSONAdapter(calls_alone=True), XMLAdapter(calls_alone=True)]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)

CALLS = [
    '~~~tool_call\n{"name": "ping", "arguments": {"text": "a"}}\n~~~',
    '<tool_call>\n{"name": "ping", "arguments": {"text": "a"}}\n</tool_call>',
    '[TOOL_CALLS][{"name": "ping", "arguments": {"text": "a"}}]',
    "<function=ping>\n<parameter=text>\na\n</parameter>\n</function>",
    '<|python_tag|>{"name": "ping", "parameters": {"text": "a"}}',
]
each_call = pytest.mark.parametrize("call", CALLS)

WITH_TEXT = [
    "I will run {}",
    "{}\nThat should do.",
    "First.\n{}\nThen.",
    "[[ ## text ## ]]\nOslo\n\n{}",
    "{}\n\n[[ ## text ## ]]\nOslo\n\n[[ ## completed ## ]]",
    '{{"text": "Oslo"}}\n{}',
    "{}\n<text>\nOslo\n</text>",
    "> {}",
]


def every_cut(text: str) -> list[list[str]]:
    return [[*text], *([text[:cut], text[cut:]] for cut in range(len(text)))]


@each_adapter
@each_call
def test_message_with_only_a_call_is_the_call_at_every_cut(adapter: Adapter, call: str) -> None:
    for text in (call, f"\n\n{call}\n \n"):
        for chunks in every_cut(text):
            streamed = check(plan_of(adapter, WithTools), text, chunks, (PING,))
            assert [(one.name, one.arguments) for one in streamed.calls] == [("ping", {"text": "a"})]
            assert not streamed.texts
            assert not streamed.free


@grid("surroundings, adapter", WITH_TEXT, ADAPTERS)
def test_message_with_other_text_has_no_call_at_any_cut(adapter: Adapter, surroundings: str) -> None:
    for call in CALLS[:2]:
        text = surroundings.format(call)
        for chunks in every_cut(text):
            streamed = check(plan_of(adapter, WithTools), text, chunks, (PING,))
            assert not any(isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd) for event in streamed.events)


@each_adapter
@given(st.lists(st.sampled_from([*MARKS, *CALLS]), max_size=6).map("".join), cuts)
def test_cut_answer_has_the_calls_of_the_whole_answer(adapter: Adapter, text: str, at: list[int]) -> None:
    check(plan_of(adapter, WithTools), text, cut_at(text, at), (PING,))
