"""Tools of LangChain: schema, arguments, injected arguments, results and errors."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import Tool as OneTextTool
from langchain_core.tools import tool as langchain
from pydantic import BaseModel, Field, field_validator

from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError, ToolDefinitionError, ToolFailed
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.toolbox import Toolbox


@langchain
def add(x: int, y: Annotated[int, "the second"] = 2) -> int:
    """Add two numbers."""
    return x + y


@langchain
async def add_async(x: int, y: int = 2) -> int:
    """Add two numbers."""
    return x + y


class Address(BaseModel):
    street: str
    number: int = Field(ge=1)


class Order(BaseModel):
    """The goods."""

    item: str = Field(description="its name")
    size: Literal["s", "m"] = "s"
    to: Address | None = None

    @field_validator("item")
    @classmethod
    def _known(cls, item: str) -> str:
        if item == "moon":
            raise ValueError("the moon is not for sale")
        return item


@langchain(args_schema=Order)
def order(item: str, size: str = "s", to: Address | None = None) -> dict[str, Any]:
    """Order something."""
    return {"item": item, "size": size, "street": to and to.street}


@langchain
def mine(note: str, user: Annotated[int, InjectedToolArg], config: RunnableConfig) -> str:
    """Write a note."""
    return f"{user}: {note} ({type(config).__name__})"


class Own(BaseTool):
    """A class of one's own, with both forms."""

    name: str = "where"
    description: str = "Where it runs."

    def _run(self, label: str) -> str:
        return f"{label}: blocking"

    async def _arun(self, label: str) -> str:
        return f"{label}: awaited"


class Blocking(BaseTool):
    name: str = "where"
    description: str = "Where it runs."

    def _run(self, label: str) -> str:
        return f"{label}: blocking"


def test_schema_of_a_langchain_tool_is_kept_whole() -> None:
    tool = Tool.from_langchain(add)
    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert tool.parameters == {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 2, "description": "the second"}},
        "required": ["x"],
    }
    assert tool._arguments is not None
    assert tool._arguments.types() == {"x": int, "y": int}
    made = Tool.from_langchain(order)
    assert made.parameters["required"] == ["item"]
    assert made.parameters["properties"]["size"]["enum"] == ["s", "m"]
    assert made.parameters["properties"]["item"]["description"] == "its name"
    assert {"type": "null"} in made.parameters["properties"]["to"]["anyOf"]
    assert Tool.from_json(made.to_json()).parameters == made.parameters


@pytest.mark.parametrize("made", [add, add_async], ids=lambda made: made.name)
async def test_langchain_tool_returns_its_value_blocking_and_awaited(made: Any) -> None:
    tool = Tool.from_langchain(made)
    assert tool(x=1) == 3
    assert await tool.acall(x="1", y=4) == 5  # pydantic reads "1" as 1 for them too
    assert tool.is_async is (made is add_async)


async def test_each_form_of_a_langchain_tool_is_used() -> None:
    both = Tool.from_langchain(Own())
    assert both(label="a") == "a: blocking"
    assert await both.acall(label="a") == "a: awaited"
    blocking = Tool.from_langchain(Blocking())
    assert blocking(label="a") == await blocking.acall(label="a") == "a: blocking"


def test_both_functions_of_a_structured_tool_are_used() -> None:
    def now(n: int) -> str:
        return f"{n} now"

    async def later(n: int) -> str:
        return f"{n} later"

    tool = Tool.from_langchain(StructuredTool.from_function(now, coroutine=later, name="when", description="When."))
    assert tool(n=1) == "1 now"
    assert asyncio.run(tool.acall(n=1)) == "1 later"


async def test_arguments_are_validated_and_converted_by_the_langchain_tool() -> None:
    tool = Tool.from_langchain(order)
    assert tool(item="bolt", to={"street": "High Street", "number": "1"}) == {
        "item": "bolt",
        "size": "s",
        "street": "High Street",
    }
    box = Toolbox([tool])
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "item: this argument is required"),
        ({"item": "bolt", "size": "xl"}, "size: "),
        ({"item": "bolt", "to": {"street": "a", "number": 0}}, "to.number: "),
        ({"item": "moon"}, "item: Value error, the moon is not for sale"),  # only the tool's own validator knows
    ]
    for arguments, fault in bad:
        for [result] in (
            box([ToolCall("a", "order", arguments)]),
            await box.acall([ToolCall("a", "order", arguments)]),
        ):
            assert result.is_error
            assert str(result.content).startswith(fault)


def test_boolean_is_refused_as_a_number_of_a_langchain_tool() -> None:
    @langchain
    def repeat(count: int, loud: bool = False) -> int:
        """Repeat."""
        return count

    with pytest.raises(InputError, match=r"count: Input should be a valid integer \(got True\)"):
        Tool.from_langchain(repeat).bind({"count": True})
    assert Tool.from_langchain(repeat)(count="2", loud=True) == 2


def test_json_schema_of_a_langchain_tool_is_kept_and_enforced() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"from": {"type": "string"}, "n": {"type": "integer", "minimum": 1}},
        "required": ["from"],
    }
    made = StructuredTool(name="ping", description="Ping.", args_schema=schema, func=lambda **given: given)
    tool = Tool.from_langchain(made)
    assert tool.parameters == schema
    assert tool(**{"from": "me", "n": 1}) == {"from": "me", "n": 1}
    with pytest.raises(InputError, match="n: must be at least 1"):
        tool(**{"from": "me", "n": 0})


def test_langchain_tool_of_one_text_has_one_named_argument() -> None:
    tool = Tool.from_langchain(OneTextTool("shout", str.upper, "Shout."))
    assert tool.parameters == {
        "type": "object",
        "properties": {"tool_input": {"type": "string"}},
        "required": ["tool_input"],
    }
    assert tool(tool_input="hi") == "HI"


