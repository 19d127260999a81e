"""``Lookahead``: the end of a text, held until its next characters decide about it."""

from __future__ import annotations

__all__ = ["Lookahead", "partial_length"]

_MAX_COPIES = 32  # each character of a held text is copied about so many times at most


class Lookahead:
    """Holds a ``text``. A long one is examined again only after a proportionate addition, so the work is linear.

    >>> held = Lookahead()
    >>> held.hold("[")
    >>> held.join("[ ##")
    '[[ ##'
    """

    __slots__ = ("_added_chunks", "_added_length", "text")

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._added_chunks: list[str] = []
        self._added_length = 0

    def hold(self, text: str) -> None:
        """Hold this text."""
        self.text = text

    def join(self, text: str) -> str | None:
        """Return the held text with the next, and hold nothing; ``None`` if too little was added."""
        self._added_chunks.append(text)
        self._added_length += len(text)
        return None if self._added_length * _MAX_COPIES < len(self.text) else self.release()

    def release(self) -> str:
        """Return the held text."""
        text = "".join([self.text, *self._added_chunks])
        self.text, self._added_chunks, self._added_length = "", [], 0
        return text


def partial_length(mark: str, text: str) -> int:
    """Return the number of characters at the end of the text that start the mark.

    >>> partial_length("<answer>", "so <ans"), partial_length("<answer>", "so")
    (4, 0)
    """
    most = min(len(mark) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(mark[:n])), 0)
