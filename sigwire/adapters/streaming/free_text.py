"""``FreeTextReader``: an answer without outputs, as it comes. Thinking in tags at its beginning is told as thinking, without tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sigwire.adapters.field_events import FieldEvents

__all__ = ["FreeTextReader"]


class FreeTextReader:
    """Tells the text of one answer. ``thoughts`` are pairs of tags around thinking.

    >>> events = FieldEvents()
    >>> text = FreeTextReader([("<think>", "</think>")], events)
    >>> for chunk in ("<thi", "nk>so</th", "ink>\\n", "\\nYes."):
    ...     text.feed(chunk)
    >>> [(type(event).__name__, event.text) for event in events.take()]
    [('ReasoningDelta', 'so'), ('TextDelta', 'Yes.')]
    """

    __slots__ = ("_closing", "_events", "_lookahead", "_reads", "_thoughts")

    def __init__(self, thoughts: Sequence[tuple[str, str]], events: FieldEvents) -> None:
        self._thoughts, self._events = thoughts, events
        self._lookahead: list[str] = []  # not put together while it may grow long: blanks
        self._closing = ""
        self._reads: Callable[[str], None] = self._blanks

    def feed(self, text: str) -> None:
        """More of the answer."""
        self._reads(text)

    def close(self) -> None:
        """The end of the answer."""
        if self._lookahead:
            (self._events.reasoning if self._closing else self._events.free_text)("".join(self._lookahead))
            self._lookahead = []

    def _blanks(self, text: str) -> None:
        """Before the first word."""
        self._lookahead.append(text)
        if not text.isspace():
            self._reads = self._opening
            self._opening("")

    def _opening(self, text: str) -> None:
        """What may be the beginning of a tag."""
        text, self._lookahead = "".join([*self._lookahead, text]), []
        begin = text.lstrip()
        for opening, closing in self._thoughts:
            if begin.startswith(opening):
                self._closing, self._reads = closing, self._thought
                self._thought(begin[len(opening) :])
                return
        if any(opening.startswith(begin) for opening, _ in self._thoughts):
            self._lookahead = [text]
        else:
            self._reads = self._events.free_text
            self._events.free_text(text)

    def _thought(self, text: str) -> None:
        """Thinking; only what may be the beginning of its closing tag is kept."""
        closing = self._closing
        thought, closed, after = "".join([*self._lookahead, text]).partition(closing)
        kept = 0 if closed else next((n for n in range(len(closing) - 1, 0, -1) if thought.endswith(closing[:n])), 0)
        said, self._lookahead = thought[: len(thought) - kept], [thought[len(thought) - kept :]] if kept else []
        if said:
            self._events.reasoning(said)
        if closed:
            self._closing, self._reads = "", self._after
            self._after(after)

    def _after(self, text: str) -> None:
        """Blanks after the thinking are left out."""
        if said := text.lstrip():
            self._reads = self._events.free_text
            self._events.free_text(said)
