"""Calls without a marker: bare JSON, and a tool's name with JSON behind it.

    {"name": NAME, "arguments": OBJ}          bare_json, llama3_json; several in a row, or a list of them (xlam)
    {"thought": TEXT, "tool_calls": [...]}    xlam
    NAME + line break + OBJ                   functionary 3.2, GLM-4; also >>>NAME, and NAME[ARGS]OBJ where a marker was lost

Weak forms: the scanner asks for them at the start of a line only, and counts them at the end of the message only. They must
be calls and nothing else: the name declared, the keys those of a call, the arguments an object. The rest of a marker behind
them (a closing tag whose opening tag was in the prompt) makes them marked.
"""

from __future__ import annotations

import re

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog
from sigwire.adapters.text_tools.grammars.pythonic import PYTHON_LISTS
from sigwire.adapters.text_tools.grammars.tagged_json import read_named_call
from sigwire.adapters.text_tools.grammars.tagged_values import read_glm_pairs
from sigwire.adapters.text_tools.json_calls import (
    ARGUMENT_KEYS,
    NAME_KEYS,
    ClosingMarkers,
    JsonPayload,
    call_name,
    calls_in,
    is_call,
    is_object_next,
    read_payload,
    wrapped_calls,
)

__all__ = ["BARE_JSON"]

_NO_CLOSERS = ClosingMarkers()
_CLOSERS = ("</tool_call>", "</tool_calls>", "<|/tool_call|>", "<|tool_call_end|>", "[/TOOL_CALLS]")
_KEYS = {*NAME_KEYS, *ARGUMENT_KEYS, "id", "type", "index", "tool_call_id", "function", "thought", "tool_calls"}
_WORD = re.compile(r"[\w$-]*")
_TEXT = re.compile(r"""[^"'\\\n]*""")
_HAS_ARGUMENTS = re.compile(r"""["']?(?:arguments|parameters|args)["']?\s*:""")


def _read_json(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    if not (yield from _is_call_next(cursor, catalog)):
        return None
    read = yield from read_payload(cursor, _NO_CLOSERS)
    block = _weak_calls(read, catalog)
    if block is None:
        return None
    is_marked = (yield from cursor.accept_after_space(*_CLOSERS)) is not None
    notes = ("the opening marker of a call was missing",) if is_marked else ()
    return CallBlock(block.calls, (*block.notes, *notes), is_marked)


def _is_call_next(cursor: Cursor, catalog: ToolCatalog) -> Wait[bool]:
    """Return True if the first key can be a call's, and its name is a tool's. The cursor stays."""
    start = cursor.position
    yield from cursor.accept("[")
    yield from cursor.skip_space()
    found = (yield from cursor.accept("{")) and (yield from _is_call_member_next(cursor, catalog))
    cursor.position = start
    return found


def _is_call_member_next(cursor: Cursor, catalog: ToolCatalog) -> Wait[bool]:
    yield from cursor.skip_space()
    quote = yield from cursor.accept_any(('"', "'"))
    key = yield from cursor.run(_WORD)
    if key not in _KEYS or (quote is not None and not (yield from cursor.accept(quote))):
        return False
    yield from cursor.skip_space()
    if not (yield from cursor.accept(":")):
        return False
    if key not in NAME_KEYS:
        return True
    yield from cursor.skip_space()
    if (yield from cursor.accept_any(('"', "'"))) is None:
        return False
    return catalog.declared_name((yield from cursor.run(_TEXT))) is not None


def _weak_calls(read: JsonPayload, catalog: ToolCatalog) -> CallBlock | None:
    """Return the calls of a value that is nothing else. A truncated call is an error if its tool is known."""
    items = read.items or (read,)
    values = [value for item in items if item.error is None for value in _values_of(item)]
    faults = [item for item in items if item.error is not None]
    if any(not _is_call_of_any(value) for value in values) or not _names_a_tool(values, faults, catalog):
        return None
    return CallBlock(calls_in(read, catalog), read.notes)


def _values_of(item: JsonPayload) -> list[object]:
    calls = wrapped_calls(item.value)
    if calls is not None:
        return calls
    return list(item.value) if isinstance(item.value, list) else [item.value]


def _is_call_of_any(value: object) -> bool:
    name = call_name(value)
    return name is not None and is_call(value, ToolCatalog.of([name]))


def _names_a_tool(values: list[object], faults: list[JsonPayload], catalog: ToolCatalog) -> bool:
    if any(is_call(value, catalog) for value in values):
        return True
    return not values and any(
        _HAS_ARGUMENTS.search(error.raw) and calls_in(error, catalog)[0].name in catalog.tools for error in faults
    )


def _read_named(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Read ``NAME`` on its own line or before ``[ARGS]``, then its arguments; further calls after ``>>>``."""
    yield from cursor.accept(">>>")
    blocks: list[CallBlock] = []
    while True:
        block = yield from _read_one_named(cursor, catalog)
        if block is None:
            return None
        blocks.append(block)
        if block.is_marked or not (yield from cursor.accept(">>>")):
            break
    calls = tuple(call for block in blocks for call in block.calls)
    return CallBlock(calls, tuple(note for block in blocks for note in block.notes), blocks[-1].is_marked)


def _read_one_named(cursor: Cursor, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.accept_any(("functions.",))
    name = yield from cursor.accept_any(tuple(catalog.tools))
    if name is None:
        return None
    pairs = yield from _read_pairs(cursor, name, catalog)
    if pairs is not None:
        return pairs
    yield from cursor.skip_blanks()
    marked = yield from cursor.accept_any(("[ARGS]", "\n", "\r\n"))
    if marked is None or not (yield from is_object_next(cursor, lists=False)):
        return None
    return (yield from read_named_call(cursor, name, catalog, _NO_CLOSERS))


def _read_pairs(cursor: Cursor, name: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Read GLM's pairs after a name whose opening tag was in the prompt."""
    start = cursor.position
    block = yield from read_glm_pairs(cursor, name, catalog, bare=True)
    if block is None:
        cursor.position = start
        return None
    return CallBlock(block.calls, (*block.notes, "the opening marker of a call was missing"), is_marked=True)


def _read_recipient_all(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Read the header of a message to the user: a line of its own, before the message. At the end of a text it is text."""
    yield from cursor.skip_blanks()
    end = cursor.position
    is_header = (yield from cursor.accept_any(("\n", "\r"))) is not None
    yield from cursor.skip_space()
    is_header = is_header and (yield from cursor.has(1))
    cursor.position = end
    return CallBlock() if is_header else None


BARE_JSON: tuple[Grammar, ...] = (
    Grammar("bare_json", ("{", "["), _read_json, weak=True),
    PYTHON_LISTS,
    Grammar("functionary", (">>>all",), _read_recipient_all, own_line=True),
    Grammar("functionary", (">", ">>>"), _read_named, weak=True),
    Grammar("functionary", (), _read_named, weak=True),
)
