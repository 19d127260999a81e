"""``Embedder``: texts to vectors, by a provider's model or by a function, in batches, several at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.gather import Gather
from sigwire.effects.steps import FunctionEffect, Steps, arun, run
from sigwire.errors import ConfigurationError, DataError, InputError
from sigwire.lm.offline.vectors import lexical_vector
from sigwire.modules.calling import called_steps
from sigwire.observe.usage import counted_steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sigwire.lm.client import LM

    Vectors: TypeAlias = NDArray[np.float32]

__all__ = ["EmbedFunction", "Embedder", "vectors_of"]

EmbedFunction: TypeAlias = Callable[[list[str]], Any]
"""Texts to vectors of one length, sync or async: lists of numbers, or an array."""

_AT_ONCE = 4
_MOST_KEPT = 10_000


class Embedder:
    """Make vectors of texts: one text gives an array of one dimension, a list an array of two; both of float32.

    ``model``: a model's name ("openai/text-embedding-3-small", see ``EmbeddingModel``), "offline/lexical" (words, without a
    network), or a function of texts to vectors, sync or async. ``batch_size``: the most texts of a request; ``caching``: equal
    batches of a model are stored like answers, texts of a function are kept in memory. Other arguments are those of the model.
    It is a vectorizer of ``KNN``, ``KNNFewShot`` and ``Embeddings``. Needs the extra ``numpy``.

    >>> embed = Embedder("offline/lexical")
    >>> first, second = embed(["a late order", "the weather"])
    >>> query = embed("my order is late")
    >>> bool(query @ first > query @ second), query.dtype.name
    (True, 'float32')
    """

    def __init__(self, model: str | EmbedFunction, batch_size: int = 200, caching: bool = True, **options: Any) -> None:
        if batch_size < 1:
            raise ConfigurationError(
                f"batch_size is a number of texts, above 0, not {batch_size} (making an Embedder)."
            )
        self.model, self.batch_size, self.caching = model, batch_size, caching
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._function: EmbedFunction | None = None
        self._lm: LM | None = None
        if model == "offline/lexical":
            self._function = _lexical_vectors
        elif isinstance(model, str):
            from sigwire.retrieval.model import EmbeddingModel  # functions need no client

            self._lm = EmbeddingModel(model, cache=caching, **options)
        elif callable(model):
            self._function = model
        else:
            raise ConfigurationError(f"Embedder takes a model's name or a function, not {type(model).__name__}.")
        if options and self._lm is None:
            raise ConfigurationError(f"Embedder of a function has no option {min(options)!r} (making it).")

    def __call__(self, inputs: str | Sequence[str]) -> Vectors:
        """Return the vector of a text, or the vectors of texts; blocking."""
        return run(self.steps(inputs))

    async def acall(self, inputs: str | Sequence[str]) -> Vectors:
        """Return the vector of a text, or the vectors of texts; awaited."""
        return await arun(self.steps(inputs))

    def steps(self, inputs: str | Sequence[str]) -> Steps[Vectors]:
        """Return the steps of one call."""
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        if stray := [type(text).__name__ for text in texts if not isinstance(text, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"Embedder takes texts, not {stray[0]}.")
        wanted = list(dict.fromkeys(texts))
        found = self._known(wanted)
        missing = [text for text in wanted if text not in found]
        batches = [missing[start : start + self.batch_size] for start in range(0, len(missing), self.batch_size)]
        made: list[Any] = yield Gather([self._batch(batch) for batch in batches], limit=_AT_ONCE)
        for batch, vectors in zip(batches, made, strict=True):
            found.update(zip(batch, vectors, strict=True))
        self._keep({text: found[text] for text in missing})
        rows = vectors_of([found[text] for text in texts])
        return rows[0] if isinstance(inputs, str) else rows

    def _batch(self, texts: list[str]) -> Steps[Any]:
        if self._lm is None:
            vectors = yield from called_steps(self._function, (texts,), {})
            if len(vectors) != len(texts):
                raise DataError(
                    f"The function made {len(vectors)} vectors of {len(texts)} texts (embedding). Return one for each text."
                )
            return vectors
        lm, request = self._lm, Request(tuple(map(Message.user, texts)))
        response = yield from counted_steps(type(self).__name__, lm.model, _answered(lm, request))
        return [choice.raw for choice in response.choices]

    def _known(self, texts: Sequence[str]) -> dict[str, Any]:
        with self._lock:
            return {text: self._kept[text] for text in texts if text in self._kept}

    def _keep(self, made: dict[str, Any]) -> None:
        """Keep the vectors of a function. Those of a model are in the cache of answers."""
        if not self.caching or self._lm is not None:
            return
        with self._lock:
            self._kept.update(made)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def __deepcopy__(self, memo: object) -> Embedder:
        return self  # copies of a program share the model and what is kept

    def __repr__(self) -> str:
        name = self.model if isinstance(self.model, str) else getattr(self.model, "__name__", type(self.model).__name__)
        return f"Embedder({name!r})"


def _lexical_vectors(texts: list[str]) -> list[list[float]]:
    return [lexical_vector(text) for text in texts]


def vectors_of(vectors: Sequence[Any] | NDArray[Any]) -> Vectors:
    """Return vectors as an array of float32 with two dimensions. Raises ``ConfigurationError`` if their lengths differ."""
    try:
        import numpy
    except ImportError:
        raise ConfigurationError(
            'Vectors need numpy, which is not installed (embedding). pip install "sigwire[numpy]"'
        ) from None
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1:
        raise DataError(
            f"The vectors have different lengths: {sorted(lengths)} (embedding). Make all of them with one model."
        )
    return numpy.asarray(vectors, dtype=numpy.float32).reshape(len(vectors), max(lengths, default=0))


def _answered(lm: LM, request: Request) -> Steps[Response]:
    response: Response = yield FunctionEffect(lambda: lm.respond(request), lambda: lm.arespond(request))
    return response
