"""Calls without a marker of their own: JSON as it stands, and a tool's name with JSON behind it.

    {"name": NAME, "arguments": OBJ}          bare_json, llama3_json; several in a row, or a list of them (xlam)
    NAME + line break + OBJ                   functionary 3.2, GLM-4; also >>>NAME, and NAME[ARGS]OBJ where a marker was lost

Weak forms: the scanner asks for them at the start of a line only, and counts them only at the end of the message. They must
be calls and nothing else: the name declared, the keys those of a call, the arguments an object. Where the rest of a marker
follows (a closing tag whose opening one the prompt had written), they are sure.
"""

from __future__ import annotations

import re

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog
from sigwire.adapters.text_tools.grammars.pythonic import PYTHON_LISTS
from sigwire.adapters.text_tools.grammars.tagged_json import arguments_block
from sigwire.adapters.text_tools.grammars.tagged_values import read_glm_pairs
from sigwire.adapters.text_tools.json_calls import (
    ARGUMENTS,
    NAMES,
    ClosingMarkers,
    JsonPayload,
    call_name,
    calls_in,
    is_call,
    opens_object,
    payload,
)

__all__ = ["PLAIN"]

_NONE = ClosingMarkers()
_LEFT_CLOSERS = ("</tool_call>", "</tool_calls>", "<|/tool_call|>", "<|tool_call_end|>", "[/TOOL_CALLS]")
_KEYS = frozenset({*NAMES, *ARGUMENTS, "id", "type", "index", "tool_call_id", "function", "tool_calls"})
_WORD = re.compile(r"[\w$-]*")
_TEXT = re.compile(r"""[^"'\\\n]*""")
_HAS_ARGUMENTS = re.compile(r"""["']?(?:arguments|parameters|args)["']?\s*:""")


def _json(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    if not (yield from _may_be_call(cursor, offer)):
        return None
    read = yield from payload(cursor, _NONE)
    block = _weak_calls(read, offer)
    if block is None:
        return None
    start = cursor.position
    yield from cursor.space()
    sure = (yield from cursor.takes_any(_LEFT_CLOSERS)) is not None
    cursor.position = cursor.position if sure else start
    notes = ("the opening marker of a call was missing",) if sure else ()
    return CallBlock(block.calls, (*block.notes, *notes), sure)


def _may_be_call(cursor: Cursor, offer: ToolCatalog) -> Wait[bool]:
    """Whether the first key can be a call's, and its name a tool's; passes nothing."""
    start = cursor.position
    yield from cursor.takes("[")
    yield from cursor.space()
    found = (yield from cursor.takes("{")) and (yield from _first_member(cursor, offer))
    cursor.position = start
    return found


def _first_member(cursor: Cursor, offer: ToolCatalog) -> Wait[bool]:
    yield from cursor.space()
    quote = yield from cursor.takes_any(('"', "'"))
    key = yield from cursor.run(_WORD)
    if key not in _KEYS or (quote is not None and not (yield from cursor.takes(quote))):
        return False
    yield from cursor.space()
    if not (yield from cursor.takes(":")):
        return False
    if key not in NAMES:
        return True
    yield from cursor.space()
    if (yield from cursor.takes_any(('"', "'"))) is None:
        return False
    return offer.declared((yield from cursor.run(_TEXT))) is not None


def _weak_calls(read: JsonPayload, offer: ToolCatalog) -> CallBlock | None:
    """The calls of a value that is nothing else. One that was cut off is an error once it is clear what it would have been."""
    items = read.items or (read,)
    values = [value for item in items if item.fault is None for value in _values(item)]
    faults = [item for item in items if item.fault is not None]
    if any(not _is_call_of_any(value) for value in values) or not _says_what_it_is(values, faults, offer):
        return None
    return CallBlock(calls_in(read, offer), read.notes)


def _values(item: JsonPayload) -> list[object]:
    value = item.value
    if isinstance(value, dict) and not any(key in value for key in NAMES) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    return list(value) if isinstance(value, list) else [value]


def _is_call_of_any(value: object) -> bool:
    """Whether a value is a call, of whichever tool."""
    name = call_name(value)
    return name is not None and is_call(value, ToolCatalog.of([name]))


def _says_what_it_is(values: list[object], faults: list[JsonPayload], offer: ToolCatalog) -> bool:
    if any(is_call(value, offer) for value in values):
        return True
    return not values and any(
        _HAS_ARGUMENTS.search(fault.raw) and calls_in(fault, offer)[0].name in offer.tools for fault in faults
    )


# --- a name, then JSON ---------------------------------------------------------------------------------------


def _named(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    """``NAME`` on a line of its own or before ``[ARGS]``, then its arguments; further ones after ``>>>``."""
    yield from cursor.takes(">>>")
    blocks: list[CallBlock] = []
    while True:
        block = yield from _one_named(cursor, offer)
        if block is None:
            return None
        blocks.append(block)
        if block.sure or not (yield from cursor.takes(">>>")):
            break
    calls = tuple(call for block in blocks for call in block.calls)
    return CallBlock(calls, tuple(note for block in blocks for note in block.notes), blocks[-1].sure)


def _one_named(cursor: Cursor, offer: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.takes_any(("functions.",))
    name = yield from cursor.takes_any(tuple(offer.tools))
    if name is None:
        return None
    pairs = yield from _pairs(cursor, name, offer)
    if pairs is not None:
        return pairs
    yield from cursor.blanks()
    marked = yield from cursor.takes_any(("[ARGS]", "\n", "\r\n"))
    if marked is None or not (yield from opens_object(cursor, lists=False)):
        return None
    block = yield from arguments_block(cursor, name, offer, _NONE)
    return CallBlock(block.calls, block.notes)


def _pairs(cursor: Cursor, name: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    """GLM's pairs after a name whose opening tag the prompt had written."""
    start = cursor.position
    block = yield from read_glm_pairs(cursor, name, offer, bare=True)
    if block is None:
        cursor.position = start
        return None
    return CallBlock(block.calls, (*block.notes, "the opening marker of a call was missing"), sure=True)


def _to_all(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    """The header of a message to the user, which is text."""
    yield from cursor.blanks()
    return CallBlock() if (yield from cursor.peek()) in ("", "\n", "\r") else None


PLAIN: tuple[Grammar, ...] = (
    Grammar("bare_json", ("{", "["), _json, weak=True),
    PYTHON_LISTS,
    Grammar("functionary", (">>>all",), _to_all, own_line=True),
    Grammar("functionary", (">",), _named, weak=True),
    Grammar("functionary", (), _named, weak=True),
)
