"""Cut a streamed answer into deltas, and hold its events."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from sigwire.effects.waiting import wait_for
from sigwire.errors import ConfigurationError

__all__ = ["Cut", "Cutter", "Gate", "Newline", "cutter", "split_at", "tokens_by_text"]

Cut: TypeAlias = int | Sequence[int] | Callable[[str], Iterable[str]]
"""Where a text is cut: a length in characters, positions, or a function that returns the parts."""

Cutter: TypeAlias = Callable[[str], list[str]]
Newline: TypeAlias = Literal["\n", "\r\n", "\r"]

# A word or signs with the preceding space, similar to tokens; every character belongs to one match.
_TOKEN = re.compile(r"\s*(?:\w+|[^\w\s]+)|\s+")
# Seconds between two checks that the client is still connected, while an event waits at a gate.
_POLL_SECONDS = 0.02


def cutter(cut: Cut | None, seed: int | None) -> Cutter:
    """Return the function that cuts the texts of one answer. With a ``seed`` the positions are random and reproducible.

    >>> cutter(None, None)("Hello there"), cutter(4, None)("Hello there"), cutter([1], None)("Hello")
    (['Hello', ' there'], ['Hell', 'o th', 'ere'], ['H', 'ello'])

    The function raises ``ConfigurationError`` if a given ``cut`` fails, loses text or adds text.
    """
    if seed is not None:
        return _random_cutter(random.Random(seed))
    if cut is None:
        return _TOKEN.findall
    if callable(cut):
        return _checked_cutter(cut)
    return lambda text: list(split_at(text, cut))


def split_at(text: str, places: int | Sequence[int]) -> Iterator[str]:
    """Yield the parts of a text, cut by length or at positions; no part is empty."""
    inner = range(places, len(text), places) if isinstance(places, int) else sorted(set(places))
    for start, end in pairwise([0, *(place for place in inner if 0 < place < len(text)), len(text)]):
        if start < end:
            yield text[start:end]


def _random_cutter(choose: random.Random) -> Cutter:
    def cut(text: str) -> list[str]:
        return list(split_at(text, [place for place in range(1, len(text)) if choose.random() < 0.3]))

    return cut


def _checked_cutter(cut: Callable[[str], Iterable[str]]) -> Cutter:
    def parts(text: str) -> list[str]:
        try:
            found = list(cut(text))
        except Exception as error:  # user code: the server reports the error and keeps running
            raise ConfigurationError(f"The function that cuts a stream raised {error!r} (answering).") from error
        if "".join(found) != text:
            raise ConfigurationError(f"The function that cuts a stream made {found!r} of {text!r} (answering).")
        return found

    return parts


def tokens_by_text(tokens: Sequence[Any], texts: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the tokens of each text, by length; the last text has all remaining tokens.

    >>> [[token["token"] for token in share] for share in tokens_by_text([{"token": "He"}, {"token": "y"}], ["H", "ey"])]
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
    """Releases as many events as a test allows; the others wait while the client and the server are connected.

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
        """Release that many more events."""
        with self._changed:
            self._free += count
            self._changed.notify_all()

    def open(self) -> None:
        """Release all further events."""
        self.release(1 << 62)

    def waits(self, seconds: float = 0) -> bool:
        """Return True if the next event has to wait after ``seconds``. Otherwise the event is released."""
        with self._changed:
            if self._free < 1:
                wait_for(self._changed.wait, seconds)
            if self._free < 1:
                return True
            self._free -= 1
            return False

    def enter(self, check: Callable[[], None]) -> None:
        """Wait until the next event is released. ``check`` is called while waiting and may raise."""
        while self.waits(_POLL_SECONDS):
            check()
