"""``mcp_tools``: servers as commands, URLs and objects of the SDK; blocking, awaited and streamed."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.client import Client
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent

from sigwire import (
    ConfigurationError,
    EventLoopError,
    FakeLM,
    McpServerError,
    ReAct,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolFailed,
    mcp_tools,
)

SCRIPT = Path(__file__).with_name("shop_server.py")
COMMAND = [sys.executable, str(SCRIPT)]
MODES = ["run", "arun", "stream", "astream"]

server = MCPServer("shop")


@server.tool()
def stock(item: str) -> dict[str, int]:
    """How many are left."""
    return {"left": len(item)}


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "awake"


@server.tool(structured_output=False)
def refuse() -> CallToolResult:
    """Fail."""
    return CallToolResult(content=[TextContent(text="closed on Sundays")], is_error=True)


def agent_of(tools: list[Tool], *calls: ToolCall) -> Any:
    agent: Any = ReAct("question -> answer", tools=tools)
    agent.set_lm(FakeLM([*calls, ToolCall("s", "submit", {"answer": "done"})]))
    return agent


async def answered(mode: str, agent: Any) -> Any:
    if mode == "run":
        return agent(question="?")
    if mode == "arun":
        return await agent.acall(question="?")
    if mode == "stream":
        return list(agent.stream(question="?"))[-1].value
    return [event async for event in agent.astream(question="?")][-1].value


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- a command ------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
async def test_agent_runs_tools_of_a_command_inside_an_event_loop(mode: str) -> None:
    async with mcp_tools(COMMAND, include=["place", "facts"], env={"SHOP_KEY": "k1"}) as tools:
        agent = agent_of(
            tools,
            ToolCall("a", "place", {"item": "bolt"}),
            ToolCall("b", "place", {"item": "nothing"}),
            ToolCall("c", "place", {"thing": 1}),
            ToolCall("d", "facts", {}),
        )
        steps = (await answered(mode, agent)).steps
    results = [step.results[0] for step in steps]
    assert results[0].content == {"floor": 1, "shelf": 4}
    assert [result.is_error for result in results] == [False, True, True, False, False]
    assert "there is no such item" in results[1].text
    pid, key = results[3].text.split()
    assert key == "k1"
    assert not is_alive(int(pid))


@pytest.mark.long
def test_agent_runs_tools_of_a_command_in_a_blocking_block() -> None:
    with mcp_tools(f"{sys.executable} {SCRIPT}") as tools:
        named = {tool.name: tool for tool in tools}
        result = agent_of(tools, ToolCall("a", "place", {"item": "bolt"}))(question="?")
        pid = int(named["facts"]().split()[0])
        assert is_alive(pid)
    assert result.steps[0].results[0].content == {"floor": 1, "shelf": 4}
    assert not is_alive(pid)
    with pytest.raises(ToolFailed, match=r"The connection to the MCP server 'python\S*' is closed"):
        named["facts"]()


@pytest.mark.long
def test_server_that_ends_in_a_call_is_an_error_for_the_model_and_for_later_calls() -> None:
    with mcp_tools(COMMAND, timeout=90.0) as tools:
        started = time.monotonic()
        agent = agent_of(tools, ToolCall("a", "end_process", {}), ToolCall("b", "facts", {}))
        results = [step.results[0] for step in agent(question="?").steps]
        assert time.monotonic() - started < 60
    assert [result.is_error for result in results] == [True, True, False]
    assert "Connection closed" in results[0].text


@pytest.mark.long
def test_blocked_server_fails_the_call_within_the_timeout() -> None:
    with mcp_tools(COMMAND, include=["sleep"], timeout=3.0) as tools:
        started = time.monotonic()
        result = agent_of(tools, ToolCall("a", "sleep", {"seconds": 90}))(question="?").steps[0].results[0]
        assert 2.5 < time.monotonic() - started < 60
    assert result.is_error


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["no-such-command"], "'no-such-command' did not open: FileNotFoundError"),
        ([sys.executable, "-c", "pass"], "did not open: MCPError: Connection closed"),
        ([sys.executable, "-c", "import sys; sys.stdin.read()"], "no list of tools within 0.1 seconds"),
    ],
)
async def test_command_that_is_no_server_raises_within_the_timeout(command: list[str], problem: str) -> None:
    started = time.monotonic()
    timeout = 0.1 if "0.1" in problem else 90.0
    with pytest.raises(McpServerError, match=problem), mcp_tools(command, timeout=timeout):
        pass
    with pytest.raises(McpServerError, match=problem):
        async with mcp_tools(command, timeout=timeout):
            pass
    assert time.monotonic() - started < 60


# --- a URL ----------------------------------------------------------------------------------------------


@pytest.fixture
def served() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*COMMAND, str(port)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp", process
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.parametrize("headers", [None, {"Authorization": "Bearer abc"}], ids=["bare", "headers"])
async def test_tools_of_a_url_run_blocking_and_awaited(
    served: tuple[str, subprocess.Popen[bytes]], headers: dict[str, str] | None
) -> None:
    url, _ = served
    async with mcp_tools(url, include=["place"], headers=headers) as tools:
        assert await tools[0].acall(item="bolt") == {"floor": 1, "shelf": 4}
        assert tools[0](item="nut") == {"floor": 1, "shelf": 3}
    with mcp_tools(url, include=["place"], headers=headers) as tools:
        assert tools[0](item="nut") == {"floor": 1, "shelf": 3}


@pytest.mark.long
def test_url_whose_server_ends_fails_the_calls_and_the_block_ends(served: tuple[str, subprocess.Popen[bytes]]) -> None:
    url, process = served
    started = time.monotonic()
    with mcp_tools(url, include=["place"], timeout=4.0) as tools:
        process.kill()
        process.wait()
        agent = agent_of(tools, ToolCall("a", "place", {"item": "nut"}), ToolCall("b", "place", {"item": "nut"}))
        results = [step.results[0] for step in agent(question="?").steps]
    assert [result.is_error for result in results] == [True, True, False]
    assert time.monotonic() - started < 60


def test_url_without_a_server_raises_without_its_query() -> None:
    with pytest.raises(McpServerError) as caught, mcp_tools("http://127.0.0.1:9/mcp?token=abc", timeout=10.0):
        pass
    assert "The MCP server '127.0.0.1' did not open" in str(caught.value)
    assert "abc" not in str(caught.value)


# --- objects of the SDK -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["arun", "astream"])
async def test_tools_of_an_open_session_run_and_the_session_stays_open(mode: str) -> None:
    async with Client(server) as session:
        async with mcp_tools(session) as tools:
            result = await answered(mode, agent_of(tools, ToolCall("a", "stock", {"item": "bolt"})))
        assert result.steps[0].results[0].content == {"left": 4}
        async with mcp_tools(session.session, include=["stock"]) as tools:
            assert await tools[0].acall(item="nut") == {"left": 3}
        assert len((await session.list_tools()).tools) == 3


async def test_open_session_is_refused_in_a_blocking_block() -> None:
    async with Client(server) as session:
        with pytest.raises(EventLoopError, match="Use 'async with'"), mcp_tools(session):
            pass


@pytest.mark.parametrize("make", [lambda: server, lambda: Client(server)], ids=["server", "client"])
def test_objects_of_the_sdk_are_opened_in_a_blocking_block(make: Any) -> None:
    with mcp_tools(make(), include=["stock"]) as tools:
        assert tools[0](item="bolt") == {"left": 4}


async def test_error_result_of_a_server_is_an_error_for_the_model() -> None:
    async with mcp_tools(server) as tools:
        result = await answered("arun", agent_of(tools, ToolCall("a", "refuse", {})))
    assert (result.steps[0].results[0].text, result.steps[0].results[0].is_error) == ("closed on Sundays", True)


def test_call_that_exceeds_the_timeout_is_an_error_for_the_model() -> None:
    with mcp_tools(server, timeout=0.25) as tools:
        result = agent_of(tools, ToolCall("a", "wait", {"seconds": 9.0}))(question="?").steps[0].results[0]
    assert result.is_error


def test_call_of_a_program_that_exceeds_the_timeout_raises() -> None:
    with mcp_tools(server, include=["wait"], timeout=0.25) as tools, pytest.raises(ToolFailed, match="Timed out"):
        tools[0](seconds=9.0)


async def test_block_may_be_left_in_another_task_than_it_was_entered_in() -> None:
    tools = mcp_tools(server, include=["stock"])
    opened = await asyncio.create_task(tools.__aenter__())
    assert await opened[0].acall(item="nut") == {"left": 3}
    await asyncio.create_task(tools.__aexit__(None, None, None))


async def test_cancelled_opening_ends_at_once() -> None:
    async def enter() -> None:
        async with mcp_tools([sys.executable, "-c", "import sys; sys.stdin.read()"]):
            pass

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(enter(), 0.1)


# --- the choice of tools ------------------------------------------------------------------------------------


def test_include_exclude_and_prefix_choose_and_name_the_tools() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["stock", "wait", "refuse"]),
        ({"include": ["wait", "stock"]}, ["stock", "wait"]),
        ({"exclude": ["wait"]}, ["stock", "refuse"]),
        ({"include": ["wait", "stock"], "exclude": ["wait"], "prefix": "shop_"}, ["shop_stock"]),
    ]
    for options, names in cases:
        with mcp_tools(server, **options) as tools:
            assert [tool.name for tool in tools] == names
            assert tools[0](item="bolt") == {"left": 4}


@pytest.mark.parametrize("option", ["include", "exclude"])
def test_name_that_the_server_does_not_have_is_refused(option: str) -> None:
    choice: dict[str, Any] = {option: ["stok"]}
    with (
        pytest.raises(
            ToolDefinitionError, match=r"has no tool 'stok'.* Did you mean stock\? Its tools are: stock, wait"
        ),
        mcp_tools(server, **choice),
    ):
        pass


def test_options_of_tools_apply_to_all_tools() -> None:
    with mcp_tools(server, timeout=7.0, parallel=False, max_output=50) as tools:
        assert {(tool.timeout, tool.parallel, tool.max_output) for tool in tools} == {(7.0, False, 50)}


def test_names_of_two_servers_that_clash_are_refused_and_a_prefix_makes_them_distinct() -> None:
    with mcp_tools(server) as one, mcp_tools(server) as two, mcp_tools(server, prefix="b_") as three:
        with pytest.raises(ToolDefinitionError, match="Two tools are named 'stock'"):
            ReAct("question -> answer", tools=[*one, *two])
        ReAct("question -> answer", tools=[*one, *three])


class Paged:
    """A session whose server lists its tools on pages."""

    def __init__(self, *names: str) -> None:
        self.names = names

    async def list_tools(self, cursor: str | None = None) -> Any:
        at = int(cursor or 0)
        tool = SimpleNamespace(name=self.names[at])
        tool.model_dump = lambda **options: {"name": self.names[at], "inputSchema": {"type": "object"}}
        return SimpleNamespace(tools=[tool], next_cursor=str(at + 1) if at + 1 < len(self.names) else None)

    async def call_tool(self, name: str, *, arguments: dict[str, Any]) -> Any:
        return {"content": [{"type": "text", "text": name}]}


async def test_tools_on_all_pages_are_found() -> None:
    async with mcp_tools(Paged("a", "b", "c"), prefix="x_") as tools:
        assert [(tool.name, await tool.acall()) for tool in tools] == [("x_a", "a"), ("x_b", "b"), ("x_c", "c")]


async def test_name_that_a_server_has_twice_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="Two tools of the MCP server 'Paged' are named 'a'"):
        async with mcp_tools(Paged("a", "a")):
            pass


# --- misuse ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 7, "", [], object()], ids=["none", "number", "empty", "list", "object"])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(ToolDefinitionError, match="mcp_tools needs a command, a URL, or an open session"):
        mcp_tools(value)


def test_timeout_below_zero_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="timeout"):
        mcp_tools(server, timeout=-1.0)


def test_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="'nonsense'"), mcp_tools(server, nonsense=1):
        pass


def test_second_opening_is_refused() -> None:
    tools = mcp_tools(server)
    with tools:
        pass
    with pytest.raises(ConfigurationError, match="were opened before"), tools:
        pass


def test_missing_package_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.client", None)
    with pytest.raises(ConfigurationError, match=r'pip install "sigwire\[mcp\]"'), mcp_tools(["x"]):
        pass
