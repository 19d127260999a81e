"""Dialects that put JSON behind a marker. Most of them differ in the marker only.

    <tool_call>{"name": NAME, "arguments": OBJ}</tool_call>        hermes, and its descendants
    <|tool_call|>[OBJ, ...]                                        granite; no closing marker, text may follow

``tagged_json`` makes such a grammar from its markers. It reads doubled markers, a code fence inside them, a list instead of
one object, and several objects in a row. The closing marker may be missing if the JSON is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import TRUNCATED, CallBlock, Grammar, Reader, ToolCatalog, broken_call
from sigwire.adapters.text_tools.json_calls import (
    ClosingMarkers,
    JsonPayload,
    calls_in,
    is_object_next,
    make_call,
    read_payload,
)
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.calls import ToolCall

__all__ = [
    "NO_CLOSER", "TAGGED_JSON", "accept_closer", "in_tool_calls", "read_named_call", "tagged_json", "truncated_call"
]  # fmt: skip

_FENCES = ("```json", "```JSON", "```")
NO_CLOSER = "the closing marker of a call was missing"


def tagged_json(
    name: str,
    openers: Sequence[str],
    closers: Sequence[str] = (),
    *,
    between: Sequence[str] = (),
    own_line: bool = False,
    open_ended: bool = False,
    stops: Sequence[str] = (),
) -> Grammar:
    """Return a grammar of calls as JSON between markers.

    ``between``: markers that may follow the opener. ``own_line``: the opener counts at the start of a line only.
    ``open_ended``: the dialect usually omits the closing marker. ``stops``: literals that start a tool's result, in case the
    model invents one.

    >>> from sigwire.adapters.text_tools import read_calls
    >>> mine = tagged_json("mine", ["<call>"], ["</call>"])
    >>> read_calls('<call>{"name": "ping"}</call>', ["ping"], grammars=[mine]).calls[0].name
    'ping'
    """
    doubled = () if own_line else openers  # an opener of a line does not repeat
    reader = _make_reader((*doubled, *between), ClosingMarkers(*closers), open_ended)
    return Grammar(name, tuple(openers), reader, own_line=own_line, closers=tuple(closers), stops=tuple(stops))


def _make_reader(markers: tuple[str, ...], closers: ClosingMarkers, open_ended: bool) -> Reader:
    def read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
        yield from cursor.skip_marks(markers)
        fence = yield from cursor.accept_any(_FENCES)
        if not (yield from is_object_next(cursor)):
            return (yield from _accept_empty_list(cursor, closers))
        read, notes = yield from _read_values(cursor, closers)
        calls = tuple(call for payload in read for call in calls_in(payload, catalog))
        if fence is not None:
            yield from cursor.accept_after_space("```")
        unclosed = yield from accept_closer(cursor, closers)
        ends_itself = open_ended or read[-1].raw.startswith("[")  # a list needs no closing tag
        return CallBlock(calls, (*notes, *(() if ends_itself else unclosed)))

    return read


def _accept_empty_list(cursor: Cursor, closers: ClosingMarkers) -> Wait[CallBlock | None]:
    """Read ``[]`` between markers: markup without a call."""
    if closers.literals and (yield from cursor.accept("[")):
        yield from cursor.skip_space()
        if (yield from cursor.accept("]")):
            yield from cursor.skip_space()
            if (yield from cursor.accept_any(closers.literals)) is not None:
                return CallBlock()
    return None


def _read_values(cursor: Cursor, closers: ClosingMarkers) -> Wait[tuple[list[JsonPayload], list[str]]]:
    """Read JSON values in a row; several only if a marker can close them."""
    found: list[JsonPayload] = []
    while True:
        found.append((yield from read_payload(cursor, closers)))
        start = cursor.position
        yield from cursor.skip_space()
        yield from cursor.accept_any((",", ";"))
        if not closers.literals or not (yield from is_object_next(cursor)):
            cursor.position = start
            return found, [note for payload in found for note in payload.notes]


def accept_closer(cursor: Cursor, closers: ClosingMarkers) -> Wait[tuple[str, ...]]:
    """Pass the closing marker here, or the part of it at the end of the text. Return the notes."""
    if not closers.literals:
        return ()
    start = cursor.position
    yield from cursor.skip_space()
    if (yield from cursor.accept_any(closers.literals)) is not None:
        return ()
    rest = cursor.text[cursor.position :]
    cut = cursor.closed and bool(rest) and any(literal.startswith(rest.rstrip()) for literal in closers.literals)
    cursor.position = len(cursor.text) if cut else start
    return (NO_CLOSER,)


def read_named_call(
    cursor: Cursor, name: str, catalog: ToolCatalog, closers: ClosingMarkers, id: str = ""
) -> Wait[CallBlock]:
    """Read the JSON object here as the arguments of a named call."""
    read = yield from read_payload(cursor, closers)
    call = make_call(name, read.value, catalog, id)
    if read.error is not None:
        call = replace(calls_in(read, catalog)[0], id=id, name=catalog.declared_name(name) or name)
    return CallBlock((call,), read.notes)


def truncated_call(cursor: Cursor, raw: str, name: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Return an error for a call whose text ends here; ``None`` if text follows, which is no call then."""
    if (yield from cursor.has(1)):
        return None
    return CallBlock((broken_call(raw, TRUNCATED, catalog.declared_name(name)),))


