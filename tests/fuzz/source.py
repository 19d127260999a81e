"""``Source``: decisions out of bytes, so that hypothesis, atheris and a kept case all drive the same target.

After the last byte every decision is the first choice: any bytes are an input, and fewer bytes a simpler input.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

__all__ = ["Source", "damaged", "in_chunks"]

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
        """Return a number from 0 up to a limit, exclusive."""
        size = 1 if limit <= 256 else 2
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "big") % limit

    def choose(self, items: Sequence[T]) -> T:
        """Return one of several items."""
        return items[self.below(len(items))]

    def rest(self) -> bytes:
        """Return the remaining bytes."""
        rest, self._at = self._data[self._at :], len(self._data)
        return rest

    def cuts(self) -> list[int]:
        """Return places of cuts, in thousandths of a length."""
        return [self.below(1000) for _ in range(self.below(6))]


def in_chunks(whole: S, cuts: Sequence[int]) -> list[S]:
    """Return text or bytes cut at these thousandths. Two equal cuts give an empty chunk."""
    places = [0, *sorted(cut * len(whole) // 1000 for cut in cuts), len(whole)]
    return [whole[start:end] for start, end in pairwise(places)]


# --- JSON events that are not quite what they were ---------------------------------------------------------------

_OTHERS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 10**9, 1.5, "", "x", "{", '{"a":', "[DONE]", "stop", [], [[]], [None], {}, {"type": "text"},
)  # fmt: skip


def damaged(source: Source, events: Sequence[Any], words: Sequence[str]) -> list[Any]:
    """Return events with some values replaced, removed, repeated or reordered. ``words``: strings of the wire."""
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
    """Return the value with one change, at a depth that the source decides."""
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
