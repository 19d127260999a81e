"""Types for fields with more meaning than a plain Python value.

base      FieldType: lets pydantic validate and serialize a class
media     Image, Audio, File: references or base64 data, never fetched
text      Reasoning, Code: text with a meaning
history   History: the past turns of a conversation
views     what is sent of a conversation with a fold
Tool, ToolCall, ToolCalls and ToolResult are imported from sigwire.core.tools.
"""

from __future__ import annotations

from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.signatures.types.base import FieldType
from sigwire.signatures.types.history import History, Turn
from sigwire.signatures.types.media import Audio, File, Image
from sigwire.signatures.types.text import Code, Reasoning

__all__ = [
    "Audio", "Code", "FieldType", "File", "History", "Image", "Reasoning", "Tool", "ToolCall", "ToolCalls",
    "ToolResult", "Turn",
]  # fmt: skip
