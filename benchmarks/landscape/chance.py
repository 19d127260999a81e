"""Numbers that look random and depend only on their key."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

__all__ = ["Chance", "share"]

Item = TypeVar("Item")


def share(*key: object) -> float:
    """Return a number from 0 to 1 for a key."""
    return int.from_bytes(blake2b("/".join(map(str, key)).encode(), digest_size=8).digest(), "big") / 2**64


class Chance:
    """Draws of one request, in order."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.drawn = 0

    def number(self) -> float:
        self.drawn += 1
        return share(self.key, self.drawn)

    def happens(self, odds: float) -> bool:
        return self.number() < odds

    def choice(self, items: Sequence[Item]) -> Item:
        return items[int(self.number() * len(items))]

    def sample(self, items: Sequence[Item], size: int) -> list[Item]:
        left = list(items)
        return [left.pop(int(self.number() * len(left))) for _ in range(min(size, len(left)))]

    def letters(self) -> str:
        return f"{int(self.number() * 2**32):08x}"
