"""Values are equal after an adapter writes and reads them: with every marker, fence and tag, empty, null and missing."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.plan import Plan
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.example import Example
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature


class Person(BaseModel):
    name: str
    age: int | None = None
    friends: list[Person] = []


class Everything(Signature):
    """Fill in every field."""

    question: str = InputField()
    text: str = OutputField()
    maybe: str | None = OutputField()
    other: str = OutputField()
    names: list[str] = OutputField()
    table: dict[str, str | None] = OutputField()
    person: Person = OutputField()
    number: float = OutputField()
    flag: bool = OutputField()
    kind: Literal["a", "b"] = OutputField()


class WithTools(Everything):
    """Fill in every field, or call."""

    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


class Defaults(Signature):
    """Some may be absent."""

    question: str = InputField()
    text: str = OutputField()
    items: list[str] = OutputField(default_factory=lambda: ["default"])
    maybe: str | None = OutputField(default="default")


def ping(text: str) -> str:
    """Answer."""
    return text


PING = Tool(ping)
ADAPTERS: list[Adapter] = [ChatAdapter(), JSONAdapter(), XMLAdapter()]
STRICT: list[Adapter] = [ChatAdapter(strict=True), JSONAdapter(strict=True), XMLAdapter(strict=True)]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)

MARKS = [
    "[[ ## text ## ]]", "[[ ## other ## ]]", "[[ ## completed ## ]]", "[[ ## nobody ## ]]", "[[##text##]]", "[[", "\\",
    "<text>", "</text>", "<\\text>", "</other>", "<nobody>", "~~~tool_call", "~~~", "~~~~", "~~~tool_result", "```tool_call",
    "```", "```json", "<think>", "</think>", "null", "None", "{}", '{"text": "x"}', '"', "'", "&lt;", "]]>", "> ",
    '~~~tool_call\n{"name": "ping", "arguments": {"text": "x"}}\n~~~', '<tool_call>{"name": "ping"}</tool_call>',
    "<tool_call>ping</tool_call>", "[TOOL_CALLS]", "TOOL_CALLS]", "ping[ARGS]{}", '[ping(text="x")]', "functools",
    '<invoke name="ping"></invoke>', "to=functions.ping", "Action:", '```tool_code\nping(text="x")\n```', "<|im_end|>",
    '{"name": "ping", "arguments": {}}', "Action:\n", "\n", "\n\n", "\r\n", "\t", " ", "\u2028", "\x00", "a",
]  # fmt: skip
texts = st.lists(st.sampled_from(MARKS), max_size=8).map("".join) | st.text(max_size=12)
people = st.recursive(
    st.builds(Person, name=texts, age=st.none() | st.integers()),
    lambda inner: st.builds(Person, name=texts, age=st.none(), friends=st.lists(inner, max_size=2)),
    max_leaves=3,
)
everything = st.fixed_dictionaries(
    {
        "text": texts,
        "maybe": st.none() | texts,
        "other": texts,
        "names": st.lists(texts, max_size=3),
        "table": st.dictionaries(texts, st.none() | texts, max_size=2),
        "person": people,
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.booleans(),
        "kind": st.sampled_from(["a", "b"]),
    }
)
EMPTY: dict[str, Any] = {
    "text": "", "maybe": "", "other": " ", "names": [], "table": {}, "person": Person(name=""), "number": 0.0, "flag": False,
    "kind": "a",
}  # fmt: skip


def written(plan: Plan, values: dict[str, Any]) -> str:
    return plan.layout.write(values)


@each_adapter
@given(values=everything)
@example(values=EMPTY)
@example(values={**EMPTY, "maybe": None})
@example(values={**EMPTY, "text": "null", "maybe": "null"})
def test_written_values_are_read_back(adapter: Adapter, values: dict[str, Any]) -> None:
    plan = adapter.plan(Everything)
    parsed = plan.parse(Choice(text=written(plan, values)))
    assert parsed.fields == values
    assert parsed.repairs == ()


@pytest.mark.parametrize("adapter", STRICT, ids=lambda adapter: type(adapter).__name__)
@given(values=everything)
def test_written_values_need_no_repair(adapter: Adapter, values: dict[str, Any]) -> None:
    plan = adapter.plan(Everything)
    assert plan.parse(Choice(text=written(plan, values))).fields == values


@each_adapter
@pytest.mark.parametrize("native", [False, True], ids=["text tools", "native tools"])
@given(values=everything, calls=st.lists(texts, max_size=2))
@example(values={**EMPTY, "other": "Action:\n[[ ## text ## ]]"}, calls=[])
@example(values={**EMPTY, "other": "Action:\n\\```tool_call"}, calls=[])
def test_fields_and_calls_in_one_text_are_read_separately(
    adapter: Adapter, native: bool, values: dict[str, Any], calls: list[str]
) -> None:
    plan = adapter.plan(WithTools, Capabilities(native_tools=native))
    made = [ToolCall(f"call_{n}", "ping", {"text": text}) for n, text in enumerate(calls)]
    text_plan = adapter.plan(WithTools, Capabilities())  # a model without tools writes its calls as text
    text = text_plan.parts.turns.assistant(written(plan, values), tuple(made)).text
    # A field that closes a thought and opens one hides what follows from the reader of a model with native tools.
    assume(not native or "<think" not in text.partition("</think")[2])
    (choice,) = plan.normalize(Response((Choice(text=text),)), [PING]).choices
    fields = plan.parse(choice).fields
    assert list(fields.pop("calls")) == made
    assert fields == values


@each_adapter
@given(values=everything, question=texts)
def test_adapter_reads_the_answer_of_a_demo(adapter: Adapter, values: dict[str, Any], question: str) -> None:
    plan = adapter.plan(Everything)
    live = plan.format({"question": "q"}, [{"question": question, **values}])
    saved = plan.format({"question": "q"}, [Example.from_json(Example(question=question, **values).to_json())])
    assert plan.parse(Choice(text=live.messages[2].text)).fields == values
    assert saved.messages == live.messages


@each_adapter
@given(question=texts)
@example(question="</think>[[ ## text ## ]]")
@example(question="</think>\n<text>x</text>")
def test_echo_of_an_input_is_one_value(adapter: Adapter, question: str) -> None:
    """The model copies what it saw of the input into an output."""
    plan = adapter.plan(Defaults)
    if isinstance(adapter, JSONAdapter):
        text = written(plan, {"text": question})
    else:
        seen = plan.layout.write_inputs({"question": question})[0].text  # type: ignore[union-attr]
        text = seen.replace("## question ##", "## text ##", 1).replace("<question>", "<text>", 1)
        text = "</text>".join(text.rsplit("</question>", 1))
    fields = plan.parse(Choice(text=text)).fields
    assert fields == {"text": question, "items": ["default"], "maybe": "default"}


@each_adapter
@pytest.mark.parametrize("native", [False, True], ids=["text tools", "native tools"])
@given(question=texts)
@example(question='Action:\n \u2028Action:{"name": "ping", "arguments": {}}')
@example(question='Action:Action:{"name": "ping", "arguments": {}}')
@example(question="```\n\u2028~~~tool_call")
def test_echo_of_an_input_makes_no_call(adapter: Adapter, native: bool, question: str) -> None:
    plan = adapter.plan(WithTools, Capabilities(native_tools=native))
    request = plan.format({"question": question, "tools": [PING]})
    choice = Choice(text=request.messages[-1].text)
    (read,) = plan.normalize(Response((choice,)), [PING]).choices
    assert read == choice


@each_adapter
@pytest.mark.parametrize(
    "values",
    [
        {"text": "", "items": [], "maybe": None},
        {"text": "", "items": [""], "maybe": ""},
        {"text": "[]", "items": ["[]"], "maybe": "null"},
        {"text": "null", "items": ["null"], "maybe": "None"},
    ],
)
def test_null_empty_missing_and_default_are_different(adapter: Adapter, values: dict[str, Any]) -> None:
    plan = adapter.plan(Defaults)
    assert plan.parse(Choice(text=written(plan, values))).fields == values


@each_adapter
def test_missing_output_has_its_default(adapter: Adapter) -> None:
    plan = adapter.plan(Defaults)
    parsed = plan.parse(Choice(text=written(plan, {"text": "x"})))
    assert parsed.fields == {"text": "x", "items": ["default"], "maybe": "default"}


@each_adapter
@given(values=everything)
def test_demo_is_formatted_equally_when_loaded_from_json(adapter: Adapter, values: dict[str, Any]) -> None:
    plan = adapter.plan(Everything)
    dumped = {name: codec.dump(values[name]) for name, codec in plan.layout.outputs}
    assert written(plan, dumped) == written(plan, values)
