"""Stop sequences on a wire without them: truncate a text, or a stream of text, before the first one."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["StopCutter", "stop_at"]


def stop_at(text: str, stops: Sequence[str]) -> int | None:
    """Return the start of the stop sequence that is complete first, as if the model had stopped there, else None.

    >>> stop_at("abbc", ["c", "bb"]), stop_at("abbc", ["d"])
    (1, None)
    """
    found = [(text.index(stop) + len(stop), text.index(stop)) for stop in stops if stop in text]
    return min(found)[1] if found else None


class StopCutter:
    """A filter of text deltas that drops all text from the first stop sequence on. ``found``: there was one.

    The lookahead holds a possible start of a stop sequence until the text continues or ends.

    >>> cutter = StopCutter(["END"])
    >>> [cutter.feed(delta) for delta in ("an E", "agle E", "ND and more")], cutter.found
    (['an ', 'Eagle ', ''], True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._lookahead = ""
        self.found = False

    def feed(self, delta: str) -> str:
        """Return the text that no stop sequence can include any more."""
        if not self._stops or self.found:
            return "" if self.found else delta
        text, self._lookahead = self._lookahead + delta, ""
        end = stop_at(text, self._stops)
        if end is not None:
            self.found = True
            return text[:end]
        size = max(_started_length(text, stop) for stop in self._stops)
        self._lookahead = text[len(text) - size :]
        return text[: len(text) - size]

    def close(self) -> str:
        """Return the lookahead at the end of a text: a stop sequence does not extend into the next text."""
        text, self._lookahead = self._lookahead, ""
        return text


def _started_length(text: str, stop: str) -> int:
    """Return the length of the longest start of the stop sequence at the end of the text."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
