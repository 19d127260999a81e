"""How a streamed answer comes: in which pieces its texts are cut, and when a piece may leave.

Cut      a piece length, positions, or a function: where a text falls to pieces
shares   the tokens of each piece
Gate     holds the events of a stream back until a test lets them through; no clock is involved
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from sigwire.errors import ConfigurationError

__all__ = ["Cut", "Cutter", "Gate", "Newline", "cutter", "shares", "split_at"]

Cut: TypeAlias = int | Sequence[int] | Callable[[str], Iterable[str]]
"""Where a text falls to pieces: every so many characters, after these positions, or as a function says."""

Cutter: TypeAlias = Callable[[str], list[str]]
Newline: TypeAlias = Literal["\n", "\r\n", "\r"]

# A word or some signs with the space before them, much as tokens are; every character is in one.
_TOKEN = re.compile(r"\s*(?:\w+|[^\w\s]+)|\s+")
# How often who waits at a gate looks whether the client is still there, in seconds.
_GLANCE = 0.02


def cutter(cut: Cut | None, seed: int | None) -> Cutter:
    """What cuts the texts of one answer. With a ``seed`` the places are random instead, the same ones for the same seed.

    >>> cutter(None, None)("Hello there"), cutter(4, None)("Hello there"), cutter([1], None)("Hello")
    (['Hello', ' there'], ['Hell', 'o th', 'ere'], ['H', 'ello'])

    When it cuts, it raises ``ConfigurationError`` for a function that fails, loses text or adds some.
    """
    if seed is not None:
        return _at_random(random.Random(seed))
    if cut is None:
        return _TOKEN.findall
    if callable(cut):
        return _checked(cut)
    return lambda text: list(split_at(text, cut))


def split_at(text: str, places: int | Sequence[int]) -> Iterator[str]:
    """The pieces of a text that is cut after every so many characters or after these; no piece is empty."""
    inner = range(places, len(text), places) if isinstance(places, int) else sorted(set(places))
    for start, end in pairwise([0, *(place for place in inner if 0 < place < len(text)), len(text)]):
        if start < end:
            yield text[start:end]


def _at_random(choose: random.Random) -> Cutter:
    def cut(text: str) -> list[str]:
        return list(split_at(text, [place for place in range(1, len(text)) if choose.random() < 0.3]))

    return cut


def _checked(cut: Callable[[str], Iterable[str]]) -> Cutter:
    def pieces(text: str) -> list[str]:
        try:
            found = list(cut(text))
        except Exception as error:  # a user's function: the server says what it did, it does not die
            raise ConfigurationError(f"The function that cuts a stream raised {error!r} (answering).") from error
        if "".join(found) != text:
            raise ConfigurationError(f"The function that cuts a stream made {found!r} of {text!r} (answering).")
        return found

    return pieces


def shares(tokens: Sequence[Any], texts: Sequence[str]) -> Iterator[list[Any]]:
    """The tokens of each text, by their lengths; the last text has all that are left.

    >>> [[token["token"] for token in share] for share in shares([{"token": "He"}, {"token": "y"}], ["H", "ey"])]
    [['He'], ['y']]
    """
    start = reached = written = 0
    for position, text in enumerate(texts, 1):
        reached += len(text)
        end = start
        while end < len(tokens) and (written < reached or position == len(texts)):
            written += len(tokens[end]["token"])
            end += 1
        yield list(tokens[start:end])
        start = end


class Gate:
    """Lets as many events through as a test allows; the others wait, for as long as the client and the server are there.

    >>> gate = Gate()
    >>> gate.release(2)
    >>> gate.waits(), gate.waits(), gate.waits()
    (False, False, True)
    >>> gate.open()
    >>> gate.waits()
    False
    """

    def __init__(self, free: int = 0) -> None:
        self._free: float = free
        self._changed = threading.Condition()

    def release(self, count: int = 1) -> None:
        """Let that many more events through."""
        with self._changed:
            self._free += count
            self._changed.notify_all()

    def open(self) -> None:
        """Let everything through from now on."""
        self.release(1 << 62)

    def waits(self, seconds: float = 0) -> bool:
        """Whether the next event has to wait; if not, it is through. Looks again until the seconds are over."""
        with self._changed:
            if self._free < 1:
                self._changed.wait(seconds)
            if self._free < 1:
                return True
            self._free -= 1
            return False

    def enter(self, look: Callable[[], None]) -> None:
        """Wait until the next event is let through. ``look`` is called while that takes, and may raise."""
        while self.waits(_GLANCE):
            look()
