"""Tools of an MCP server and of LangChain, tried with the real packages: what the model sees, what runs, what comes back."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import Tool as OneTextTool
from langchain_core.tools import tool as langchain
from mcp import ClientSession
from mcp.client import Client
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.memory import create_client_server_memory_streams
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field, field_validator

from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.errors import EventLoopError, InputError, ToolDefinitionError, ToolFailed
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.toolbox import Toolbox

# --- MCP: a shop ----------------------------------------------------------------------------------------


class Part(BaseModel):
    """A part, and the parts it is made of."""

    name: str
    parts: list[Part] = Field(default_factory=list)


server = MCPServer("shop")


@server.tool(title="Stock", annotations=ToolAnnotations(read_only_hint=True))
def stock(item: str, unit: Literal["piece", "box"] = "piece", note: str | None = None) -> int:
    """How many are left."""
    if item == "nothing":
        raise ToolError("there is no such item")
    return 40 if unit == "piece" else 4


@server.tool(title="Assemble a part")
def assemble(part: Part) -> Part:
    return Part(name=part.name, parts=[part])


@server.tool()
async def thread() -> str:
    """Where it runs."""
    return threading.current_thread().name


@server.tool(structured_output=False)
def everything() -> CallToolResult:
    """All kinds of content."""
    return CallToolResult(
        content=[
            TextContent(text="a note"),
            ImageContent(data="aW1n", mime_type="image/png"),
            AudioContent(data="c25k", mime_type="audio/mpeg"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="hi")),
            EmbeddedResource(
                resource=BlobResourceContents(uri="file:///b.pdf", mime_type="application/pdf", blob="cGRm")
            ),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///c.png", mime_type="image/png", blob="cG5n")),
            ResourceLink(name="d", uri="file:///d.txt"),
        ],
        structured_content={"total": 7},
    )


@asynccontextmanager
async def shop() -> AsyncIterator[tuple[Client, dict[str, Any]]]:
    """A connected client, and the server's tools as the client lists them."""
    async with Client(server) as client:
        yield client, {tool.name: tool for tool in (await client.list_tools()).tools}


@contextmanager
def shop_on_another_loop() -> Iterator[tuple[Toolbox, asyncio.AbstractEventLoop, dict[str, Tool]]]:
    """The shop's tools, whose session lives on an event loop in another thread."""
    loop = asyncio.new_event_loop()
    worker = threading.Thread(target=loop.run_forever, name="the shop's loop")
    worker.start()
    done = asyncio.Event()
    opened: list[dict[str, Tool]] = []
    ready = threading.Event()

    async def live() -> None:
        async with shop() as (client, tools):
            opened.append({name: Tool.from_mcp_tool(client, tool) for name, tool in tools.items()})
            ready.set()
            await done.wait()

    living = asyncio.run_coroutine_threadsafe(live(), loop)
    assert ready.wait(10)
    try:
        yield Toolbox(opened[0]), loop, opened[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        living.result(10)
        loop.call_soon_threadsafe(loop.stop)
        worker.join()
        loop.close()


async def test_the_schema_of_an_mcp_tool_is_kept_whole() -> None:
    async with shop() as (client, tools):
        tool = Tool.from_mcp_tool(client, tools["stock"])
        assert (tool.name, tool.description) == ("stock", "How many are left.")
        assert tool.parameters == tools["stock"].input_schema
        assert tool.parameters["required"] == ["item"]  # what has a default is not
        assert tool.parameters["properties"]["unit"]["enum"] == ["piece", "box"]
        assert tool.parameters["properties"]["unit"]["default"] == "piece"
        recursive = Tool.from_mcp_tool(client, tools["assemble"]).parameters
        assert recursive["$defs"]["Part"]["properties"]["parts"]["items"] == {"$ref": "#/$defs/Part"}  # type: ignore[index,call-overload]


async def test_what_an_mcp_server_says_beside_the_call_is_kept_and_not_sent() -> None:
    async with shop() as (client, tools):
        tool = Tool.from_mcp_tool(client, tools["stock"], name="left", description="Look.", timeout=3.0, parallel=False)
        assert tool.metadata["title"] == "Stock"
        assert tool.metadata["annotations"] == {"readOnlyHint": True}
        assert tool.metadata["outputSchema"] == tools["stock"].output_schema
        assert (tool.name, tool.description, tool.timeout, tool.parallel) == ("left", "Look.", 3.0, False)
        assert await tool.acall(item="bolt") == {"result": 40}  # called by the server's name
        assert "metadata" not in json.dumps(tool.spec)
        assert Tool.from_json(tool.to_json(), tool.handler) == tool
        assert Tool.from_mcp_tool(client, tools["assemble"]).description == "Assemble a part"  # better than none


RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("stock", {"item": "bolt"}, {"result": 40}),
    ("stock", {"item": "bolt", "unit": "box", "note": None}, {"result": 4}),
    ("assemble", {"part": {"name": "a"}}, {"name": "a", "parts": [{"name": "a", "parts": []}]}),
    (
        "everything",
        {},
        [
            {"total": 7},
            "a note",
            ImagePart(data="aW1n", media_type="image/png"),
            AudioPart("c25k", "mp3"),
            {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "hi"},
            {
                "uri": "file:///b.pdf",
                "mimeType": "application/pdf",
                "content": FilePart("cGRm", media_type="application/pdf"),
            },
            {
                "uri": "file:///c.png",
                "mimeType": "image/png",
                "content": ImagePart(data="cG5n", media_type="image/png"),
            },
            {"type": "resource_link", "name": "d", "uri": "file:///d.txt"},
        ],
    ),
]


