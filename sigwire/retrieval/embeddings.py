"""``Embeddings``: search in a corpus: exact and in memory, or in an index of another library.

An index is any object with ``search(queries, k)``, which returns scores and positions as two arrays of shape
(queries, k), the best first: an index of FAISS as it is, other stores with a class of five lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject, dumps, loads
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, DataError, StateError
from sigwire.files.whole import replacing, write_whole
from sigwire.modules.calling import called_steps
from sigwire.modules.module import StepsModule
from sigwire.retrieval.embedder import Embedder, EmbedFunction, vectors_of

if TYPE_CHECKING:
    from sigwire.retrieval.embedder import Vectors

__all__ = ["Embeddings", "EmbeddingsFiles", "EmbeddingsWithScores", "VectorSearch"]


class VectorSearch(Protocol):
    """An index of vectors."""

    def search(self, queries: Any, k: int, /) -> tuple[Any, Any]:
        """Return the scores and the positions of the ``k`` nearest vectors of each query, the best first."""
        ...


class EmbeddingsFiles(NamedTuple):
    """The names of the two files of a saved index, and the further entries of its settings."""

    settings: str
    vectors: str
    format: JsonObject


class Embeddings(StepsModule):
    """Find the ``k`` passages of a corpus that are nearest to a query: ``passages`` and ``indices`` of a prediction.

    ``embedder``: an ``Embedder``, or a function of texts to vectors. The vectors of the corpus are made here, once;
    ``normalize`` compares by cosine, otherwise by dot product. ``index``: an object that has the vectors of the corpus already,
    with ``search`` (see ``VectorSearch``). ``save`` writes a folder with JSON and an array, ``load`` reads it.

    >>> search = Embeddings(["Parcels arrive in two days.", "Refunds take a week."], Embedder("offline/lexical"), k=1)
    >>> search("When does my parcel arrive?").passages
    ['Parcels arrive in two days.']
    """

    _with_scores = False
    files: ClassVar[Sequence[EmbeddingsFiles]] = [EmbeddingsFiles("embeddings.json", "vectors.npy", {"format": 1})]
    """The files of a saved index: ``save`` writes the first, a folder with any of them is read."""
    _hooks: ClassVar[Sequence[str]] = ("files",)

    def __init__(
        self,
        corpus: Sequence[str],
        embedder: Embedder | EmbedFunction,
        k: int = 5,
        *,
        normalize: bool = True,
        index: VectorSearch | None = None,
        callbacks: Sequence[object] | None = None,
    ) -> None:
        super().__init__(callbacks)
        if not corpus:
            raise DataError("The corpus is empty (making an index). Pass a list of texts.")
        if k < 1:
            raise ConfigurationError(f"k is a number of passages, above 0, not {k} (making an index).")
        self.corpus, self.k, self.normalize = list(corpus), k, normalize
        self.embedder, self.index = embedder, None if isinstance(index, _ExactSearch) else index
        self._search: VectorSearch = index or _ExactSearch(self._prepared(self._own_embedder()(self.corpus)))

    def steps(self, query: str, k: int | None = None) -> Steps[Prediction]:
        """Return the steps of one call, without callbacks and call records of this module."""
        vector = yield from self._own_embedder().steps([query])
        wanted, search = min(k or self.k, len(self.corpus)), self.index or self._search
        scores, positions = yield from called_steps(search.search, (self._prepared(vector), wanted), {})
        found = [(int(at), float(score)) for at, score in zip(positions[0], scores[0], strict=True) if int(at) >= 0]
        fields = {"passages": [self.corpus[at] for at, _ in found], "indices": [at for at, _ in found]}
        return Prediction(fields, scores=[score for _, score in found]) if self._with_scores else Prediction(fields)

    def _own_embedder(self) -> Embedder:
        return self.embedder if isinstance(self.embedder, Embedder) else Embedder(self.embedder, caching=False)

    def _prepared(self, vectors: Vectors) -> Vectors:
        if not self.normalize:
            return vectors
        import numpy

        norms = numpy.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors_of(vectors / numpy.where(norms == 0, 1, norms))

    def save(self, path: str | PathLike[str], **options: Any) -> None:  # type: ignore[override]
        """Write corpus, settings and vectors into a folder. An index of another library is not written."""
        import numpy

        if self.index is not None or not isinstance(self._search, _ExactSearch):
            raise ConfigurationError("The vectors are in an index of another library, with its own way to save them.")
        folder, files = Path(path), type(self).files[0]
        folder.mkdir(parents=True, exist_ok=True)
        settings = {**files.format, "k": self.k, "normalize": self.normalize, "corpus": self.corpus}
        with replacing(folder / files.vectors) as vectors:
            numpy.save(vectors, self._search.vectors, allow_pickle=False)
        write_whole(folder / files.settings, dumps(settings))

    @classmethod
    def from_saved(cls, path: str | PathLike[str], embedder: Embedder | EmbedFunction) -> Self:
        """Return the index of a folder that ``save`` wrote; no vector is made. Raises ``StateError`` for another folder."""
        import numpy

        folder = Path(path)
        files = next((each for each in cls.files if (folder / each.settings).is_file()), cls.files[0])
        try:
            settings: Any = loads((folder / files.settings).read_text(encoding="utf-8"))
            vectors = numpy.load(folder / files.vectors, allow_pickle=False)
            corpus, k, normalize = settings["corpus"], settings["k"], settings["normalize"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(f"{folder} has no saved embeddings (loading): {type(error).__name__}: {error}") from error
        if settings.get("format", 1) != 1 or len(vectors) != len(corpus):
            raise StateError(f"{folder} has other vectors than passages, or another format (loading). Save it again.")
        return cls(corpus, embedder, k, normalize=normalize, index=_ExactSearch(vectors_of(vectors)))


class EmbeddingsWithScores(Embeddings):
    """``Embeddings`` whose predictions have ``scores``, too: the cosine of each passage to the query.

    >>> search = EmbeddingsWithScores(["A late parcel.", "The weather."], Embedder("offline/lexical"), k=2)
    >>> [round(score, 2) for score in search("late parcels").scores]
    [1.0, 0.0]
    """

    _with_scores = True


class _ExactSearch:
    """Compares a query with every vector."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def search(self, queries: Vectors, k: int, /) -> tuple[Vectors, Any]:
        import numpy

        scores = queries @ self.vectors.T
        best = numpy.argsort(-scores, axis=1, kind="stable")[:, :k]
        return numpy.take_along_axis(scores, best, axis=1), best

    def __deepcopy__(self, memo: object) -> _ExactSearch:
        return self
