"""Dialects that write a call as its name, a mark, and the arguments as one JSON object.

    [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]OBJ                                         mistral_v11
    <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>OBJ           kimi_k2
    <function=NAME>OBJ</function>                                                functionary

DeepSeek's two are in ``deepseek``. Section markers and single end markers get lost.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog, broken
from sigwire.adapters.text_tools.grammars.deepseek import DEEPSEEK
from sigwire.adapters.text_tools.grammars.tagged_json import arguments_block, closing, tagged_json
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, opens_object
from sigwire.core.json import loads
from sigwire.core.tools.calls import ToolCall

__all__ = ["NAMED"]

_NAME = re.compile(r"[\w.\-]*")
_ID = re.compile(r"[\w.\-:/]*")
_TAG_NAME = re.compile(r"[^<>\n]*")
_CUT = "The text ended inside the call"


# --- Mistral ---------------------------------------------------------------------------------------------------

_MISTRAL = ("[TOOL_CALLS]", "TOOL_CALLS]")
_NEXT = ClosingMarkers("[TOOL_CALLS]", "[/TOOL_CALLS]")


def _mistral(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.space()
    name = yield from cursor.run(_NAME)
    if not name:
        return None
    id = ""
    yield from cursor.space()
    if (yield from cursor.takes("[CALL_ID]")):
        id = (yield from cursor.run(_ID)).strip()
        yield from cursor.space()
    marked = yield from cursor.takes("[ARGS]")
    if (yield from opens_object(cursor, lists=False)):
        return (yield from arguments_block(cursor, name, offer, _NEXT, id))
    cut = marked and not (yield from cursor.has(1))
    return CallBlock((broken(name, _CUT, offer.declared(name)),)) if cut else None


# --- Kimi ------------------------------------------------------------------------------------------------------

_KIMI_SECTION = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_KIMI_SECTION_END = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_KIMI_CALL, _KIMI_CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_KIMI_ENDS = ClosingMarkers(_KIMI_CALL_END, *_KIMI_SECTION_END, _KIMI_CALL)
_KIMI_CLOSING = ClosingMarkers(_KIMI_CALL_END, *_KIMI_SECTION_END)


def _kimi(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    """One call; the next one has an opener of its own."""
    yield from cursor.space()
    if opener != _KIMI_CALL and not (yield from cursor.takes(_KIMI_CALL)):
        return None
    block = yield from _kimi_call(cursor, offer)
    return block and replace(block, notes=(*block.notes, *(yield from closing(cursor, _KIMI_CLOSING))))


def _kimi_call(cursor: Cursor, offer: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.space()
    id = yield from cursor.run(_ID)
    yield from cursor.space()
    if not id or not (yield from cursor.takes("<|tool_call_argument_begin|>")):
        return None
    name = id.partition(":")[0]
    yield from cursor.space()
    if not (yield from opens_object(cursor, lists=False)):
        return None if (yield from cursor.has(1)) else CallBlock((broken(id, _CUT, offer.declared(name)),))
    block = yield from arguments_block(cursor, name, offer, _KIMI_ENDS, id)
    return _with_guessed_name(block, offer) if name.isdigit() else block


def _with_guessed_name(block: CallBlock, offer: ToolCatalog) -> CallBlock:
    """A bare counter in the name's place: it says which tool only where a single one can take these arguments."""
    read = block.calls[0]
    if read.error is not None and read.error.code != "unknown_tool":
        return block
    arguments = loads(read.raw_arguments or "{}")
    fitting = [name for name in offer.tools if all(offer.parameter(name, key) is not None for key in arguments)]
    if len(offer.tools) == 1:
        fitting = list(offer.tools)
    if len(fitting) != 1:
        return CallBlock((broken(read.raw_arguments or "", "The call does not say which tool it means"),), block.notes)
    return CallBlock((ToolCall(read.id, fitting[0], arguments),), (*block.notes, "the name of the tool was missing"))


# --- Functionary -----------------------------------------------------------------------------------------------

_FUNCTION_ENDS = ClosingMarkers("</function>")


def _functionary(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    name = (yield from cursor.run(_TAG_NAME)).strip().strip("\"'")
    if not name or not (yield from cursor.takes(">")) or not (yield from opens_object(cursor, lists=False)):
        return None
    block = yield from arguments_block(cursor, name, offer, _FUNCTION_ENDS)
    return replace(block, notes=(*block.notes, *(yield from closing(cursor, _FUNCTION_ENDS))))


NAMED: tuple[Grammar, ...] = (
    tagged_json("mistral_old", _MISTRAL, ["[/TOOL_CALLS]"], open_ended=True, stops=["[TOOL_RESULTS]"]),
    Grammar("mistral_v11", _MISTRAL, _mistral, closers=("[/TOOL_CALLS]",)),
    Grammar("kimi_k2", (*_KIMI_SECTION, _KIMI_CALL), _kimi, closers=_KIMI_CLOSING.literals),
    *DEEPSEEK,
    Grammar("functionary", ("<function=", "<function/"), _functionary, closers=_FUNCTION_ENDS.literals),
)
