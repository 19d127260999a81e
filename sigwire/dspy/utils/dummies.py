"""The names of ``dspy.utils.dummies``: the test model, a test embedder and a test retriever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from sigwire.dspy.lm import DummyLM
from sigwire.keywords import ChecksKeywords

__all__ = ["DummyLM", "DummyVectorizer", "dummy_rm"]


class DummyVectorizer(ChecksKeywords):
    """Texts to vectors by their n-grams of characters, the same in every process; needs numpy.

    >>> DummyVectorizer(max_length=10)(["tea", "tea"]).shape
    (2, 10)
    """

    def __init__(self, max_length: int = 100, n_gram: int = 2) -> None:
        self.max_length, self.n_gram = max_length, n_gram

    def __call__(self, texts: Iterable[str]) -> Any:
        import numpy

        vectors = numpy.array([self._counts(text) for text in texts], dtype=numpy.float32)
        vectors -= vectors.mean(axis=1, keepdims=True)
        return vectors / (numpy.linalg.norm(vectors, axis=1, keepdims=True) + 1e-10)

    def _counts(self, text: str) -> list[int]:
        counts = [0] * self.max_length
        for start in range(len(text) - self.n_gram + 1):
            counts[crc32(text[start : start + self.n_gram].encode()) % self.max_length] += 1
        return counts


def dummy_rm(passages: Sequence[str] = ()) -> Callable[..., list[SimpleNamespace]]:
    """Return a retriever for ``configure(rm=...)`` that finds the passages nearest to a query by their characters.

    >>> dummy_rm(["black tea", "a red car"])("tea", k=1)[0].long_text
    'black tea'
    """
    embed = DummyVectorizer()
    corpus = embed(passages) if passages else None

    def search(query: str, *, k: int = 3, **options: object) -> list[SimpleNamespace]:
        if corpus is None:
            return []
        scores = (corpus @ embed([query])[0]).tolist()
        best = sorted(range(len(passages)), key=lambda index: -scores[index])[:k]
        return [SimpleNamespace(long_text=passages[index], score=scores[index]) for index in best]

    return search
