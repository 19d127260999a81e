"""``ServerConnection``: a client of an MCP server, opened and closed by one task of its event loop.

The SDK's client has cancel scopes, which must be entered and left by one task, and a failure inside them cancels that task.
So no task of the caller enters them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, cast

from sigwire.errors import ToolFailed
from sigwire.mcp.errors import McpServerError

__all__ = ["ServerConnection", "list_tools"]

_CLOSING_SECONDS = 8.0  # the SDK ends a command that ignores its closed input within 6.5 seconds
_MOST_PAGES = 100  # a server whose cursors never end must not hang the opening
_LONGEST_MESSAGE = 300  # characters

_tasks: set[asyncio.Task[None]] = set()  # an event loop keeps no reference to its tasks


class ServerConnection:
    """A connection to a server: a session that ``Tool.from_mcp_tool`` takes. All its methods run on one event loop.

    ``label`` is the server's name in errors, ``make_client`` makes the SDK's client. ``timeout``: seconds until the tools are
    listed.
    """

    def __init__(
        self, label: str, make_client: Callable[[], AbstractAsyncContextManager[Any]], timeout: float | None
    ) -> None:
        self.label = label
        self._make_client, self._timeout = make_client, timeout
        self._closing = asyncio.Event()
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> Sequence[object]:
        """Open the client and return the tools of the server. Raises ``McpServerError``."""
        loop = asyncio.get_running_loop()
        listed: asyncio.Future[Sequence[object]] = loop.create_future()
        # A fresh context: the connection belongs to no run, stream or deadline of the caller.
        self._task = task = loop.create_task(self._hold(listed), context=Context())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        try:
            done, _ = await asyncio.wait([listed], timeout=self._timeout)
        except BaseException:
            listed.cancel()
            task.cancel()
            raise
        if not done:
            listed.cancel()
            task.cancel()  # its cleanup goes on: a command gets seconds to end, and the caller does not wait for them
            why = f"no list of tools within {self._timeout:g} seconds. Check that it is an MCP server, or raise timeout"
            raise McpServerError(f"The MCP server {self.label!r} did not open: {why}.")
        if (error := listed.exception()) is not None:
            why = f"{_first_line(error)}. Check the command or URL, and that the server starts by itself"
            raise McpServerError(f"The MCP server {self.label!r} did not open: {why}.") from error
        return listed.result()

    async def close(self) -> None:
        """Close the client. A client that does not close in time is cancelled."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_CLOSING_SECONDS)
            self._task.cancel()

    async def call_tool(self, name: str, *, arguments: dict[str, Any]) -> object:
        """Call a tool of the server. Raises ``ToolFailed`` if the server refuses the call or is gone."""
        from mcp import MCPError

        if self._task is None or self._task.done() or self._closing.is_set():
            raise ToolFailed(f"The connection to the MCP server {self.label!r} is closed.")
        try:
            return await self._client.call_tool(name, arguments)
        except MCPError as error:
            raise ToolFailed(f"The MCP server {self.label!r} answered with an error: {error.message}") from error

    async def _hold(self, listed: asyncio.Future[Sequence[object]]) -> None:
        try:
            async with self._make_client() as self._client:
                tools = await list_tools(self._client)
                if not listed.done():
                    listed.set_result(tools)
                await self._closing.wait()
        except Exception as error:
            # After the opening, each call reports a lost connection, and an error while closing has no reader.
            if not listed.done():
                listed.set_exception(_leaf(error))
        finally:
            if not listed.done():  # cancelled from inside the SDK
                listed.set_exception(ConnectionError("the connection was closed"))


async def list_tools(session: Any) -> Sequence[object]:
    """Return the tools of an open session of any SDK, all pages."""
    found: list[object] = []
    more: dict[str, object] = {}
    for _ in range(_MOST_PAGES):
        page: Any = await session.list_tools(**more)
        if isinstance(page, list):  # FastMCP's client returns all
            return cast("list[object]", page)
        found += page.tools
        cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
        if not cursor:
            break
        more = _next_page(session, str(cursor))
    return found


def _next_page(session: Any, cursor: str) -> dict[str, object]:
    """Return the arguments that ask for a page: versions of the SDK differ."""
    if "cursor" in inspect.signature(session.list_tools).parameters:
        return {"cursor": cursor}
    from mcp.types import PaginatedRequestParams

    return {"params": PaginatedRequestParams(cursor=cursor)}


def _leaf(error: BaseException) -> BaseException:
    """Return the first error of nested groups: the SDK's task groups wrap each error."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0][:_LONGEST_MESSAGE].rstrip('.')}" if lines else name
