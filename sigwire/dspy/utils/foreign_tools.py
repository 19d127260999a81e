"""``convert_mcp_tool`` and ``convert_langchain_tool`` of ``dspy.utils.mcp`` and ``dspy.utils.langchain_tool``."""

from __future__ import annotations

from sigwire.dspy.paths import add_paths
from sigwire.dspy.tools import Tool

__all__ = ["convert_langchain_tool", "convert_mcp_tool"]

convert_mcp_tool = Tool.from_mcp_tool
convert_langchain_tool = Tool.from_langchain

add_paths(__name__, "langchain_tool mcp", "sigwire.dspy.utils")
