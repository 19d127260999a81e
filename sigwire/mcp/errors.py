"""The error of a server that cannot be opened."""

from __future__ import annotations

from sigwire.errors import SigwireError

__all__ = ["McpServerError"]


class McpServerError(SigwireError, ConnectionError):
    """An MCP server cannot be started or reached, or it did not list its tools in time.

    A failure after that is the error of a tool call, which a model reads.

    >>> import sigwire
    >>> try:
    ...     with sigwire.mcp_tools(["no-such-command"]) as tools:
    ...         pass
    ... except McpServerError as error:
    ...     print(str(error).partition(":")[0])
    The MCP server 'no-such-command' did not open
    """
