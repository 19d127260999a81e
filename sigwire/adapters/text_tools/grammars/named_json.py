"""Dialects that write a call as its name, a marker, and the arguments as one JSON object.

    [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]OBJ                                         mistral_v11
    <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>OBJ           kimi_k2
    <function=NAME>OBJ</function>                                                functionary

DeepSeek's two are in ``deepseek``. Section markers and single end markers can be missing.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog, broken_call
from sigwire.adapters.text_tools.grammars.deepseek import DEEPSEEK
from sigwire.adapters.text_tools.grammars.tagged_json import accept_closer, read_named_call, tagged_json, truncated_call
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, is_object_next
from sigwire.core.json import loads
from sigwire.core.tools.calls import ToolCall

__all__ = ["NAMED_JSON"]

_NAME = re.compile(r"[\w.\-]*")
_ID = re.compile(r"[\w.\-:/]*")
_TAG_NAME = re.compile(r"[^<>\n]*")


_MISTRAL = ("[TOOL_CALLS]", "TOOL_CALLS]")
_NEXT = ClosingMarkers("[TOOL_CALLS]", "[/TOOL_CALLS]")


def _read_mistral(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.skip_space()
    name = yield from cursor.run(_NAME)
    if not name:
        return None
    id = ""
    yield from cursor.skip_space()
    if (yield from cursor.accept("[CALL_ID]")):
        id = (yield from cursor.run(_ID)).strip()
        yield from cursor.skip_space()
    marked = yield from cursor.accept("[ARGS]")
    if (yield from is_object_next(cursor, lists=False)):
        return (yield from read_named_call(cursor, name, catalog, _NEXT, id))
    return (yield from truncated_call(cursor, name, name, catalog)) if marked else None


_KIMI_SECTION = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_KIMI_SECTION_END = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_KIMI_CALL, _KIMI_CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_KIMI_ENDS = ClosingMarkers(_KIMI_CALL_END, *_KIMI_SECTION_END, _KIMI_CALL)
_KIMI_CLOSING = ClosingMarkers(_KIMI_CALL_END, *_KIMI_SECTION_END)


def _read_kimi(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """Read one call. The next call has its own opener."""
    yield from cursor.skip_space()
    if opener != _KIMI_CALL and not (yield from cursor.accept(_KIMI_CALL)):
        return None
    block = yield from _read_kimi_call(cursor, catalog)
    return block and replace(block, notes=(*block.notes, *(yield from accept_closer(cursor, _KIMI_CLOSING))))


def _read_kimi_call(cursor: Cursor, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    yield from cursor.skip_space()
    id = yield from cursor.run(_ID)
    yield from cursor.skip_space()
    if not id or not (yield from cursor.accept("<|tool_call_argument_begin|>")):
        return None
    name = id.partition(":")[0]
    yield from cursor.skip_space()
    if not (yield from is_object_next(cursor, lists=False)):
        return (yield from truncated_call(cursor, id, name, catalog))
    block = yield from read_named_call(cursor, name, catalog, _KIMI_ENDS, id)
    return _with_guessed_name(block, catalog) if name.isdigit() else block


def _with_guessed_name(block: CallBlock, catalog: ToolCatalog) -> CallBlock:
    """Resolve a bare counter in the place of the name, if only one tool accepts the arguments."""
    read = block.calls[0]
    if read.error is not None and read.error.code != "unknown_tool":
        return block
    arguments = loads(read.raw_arguments or "{}")
    fitting = [
        name for name in catalog.tools if all(catalog.parameter_schema(name, key) is not None for key in arguments)
    ]
    if len(catalog.tools) == 1:
        fitting = list(catalog.tools)
    if len(fitting) != 1:
        return CallBlock((broken_call(read.raw_arguments or "", "The call names no tool"),), block.notes)
    return CallBlock((ToolCall(read.id, fitting[0], arguments),), (*block.notes, "the name of the tool was missing"))


_FUNCTION_ENDS = ClosingMarkers("</function>")


def _read_functionary(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    name = (yield from cursor.run(_TAG_NAME)).strip().strip("\"'")
    if not name or not (yield from cursor.accept(">")) or not (yield from is_object_next(cursor, lists=False)):
        return None
    block = yield from read_named_call(cursor, name, catalog, _FUNCTION_ENDS)
    return replace(block, notes=(*block.notes, *(yield from accept_closer(cursor, _FUNCTION_ENDS))))


NAMED_JSON: tuple[Grammar, ...] = (
    tagged_json("mistral_old", _MISTRAL, ["[/TOOL_CALLS]"], open_ended=True),
    Grammar("mistral_v11", _MISTRAL, _read_mistral, closers=("[/TOOL_CALLS]",)),
    Grammar("kimi_k2", (*_KIMI_SECTION, _KIMI_CALL), _read_kimi, closers=_KIMI_CLOSING.literals),
    *DEEPSEEK,
    Grammar("functionary", ("<function=", "<function/"), _read_functionary, closers=_FUNCTION_ENDS.literals),
)
