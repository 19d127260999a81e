"""Vectors of words, without a model: for examples and tests, and as the baseline of a real model."""

from __future__ import annotations

import math
from collections import Counter
from hashlib import blake2b

from sigwire.lm.offline.words import content_stems

__all__ = ["SIZE", "lexical_vector"]

SIZE = 512


def lexical_vector(text: str) -> list[float]:
    """Return a vector of length 1 (0 for a text without words): each word stem adds to one place, with a sign.

    Texts that share words are near each other; words with one meaning are not. The same text has the same vector everywhere.

    >>> round(sum(a * b for a, b in zip(lexical_vector("a late order"), lexical_vector("orders that are late"))), 6)
    1.0
    """
    vector = [0.0] * SIZE
    for stem, count in Counter(content_stems(text)).items():
        place = int.from_bytes(blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        vector[place % SIZE] += (1 + math.log(count)) * (1 if place & (1 << 40) else -1)
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else vector
