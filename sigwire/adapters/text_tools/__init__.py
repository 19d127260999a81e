"""Tool calls as text: how a model without tools is taught to call, and how calls that any model writes as text are found.

    styles, render   how calls and results are written, and how a model is taught to
    grammar          what a dialect is; registry has their table, and the way to add one
    seed, tagged_json, tagged_values, named, deepseek, pythonic, gemma, harmony, plain   the dialects, by their arguments
    section          calls in a section of the answer
    marks            literals that readers and writers of calls share
    scanner, passage, scanning, outbox   one scan of a text: position, quotation, reasoning; what goes out when
    cursor, skim     the steps of readers through a text that still grows; where a bracketed value ends
    calls, literals, tag_values   the three readers of values: JSON, Python's literals, text by schema

``read_calls`` reads a whole text, ``TextReader`` a text that arrives in pieces: the same code. Nothing here runs a tool, and
nothing is read where no tools were offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog
    from sigwire.adapters.text_tools.reader import ScanResult, TextReader, read_calls
    from sigwire.adapters.text_tools.registry import dialects, register

__all__ = ["CallBlock", "Grammar", "ScanResult", "TextReader", "ToolCatalog", "dialects", "read_calls", "register"]

__getattr__ = lazy_names(
    __name__,
    grammar="CallBlock Grammar ToolCatalog",
    reader="ScanResult TextReader read_calls",
    registry="dialects register",
)
