"""Gemma's notation: bare keys, and strings between marks that enclose any text.

<start_function_call>call:NAME{key:<escape>text<escape>,n:2}<end_function_call>
<|tool_call>call:NAME{key:<|"|>text<|"|>,n:2}<tool_call|>
"""

from __future__ import annotations

import re

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import TRUNCATED, CallBlock, Grammar, Reader, ToolCatalog, broken_call
from sigwire.adapters.text_tools.grammars.literals import LiteralError, read_bare_object
from sigwire.adapters.text_tools.grammars.tagged_json import accept_closer
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, make_call
from sigwire.adapters.text_tools.scan.brackets import BARE, BracketSpan, read_span
from sigwire.core.tools.calls import ToolCall

__all__ = ["GEMMA"]

_NAME = re.compile(r"[\w.\-]*")


def _make_reader(closers: ClosingMarkers) -> Reader:
    def read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
        yield from cursor.skip_space()
        if not (yield from cursor.accept("call:")):
            return None
        name = yield from cursor.run(_NAME)
        yield from cursor.skip_space()
        if not name or (yield from cursor.peek()) != "{":
            return None
        span = yield from read_span(cursor, BARE)
        call = _call_of(cursor, span, name, catalog)
        if not span.complete and closers.finder and (match := (yield from cursor.find(closers.finder, span.start))):
            cursor.position = match.start()
        return CallBlock((call,), (yield from accept_closer(cursor, closers)))

    return read


def _call_of(cursor: Cursor, span: BracketSpan, name: str, catalog: ToolCatalog) -> ToolCall:
    text = cursor.text[span.start : span.end]
    if not span.complete:
        return broken_call(text, TRUNCATED, catalog.declared_name(name))
    try:
        return make_call(name, read_bare_object(text), catalog)
    except LiteralError as error:
        return broken_call(text, f"The arguments cannot be read: {error}", catalog.declared_name(name))


GEMMA: tuple[Grammar, ...] = tuple(
    Grammar("gemma", (opener,), _make_reader(ClosingMarkers(closer)), closers=(closer,))
    for opener, closer in (("<start_function_call>", "<end_function_call>"), ("<|tool_call>", "<tool_call|>"))
)
