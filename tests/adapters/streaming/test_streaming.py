"""Field streaming: at every cut, the streamed values of an answer are the parsed ones."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.plan import Plan
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from tests.adapters.streaming.emitting import StreamedFields, cut_at, cuts, read_whole, stream_fields


class Person(BaseModel):
    name: str
    age: int | None = None
    friends: list[Person] = []


class Everything(Signature):
    """Return everything."""

    question: str = InputField()
    text: str = OutputField()
    maybe: str | None = OutputField()
    other: str = OutputField()
    short: str = OutputField(max_length=200)
    names: list[str] = OutputField()
    person: Person = OutputField()
    number: float = OutputField()
    kind: Literal["a", "b"] = OutputField()


class Texts(Signature):
    """Return two things."""

    question: str = InputField()
    text: str = OutputField()
    other: str | None = OutputField(default=None)


class WithTools(Texts):
    """Return two things, or call."""

    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


def ping(text: str = "") -> str:
    """Answer."""
    return text


PING = Tool(ping)
ADAPTERS: list[Adapter] = [ChatAdapter(), JSONAdapter(), XMLAdapter()]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)

MARKS = [
    "Action:Action: {", "Sure:\n", "Here it is:\n\n", "```json\n",
    "[[ ## text ## ]]", "[[ ## other ## ]]", "[[ ## completed ## ]]", "[[ ## nobody ## ]]", "[[##text##]]", "[[", "\\",
    "\\\\", "[[ ##", "<text>", "</text>", "<\\text>", "</other>", "<nobody>", "<text", ">", "~~~tool_call", "~~~",
    "~~~tool_result", "```tool_call", "```", "```json", "<think>", "</think>", "<thinking>", "</thinking>", "null", "None",
    "nul", "{}", '{"text": "x"}', '{"text": "', '"', "'", "&lt;", '~~~tool_call\n{"name": "ping", "arguments": {}}\n~~~',
    "<tool_call>ping</tool_call>", "[TOOL_CALLS]", "Action:", "Action: [", "<|im_end|>", '{"name": "ping", "arguments": {}}',
    '", "', '"}', '": ', "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\n", "\\x", "[1, 2", "{'text': 'x'}", "😀", "\ud83d",
    "\n", "\n\n", "\r\n", "\t", " ", "\u2028", "\x00", "\x0b", "a", "Paris",
]  # fmt: skip
texts = st.lists(st.sampled_from(MARKS), max_size=8).map("".join) | st.text(max_size=12)
json_people: Any = st.recursive(
    st.builds(Person, name=texts, age=st.none() | st.integers()),
    lambda people: st.builds(Person, name=texts, friends=st.lists(people, max_size=2)),
    max_leaves=3,
)


def plan_of(adapter: Adapter, signature: Any = Everything, native: bool = False) -> Plan:
    return adapter.plan(signature, Capabilities(native_tools=native))


def check(plan: Plan, text: str, chunks: list[str], tools: tuple[Tool, ...] = ()) -> StreamedFields:
    """Stream chunks, and compare each text and each last partial value with the parse of the whole answer."""
    streamed = stream_fields(plan, chunks, tools)
    parsed, choice = read_whole(plan, text, tools)
    assert streamed.calls == list(choice.tool_calls)
    if parsed is None:
        return streamed
    for name, codec in plan.layout.outputs:
        if name not in parsed.fields:
            continue  # an output beside calls that could not be read
        value = parsed.fields[name]
        assert name in streamed.ended
        if codec.form == "text":
            assert streamed.texts.get(name, "") == ("" if value is None else value), name
        else:
            assert codec.load(streamed.partials[name][-1]).value == value
    return streamed


@each_adapter
@given(
    st.fixed_dictionaries(
        {
            "text": texts,
            "maybe": st.none() | texts,
            "other": texts,
            "short": texts,
            "names": st.lists(texts, max_size=3),
            "person": json_people,
            "number": st.floats(allow_nan=False, allow_infinity=False),
            "kind": st.sampled_from(["a", "b"]),
        }
    ),
    cuts,
)
def test_written_values_are_streamed(adapter: Adapter, values: dict[str, Any], at: list[int]) -> None:
    plan = plan_of(adapter)
    text = plan.layout.write(values)
    streamed = check(plan, text, cut_at(text, at))
    assert streamed.ended == [name for name, _ in plan.layout.outputs]
    assert all(streamed.texts.get(name, "") == (values[name] or "") for name in ("text", "maybe", "other", "short"))


@each_adapter
@given(st.lists(st.sampled_from(MARKS), max_size=12).map("".join), cuts)
def test_any_cut_answer_streams_the_parsed_values(adapter: Adapter, text: str, at: list[int]) -> None:
    check(plan_of(adapter, Texts), text, cut_at(text, at))


@each_adapter
@given(st.lists(st.sampled_from(MARKS), max_size=12).map("".join), cuts)
def test_any_cut_answer_with_calls_streams_the_parsed_values(adapter: Adapter, text: str, at: list[int]) -> None:
    check(plan_of(adapter, WithTools), text, cut_at(text, at), (PING,))
