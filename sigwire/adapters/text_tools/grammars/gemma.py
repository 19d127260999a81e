"""Gemma's own notation: bare keys, strings between marks that enclose any text.

<start_function_call>call:NAME{key:<escape>text<escape>,n:2}<end_function_call>
<|tool_call>call:NAME{key:<|"|>text<|"|>,n:2}<tool_call|>
"""

from __future__ import annotations

import re

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, Reader, ToolCatalog, broken
from sigwire.adapters.text_tools.grammars.literals import LiteralError, read_bare_object
from sigwire.adapters.text_tools.grammars.tagged_json import closing
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, make_call
from sigwire.adapters.text_tools.scan.brackets import BARE, BracketSpan, skim
from sigwire.core.tools.calls import ToolCall

__all__ = ["GEMMA"]

_NAME = re.compile(r"[\w.\-]*")


def _reader(closers: ClosingMarkers) -> Reader:
    def read(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
        yield from cursor.space()
        if not (yield from cursor.takes("call:")):
            return None
        name = yield from cursor.run(_NAME)
        yield from cursor.space()
        if not name or (yield from cursor.peek()) != "{":
            return None
        extent = yield from skim(cursor, BARE)
        call = _call(cursor, extent, name, offer)
        if not extent.complete and closers.finder and (match := (yield from cursor.find(closers.finder, extent.start))):
            cursor.position = match.start()
        return CallBlock((call,), (yield from closing(cursor, closers)))

    return read


def _call(cursor: Cursor, extent: BracketSpan, name: str, offer: ToolCatalog) -> ToolCall:
    text = cursor.text[extent.start : extent.end]
    if not extent.complete:
        return broken(text, "The text ended inside the call", offer.declared(name))
    try:
        return make_call(name, read_bare_object(text), offer)
    except LiteralError as fault:
        return broken(text, f"The arguments cannot be read: {fault}", offer.declared(name))


GEMMA: tuple[Grammar, ...] = (
    Grammar(
        "gemma",
        ("<start_function_call>",),
        _reader(ClosingMarkers("<end_function_call>")),
        closers=("<end_function_call>",),
    ),
    Grammar("gemma", ("<|tool_call>",), _reader(ClosingMarkers("<tool_call|>")), closers=("<tool_call|>",)),
)
