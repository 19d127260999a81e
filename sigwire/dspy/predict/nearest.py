"""``KNN`` with the vectors of its examples, as programs of DSPy read them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sigwire.core.example import Example
from sigwire.errors import ConfigurationError
from sigwire.retrieval import knn

if TYPE_CHECKING:
    import numpy as np

__all__ = ["KNN"]


class KNN(knn.KNN):
    """``sigwire.KNN`` with DSPy's ``trainset_vectors``.

    >>> from sigwire.core.example import Example
    >>> train = [Example(text=text).with_inputs("text") for text in ("tea", "red car")]
    >>> KNN(1, train, lambda texts: [[len(text), 1.0] for text in texts]).trainset_vectors.shape
    (2, 2)
    """

    @cached_property
    def trainset_vectors(self) -> np.ndarray:
        """The vectors of the inputs of the examples, a row each (float32); made when they are first read.

        Raises ``ConfigurationError`` without a vectorizer: words are compared then.
        """
        import numpy as np

        vectorizer = self._nearest.vectorizer
        if vectorizer is None:
            raise ConfigurationError(
                "This KNN compares words and has no vectors. Pass KNN(..., vectorizer=Embedder(...))."
            )
        texts = [
            " | ".join(str(value) for value in Example.values(Example.inputs(example))) for example in self.trainset
        ]
        return np.asarray(vectorizer(texts), dtype=np.float32)
