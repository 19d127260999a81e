"""``WordIndex``: texts by their words, ranked by BM25. The index grows: an added text costs its own words, no rebuild.

Words are found by one regular expression (names are split at underscores, dots and capitals) and lose one of five suffixes.
Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), has the weights. Pure; knows no tools.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from heapq import nsmallest
from math import log
from typing import Generic, TypeVar

__all__ = ["WordIndex", "words_of"]

K = TypeVar("K", bound=Hashable)

# A character of Chinese or Japanese (written without blanks), a run of capitals, a word, a number.
_WORD = re.compile(
    "[\u3040-\u30ff\u3400-\u9fff]|[A-Z]+(?![^\\W\\d_A-Z])|[A-Z]?[^\\W\\d_A-Z\u3040-\u30ff\u3400-\u9fff]+|\\d+"
)
_MANY = 100  # Among as many texts, a word that is in more than half of them ranks nothing, and costs most.
_SUFFIX = re.compile(r"(?<=...)(?:ing|ed|es|s|e)\Z")


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, lower case and without suffixes.

    >>> words_of("getWeather: forecasts of cities")
    ['get', 'weather', 'forecast', 'of', 'citi']
    """
    return [_SUFFIX.sub("", word.lower()) for word in _WORD.findall(text)]


class WordIndex(Generic[K]):
    """Texts under keys, found by the words of a query. Rare words count more, repeated ones less and less.

    ``saturation``: how soon repetitions stop to count (``k1``). ``length``: how much long texts lose, 0 to 1 (``b``).

    >>> index = WordIndex[str]()
    >>> index.add("weather", "get_weather", "get_weather", "Forecast of a city.")
    >>> index.add("mail", "send_mail", "send_mail", "Send a text to a person.")
    >>> [key for key, score in index.search("what will the weather be in this city?", 5)]
    ['weather']
    """

    __slots__ = ("_keys", "_length", "_lengths", "_places", "_saturation", "_total")

    def __init__(self, saturation: float = 1.2, length: float = 0.6) -> None:
        self._saturation, self._length = saturation, length
        self._keys: list[K] = []
        self._lengths: list[int] = []
        self._places: dict[str, list[tuple[int, int]]] = {}  # word -> (number of the text, how often)
        self._total = 0

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: K, *texts: str) -> None:
        """Add one entry: its texts count together; a text that is given twice counts twice."""
        place, words = len(self._keys), [word for text in texts for word in words_of(text)]
        for word, count in Counter(words).items():
            self._places.setdefault(word, []).append((place, count))
        self._keys.append(key)
        self._lengths.append(len(words))
        self._total += len(words)

    def search(self, query: str, count: int) -> list[tuple[K, float]]:
        """Return the ``count`` best keys with their scores, the best first. Entries without a word of the query are none.

        Of equal entries the one that was added first is first.
        """
        scores = self._scores(dict.fromkeys(words_of(query)))
        best = nsmallest(count, scores.items(), key=lambda each: (-each[1], each[0]))
        return [(self._keys[place], score) for place, score in best]

    def _scores(self, words: Iterable[str]) -> dict[int, float]:
        scores: dict[int, float] = {}
        number, found = len(self._keys), [places for word in words if (places := self._places.get(word))]
        if number >= _MANY:
            found = [places for places in found if len(places) <= number / 2] or found
        by_length = self._saturation * self._length * number / (self._total or 1)
        fixed, most = self._saturation * (1 - self._length), self._saturation + 1
        norms = [fixed + by_length * length for length in self._lengths]
        for places in found:
            weight = log(1 + (number - len(places) + 0.5) / (len(places) + 0.5)) * most
            for place, count in places:
                scores[place] = scores.get(place, 0.0) + weight * count / (count + norms[place])
        return scores
