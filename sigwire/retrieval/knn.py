"""``KNN``: the examples of a training set whose inputs are nearest to the inputs of a call."""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.core.example import Example
from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords
from sigwire.modules.nearest import NearestDemos, Vectorizer

__all__ = ["KNN"]


class KNN(ChecksKeywords):
    """Find the ``k`` nearest examples, the nearest first. ``vectorizer``: an ``Embedder``; without one, words are compared.

    >>> train = [Example(text=text).with_inputs("text") for text in ("a late parcel", "a wrong invoice", "parcels are late")]
    >>> [each.text for each in KNN(2, train)(text="my parcel is late")]
    ['a late parcel', 'parcels are late']
    """

    def __init__(self, k: int, trainset: Sequence[Example], vectorizer: Vectorizer | None = None) -> None:
        if k < 1:
            raise ConfigurationError(f"k is a number of examples, above 0, not {k} (making a KNN).")
        self.k, self.trainset = k, list(trainset)
        self._nearest = NearestDemos(k, vectorizer)

    def __call__(self, **inputs: object) -> list[Example]:
        """Return the examples for the inputs of a call. All of them if there are no more than ``k``."""
        found = self._nearest.choose(self.trainset, inputs)
        return [each for each in reversed(found) if isinstance(each, Example)]
