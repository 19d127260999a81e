"""The events of an answer, and the chunk that brings each of them, layout by layout."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter, ChatLayout
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.streaming import FieldReader
from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core import events as ev
from sigwire.core.capabilities import Capabilities
from sigwire.core.response import Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.signatures.types.text import Code, Reasoning
from tests.adapters.streaming.emitting import read, stream_fields

CHAT, JSON, XML = ChatAdapter(), JSONAdapter(), XMLAdapter()


def events_of_chunks(adapter: Adapter, signature: Any, *chunks: str) -> list[Any]:
    """Return the events of each chunk in short: a text, {field: value}, "." for the end of a field; last those of the end."""
    reader = FieldReader(adapter.plan(Signature(signature) if isinstance(signature, str) else signature))
    events = [*map(ev.TextDelta, chunks), ev.ChoiceEnd()]
    return [[_shorten(event) for event in reader.feed(event)] for event in events]


def _shorten(event: Any) -> Any:
    if isinstance(event, ev.FieldPartial):
        return {event.field: event.value}
    return "." if isinstance(event, ev.FieldEnd) else event.text


# --- first events -----------------------------------------------------------------------------------------------

EARLY = [
    (CHAT, "[[ ## answer ## ]]\nIt", ["It"]),
    (CHAT, "[[ ## answer ## ]] It", ["It"]),
    (XML, "<answer>It", ["It"]),
    (JSON, '{"answer": "It', ["It"]),
    (CHAT, "<think>Hm, <answer>?</think>\n[[ ## answer ## ]]\nIt", ["It"]),
    (XML, "<think>Hm, <answer>?</think>\n<answer>It", ["It"]),
    (JSON, '<think>Hm, {"answer"?</think>\n{"answer": "It', ["It"]),
]


@pytest.mark.parametrize(("adapter", "chunk", "streamed"), EARLY)
def test_first_text_of_a_field_is_emitted_with_its_chunk(adapter: Adapter, chunk: str, streamed: list[str]) -> None:
    assert events_of_chunks(adapter, "question -> answer", chunk)[0] == streamed


HELD = [  # chunks, and the events of each
    (CHAT, ["[[ ## answer ## ]]\n1 [", "[ 2"], [["1 ["], ["[ 2"]]),
    (CHAT, ["[[ ## answer ## ]]\na\n", "[", "[ b"], [["a"], [], ["\n[[ b"]]),
    (CHAT, ["[[ ## answer ## ]]\na\n  [[ #", "# comp", "leted ## ]", "]"], [["a"], [], [], ["."]]),
    (CHAT, ["[[ ## answer ## ]]\na\n\\[", "[ ##", " b"], [["a"], ["\n[[ ##"], [" b"]]),
    (CHAT, ["[[ ## answer ## ]]\na \\", "b", " \\", " "], [["a"], [" \\b"], [], []]),
    (CHAT, ["[[ ## answer ## ]]\n\n\\", " a"], [[], [" a"]]),
    (CHAT, ["[[ ## answer ## ]]\n\\", "a"], [[], ["\\a"]]),
    (XML, ["<answer>1 <", " 2 </ans", "wer>", " x</answer>", " "], [["1"], [" < 2"], [], [" </answer> x"], []]),
    (XML, ["<answer>a<\\", "/answ", "er> b"], [["a<"], [], ["/answer> b"]]),
    (JSON, ['{"answer": "caf\\u00', "e9 \\", 'n"', "}"], [["caf"], ["é "], ["\n", "."], []]),
    (JSON, ['{"answer": "\\ud83d', "\\ude", '00"'], [[], [], ["😀", "."]]),
]


@pytest.mark.parametrize(("adapter", "chunks", "streamed"), HELD)
def test_only_text_that_can_become_a_mark_is_held(
    adapter: Adapter, chunks: list[str], streamed: list[list[str]]
) -> None:
    assert events_of_chunks(adapter, "question -> answer", *chunks)[:-1] == streamed


def test_field_ends_when_the_next_field_starts() -> None:
    chunks = ["[[ ## first ## ]]\none\n\n", "[[ ## second ## ]]", "\ntwo"]
    assert events_of_chunks(CHAT, "question -> first, second", *chunks) == [["one"], ["."], ["two"], ["."]]
    assert events_of_chunks(XML, "question -> first, second", "<first>one</first>", "<second>", "two") == [
        ["one"],
        ["."],
        ["two"],
        ["."],
    ]
    assert events_of_chunks(JSON, "question -> first, second", '{"first": "one"', ', "second": "two"}') == [
        ["one", "."],
        ["two", "."],
        [],
    ]


# --- emitted at the end ---------------------------------------------------------------------------------

AT_THE_END = [
    (CHAT, "question -> answer", "Let me see.\n[[ ## answer ## ]]\nOslo"),
    (CHAT, "question -> answer", "Or\n[[ ## answer ## ]]\nRome?\n</think>\n[[ ## answer ## ]]\nOslo"),
    (CHAT, "question -> answer", '{"answer": "Oslo"}'),
    (CHAT, "question -> answer", "<think>Rome?\n[[ ## answer ## ]]\nOslo"),
    (JSON, "question -> answer", "{'answer': 'Oslo'}"),
    (JSON, "question -> answer, more: str | None", '{"json": {"answer": "Oslo"}}'),
    (JSON, "question -> answer", '"Oslo"'),
    (XML, "question -> answer", "So: <answer>Oslo</answer>"),
]  # fmt: skip


@pytest.mark.parametrize(("adapter", "signature", "text"), AT_THE_END)
def test_answer_with_another_start_is_emitted_at_its_end(adapter: Adapter, signature: str, text: str) -> None:
    *before, last = events_of_chunks(adapter, signature, *text)
    assert not any(before)
    assert last[:2] == ["Oslo", "."]


def test_draft_in_a_thinking_block_is_not_emitted() -> None:
    text = "The form is\n[[ ## answer ## ]]\nRome? No.\n</think>\n\n[[ ## answer ## ]]\nOslo\n\n[[ ## completed ## ]]"
    for thinking in ("", "<think>"):
        streamed = stream_fields(CHAT.plan(Signature("question -> answer")), list(thinking + text))
        assert streamed.texts == {"answer": "Oslo"}


def test_text_with_a_changing_constraint_is_emitted_at_its_end() -> None:
    class Loud(Signature):
        question: str = InputField()
        answer: Annotated[str, AfterValidator(str.upper)] = OutputField()
        reason: str = OutputField(min_length=1)

    chunks = ["[[ ## answer ## ]]\nos", "lo\n", "[[ ## reason ## ]]\nbe", "cause"]
    assert events_of_chunks(CHAT, Loud, *chunks) == [[], [], ["OSLO", ".", "be"], ["cause"], ["."]]


def test_values_that_are_no_text_are_emitted_at_their_end() -> None:
    signature = Signature("question -> code, count: int").with_updated_fields("code", type_=Code)
    assert events_of_chunks(CHAT, signature, "[[ ## code ## ]]\n```python\nx", " = 1\n```\n", "[[ ## count ## ]]\n4", "2") == [
        [], [], [{"code": "x = 1"}, "."], [], [{"count": 42}, "."],
    ]  # fmt: skip


def test_defaults_replace_missing_outputs() -> None:
    class Defaults(Signature):
        question: str = InputField()
        answer: str = OutputField()
        tone: str = OutputField(default="calm")

    assert events_of_chunks(CHAT, Defaults, "[[ ## answer ## ]]\nOslo") == [["Oslo"], [".", "calm", "."]]


def test_none_is_no_text() -> None:
    signature = "question -> first: str | None, second: str | None"
    assert events_of_chunks(CHAT, signature, "[[ ## first ## ]]\nnu", "ll\n", "[[ ## second ## ]]\nnull", "able") == [
        [], [], ["."], ["nullable"], ["."],
    ]  # fmt: skip


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_truncated_answer_ends_no_field(finish: Any) -> None:
    streamed = stream_fields(CHAT.plan(Signature("question -> answer")), ["[[ ## answer ## ]]\nOs"], finish=finish)
    assert streamed.texts == {"answer": "Os"}
    assert streamed.ended == []


# --- values that are no text ---------------------------------------------------------------------------------


def test_partial_values_hold_no_incomplete_scalars() -> None:
    chunks = ['[[ ## table ## ]]\n{"a": [1, 2', "3", ', "x', 'y"', '], "b": tr', "ue}", "\n"]
    streamed = stream_fields(CHAT.plan(Signature("question -> table: dict[str, Any]")), chunks)
    assert streamed.partials["table"] == [
        {"a": [1]},
        {"a": [1, 23, "x"]},
        {"a": [1, 23, "xy"]},
        {"a": [1, 23, "xy"], "b": True},
    ]
    assert streamed.ended == ["table"]


def test_members_of_the_answer_are_emitted_as_partial_values() -> None:
    chunks = ['{"names": ["A', 'da", "Bo', 'b"], "count', '": 2', "}"]
    streamed = events_of_chunks(JSON, "question -> names: list[str], count: int", *chunks)
    assert streamed == [
        [{"names": ["A"]}], [{"names": ["Ada", "Bo"]}], [{"names": ["Ada", "Bob"]}, "."], [], [{"count": 2}, "."], [],
    ]  # fmt: skip


def test_envelope_around_a_value_is_not_emitted() -> None:
    class Person(BaseModel):
        name: str

    signature = Signature("question -> person").with_updated_fields("person", type_=Person)
    chunks = ['[[ ## person ## ]]\n{"value": {"na', 'me": "Ada"}}']
    assert events_of_chunks(CHAT, signature, *chunks) == [[], [], [{"person": {"name": "Ada"}}, "."]]


def test_json_in_a_fence_is_emitted_as_partial_values() -> None:
    chunks = ["[[ ## names ## ]]\n```js", 'on\n["Ada"', "]\n```\n"]
    streamed = stream_fields(CHAT.plan(Signature("question -> names: list[str]")), chunks)
    assert streamed.partials["names"] == [["Ada"], ["Ada"]]


# --- calls and reasoning ---------------------------------------------------------------------------------------


def double(n: int) -> int:
    """Twice the number."""
    return 2 * n


DOUBLE = Tool(double)


class Acting(Signature):
    """Answer or call."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    answer: str = OutputField()
    calls: ToolCalls = OutputField()


