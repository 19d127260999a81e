"""DeepSeek's tokens, and the calls of V3 and V3.1 between them: a name, and the arguments as one JSON object.

    <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>OBJ<｜tool▁call▁end｜>                        deepseek_v31
    <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME + a fence with OBJ                  deepseek_v3

Bars and blocks arrive in two spellings each. Section markers and single end markers can be missing. Other families use the
tokens around calls in other notations.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, Reader, ToolCatalog
from sigwire.adapters.text_tools.grammars.tagged_json import accept_closer, read_named_call, truncated_call
from sigwire.adapters.text_tools.json_calls import ClosingMarkers, is_object_next
from sigwire.adapters.text_tools.markers import CALL, CALL_END, SECTION, SECTION_END, SEPARATOR

__all__ = ["DEEPSEEK"]

_NAME = re.compile(r"[\w.\-]*")
_ENDS = ClosingMarkers("```", *CALL_END, *SECTION_END)
_CLOSING = ClosingMarkers(*CALL_END, *SECTION_END)


def _make_reader(*, has_type: bool) -> Reader:
    """Return a reader of one call. The next call has its own opener."""

    def read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
        yield from cursor.skip_marks(CALL)
        block = yield from _read_call(cursor, catalog, has_type)
        return block and replace(block, notes=(*block.notes, *(yield from accept_closer(cursor, _CLOSING))))

    return read


def _read_call(cursor: Cursor, catalog: ToolCatalog, has_type: bool) -> Wait[CallBlock | None]:
    yield from cursor.skip_space()
    if has_type and (not (yield from cursor.accept("function")) or (yield from cursor.accept_any(SEPARATOR)) is None):
        return None
    name = yield from cursor.run(_NAME)
    if not name or (not has_type and (yield from cursor.accept_any(SEPARATOR)) is None):
        return None
    yield from cursor.skip_space()
    fence = yield from cursor.accept_any(("```json", "```"))
    if not (yield from is_object_next(cursor, lists=False)):
        return (yield from truncated_call(cursor, name, name, catalog))
    block = yield from read_named_call(cursor, name, catalog, _ENDS)
    if fence is not None:
        yield from cursor.accept_after_space("```")
    return block


DEEPSEEK: tuple[Grammar, ...] = (
    Grammar("deepseek_v3", (*SECTION, *CALL), _make_reader(has_type=True), closers=_CLOSING.literals),
    Grammar("deepseek_v31", (*SECTION, *CALL), _make_reader(has_type=False), closers=_CLOSING.literals),
)
