"""Tools: ``Tool`` (offered), ``ToolCall`` (requested by the model), ``ToolResult`` (the answer). The names below are lazy.

tool        Tool: name, JSON Schema, validated arguments    calls          ToolCall, ToolCalls, ToolResult, WebSearch
function    the arguments of a Python function              inspection     names, docstrings and hints of callables
docstring   descriptions read from a docstring              validation     arguments validated with pydantic
choice      the ``tool_choice`` that callers give           texts          ToolText: texts that a predictor shows instead
specs       tools given as dicts                            names          names that a wire accepts, and back
mcp         tools of an MCP server                          langchain      tools of LangChain
hooks       the hook around calls of tools                  foreign_media  media in results of MCP and LangChain
properties  the schemas of a function's parameters      module_tool    a module as a tool
injected    parameters that the program sets                       held           modules in the functions of tools, and copies
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult, WebSearch
    from sigwire.core.tools.tool import Tool

__all__ = ["Tool", "ToolCall", "ToolCalls", "ToolResult", "WebSearch"]

__getattr__ = lazy_names(__name__, calls="ToolCall ToolCalls ToolResult WebSearch", tool="Tool")
