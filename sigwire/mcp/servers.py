"""``mcp_tools``: the tools of an MCP server for the length of a ``with`` or ``async with`` block.

Commands and URLs are opened on the library's event loop, so their tools work from every thread and loop, also in blocking
code inside an event loop. Objects of the SDK may be bound to the caller's loop; ``async with`` opens them there.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from sigwire.core.tools.mcp import ResultMode
from sigwire.core.tools.tool import Tool, check_limits
from sigwire.effects.loops import EventLoop, OwnerLoop, block_on, started_by_block_on
from sigwire.effects.network import check_network
from sigwire.errors import ConfigurationError, EventLoopError, ToolDefinitionError, suggest
from sigwire.mcp.connection import ServerConnection, list_tools

__all__ = ["McpTools", "mcp_tools"]

ClientMaker: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]


def mcp_tools(
    server: object,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    prefix: str = "",
    timeout: float | None = 60.0,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    result_mode: ResultMode = "auto",
    **options: Any,
) -> McpTools:
    """Return a context manager, blocking and async, that opens an MCP server and gives the list of its tools.

    ``server``: a command as a text or a list of arguments, a URL (streamable HTTP), or an object of the SDK: a server, a
    transport, a client, an open session (which stays open, and needs ``async with``). ``include`` and ``exclude`` are names
    that the server uses; ``prefix`` is put before the names here. ``timeout`` (seconds) limits the opening and each call.
    ``env``: environment variables of a command, which inherits few others. ``headers`` of a URL. ``options`` are keywords of
    ``Tool`` for all tools; ``result_mode`` is that of ``Tool.from_mcp_tool``.

    A result with ``isError``, a refused call and a lost connection are errors that the model reads. Raises
    ``McpServerError`` if the server does not open, ``ToolDefinitionError`` for names that clash or that it does not have,
    ``ConfigurationError`` without the extra ``mcp``.

    >>> from mcp.server.mcpserver import MCPServer
    >>> server = MCPServer("shop")
    >>> @server.tool()
    ... def stock(item: str) -> int:
    ...     return 40
    >>> with mcp_tools(server, prefix="shop_") as tools:
    ...     [tool.name for tool in tools], tools[0](item="bolt")
    (['shop_stock'], {'result': 40})
    """
    check_limits("mcp_tools", timeout=timeout)
    choice = _ChosenTools(include, exclude, prefix)
    return McpTools(_read_server(server, env, headers, timeout), choice, {"timeout": timeout, **options}, result_mode)


class McpTools:
    """The context manager of ``mcp_tools``: opens a server and gives its tools. It opens once.

    >>> isinstance(mcp_tools("npx some-server"), McpTools)  # the block opens it
    True
    """

    def __init__(
        self, server: _Server, choice: _ChosenTools, options: Mapping[str, Any], result_mode: ResultMode
    ) -> None:
        self._server, self._choice, self._options = server, choice, options
        self._result_mode: ResultMode = result_mode
        self._owner: OwnerLoop | None = None
        self._connection: ServerConnection | None = None

    def __enter__(self) -> list[Tool]:
        if self._server.session is not None:
            raise EventLoopError(
                "An open MCP session belongs to an event loop, which a blocking block does not know (opening its tools). "
                "Use 'async with', or give the command or URL of the server."
            )
        return block_on(self._open())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        block_on(self._close())

    async def __aenter__(self) -> list[Tool]:
        is_anywhere = self._server.is_anywhere and not started_by_block_on()
        self._owner = OwnerLoop(block_on(_running_loop()) if is_anywhere else None)
        return await self._owner.run(self._open)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._owner is not None:
            await self._owner.run(self._close)

    async def _open(self) -> list[Tool]:
        if self._server.session is not None:
            return self._tools(self._server.session, await list_tools(self._server.session))
        if self._connection is not None:
            raise ConfigurationError("These MCP tools were opened before (opening them). Call mcp_tools again.")
        if self._server.is_remote:
            check_network("tool", self._server.label)
        self._connection = connection = self._server.connection()
        listed = await connection.open()
        try:
            return self._tools(connection, listed)
        except BaseException:
            await connection.close()
            raise

    def _tools(self, session: Any, listed: Iterable[Any]) -> list[Tool]:
        loop, mode, options = asyncio.get_running_loop(), self._result_mode, self._options
        chosen = self._choice.of(listed, self._server.label)
        return [
            Tool.from_mcp_tool(session, tool, result_mode=mode, loop=loop, name=name, **options)
            for name, tool in chosen
        ]

    async def _close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


async def _running_loop() -> EventLoop:
    return asyncio.get_running_loop()


@dataclass(frozen=True)
class _ChosenTools:
    """The tools that a caller chooses of a server, and the prefix of their names."""

    include: Collection[str] | None
    exclude: Collection[str]
    prefix: str

    def of(self, tools: Iterable[Any], label: str) -> list[tuple[str, Any]]:
        """Return the tools with their new names. Raises ``ToolDefinitionError`` for a name twice and an unknown name."""
        listed = list(tools)
        by_name = {str(tool.name): tool for tool in listed}
        self._check_names(by_name, label)
        chosen = [tool for tool in listed if self._has(tool.name)]
        for tool in chosen:
            if by_name[tool.name] is not tool:
                raise ToolDefinitionError(
                    f"Two tools of the MCP server {label!r} are named {tool.name!r}, but a model needs distinct names. "
                    f"Leave them out: exclude=[{tool.name!r}]."
                )
        return [(f"{self.prefix}{tool.name}", tool) for tool in chosen]

    def _check_names(self, known: Collection[str], label: str) -> None:
        for name in (*(self.include or ()), *self.exclude):
            if name not in known:
                raise ToolDefinitionError(
                    f"The MCP server {label!r} has no tool {name!r} (choosing its tools). {suggest(name, known)}"
                    f"Its tools are: {', '.join(known) or 'none'}."
                )

    def _has(self, name: str) -> bool:
        return name not in self.exclude and (self.include is None or name in self.include)


# --- the server that a caller names ---------------------------------------------------------------------


class _Server:
    """A server: its name in errors, and how it is reached. ``is_anywhere``: on any event loop; ``is_remote``: over HTTP."""

    def __init__(
        self,
        label: str,
        client: ClientMaker,
        timeout: float | None,
        *,
        session: Any = None,
        is_anywhere: bool = False,
        is_remote: bool = False,
    ) -> None:
        self.label, self.session, self.is_anywhere, self.is_remote = label, session, is_anywhere, is_remote
        self._client, self._timeout = client, timeout

    def connection(self) -> ServerConnection:
        return ServerConnection(self.label, self._client, self._timeout)


def _read_server(
    server: object, env: Mapping[str, str] | None, headers: Mapping[str, str] | None, timeout: float | None
) -> _Server:
    if isinstance(server, str) and server.startswith(("http://", "https://")):
        _check_installed()
        label = urlsplit(server).hostname or server
        return _Server(label, lambda: _http_client(server, headers, timeout), timeout, is_anywhere=True, is_remote=True)
    if command := _command(server):
        _check_installed()
        label = os.path.basename(command[0])  # arguments may have secrets
        return _Server(label, lambda: _stdio_client(command, env, timeout), timeout, is_anywhere=True)
    label = type(server).__name__
    if _is_client(server):
        return _Server(label, lambda: cast(Any, server), timeout, session=server if _is_open(server) else None)
    if not any(hasattr(server, name) for name in ("run", "command", "__aenter__")):
        raise ToolDefinitionError(
            f"mcp_tools needs a command, a URL, or an open session, not a {label} (opening a server). "
            "Write mcp_tools('npx some-server') or mcp_tools('https://...')."
        )
    _check_installed()
    return _Server(label, lambda: _sdk_client(server, timeout), timeout)


def _command(server: object) -> list[str]:
    if isinstance(server, str):
        return shlex.split(server, posix=os.name != "nt")
    if isinstance(server, Sequence) and all(
        isinstance(word, (str, os.PathLike)) for word in cast("Sequence[object]", server)
    ):
        return [os.fspath(word) for word in cast("Sequence[str]", server)]
    return []


def _is_client(value: object) -> bool:
    """Return True for a client or session. The servers of the SDK and of FastMCP have its methods as well."""
    is_server = any(cls.__module__.startswith(("mcp.server", "fastmcp.server")) for cls in type(value).__mro__)
    return not is_server and all(callable(getattr(value, name, None)) for name in ("list_tools", "call_tool"))


def _is_open(session: Any) -> bool:
    try:
        return getattr(session, "session", session) is not None
    except RuntimeError:  # a client of the SDK or FastMCP that was not entered
        return False


def _stdio_client(command: Sequence[str], env: Mapping[str, str] | None, timeout: float | None) -> Any:
    from mcp import StdioServerParameters

    return _sdk_client(StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(env or {})), timeout)


@asynccontextmanager
async def _http_client(url: str, headers: Mapping[str, str] | None, timeout: float | None) -> AsyncGenerator[Any]:
    from httpx2 import AsyncClient, Timeout
    from mcp.client.streamable_http import streamable_http_client

    # The time limits of the SDK: a server may hold a response open.
    async with (
        AsyncClient(headers=dict(headers or {}), timeout=Timeout(30.0, read=300.0)) as http,
        _sdk_client(streamable_http_client(url, http_client=http), timeout) as client,
    ):
        yield client


def _sdk_client(server: Any, timeout: float | None) -> Any:
    from mcp.client import Client

    return Client(server, read_timeout_seconds=timeout)


def _check_installed() -> None:
    try:
        import mcp.client  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ConfigurationError(
            'MCP servers need the package mcp (opening a server). Run pip install "sigwire[mcp]".'
        ) from error
