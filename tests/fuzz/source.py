"""``Source``: decisions out of bytes, so that hypothesis, atheris and a kept case all drive the same target.

Where the bytes are used up every decision is the first one, so that any bytes are an input, and fewer bytes a simpler one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

__all__ = ["Source", "damaged", "in_pieces"]

T = TypeVar("T")
S = TypeVar("S", str, bytes)


class Source:
    """Reads bytes from the front.

    >>> source = Source(bytes([1, 2]) + b"rest")
    >>> source.choose("abc"), source.below(2), source.rest()
    ('b', 0, b'rest')
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def below(self, limit: int) -> int:
        """A number from 0 up to a limit, which is left out."""
        size = 1 if limit <= 256 else 2
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "big") % limit

    def choose(self, items: Sequence[T]) -> T:
        """One of several."""
        return items[self.below(len(items))]

    def rest(self) -> bytes:
        """All that is left."""
        rest, self._at = self._data[self._at :], len(self._data)
        return rest

    def cuts(self) -> list[int]:
        """Places to cut something at, in thousandths of its length."""
        return [self.below(1000) for _ in range(self.below(6))]


def in_pieces(whole: S, cuts: Sequence[int]) -> list[S]:
    """Text or bytes, cut at these thousandths; an empty piece where two are the same."""
    places = [0, *sorted(cut * len(whole) // 1000 for cut in cuts), len(whole)]
    return [whole[start:end] for start, end in pairwise(places)]


# --- JSON events that are not quite what they were ---------------------------------------------------------------

_OTHERS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 10**9, 1.5, "", "x", "{", '{"a":', "[DONE]", "stop", [], [[]], [None], {}, {"type": "text"},
)  # fmt: skip


def damaged(source: Source, events: Sequence[Any], words: Sequence[str]) -> list[Any]:
    """Events with a few of their values others, missing, twice, or in another order. ``words`` are the wire's own."""
    result = list(events)
    for _ in range(source.below(6)):
        at = source.below(len(result) or 1)
        change = source.below(8)
        if change == 0:
            result = result[:at]
        elif change == 1:
            result[at:at] = result[at : at + 1 + source.below(3)]
        elif change == 2:
            result[at : at + 2] = reversed(result[at : at + 2])
        elif at < len(result):
            result[at] = _damaged(source, result[at], words)
    return result


def _damaged(source: Source, value: Any, words: Sequence[str]) -> Any:
    """The value with one place in it changed, as deep as the source says."""
    if not value or not isinstance(value, dict | list) or source.below(4) == 0:
        return source.choose([*_OTHERS, *words])
    if isinstance(value, list):
        at = source.below(len(value))
        return [*value[:at], _damaged(source, value[at], words), *value[at + 1 :]]
    name = source.choose(sorted(value))
    change = source.below(5)
    if change == 0:
        return {key: child for key, child in value.items() if key != name}
    if change == 1:
        return {**value, source.choose(words): value[name]}
    return {**value, name: _damaged(source, value[name], words)}
