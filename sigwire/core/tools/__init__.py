"""Tools: ``Tool`` (offered), ``ToolCall`` (requested by the model), ``ToolResult`` (the answer). The names below are lazy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult, WebSearch
    from sigwire.core.tools.tool import Tool

__all__ = ["Tool", "ToolCall", "ToolCalls", "ToolResult", "WebSearch"]

__getattr__ = lazy_names(__name__, calls="ToolCall ToolCalls ToolResult WebSearch", tool="Tool")