@pytest.mark.parametrize(("name", "arguments", "value"), RESULTS, ids=lambda part: str(part)[:20])
async def test_an_mcp_tool_gives_values_of_ours(name: str, arguments: dict[str, Any], value: Any) -> None:
    async with shop() as (client, tools):
        tool = Tool.from_mcp_tool(client, tools[name])
        assert await tool.acall(**arguments) == value
        assert await asyncio.to_thread(tool, **arguments) == value


async def test_media_of_an_mcp_result_reach_the_model_as_media() -> None:
    async with shop() as (client, tools):
        [result] = await Toolbox([Tool.from_mcp_tool(client, tools["everything"])]).acall(
            [ToolCall("a", "everything", {})]
        )
        assert [part.kind for part in result.media] == ["image", "audio", "file", "image"]
        assert isinstance(result.content, list)
        assert result.content[:4] == [{"total": 7}, "a note", "(image 1)", "(audio 2)"]
        assert result.content[5] == {"uri": "file:///b.pdf", "mimeType": "application/pdf", "content": "(file 3)"}


class Scripted:
    """A session of one's own: it answers with what it is given, on whatever loop."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer = answer
        self.calls: list[tuple[str, Any]] = []

    async def call_tool(self, name: str, arguments: Any) -> Any:
        self.calls.append((name, arguments))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_reading_an_mcp_result_leaves_it_as_it_was() -> None:
    answer = {"content": [{"type": "resource", "resource": {"uri": "file:///b.pdf", "blob": "cGRm"}}]}
    tool = Tool.from_mcp_tool(Scripted(answer), {"name": "read", "inputSchema": {"type": "object"}})
    assert tool() == tool()
    assert answer["content"][0]["resource"] == {"uri": "file:///b.pdf", "blob": "cGRm"}


def text(*said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words} for words in said]


PICTURE = {"type": "image", "data": "aW1n", "mimeType": "image/png"}
HOLOGRAM = {"type": "hologram", "x": 1}
ANSWERS: list[tuple[dict[str, Any], Any, Any, Any]] = [
    # the result, and what it gives: auto, structured, text
    ({"content": text("hello")}, "hello", "hello", "hello"),
    ({"content": []}, "", "", ""),
    ({}, "", "", ""),
    ({"content": text("a", "b")}, ["a", "b"], ["a", "b"], ["a", "b"]),
    ({"content": text("hello"), "structuredContent": {"result": "hello"}}, "hello", {"result": "hello"}, "hello"),
    ({"content": text("3"), "structuredContent": {"result": 3}}, {"result": 3}, {"result": 3}, "3"),
    ({"content": text('{ "a": 1 }'), "structuredContent": {"a": 1}}, {"a": 1}, {"a": 1}, '{ "a": 1 }'),
    (
        {"content": text("1", "x"), "structuredContent": {"result": [1, "x"]}},
        {"result": [1, "x"]},
        {"result": [1, "x"]},
        ["1", "x"],
    ),
    ({"content": text("Warm."), "structuredContent": {"c": 21}}, [{"c": 21}, "Warm."], {"c": 21}, "Warm."),
    (
        {"content": [*text('{"c":21}'), PICTURE], "structuredContent": {"c": 21}},
        [{"c": 21}, ImagePart(data="aW1n", media_type="image/png")],
        {"c": 21},
        ['{"c":21}', ImagePart(data="aW1n", media_type="image/png")],
    ),
    ({"structuredContent": [1, 2]}, [1, 2], [1, 2], ""),
    ({"content": [HOLOGRAM]}, HOLOGRAM, HOLOGRAM, HOLOGRAM),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "auto", "structured", "text_only"), ANSWERS, ids=lambda part: str(part)[:40])
def test_structured_content_survives_and_nothing_is_said_twice(
    answer: dict[str, Any], auto: Any, structured: Any, text_only: Any
) -> None:
    tool = {"name": "f", "inputSchema": {"type": "object"}}
    assert Tool.from_mcp_tool(Scripted(answer), tool)() == auto
    assert Tool.from_mcp_tool(Scripted(answer), tool, result_mode="structured")() == structured
    assert Tool.from_mcp_tool(Scripted(answer), tool, result_mode="text")() == text_only


FAILURES = [
    ({"content": text("no such item"), "isError": True}, "no such item"),
    ({"content": text("bad", "very bad"), "isError": True}, "bad\nvery bad"),
    ({"content": [], "structuredContent": {"code": 7}, "isError": True}, '{"code":7}'),
    ({"content": text('{"code": 7}'), "structuredContent": {"code": 7}, "isError": True}, '{"code": 7}'),
    ({"content": [*text("look"), PICTURE], "isError": True}, "look\n(image)"),
    ({"content": [], "isError": True}, "The tool failed without an error message."),
]


@pytest.mark.parametrize(("answer", "words"), FAILURES, ids=lambda part: str(part)[:40])
async def test_a_result_that_is_an_error_is_one_for_the_model(answer: dict[str, Any], words: str) -> None:
    tool = Tool.from_mcp_tool(Scripted(answer), {"name": "f", "inputSchema": {"type": "object"}})
    with pytest.raises(ToolFailed) as raised:
        await tool.acall()
    assert str(raised.value) == words
    [result] = await Toolbox([tool]).acall([ToolCall("a", "f", {})])
    assert result == ToolResult("a", "f", words, is_error=True)


async def test_a_real_servers_error_is_one_for_the_model() -> None:
    async with shop() as (client, tools):
        box = Toolbox([Tool.from_mcp_tool(client, tools["stock"])])
        [result] = await box.acall([ToolCall("a", "stock", {"item": "nothing"})])
        assert result.is_error
        assert "there is no such item" in result.text


BAD_ARGUMENTS = [
    ({}, "item: this argument is required"),
    ({"item": 5}, "item: must be a string"),
    ({"item": "bolt", "unit": "ton"}, "unit: must be one of"),
]


@pytest.mark.parametrize(("arguments", "fault"), BAD_ARGUMENTS, ids=lambda part: str(part)[:30])
async def test_bad_arguments_never_reach_the_session(arguments: dict[str, Any], fault: str) -> None:
    async with shop() as (_, tools):
        session = Scripted({"content": []})
        [result] = await Toolbox([Tool.from_mcp_tool(session, tools["stock"])]).acall(
            [ToolCall("a", "stock", arguments)]
        )
        assert result.is_error
        assert fault in result.text
        assert session.calls == []


async def test_arguments_go_to_the_session_as_they_are() -> None:
    names = {"from": "a", "self": "b", "Content-Type": "c", "name": "d", "arguments": "e"}
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in names}}
    session = Scripted({"content": []})
    await Tool.from_mcp_tool(session, {"name": "f.g", "inputSchema": schema}).acall(**names)
    assert session.calls == [("f.g", names)]


async def test_a_plain_client_session_will_do() -> None:
    async with create_client_server_memory_streams() as (ours, theirs):
        low = server._lowlevel_server
        serving = asyncio.create_task(low.run(*theirs, low.create_initialization_options()))
        async with ClientSession(*ours) as session:
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert await Tool.from_mcp_tool(session, tools["stock"]).acall(item="bolt") == {"result": 40}
        serving.cancel()


# --- MCP: the session's event loop ----------------------------------------------------------------------

CALL = ToolCall("a", "stock", {"item": "bolt"})
TWO = [CALL, ToolCall("b", "stock", {"item": "nut", "unit": "box"})]


def test_blocking_code_uses_a_session_that_lives_in_another_thread() -> None:
    with shop_on_another_loop() as (box, _, tools):
        assert tools["stock"](item="bolt") == {"result": 40}
        assert tools["thread"]() == "the shop's loop"
        assert [result.content for result in box(TWO)] == [{"result": 40}, {"result": 4}]  # side by side


async def test_another_event_loop_uses_a_session_that_lives_in_another_thread() -> None:
    with shop_on_another_loop() as (box, _, tools):
        assert await tools["thread"].acall() == "the shop's loop"
        assert [result.content for result in await box.acall(TWO)] == [{"result": 40}, {"result": 4}]


async def test_blocking_the_sessions_own_loop_is_an_error_and_not_a_standstill() -> None:
    async with shop() as (client, tools):
        tool = Tool.from_mcp_tool(client, tools["stock"])
        for blocked in (lambda: tool(item="bolt"), lambda: Toolbox([tool])([CALL]), lambda: Toolbox([tool])(TWO)):
            with pytest.raises(EventLoopError, match="Await the async form"):
                blocked()
        agent = ReAct("question -> left: int", tools=[tool])
        agent.set_lm(FakeLM([CALL]))
        with pytest.raises(EventLoopError, match="Await the async form"):
            agent(question="How many?")


def test_a_session_whose_loop_is_gone_is_an_error_that_says_so() -> None:
    with shop_on_another_loop() as (_, _, tools):
        pass
    with pytest.raises(EventLoopError, match="is closed"):
        tools["stock"](item="bolt")


def test_a_session_whose_loop_stands_still_is_an_error_that_says_so() -> None:
    with asyncio.Runner() as runner:

        async def convert() -> Tool:
            return Tool.from_mcp_tool(Scripted({"content": []}), {"name": "f", "inputSchema": {"type": "object"}})

        tool = runner.run(convert())
        with pytest.raises(EventLoopError, match="is not running"):
            tool()


def test_a_tool_made_where_no_loop_runs_is_told_its_loop() -> None:
    with shop_on_another_loop() as (_, loop, _):
        opened: dict[str, Any] = {}

        ready = threading.Event()

        async def live() -> None:
            opened["close"] = asyncio.Event()
            async with shop() as (opened["client"], tools):
                opened["tool"] = tools["stock"]
                ready.set()
                await opened["close"].wait()

        living = asyncio.run_coroutine_threadsafe(live(), loop)
        assert ready.wait(10)
        with pytest.raises(EventLoopError, match="the event loop of its session is unknown"):
            Tool.from_mcp_tool(opened["client"], opened["tool"])(item="bolt")
        assert Tool.from_mcp_tool(opened["client"], opened["tool"], loop=loop)(item="bolt") == {"result": 40}
        loop.call_soon_threadsafe(opened["close"].set)
        living.result(10)


def test_a_session_that_is_bound_to_no_loop_is_called_wherever_it_is() -> None:
    session = Scripted({"content": text("hi")})
    tool = Tool.from_mcp_tool(session, {"name": "f", "inputSchema": {"type": "object"}})
    assert tool() == "hi"
    assert asyncio.run(tool.acall()) == "hi"


async def test_a_server_that_does_not_answer_fails_within_its_time() -> None:
    class Dead:
        async def call_tool(self, name: str, arguments: Any) -> Any:
            await asyncio.Event().wait()

    box = Toolbox([Tool.from_mcp_tool(Dead(), {"name": "f", "inputSchema": {"type": "object"}}, timeout=0.05)])
    for results in (await box.acall([ToolCall("a", "f", {})]), await asyncio.to_thread(box, [ToolCall("a", "f", {})])):
        assert results[0].is_error
        assert "within 0.05 seconds" in results[0].text


async def test_an_agent_works_with_mcp_tools_awaited_and_blocking() -> None:
    async with shop() as (client, tools):
        agent = ReAct("question -> left: int", tools=[Tool.from_mcp_tool(client, tool) for tool in tools.values()])
        script = [CALL, ToolCall("b", "stock", {"item": "nothing"}), ToolCall("c", "submit", {"left": 40})]
        agent.set_lm(FakeLM(script))
        awaited = await agent.acall(question="How many bolts?")
        agent.set_lm(FakeLM(script))
        blocking = await asyncio.to_thread(agent, question="How many bolts?")
        for result in (awaited, blocking):
            assert result.left == 40
            assert result.steps[0].results[0].content == {"result": 40}
            assert [answer.is_error for step in result.steps for answer in step.results] == [False, True, False]


NO_MCP: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: Tool.from_mcp_tool(object(), {"name": "f", "inputSchema": {}}),
        "needs an MCP session first.*not a object",
    ),
    (lambda: Tool.from_mcp_tool({"name": "f"}, Scripted({})), "needs an MCP session first.*not a dict"),
    (lambda: Tool.from_mcp_tool(Scripted({}), "stock"), "needs an MCP tool second.*not a str"),
    (lambda: Tool.from_mcp_tool(Scripted({}), {"tools": []}), r"Use one of its \.tools"),
    (
        lambda: Tool.from_mcp_tool(Scripted({}), {"name": "f", "inputSchema": {"type": "string"}}),
        "must describe an object",
    ),
    (
        lambda: Tool.from_mcp_tool(Scripted({}), {"name": "f", "inputSchema": {}}, result_mode="all"),  # type: ignore[arg-type]
        "one of auto, structured, text",
    ),
]


@pytest.mark.parametrize(("make", "words"), NO_MCP, ids=[words for _, words in NO_MCP])
def test_what_is_no_mcp_tool_is_refused_in_words(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words):
        make()


async def test_a_foreign_tool_given_as_a_function_names_the_way() -> None:
    async with shop() as (_, tools):
        with pytest.raises(ToolDefinitionError, match=r"Tool\.from_mcp_tool"):
            Toolbox([tools["stock"]])
    with pytest.raises(ToolDefinitionError, match=r"Tool\.from_langchain"):
        Toolbox([add])


# --- LangChain -----------------------------------------------------------------------------------------


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
    """What to order."""

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


def test_the_schema_of_a_langchain_tool_is_kept_whole() -> None:
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
async def test_a_langchain_tool_gives_its_value_blocking_and_awaited(made: Any) -> None:
    tool = Tool.from_langchain(made)
    assert tool(x=1) == 3
    assert await tool.acall(x="1", y=4) == 5  # pydantic reads "1" as 1 for them too
    assert tool.is_async is (made is add_async)


async def test_each_way_of_calling_takes_the_form_made_for_it() -> None:
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


async def test_arguments_are_validated_and_converted_as_the_tool_declares_them() -> None:
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


def test_a_json_schema_of_a_langchain_tool_is_kept_and_enforced() -> None:
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


def test_a_tool_of_one_text_takes_its_text_by_name() -> None:
    tool = Tool.from_langchain(OneTextTool("shout", str.upper, "Shout."))
    assert tool.parameters == {
        "type": "object",
        "properties": {"tool_input": {"type": "string"}},
        "required": ["tool_input"],
    }
    assert tool(tool_input="hi") == "HI"


def test_injected_arguments_are_hidden_filled_in_and_not_for_the_model_to_give() -> None:
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


def test_the_id_of_the_call_is_injected_by_itself() -> None:
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
async def test_a_tool_exception_is_an_error_for_the_model_handled_or_not(handled: Any) -> None:
    def look() -> str:
        """Look."""
        raise ToolException("it is dark")

    made = StructuredTool.from_function(look, handle_tool_error=handled)
    expected = {"our words": "our words"}.get(str(handled), "handled it is dark" if callable(handled) else "it is dark")
    box = Toolbox([Tool.from_langchain(made)], on_error="abort")
    for results in (box([ToolCall("a", "look", {})]), await box.acall([ToolCall("a", "look", {})])):
        assert results == [ToolResult("a", "look", expected, is_error=True)]


def test_other_exceptions_stay_what_they_are() -> None:
    @langchain
    def crash() -> str:
        """Crash."""
        raise KeyError("left")

    with pytest.raises(KeyError, match="left"):
        Tool.from_langchain(crash)()


def test_of_content_and_artifact_the_model_sees_the_content() -> None:
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


def test_a_tool_may_answer_with_a_message() -> None:
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
def test_values_that_are_no_content_blocks_stay_as_they_are(value: Any) -> None:
    made = StructuredTool.from_function(lambda: value, name="give", description="Give.")
    assert Tool.from_langchain(made)() == value


def test_arguments_that_look_like_a_call_are_arguments() -> None:
    made = StructuredTool(
        name="odd", description="Odd.", args_schema={"type": "object", "properties": {}}, func=lambda **given: given
    )
    asked: dict[str, Any] = {"type": "tool_call", "id": "x", "args": {"type": "other"}}
    assert json.loads(Tool.from_langchain(made)(**asked)) == asked


async def test_an_agent_works_with_langchain_tools_blocking_and_awaited() -> None:
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
def test_what_is_no_langchain_tool_is_refused_in_words(thing: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"Tool\.from_langchain needs a LangChain tool"):
        Tool.from_langchain(thing)