NATIVE = Capabilities(native_tools=True)


def test_native_calls_keep_their_path_and_turn() -> None:
    call = ToolCall("a", "double", {"n": 2})
    reader = FieldReader(CHAT.plan(Acting, NATIVE), (DOUBLE,), "agent.react", 3)
    events = [
        ev.ToolCallStart(0, "a", "double"),
        ev.ToolCallDelta(0, '{"n": 2}'),
        ev.ToolCallEnd(0, call),
        ev.UsageUpdate(Usage(1, 2)),
    ]
    streamed = read(reader, [ev.ResponseStart(), *events, ev.ChoiceEnd("tool_calls"), ev.ResponseEnd()]).events
    assert [type(event) for event in streamed] == [ev.ToolCallStart, ev.ToolCallDelta, ev.ToolCallEnd, ev.UsageUpdate]
    assert {(event.path, event.turn) for event in streamed if not isinstance(event, ev.FieldEnd)} == {
        ("agent.react", 3)
    }  # type: ignore[union-attr]


def test_calls_in_text_are_emitted_like_native_calls() -> None:
    text = 'I look it up.\n<tool_call>{"name": "double", "arguments": {"n": 2}}</tool_call>'
    streamed = stream_fields(CHAT.plan(Acting), list(text), (DOUBLE,))
    assert [type(event) for event in streamed.events] == [ev.ToolCallStart, ev.ToolCallDelta, ev.ToolCallEnd]
    assert streamed.calls[0].arguments == {"n": 2}
    assert streamed.texts == {}


