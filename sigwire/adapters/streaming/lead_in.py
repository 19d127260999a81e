"""``LeadInReader``: where the outputs begin in an answer, so that nothing is told that may be a draft.

As ``Plan`` reads it: thinking in tags before the answer is left out. It may have been opened by the prompt, and then shows
only when it closes; so an answer that begins neither with a mark of its layout nor with an opened block is told at its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.adapters.field_events import OutputReader
from sigwire.adapters.streaming.lookahead import Lookahead

__all__ = ["LeadInReader"]


class LeadInReader:
    """Stands before the layout's pieces. ``thoughts`` are pairs of tags around thinking."""

    __slots__ = ("_closing", "_lookahead", "_lost", "_open", "_outputs", "_thoughts")

    def __init__(self, outputs: OutputReader, thoughts: Sequence[tuple[str, str]]) -> None:
        self._outputs, self._thoughts = outputs, thoughts
        self._lookahead = Lookahead()
        self._closing = ""
        self._open = self._lost = False

    def feed(self, text: str) -> None:
        """More of the answer."""
        if self._open:
            self._outputs.feed(text)
        elif not self._lost and (so_far := self._lookahead.joined(text)) is not None:
            if self._closing:
                self._think(so_far)
            else:
                self._decide(so_far)

    def close(self) -> None:
        """The end of the answer."""
        if self._open:
            self._outputs.close()

    def _decide(self, text: str) -> None:
        begin = text.lstrip()
        opens = self._outputs.opens(begin) if begin else None
        if opens:
            self._begin(text)
        elif (thought := next((pair for pair in self._thoughts if begin.startswith(pair[0])), None)) is not None:
            self._closing = thought[1]
            self._think(begin)
        elif opens is None or any(opening.startswith(begin) for opening, _ in self._thoughts):
            self._lookahead.keep(text)
        else:
            self._lost = True

    def _think(self, text: str) -> None:
        """Pass over a thinking block; only what may be the beginning of its closing tag is kept."""
        _, closed, after = text.partition(self._closing)
        if closed:
            self._begin(after)
        else:
            self._lookahead.keep(text[1 - len(self._closing) :])

    def _begin(self, text: str) -> None:
        self._open = True
        self._outputs.feed(text)
