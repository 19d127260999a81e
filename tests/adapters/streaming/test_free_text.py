"""Answers without outputs, in pieces: what is text, what was thought, and no tag of either."""

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
@pytest.mark.parametrize(("text", "thought", "said"), ANSWERS)
@pytest.mark.parametrize("tools", [(), (Tool(double),)], ids=["no tools", "tools"])
def test_a_thinking_block_is_told_as_thinking_without_its_tags(
    text: str, thought: str, said: str, tools: tuple[Tool, ...], size: int
) -> None:
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    told = read(FieldReader(ChatAdapter().plan(Acting), tools), [*pieces, ChoiceEnd()])
    assert "".join(event.text for event in told.events if isinstance(event, ReasoningDelta)) == thought
    assert (told.free if not tools else told.free.rstrip()) == (said if not tools else said.rstrip())
    assert not any(isinstance(event, ToolCallStart) for event in told.events)


def test_a_call_after_thinking_is_a_call() -> None:
    text = f"<think>Hm</think>I look. {CALL}"
    told = read(FieldReader(ChatAdapter().plan(Acting), (Tool(double),)), [*map(TextDelta, text), ChoiceEnd()])
    assert type(told.events[0]) is ReasoningDelta
    assert (told.free, [call.name for call in told.calls]) == ("I look.", ["double"])