def test_text_without_outputs_is_emitted_without_its_calls() -> None:
    class Calling(Signature):
        question: str = InputField()
        tools: list[Tool] = InputField()
        calls: ToolCalls = OutputField()

    text = 'I look it up.\n~~~tool_call\n{"name": "double", "arguments": {"n": 2}}\n~~~\n'
    streamed = stream_fields(CHAT.plan(Calling), list(text), (DOUBLE,))
    assert streamed.free == "I look it up."
    assert [call.name for call in streamed.calls] == ["double"]


def test_text_before_a_native_call_is_text() -> None:
    call = ToolCall("a", "double", {"n": 2})
    reader = FieldReader(CHAT.plan(Acting, NATIVE), (DOUBLE,))
    streamed = read(
        reader,
        [ev.TextDelta("[[ ## answer ## ]]\nas in\n~~~tool"), ev.ToolCallEnd(0, call), ev.ChoiceEnd("tool_calls")],
    )
    assert streamed.texts == {"answer": "as in\n~~~tool"}
    assert streamed.calls == [call]


def test_thinking_fills_the_reasoning_output() -> None:
    signature = Signature("question -> reasoning, answer").with_updated_fields("reasoning", type_=Reasoning)
    events = [
        ev.ReasoningDelta("Hm"),
        ev.ReasoningDelta(", yes."),
        ev.TextDelta("[[ ## answer ## ]]\nyes"),
        ev.ChoiceEnd(),
    ]
    streamed = read(FieldReader(CHAT.plan(signature, Capabilities(reasoning=True))), events)
    assert streamed.texts == {"reasoning": "Hm, yes.", "answer": "yes"}
    assert sorted(streamed.ended) == ["answer", "reasoning"]
    plain = read(FieldReader(CHAT.plan(Signature("question -> answer"))), events)
    assert [event.text for event in plain.events if isinstance(event, ev.ReasoningDelta)] == ["Hm", ", yes."]
    assert plain.texts == {"answer": "yes"}


