"""Calls in a section of the answer. Models write them so when they take the calls for one more output of the prompt.

    [[ ## calls ## ]]
    [{"name": NAME, "arguments": OBJ}, ...]

The header names the output that calls fill (``ToolCatalog.output``). No prompt asks for such a section, so its header is a
marker. The content is JSON, Python's notation, or either in a code fence. Any other form is read in its place, and the
layout leaves the header out.
"""

from __future__ import annotations

from dataclasses import replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammar import CallBlock, Grammar, ToolCatalog
from sigwire.adapters.text_tools.grammars.pythonic import after_token
from sigwire.adapters.text_tools.grammars.tagged_json import NO_CLOSER
from sigwire.adapters.text_tools.json_calls import ClosingMarkers

__all__ = ["OUTPUT_SECTION"]

_OPENERS = ("[[ ## ", "[[##")
_DONE = ("[[ ## completed ## ]]", "[[ ## end_of_answer ## ]]")
_FENCES = ("```json", "```python", "```")
_read_calls = after_token(ClosingMarkers(*_DONE))


def _read(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    if not catalog.output or not (yield from _accept_header(cursor, catalog.output)):
        return None
    yield from cursor.skip_space()
    fence = yield from cursor.accept_any(_FENCES)
    block = yield from _read_calls(cursor, opener, catalog)
    if block is None:
        return None
    if fence is not None:
        yield from cursor.accept_after_space("```")
        yield from cursor.accept_after_space(*_DONE)
    # The next section closes this one, as the end mark of the answer does.
    return replace(block, notes=tuple(note for note in block.notes if note != NO_CLOSER))


def _accept_header(cursor: Cursor, output: str) -> Wait[bool]:
    """Pass the rest of the header. Return True if it names this output."""
    if not (yield from cursor.accept(output)):
        return False
    for literal in ("##", "]]"):
        yield from cursor.skip_blanks()
        if not (yield from cursor.accept(literal)):
            return False
    return True


OUTPUT_SECTION = Grammar("section", _OPENERS, _read, own_line=True, other_text="after")
