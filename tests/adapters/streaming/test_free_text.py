"""Answers without outputs, in chunks: text, reasoning, and no tag in either."""

from __future__ import annotations

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.streaming import FieldReader
from sigwire.core.events import ChoiceEnd, ReasoningDelta, TextDelta, ToolCallStart
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from tests.adapters.streaming.emitting import read

CALL = '<tool_call>{"name": "double", "arguments": {"n": 2}}</tool_call>'


def double(n: int) -> int:
    """Twice the number."""
    return 2 * n


class Acting(Signature):
    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


ANSWERS = [
    ("Yes.", "", "Yes."),
    ("  Yes <think> is a tag.", "", "  Yes <think> is a tag."),
    ("<think>Hm < </thin\n</think>\n\nYes.", "Hm < </thin\n", "Yes."),
    ("\n<thinking>Hm</thinking>Yes. </think>", "Hm", "Yes. </think>"),
    ("<think>a</think>\n<think>b</think> Yes.", "a", "<think>b</think> Yes."),
    ("<think>only that</think>", "only that", ""),
    ("<think>never over </thi", "never over </thi", ""),
    ("<thin", "", "<thin"),
    ("<think>I could say " + CALL + " but no</think>\nNo.", "I could say " + CALL + " but no", "No."),
    (" " * 300 + "<think>x", "x", ""),
    (" \n ", "", " \n "),
    ("", "", ""),
]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(("text", "thought", "answer"), ANSWERS)
@pytest.mark.parametrize("tools", [(), (Tool(double),)], ids=["no tools", "tools"])
def test_thinking_block_is_emitted_as_reasoning_without_its_tags(
    text: str, thought: str, answer: str, tools: tuple[Tool, ...], size: int
) -> None:
    chunks = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    streamed = read(FieldReader(ChatAdapter().plan(Acting), tools), [*chunks, ChoiceEnd()])
    assert "".join(event.text for event in streamed.events if isinstance(event, ReasoningDelta)) == thought
    assert (streamed.free if not tools else streamed.free.rstrip()) == (answer if not tools else answer.rstrip())
    assert not any(isinstance(event, ToolCallStart) for event in streamed.events)


def test_a_call_after_thinking_is_a_call() -> None:
    text = f"<think>Hm</think>I look. {CALL}"
    streamed = read(FieldReader(ChatAdapter().plan(Acting), (Tool(double),)), [*map(TextDelta, text), ChoiceEnd()])
    assert type(streamed.events[0]) is ReasoningDelta
    assert (streamed.free, [call.name for call in streamed.calls]) == ("I look.", ["double"])
