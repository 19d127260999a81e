"""Stop sequences on a wire that has none: what would come after one is cut off, in a text and in a stream."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["StopCutter", "stop_at"]


def stop_at(text: str, stops: Sequence[str]) -> int | None:
    """Where a text stops: before the sequence that is complete first, as if the model had been stopped there.

    >>> stop_at("abbc", ["c", "bb"]), stop_at("abbc", ["d"])
    (1, None)
    """
    found = [(text.index(stop) + len(stop), text.index(stop)) for stop in stops if stop in text]
    return min(found)[1] if found else None


class StopCutter:
    """Pieces of text in, pieces of text out, nothing from the first stop sequence on.

    ``found`` says that there was one. What may be the beginning of one is held back until the text goes on or ends.

    >>> cutter = StopCutter(["END"])
    >>> [cutter.feed(piece) for piece in ("an E", "agle E", "ND and more")], cutter.found
    (['an ', 'Eagle ', ''], True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found = False

    def feed(self, piece: str) -> str:
        """What can be told now."""
        if not self._stops or self.found:
            return "" if self.found else piece
        text, self._held = self._held + piece, ""
        end = stop_at(text, self._stops)
        if end is not None:
            self.found = True
            return text[:end]
        held = max((_begun(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def close(self) -> str:
        """What was held back, at the end of a text: a stop sequence does not go over it."""
        held, self._held = self._held, ""
        return held


def _begun(text: str, stop: str) -> int:
    """How much of the stop sequence the text ends with."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