def test_events_carry_the_number_of_their_choice() -> None:
    reader = FieldReader(CHAT.plan(Signature("question -> answer")))
    events = [ev.TextDelta("[[ ## answer ## ]]\n", 1), ev.TextDelta("[[ ## answer ## ]]\none"), ev.TextDelta("two", 1)]
    streamed = [
        events_of_chunks
        for event in [*events, ev.ChoiceEnd(), ev.ChoiceEnd(choice=1)]
        for events_of_chunks in reader.feed(event)
    ]
    assert [(event.choice, event.text) for event in streamed if isinstance(event, ev.FieldDelta)] == [
        (0, "one"),
        (1, "two"),
    ]
    assert [event.choice for event in streamed if isinstance(event, ev.FieldEnd)] == [0, 1]


def test_free_answer_is_emitted_as_text() -> None:
    adapter = TwoStepAdapter(SimpleNamespace(capabilities=Capabilities()))
    plan = adapter.plan(Signature("question -> answer"))
    streamed = stream_fields(plan, ["It is [[ ## ans", "wer ## ]] Oslo."])
    assert streamed.free == "It is [[ ## answer ## ]] Oslo."
    assert streamed.texts == {}


def test_layout_without_an_output_reader_emits_at_the_end() -> None:
    class Whole(ChatLayout):
        def output_reader(self, streamed: Any) -> None:
            return None

    class Own(ChatAdapter):
        def layout(self, visible: Any, capabilities: Any) -> Any:
            return Whole(visible)

    assert events_of_chunks(Own(), "question -> answer", "[[ ## answer ## ]]\nOs", "lo") == [[], [], ["Oslo", "."]]


def test_end_of_the_response_ends_an_open_choice() -> None:
    streamed = read(FieldReader(CHAT.plan(Signature("question -> answer"))), [ev.TextDelta("[[ ## answer ## ]]\nOslo")])
    assert streamed.texts == {"answer": "Oslo"}
    assert streamed.ended == ["answer"]
