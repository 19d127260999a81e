"""What is told of an answer, and how early: pieces in, events out, layout by layout."""

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
from tests.adapters.streaming.emitting import read, tell

CHAT, JSON, XML = ChatAdapter(), JSONAdapter(), XMLAdapter()


def said(adapter: Adapter, signature: Any, *pieces: str) -> list[Any]:
    """What each piece makes known, in short: a text, {field: value}, "." for the end of a field; last what the end does."""
    reader = FieldReader(adapter.plan(Signature(signature) if isinstance(signature, str) else signature))
    events = [*map(ev.TextDelta, pieces), ev.ChoiceEnd()]
    return [[_short(event) for event in reader.feed(event)] for event in events]


def _short(event: Any) -> Any:
    if isinstance(event, ev.FieldPartial):
        return {event.field: event.value}
    return "." if isinstance(event, ev.FieldEnd) else event.text


# --- how early -----------------------------------------------------------------------------------------------

EARLY = [
    (CHAT, "[[ ## answer ## ]]\nIt", ["It"]),
    (CHAT, "[[ ## answer ## ]] It", ["It"]),
    (XML, "<answer>It", ["It"]),
    (JSON, '{"answer": "It', ["It"]),
    (CHAT, "<think>Hm, <answer>?</think>\n[[ ## answer ## ]]\nIt", ["It"]),
    (XML, "<think>Hm, <answer>?</think>\n<answer>It", ["It"]),
    (JSON, '<think>Hm, {"answer"?</think>\n{"answer": "It', ["It"]),
]


@pytest.mark.parametrize(("adapter", "piece", "told"), EARLY)
def test_the_first_text_of_a_field_is_told_with_the_piece_that_brings_it(
    adapter: Adapter, piece: str, told: list[str]
) -> None:
    assert said(adapter, "question -> answer", piece)[0] == told


