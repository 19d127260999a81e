"""``Lookahead``: the end of a text that has come so far, kept until its next characters show what it is."""

from __future__ import annotations

__all__ = ["Lookahead"]

_PATIENCE = 32  # how much of itself a held text may wait for: each character is then copied some thirty times at most


class Lookahead:
    """Holds a ``text`` back. A long one is looked at again only when it has grown, so that all looking together is linear.

    >>> held = Lookahead()
    >>> held.keep("[")
    >>> held.joined("[ ##")
    '[[ ##'
    """

    __slots__ = ("_added", "_waiting", "text")

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._waiting: list[str] = []
        self._added = 0

    def keep(self, text: str) -> None:
        """Hold this text."""
        self.text = text

    def joined(self, text: str) -> str | None:
        """What was held with what has come, and nothing is held any more; ``None`` where it is too little to look again."""
        self._waiting.append(text)
        self._added += len(text)
        return None if self._added * _PATIENCE < len(self.text) else self.release()

    def release(self) -> str:
        """All that is held."""
        text = "".join([self.text, *self._waiting])
        self.text, self._waiting, self._added = "", [], 0
        return text
