"""Types for fields: what a plain Python value cannot say.

base      FieldType: how a class of ours stands inside pydantic models
media     Image, Audio, File: references or base64 data, never fetched
text      Reasoning, Code: text with a meaning
history   History: the turns before this one
Tool, ToolCall, ToolCalls and ToolResult come from sigwire.core.tools.tool.
"""

from __future__ import annotations

from sigwire.core.tools.tool import Tool, ToolCall, ToolCalls, ToolResult
from sigwire.signatures.types.base import FieldType
from sigwire.signatures.types.history import History, Turn
from sigwire.signatures.types.media import Audio, File, Image
from sigwire.signatures.types.text import Code, Reasoning

__all__ = [
    "Audio",
    "Code",
    "FieldType",
    "File",
    "History",
    "Image",
    "Reasoning",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "ToolResult",
    "Turn",
]
