"""An MCP server in a process of its own: on its standard streams, or over HTTP at the port that is its argument."""

from __future__ import annotations

import os
import sys
import time

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("shop")


class Shelf(BaseModel):
    """A place."""

    floor: int
    shelf: int


@server.tool()
def place(item: str) -> Shelf:
    """Return the place of an item."""
    if item == "nothing":
        raise ToolError("there is no such item")
    return Shelf(floor=1, shelf=len(item))


@server.tool()
def facts() -> str:
    """Return facts of the process."""
    return f"{os.getpid()} {os.environ.get('SHOP_KEY', 'no key')}"


@server.tool()
def sleep(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)
    return "awake"


@server.tool()
def end_process() -> str:
    """End the process without an answer."""
    os._exit(1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