def test_injected_arguments_are_hidden_and_filled_in() -> None:
    tool = Tool.from_langchain(mine, injected={"user": 7})
    assert list(tool.parameters["properties"]) == ["note"]
    assert tool(note="hi") == "7: hi (dict)"
    [result] = Toolbox([tool])([ToolCall("a", "mine", {"note": "hi", "user": 8})])
    assert result.is_error
    assert result.text == "user: there is no such argument"
    with pytest.raises(ToolDefinitionError, match=r"injected argument 'user'.*injected={'user': \.\.\.}"):
        Tool.from_langchain(mine)
    with pytest.raises(ToolDefinitionError, match="no injected argument 'note'"):
        Tool.from_langchain(mine, injected={"user": 7, "note": "x"})


def test_id_of_the_call_is_injected() -> None:
    @langchain
    def note(words: str, call: Annotated[str, InjectedToolCallId]) -> str:
        """Note."""
        return f"{words} {call}"

    tool = Tool.from_langchain(note)
    assert list(tool.parameters["properties"]) == ["words"]
    assert [tool(words="a"), tool(words="a")] == ["a call_0", "a call_1"]


@pytest.mark.parametrize(
    "handled",
    [False, True, "our words", lambda error: f"handled {error}"],
    ids=["not handled", "handled", "in our words", "by a function"],
)
async def test_tool_exception_raises_tool_failed_even_if_handled(handled: Any) -> None:
    def look() -> str:
        """Look."""
        raise ToolException("it is dark")

    made = StructuredTool.from_function(look, handle_tool_error=handled)
    expected = {"our words": "our words"}.get(str(handled), "handled it is dark" if callable(handled) else "it is dark")
    box = Toolbox([Tool.from_langchain(made)], on_error="abort")
    for results in (box([ToolCall("a", "look", {})]), await box.acall([ToolCall("a", "look", {})])):
        assert results == [ToolResult("a", "look", expected, is_error=True)]


def test_other_exceptions_are_unchanged() -> None:
    @langchain
    def crash() -> str:
        """Crash."""
        raise KeyError("left")

    with pytest.raises(KeyError, match="left"):
        Tool.from_langchain(crash)()


def test_content_and_artifact_return_the_content() -> None:
    @langchain(response_format="content_and_artifact")
    def chart(title: str) -> tuple[list[dict[str, Any]], bytes]:
        """Draw."""
        return [
            {"type": "text", "text": title},
            {"type": "image", "base64": "aW1n", "mime_type": "image/png"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
            {"type": "image", "url": "https://example.com/c.png"},
            {"type": "audio", "source_type": "base64", "data": "c25k", "mime_type": "audio/x-wav"},
            {"type": "file", "file_id": "f_1"},
        ], b"raw"

    tool = Tool.from_langchain(chart)
    assert tool(title="Sales") == [
        "Sales",
        ImagePart(data="aW1n", media_type="image/png"),
        ImagePart(data="aW1n", media_type="image/png"),
        ImagePart(url="https://example.com/c.png"),
        AudioPart("c25k", "wav"),
        FilePart(file_id="f_1"),
    ]
    assert tool.metadata == {"response_format": "content_and_artifact"}
    [result] = Toolbox([tool])([ToolCall("a", "chart", {"title": "Sales"})])
    assert len(result.media) == 5


def test_langchain_tool_may_return_a_message() -> None:
    @langchain
    def answer(bad: bool = False) -> ToolMessage:
        """Answer."""
        return ToolMessage("no" if bad else "yes", tool_call_id="x", status="error" if bad else "success")

    tool = Tool.from_langchain(answer)
    assert tool() == "yes"
    with pytest.raises(ToolFailed, match="no"):
        tool(bad=True)


ODD_VALUES: list[Any] = [
    None,
    3,
    "",
    [],
    ["a", "b"],
    [{"type": "hologram"}],
    [{"type": "text"}, 3],
    {"type": "text"},
    {"a": [1]},
]


@pytest.mark.parametrize("value", ODD_VALUES, ids=repr)
def test_values_other_than_content_blocks_are_unchanged(value: Any) -> None:
    made = StructuredTool.from_function(lambda: value, name="give", description="Give.")
    assert Tool.from_langchain(made)() == value


def test_arguments_in_the_form_of_a_call_are_arguments() -> None:
    made = StructuredTool(
        name="odd", description="Odd.", args_schema={"type": "object", "properties": {}}, func=lambda **given: given
    )
    asked: dict[str, Any] = {"type": "tool_call", "id": "x", "args": {"type": "other"}}
    assert json.loads(Tool.from_langchain(made)(**asked)) == asked


async def test_agent_works_with_langchain_tools_blocking_and_awaited() -> None:
    agent = ReAct("question -> answer: int", tools=[Tool.from_langchain(add), Tool.from_langchain(Own())])
    script = [
        [ToolCall("a", "add", {"x": 40}), ToolCall("b", "where", {"label": "it"})],
        ToolCall("c", "submit", {"answer": 42}),
    ]
    for how in ("blocking", "awaited"):
        agent.set_lm(FakeLM(script))
        result = agent(question="40 + 2?") if how == "blocking" else await agent.acall(question="40 + 2?")
        assert result.answer == 42
        assert [found.content for step in result.steps for found in step.results][:2] == [42, f"it: {how}"]


@pytest.mark.parametrize("thing", [len, "add", Own, {"name": "add"}], ids=repr)
def test_other_object_than_a_langchain_tool_raises_with_advice(thing: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"Tool\.from_langchain needs a LangChain tool"):
        Tool.from_langchain(thing)