def in_tool_calls(grammar: Grammar) -> Grammar:
    """Return a grammar of ``<tool_call>`` calls inside an outer ``<tool_calls>``, as Hunyuan writes them.

    Each further call has its own opener, and the end of the outer tag is one of the closers.
    """

    def read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
        yield from cursor.skip_space()
        return (yield from grammar.read(cursor, _INNER, catalog)) if (yield from cursor.accept(_INNER)) else None

    return Grammar(grammar.name, ("<tool_calls>",), read, closers=("</tool_calls>",))


_INNER = "<tool_call>"


def _read_apertus(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Read ``[{NAME: OBJ}, ...]``."""
    if not (yield from is_object_next(cursor)):
        return None
    read = yield from read_payload(cursor, _APERTUS)
    named = tuple(_calls_by_name(read, catalog))
    return CallBlock(named or calls_in(read, catalog), (*read.notes, *(yield from accept_closer(cursor, _APERTUS))))


def _calls_by_name(read: JsonPayload, catalog: ToolCatalog) -> Iterator[ToolCall]:
    items = read.value if isinstance(read.value, list) else [read.value]
    for item in items if read.error is None else ():
        if is_mapping(item) and not ("name" in item and "arguments" in item):
            for name, arguments in item.items():
                yield make_call(name, arguments, catalog)


_APERTUS = ClosingMarkers("<|tools_suffix|>")
_NO_TOOL = "directly_answer"


def _without_pseudo_tool(reader: Reader) -> Reader:
    """Return a reader that drops Command-R's pseudo tool, which states that no tool is needed."""

    def read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
        block = yield from reader(cursor, opener, catalog)
        if block is None or _NO_TOOL in catalog.tools:
            return block
        return replace(block, calls=tuple(call for call in block.calls if call.name != _NO_TOOL))

    return read


def _skip_answer_mark(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.has(0)
    return CallBlock()


_HERMES = tagged_json("hermes", [_INNER], ["</tool_call>"])
_ACTION = tagged_json("command_r", ["<|START_ACTION|>"], ["<|END_ACTION|>"])
_ACTION_LINE = tagged_json("command_r", ["Action:"], own_line=True)
_ANSWER_MARKS = (
    "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>",
    "<|start_header_id|>assistant<|end_header_id|>", "<|im_start|>assistant"
)  # fmt: skip

TAGGED_JSON: tuple[Grammar, ...] = (
    _HERMES,
    in_tool_calls(_HERMES),
    tagged_json("granite", ["<|tool_call|>"], ["<|/tool_call|>", "</tool_call>"], open_ended=True),
    tagged_json("granite", ["<function_call>"], ["</function_call>"], open_ended=True),
    tagged_json("phi4", ["functools"]),
    tagged_json("internlm", ["<|action_start|>"], ["<|action_end|>"], between=["<|plugin|>", "<|interpreter|>"]),
    tagged_json("jamba", ["<tool_calls>"], ["</tool_calls>"]),
    tagged_json("nemotron", ["<TOOLCALL>"], ["</TOOLCALL>"]),
    replace(_ACTION, read=_without_pseudo_tool(_ACTION.read)),
    replace(_ACTION_LINE, read=_without_pseudo_tool(_ACTION_LINE.read)),
    Grammar("apertus", ("<|tools_prefix|>",), _read_apertus, closers=_APERTUS.literals),
    Grammar("command_r", _ANSWER_MARKS, _skip_answer_mark),
)
