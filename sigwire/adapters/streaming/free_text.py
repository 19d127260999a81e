"""``FreeTextReader``: an answer without outputs. Thinking in tags at its start is emitted as reasoning, without the tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.streaming.lookahead import partial_length

__all__ = ["FreeTextReader"]


class FreeTextReader:
    """Emits the text of one answer. ``thoughts``: pairs of tags around thinking.

    >>> events = FieldEvents()
    >>> text = FreeTextReader([("<think>", "</think>")], events)
    >>> for chunk in ("<thi", "nk>so</th", "ink>\\n", "\\nYes."):
    ...     text.feed(chunk)
    >>> [(type(event).__name__, event.text) for event in events.take()]
    [('ReasoningDelta', 'so'), ('TextDelta', 'Yes.')]
    """

    __slots__ = ("_closing", "_events", "_lookahead", "_read", "_thoughts")

    def __init__(self, thoughts: Sequence[tuple[str, str]], events: FieldEvents) -> None:
        self._thoughts, self._events = thoughts, events
        self._lookahead: list[str] = []  # joined late: blanks can be long
        self._closing = ""
        self._read: Callable[[str], None] = self._skip_blanks

    def feed(self, text: str) -> None:
        self._read(text)

    def close(self) -> None:
        if self._lookahead:
            (self._events.reasoning if self._closing else self._events.free_text)("".join(self._lookahead))
            self._lookahead = []

    def _skip_blanks(self, text: str) -> None:
        self._lookahead.append(text)
        if not text.isspace():
            self._read = self._read_opening
            self._read_opening("")

    def _read_opening(self, text: str) -> None:
        text, self._lookahead = "".join([*self._lookahead, text]), []
        content = text.lstrip()
        for opening, closing in self._thoughts:
            if content.startswith(opening):
                self._closing, self._read = closing, self._read_thought
                self._read_thought(content[len(opening) :])
                return
        if any(opening.startswith(content) for opening, _ in self._thoughts):
            self._lookahead = [text]
        else:
            self._read = self._events.free_text
            self._events.free_text(text)

    def _read_thought(self, text: str) -> None:
        """Read thinking. Only a possible start of the closing tag is held."""
        closing = self._closing
        thought, closed, after = "".join([*self._lookahead, text]).partition(closing)
        safe_end = len(thought) - (0 if closed else partial_length(closing, thought))
        self._lookahead = [thought[safe_end:]] if safe_end < len(thought) else []
        if certain := thought[:safe_end]:
            self._events.reasoning(certain)
        if closed:
            self._closing, self._read = "", self._skip_blanks_after
            self._skip_blanks_after(after)

    def _skip_blanks_after(self, text: str) -> None:
        if certain := text.lstrip():
            self._read = self._events.free_text
            self._events.free_text(certain)