HELD = [  # pieces, and what each of them makes known
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


@pytest.mark.parametrize(("adapter", "pieces", "told"), HELD)
def test_held_back_is_what_may_become_a_mark_and_nothing_else(
    adapter: Adapter, pieces: list[str], told: list[list[str]]
) -> None:
    assert said(adapter, "question -> answer", *pieces)[:-1] == told


def test_a_field_ends_as_soon_as_the_next_one_begins() -> None:
    pieces = ["[[ ## first ## ]]\none\n\n", "[[ ## second ## ]]", "\ntwo"]
    assert said(CHAT, "question -> first, second", *pieces) == [["one"], ["."], ["two"], ["."]]
    assert said(XML, "question -> first, second", "<first>one</first>", "<second>", "two") == [
        ["one"],
        ["."],
        ["two"],
        ["."],
    ]
    assert said(JSON, "question -> first, second", '{"first": "one"', ', "second": "two"}') == [
        ["one", "."],
        ["two", "."],
        [],
    ]


# --- what is told at the end ---------------------------------------------------------------------------------

AT_THE_END = [
    (CHAT, "question -> answer", "Sure!\n[[ ## answer ## ]]\nOslo"),
    (CHAT, "question -> answer", "Or\n[[ ## answer ## ]]\nRome?\n</think>\n[[ ## answer ## ]]\nOslo"),
    (CHAT, "question -> answer", '{"answer": "Oslo"}'),
    (CHAT, "question -> answer", "<think>Rome?\n[[ ## answer ## ]]\nOslo"),
    (JSON, "question -> answer", "```json\n{\"answer\": \"Oslo\"}\n```"),
    (JSON, "question -> answer", "{'answer': 'Oslo'}"),
    (JSON, "question -> answer, more: str | None", '{"json": {"answer": "Oslo"}}'),
    (JSON, "question -> answer", '"Oslo"'),
    (XML, "question -> answer", "So: <answer>Oslo</answer>"),
]  # fmt: skip


@pytest.mark.parametrize(("adapter", "signature", "text"), AT_THE_END)
def test_an_answer_that_begins_otherwise_is_told_once_it_is_read(adapter: Adapter, signature: str, text: str) -> None:
    *before, last = said(adapter, signature, *text)
    assert not any(before)
    assert last[:2] == ["Oslo", "."]


def test_a_draft_in_a_thinking_block_is_never_told() -> None:
    text = "The form is\n[[ ## answer ## ]]\nRome? No.\n</think>\n\n[[ ## answer ## ]]\nOslo\n\n[[ ## completed ## ]]"
    for thinking in ("", "<think>"):
        told = tell(CHAT.plan(Signature("question -> answer")), list(thinking + text))
        assert told.texts == {"answer": "Oslo"}


def test_a_constraint_that_changes_the_text_has_it_told_whole() -> None:
    class Loud(Signature):
        question: str = InputField()
        answer: Annotated[str, AfterValidator(str.upper)] = OutputField()
        reason: str = OutputField(min_length=1)

    pieces = ["[[ ## answer ## ]]\nos", "lo\n", "[[ ## reason ## ]]\nbe", "cause"]
    assert said(CHAT, Loud, *pieces) == [[], [], ["OSLO", ".", "be"], ["cause"], ["."]]


def test_code_and_other_values_that_are_no_text_are_told_at_their_end() -> None:
    signature = Signature("question -> code, count: int").with_updated_fields("code", type_=Code)
    assert said(CHAT, signature, "[[ ## code ## ]]\n```python\nx", " = 1\n```\n", "[[ ## count ## ]]\n4", "2") == [
        [], [], [{"code": "x = 1"}, "."], [], [{"count": 42}, "."],
    ]  # fmt: skip


def test_defaults_stand_in_for_what_the_answer_leaves_out() -> None:
    class Defaults(Signature):
        question: str = InputField()
        answer: str = OutputField()
        tone: str = OutputField(default="calm")

    assert said(CHAT, Defaults, "[[ ## answer ## ]]\nOslo") == [["Oslo"], [".", "calm", "."]]


def test_none_is_no_text() -> None:
    signature = "question -> first: str | None, second: str | None"
    assert said(CHAT, signature, "[[ ## first ## ]]\nnu", "ll\n", "[[ ## second ## ]]\nnull", "able") == [
        [], [], ["."], ["nullable"], ["."],
    ]  # fmt: skip


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_that_was_cut_off_ends_no_field(finish: Any) -> None:
    told = tell(CHAT.plan(Signature("question -> answer")), ["[[ ## answer ## ]]\nOs"], finish=finish)
    assert told.texts == {"answer": "Os"}
    assert told.ended == []


# --- values that are no text ---------------------------------------------------------------------------------


def test_an_object_is_told_as_it_grows_without_what_is_not_whole() -> None:
    pieces = ['[[ ## table ## ]]\n{"a": [1, 2', "3", ', "x', 'y"', '], "b": tr', "ue}", "\n"]
    told = tell(CHAT.plan(Signature("question -> table: dict[str, Any]")), pieces)
    assert told.partials["table"] == [
        {"a": [1]},
        {"a": [1, 23, "x"]},
        {"a": [1, 23, "xy"]},
        {"a": [1, 23, "xy"], "b": True},
    ]
    assert told.ended == ["table"]


def test_members_of_the_answers_object_grow_as_well() -> None:
    pieces = ['{"names": ["A', 'da", "Bo', 'b"], "count', '": 2', "}"]
    told = said(JSON, "question -> names: list[str], count: int", *pieces)
    assert told == [
        [{"names": ["A"]}], [{"names": ["Ada", "Bo"]}], [{"names": ["Ada", "Bob"]}, "."], [], [{"count": 2}, "."], [],
    ]  # fmt: skip


def test_an_envelope_around_a_value_is_not_told_as_the_value() -> None:
    class Person(BaseModel):
        name: str

    signature = Signature("question -> person").with_updated_fields("person", type_=Person)
    pieces = ['[[ ## person ## ]]\n{"value": {"na', 'me": "Ada"}}']
    assert said(CHAT, signature, *pieces) == [[], [], [{"person": {"name": "Ada"}}, "."]]


def test_json_in_a_fence_grows_too() -> None:
    pieces = ["[[ ## names ## ]]\n```js", 'on\n["Ada"', "]\n```\n"]
    told = tell(CHAT.plan(Signature("question -> names: list[str]")), pieces)
    assert told.partials["names"] == [["Ada"], ["Ada"]]


# --- beside the fields ---------------------------------------------------------------------------------------


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


def test_native_calls_pass_with_their_place() -> None:
    call = ToolCall("a", "double", {"n": 2})
    reader = FieldReader(CHAT.plan(Acting, NATIVE), (DOUBLE,), "agent.react", 3)
    events = [
        ev.ToolCallStart(0, "a", "double"),
        ev.ToolCallDelta(0, '{"n": 2}'),
        ev.ToolCallEnd(0, call),
        ev.UsageUpdate(Usage(1, 2)),
    ]
    told = read(reader, [ev.ResponseStart(), *events, ev.ChoiceEnd("tool_calls"), ev.ResponseEnd()]).events
    assert [type(event) for event in told] == [ev.ToolCallStart, ev.ToolCallDelta, ev.ToolCallEnd, ev.UsageUpdate]
    assert {(event.path, event.turn) for event in told if not isinstance(event, ev.FieldEnd)} == {("agent.react", 3)}  # type: ignore[union-attr]


def test_calls_written_as_text_are_told_like_native_ones_and_their_marks_are_not() -> None:
    text = 'I look it up.\n<tool_call>{"name": "double", "arguments": {"n": 2}}</tool_call>'
    told = tell(CHAT.plan(Acting), list(text), (DOUBLE,))
    assert [type(event) for event in told.events] == [ev.ToolCallStart, ev.ToolCallDelta, ev.ToolCallEnd]
    assert told.calls[0].arguments == {"n": 2}
    assert told.texts == {}


def test_where_no_outputs_are_asked_for_the_text_passes_without_the_calls() -> None:
    class Calling(Signature):
        question: str = InputField()
        tools: list[Tool] = InputField()
        calls: ToolCalls = OutputField()

    text = 'I look it up.\n~~~tool_call\n{"name": "double", "arguments": {"n": 2}}\n~~~\n'
    told = tell(CHAT.plan(Calling), list(text), (DOUBLE,))
    assert told.free == "I look it up."
    assert [call.name for call in told.calls] == ["double"]


def test_text_before_a_native_call_is_text_whatever_it_looks_like() -> None:
    call = ToolCall("a", "double", {"n": 2})
    reader = FieldReader(CHAT.plan(Acting, NATIVE), (DOUBLE,))
    told = read(
        reader,
        [ev.TextDelta("[[ ## answer ## ]]\nas in\n~~~tool"), ev.ToolCallEnd(0, call), ev.ChoiceEnd("tool_calls")],
    )
    assert told.texts == {"answer": "as in\n~~~tool"}
    assert told.calls == [call]


def test_thinking_fills_the_reasoning_output_where_the_signature_has_one() -> None:
    signature = Signature("question -> reasoning, answer").with_updated_fields("reasoning", type_=Reasoning)
    events = [
        ev.ReasoningDelta("Hm"),
        ev.ReasoningDelta(", yes."),
        ev.TextDelta("[[ ## answer ## ]]\nyes"),
        ev.ChoiceEnd(),
    ]
    told = read(FieldReader(CHAT.plan(signature, Capabilities(reasoning=True))), events)
    assert told.texts == {"reasoning": "Hm, yes.", "answer": "yes"}
    assert sorted(told.ended) == ["answer", "reasoning"]
    plain = read(FieldReader(CHAT.plan(Signature("question -> answer"))), events)
    assert [event.text for event in plain.events if isinstance(event, ev.ReasoningDelta)] == ["Hm", ", yes."]
    assert plain.texts == {"answer": "yes"}


def test_choices_are_told_apart() -> None:
    reader = FieldReader(CHAT.plan(Signature("question -> answer")))
    events = [ev.TextDelta("[[ ## answer ## ]]\n", 1), ev.TextDelta("[[ ## answer ## ]]\none"), ev.TextDelta("two", 1)]
    told = [said for event in [*events, ev.ChoiceEnd(), ev.ChoiceEnd(choice=1)] for said in reader.feed(event)]
    assert [(event.choice, event.text) for event in told if isinstance(event, ev.FieldDelta)] == [
        (0, "one"),
        (1, "two"),
    ]
    assert [event.choice for event in told if isinstance(event, ev.FieldEnd)] == [0, 1]


def test_a_free_answer_passes_as_text_and_its_extraction_tells_the_fields() -> None:
    adapter = TwoStepAdapter(SimpleNamespace(capabilities=Capabilities()))
    plan = adapter.plan(Signature("question -> answer"))
    told = tell(plan, ["It is [[ ## ans", "wer ## ]] Oslo."])
    assert told.free == "It is [[ ## answer ## ]] Oslo."
    assert told.texts == {}


def test_an_adapter_that_reads_only_whole_answers_is_told_at_the_end() -> None:
    class Whole(ChatLayout):
        def output_reader(self, told: Any) -> None:
            return None

    class Own(ChatAdapter):
        def layout(self, visible: Any, capabilities: Any) -> Any:
            return Whole(visible)

    assert said(Own(), "question -> answer", "[[ ## answer ## ]]\nOs", "lo") == [[], [], ["Oslo", "."]]


def test_without_an_end_of_the_choice_the_end_of_the_response_serves() -> None:
    told = read(FieldReader(CHAT.plan(Signature("question -> answer"))), [ev.TextDelta("[[ ## answer ## ]]\nOslo")])
    assert told.texts == {"answer": "Oslo"}
    assert told.ended == ["answer"]
