"""DeepSeek's tokens, and the calls of V3 and V3.1 that they mark: a name, and the arguments as one JSON object.

    <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>OBJ<｜tool▁call▁end｜>                        deepseek_v31
    <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME + a fence with OBJ                  deepseek_v3

Bars and blocks arrive in two spellings each. Section markers and single end markers get lost. Other families took the tokens
over, with calls of their own between them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog, broken
from sigwire.adapters.text_tools.grammars.tagged_json import arguments_block, closing
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, opens_object
from sigwire.adapters.text_tools.markers import CALL, CALL_END, OUTPUTS, SECTION, SECTION_END, SEPARATOR

__all__ = ["DEEPSEEK"]

_NAME = re.compile(r"[\w.\-]*")
_CUT = "The text ended inside the call"
_ENDS = ClosingMarkers("```", *CALL_END, *SECTION_END)
_CLOSING = ClosingMarkers(*CALL_END, *SECTION_END)


def _deepseek(cursor: Cursor, offer: ToolCatalog, *, typed: bool) -> Wait[CallBlock | None]:
    """One call; the next one has an opener of its own."""
    yield from cursor.passes(CALL)
    block = yield from _deepseek_call(cursor, offer, typed)
    return block and replace(block, notes=(*block.notes, *(yield from closing(cursor, _CLOSING))))


def _deepseek_call(cursor: Cursor, offer: ToolCatalog, typed: bool) -> Wait[CallBlock | None]:
    yield from cursor.space()
    if typed and (not (yield from cursor.takes("function")) or (yield from cursor.takes_any(SEPARATOR)) is None):
        return None
    name = yield from cursor.run(_NAME)
    if not name or (not typed and (yield from cursor.takes_any(SEPARATOR)) is None):
        return None
    yield from cursor.space()
    fence = yield from cursor.takes_any(("```json", "```"))
    if not (yield from opens_object(cursor, lists=False)):
        return None if (yield from cursor.has(1)) else CallBlock((broken(name, _CUT, offer.declared(name)),))
    block = yield from arguments_block(cursor, name, offer, _ENDS)
    if fence is not None:
        yield from cursor.space()
        yield from cursor.takes("```")
    return block


def _deepseek_v3(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    return (yield from _deepseek(cursor, offer, typed=True))


def _deepseek_v31(cursor: Cursor, opener: str, offer: ToolCatalog) -> Wait[CallBlock | None]:
    return (yield from _deepseek(cursor, offer, typed=False))


DEEPSEEK: tuple[Grammar, ...] = (
    Grammar("deepseek_v3", (*SECTION, *CALL), _deepseek_v3, closers=_CLOSING.literals, stops=OUTPUTS),
    Grammar("deepseek_v31", (*SECTION, *CALL), _deepseek_v31, closers=_CLOSING.literals),
)
