"""The names of ``dspy.retrievers``: ``Embeddings``, and ``Retrieve`` for the function of ``configure(rm=...)``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, ClassVar, Self, cast

from sigwire.core.example import Prediction
from sigwire.dspy.modules import Module
from sigwire.dspy.paths import add_paths
from sigwire.dspy.settings import settings
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, StateError
from sigwire.modules.calling import called_steps
from sigwire.modules.module import StepsModule
from sigwire.retrieval import embeddings
from sigwire.retrieval.embedder import Embedder, EmbedFunction

__all__ = ["Embeddings", "EmbeddingsWithScores", "Retrieve"]


class Embeddings(embeddings.Embeddings):
    """``sigwire.Embeddings`` with DSPy's options, which are kept and have no effect: every search is exact.

    ``save`` writes DSPy's files, and ``load`` reads folders of DSPy; an index of FAISS in them is not read.

    >>> found = Embeddings(["tea", "a car"], lambda texts: [[float("tea" in text)] for text in texts], brute_force_threshold=9)
    >>> found("green tea", k=1).passages, found.brute_force_threshold
    (['tea'], 9)
    """

    files: ClassVar[Sequence[embeddings.EmbeddingsFiles]] = [
        embeddings.EmbeddingsFiles("config.json", "corpus_embeddings.npy", {"has_faiss_index": False}),
        *embeddings.Embeddings.files,
    ]

    def __init__(
        self,
        corpus: Sequence[str],
        embedder: Embedder | EmbedFunction,
        k: int = 5,
        callbacks: Sequence[object] | None = None,
        cache: bool = False,
        brute_force_threshold: int = 20_000,
        normalize: bool = True,
        *,
        index: embeddings.VectorSearch | None = None,
    ) -> None:
        super().__init__(corpus, embedder, k, normalize=normalize, index=index, callbacks=callbacks)
        self.brute_force_threshold = brute_force_threshold

    @classmethod
    def from_saved(cls, path: str | PathLike[str], embedder: Embedder | EmbedFunction) -> Self:
        """Return the index of a folder of ``save``. Raises ``StateError``; without a folder it is a ``FileNotFoundError``."""
        try:
            return super().from_saved(path, embedder)
        except StateError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise NoSavedEmbeddings(str(error)) from error
            raise

    def load(self, path: str | PathLike[str], embedder: Embedder | EmbedFunction) -> Self:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take the corpus, vectors and settings of a folder of ``save``. Raises ``StateError`` for another folder."""
        found = type(self).from_saved(path, embedder)
        self.__dict__.update({**found.__dict__, "brute_force_threshold": self.brute_force_threshold})
        return self


class NoSavedEmbeddings(StateError, FileNotFoundError):
    """There is no folder of saved embeddings."""


class EmbeddingsWithScores(Embeddings, embeddings.EmbeddingsWithScores):  # pyright: ignore[reportIncompatibleMethodOverride]
    """``Embeddings`` with the ``scores`` of the passages."""


class Retrieve(Module, StepsModule):
    """Find passages with the retriever of ``configure(rm=...)``: a function, or module, of ``query`` and ``k``.

    The retriever returns texts, or objects with ``long_text``. The prediction has ``passages``. Raises
    ``ConfigurationError`` if no retriever is set.

    >>> from sigwire.dspy.settings import context
    >>> with context(rm=lambda query, k: [f"{query} {number}" for number in range(k)]):
    ...     Retrieve(k=2)("tea").passages
    ['tea 0', 'tea 1']
    """

    def __init__(self, k: int = 3, callbacks: list[object] | None = None) -> None:
        super().__init__(callbacks)
        self.k = k

    def steps(self, query: str, k: int | None = None, **options: Any) -> Steps[Prediction]:
        """Return the steps of one search."""
        retriever = settings.rm
        if retriever is None:
            raise ConfigurationError(
                "There is no retriever (calling Retrieve). Set one with configure(rm=...), a function of query and k."
            )
        found = yield from called_steps(retriever, [query], {"k": self.k if k is None else k, **options})
        return Prediction(passages=[_text_of(passage) for passage in _passages_of(found)])


def _passages_of(found: object) -> Iterable[object]:
    """Return what a retriever found as passages: a prediction with ``passages``, a list, or one passage."""
    if isinstance(found, Prediction) and "passages" in found:
        return cast("Iterable[object]", found["passages"])
    return [found] if isinstance(found, str) or not isinstance(found, Iterable) else cast("Iterable[object]", found)


def _text_of(passage: object) -> object:
    return getattr(passage, "long_text", passage)


add_paths(__name__, "embeddings retrieve")
