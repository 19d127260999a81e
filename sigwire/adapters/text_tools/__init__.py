"""Tool calls as text: teach a model without tools to call them, and read the calls that any model writes as text.

    reader          TextReader (a text in chunks) and read_calls (a whole text): the same code
    registry        the table of dialects, and register
    grammar         Grammar, ToolCatalog, CallBlock: what a dialect is, reads and returns
    styles, render  how calls and results are written; the instructions of the system message
    scan/           one scan of a text: compiled table, quotation, reasoning, brackets, output buffer
    grammars/       the dialects, one file for each notation of arguments
    cursor          the steps of a grammar through a text that still arrives
    json_calls      JSON that stands for calls
    markers         literals that readers and writers of calls share

Nothing here runs a tool. Without offered tools, no text is read for calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog
    from sigwire.adapters.text_tools.reader import ScanResult, TextReader, read_calls
    from sigwire.adapters.text_tools.registry import dialects, register
    from sigwire.adapters.text_tools.styles import style_named

__all__ = [
    "CallBlock",
    "Grammar",
    "ScanResult",
    "TextReader",
    "ToolCatalog",
    "dialects",
    "read_calls",
    "register",
    "style_named",
]

__getattr__ = lazy_names(
    __name__,
    grammar="CallBlock Grammar ToolCatalog",
    reader="ScanResult TextReader read_calls",
    registry="dialects register",
    styles="style_named",
)
