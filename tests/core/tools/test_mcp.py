"""Tools of an MCP server: schema, results, errors, and the event loop of the session."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import pytest
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
from pydantic import BaseModel, Field

from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.errors import EventLoopError, ToolDefinitionError, ToolFailed
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
    assert ready.wait(60)
    try:
        yield Toolbox(opened[0]), loop, opened[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        living.result(60)
        loop.call_soon_threadsafe(loop.stop)
        worker.join()
        loop.close()


async def test_schema_of_an_mcp_tool_is_kept_whole() -> None:
    async with shop() as (client, tools):
        tool = Tool.from_mcp_tool(client, tools["stock"])
        assert (tool.name, tool.description) == ("stock", "How many are left.")
        assert tool.parameters == tools["stock"].input_schema
        assert tool.parameters["required"] == ["item"]  # what has a default is not
        assert tool.parameters["properties"]["unit"]["enum"] == ["piece", "box"]
        assert tool.parameters["properties"]["unit"]["default"] == "piece"
        recursive = Tool.from_mcp_tool(client, tools["assemble"]).parameters
        assert recursive["$defs"]["Part"]["properties"]["parts"]["items"] == {"$ref": "#/$defs/Part"}  # type: ignore[index,call-overload]


async def test_metadata_of_an_mcp_tool_are_kept_and_not_sent() -> None:
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
async def test_mcp_tool_returns_canonical_values(name: str, arguments: dict[str, Any], value: Any) -> None:
    async with shop() as (client, tools):
        tool = Tool.from_mcp_tool(client, tools[name])
        assert await tool.acall(**arguments) == value
        assert await asyncio.to_thread(tool, **arguments) == value


async def test_media_of_an_mcp_result_are_sent_as_media() -> None:
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


def test_mcp_result_is_not_mutated() -> None:
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
def test_structured_content_is_kept_without_duplicates(
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
async def test_error_result_raises_tool_failed(answer: dict[str, Any], words: str) -> None:
    tool = Tool.from_mcp_tool(Scripted(answer), {"name": "f", "inputSchema": {"type": "object"}})
    with pytest.raises(ToolFailed) as raised:
        await tool.acall()
    assert str(raised.value) == words
    [result] = await Toolbox([tool]).acall([ToolCall("a", "f", {})])
    assert result == ToolResult("a", "f", words, is_error=True)


async def test_error_of_a_real_server_raises_tool_failed() -> None:
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
async def test_invalid_arguments_are_not_sent_to_the_session(arguments: dict[str, Any], fault: str) -> None:
    async with shop() as (_, tools):
        session = Scripted({"content": []})
        [result] = await Toolbox([Tool.from_mcp_tool(session, tools["stock"])]).acall(
            [ToolCall("a", "stock", arguments)]
        )
        assert result.is_error
        assert fault in result.text
        assert session.calls == []


async def test_arguments_are_sent_to_the_session_unchanged() -> None:
    names = {"from": "a", "self": "b", "Content-Type": "c", "name": "d", "arguments": "e"}
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in names}}
    session = Scripted({"content": []})
    await Tool.from_mcp_tool(session, {"name": "f.g", "inputSchema": schema}).acall(**names)
    assert session.calls == [("f.g", names)]


async def test_plain_client_session_works() -> None:
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


def test_blocking_code_calls_a_session_of_another_thread() -> None:
    with shop_on_another_loop() as (box, _, tools):
        assert tools["stock"](item="bolt") == {"result": 40}
        assert tools["thread"]() == "the shop's loop"
        assert [result.content for result in box(TWO)] == [{"result": 40}, {"result": 4}]  # side by side


async def test_event_loop_calls_a_session_of_another_thread() -> None:
    with shop_on_another_loop() as (box, _, tools):
        assert await tools["thread"].acall() == "the shop's loop"
        assert [result.content for result in await box.acall(TWO)] == [{"result": 40}, {"result": 4}]


async def test_blocking_the_loop_of_the_session_raises() -> None:
    async with shop() as (client, tools):
        tool = Tool.from_mcp_tool(client, tools["stock"])
        for blocked in (lambda: tool(item="bolt"), lambda: Toolbox([tool])([CALL]), lambda: Toolbox([tool])(TWO)):
            with pytest.raises(EventLoopError, match="Await the async form"):
                blocked()
        agent = ReAct("question -> left: int", tools=[tool])
        agent.set_lm(FakeLM([CALL]))
        with pytest.raises(EventLoopError, match="Await the async form"):
            agent(question="How many?")


def test_session_raises_when_its_loop_is_closed() -> None:
    with shop_on_another_loop() as (_, _, tools):
        pass
    with pytest.raises(EventLoopError, match="is closed"):
        tools["stock"](item="bolt")


def test_session_raises_when_its_loop_is_stopped() -> None:
    with asyncio.Runner() as runner:

        async def convert() -> Tool:
            return Tool.from_mcp_tool(Scripted({"content": []}), {"name": "f", "inputSchema": {"type": "object"}})

        tool = runner.run(convert())
        with pytest.raises(EventLoopError, match="is not running"):
            tool()


def test_tool_made_without_a_running_loop_needs_the_loop() -> None:
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
        assert ready.wait(60)
        with pytest.raises(EventLoopError, match="the event loop of its session is unknown"):
            Tool.from_mcp_tool(opened["client"], opened["tool"])(item="bolt")
        assert Tool.from_mcp_tool(opened["client"], opened["tool"], loop=loop)(item="bolt") == {"result": 40}
        loop.call_soon_threadsafe(opened["close"].set)
        living.result(60)


def test_session_without_a_loop_is_called_on_any_loop() -> None:
    session = Scripted({"content": text("hi")})
    tool = Tool.from_mcp_tool(session, {"name": "f", "inputSchema": {"type": "object"}})
    assert tool() == "hi"
    assert asyncio.run(tool.acall()) == "hi"


async def test_silent_server_raises_after_the_timeout() -> None:
    class Dead:
        async def call_tool(self, name: str, arguments: Any) -> Any:
            await asyncio.Event().wait()

    box = Toolbox([Tool.from_mcp_tool(Dead(), {"name": "f", "inputSchema": {"type": "object"}}, timeout=0.05)])
    for results in (await box.acall([ToolCall("a", "f", {})]), await asyncio.to_thread(box, [ToolCall("a", "f", {})])):
        assert results[0].is_error
        assert "within 0.05 seconds" in results[0].text


async def test_agent_works_with_mcp_tools_awaited_and_blocking() -> None:
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
def test_other_object_than_an_mcp_tool_raises_with_advice(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words):
        make()


async def test_foreign_tool_given_as_a_function_raises_with_the_right_method() -> None:
    async with shop() as (_, tools):
        with pytest.raises(ToolDefinitionError, match=r"Tool\.from_mcp_tool"):
            Toolbox([tools["stock"]])
    with pytest.raises(ToolDefinitionError, match=r"Tool\.from_langchain"):
        Toolbox([langchain(len)])
