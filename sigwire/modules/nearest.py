"""``NearestDemos``: of many demos of a predictor, each call shows the model those whose inputs are nearest.

The state of the predictor has the demos, and the vectors if there is a vectorizer; the vectorizer itself is not saved.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from operator import is_
from typing import Any, cast

from sigwire.core.json import JsonObject, dumps
from sigwire.core.narrow import is_mapping
from sigwire.core.record import FieldValues, plain_of
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, StateError
from sigwire.signatures.fields import SignatureSpec

__all__ = ["NearestDemos", "Vectorizer", "fields_text"]

Vectorizer = Callable[[list[str]], Any]
"""A function of texts to their vectors, such as an embedding model."""


class NearestDemos:
    """Choose ``count`` demos for each call, the nearest one last, where it counts most.

    ``vectorizer``: texts to vectors of any length, compared by cosine. Without one, inputs are compared by their words; rare
    words count more.
    """

    def __init__(self, count: int, vectorizer: Vectorizer | None = None) -> None:
        if count < 1:
            raise ConfigurationError(f"The number of nearest demos is above 0, not {count}.")
        self.count, self.vectorizer = count, vectorizer
        self._indexed: tuple[tuple[object, ...], _TextIndex | _VectorIndex] | None = None

    def choose(self, demos: Sequence[object], inputs: FieldValues, spec: SignatureSpec | None = None) -> list[object]:
        """Return the demos for a call. ``spec``: of its signature, by whose types values are compared."""
        if len(demos) <= self.count:
            return list(demos)
        scores = self._index(demos, list(inputs), spec).scores(fields_text(inputs, inputs, spec), self.vectorizer)
        best = sorted(range(len(demos)), key=lambda at: (-scores[at], at))[: self.count]
        return [demos[at] for at in reversed(best)]

    def _index(
        self, demos: Sequence[object], names: list[str], spec: SignatureSpec | None
    ) -> _TextIndex | _VectorIndex:
        found = self._indexed
        if found is not None and len(found[0]) == len(demos) and all(map(is_, found[0], demos)):
            index = found[1]
            if isinstance(index, _VectorIndex) == (self.vectorizer is not None):
                return index
        texts = [fields_text(_fields_of(demo), names, spec) for demo in demos]
        made = _TextIndex(texts) if self.vectorizer is None else _VectorIndex(_vectors(self.vectorizer, texts))
        self._indexed = (tuple(demos), made)
        return made

    def to_json(self) -> JsonObject:
        """Return the number of demos, and their vectors if they were made."""
        index = self._indexed[1] if self._indexed is not None else None
        data: JsonObject = {"count": self.count}
        if isinstance(index, _VectorIndex):
            data["vectors"] = [b64encode(array("f", each).tobytes()).decode() for each in index.vectors]
        return data

    @classmethod
    def from_state(cls, data: object, demos: Sequence[object], before: NearestDemos | None) -> NearestDemos | None:
        """Decode the result of ``to_json``; the vectorizer is that of ``before``, the choice that the predictor has."""
        if data is None:
            return None
        if not is_mapping(data) or not isinstance(count := data.get("count"), int):
            raise StateError("nearest is an object with a count.")
        made = cls(count, before.vectorizer if before is not None else None)
        vectors = cast("Sequence[str]", data.get("vectors") or ())
        if made.vectorizer is not None and len(vectors) == len(demos) > 0:
            made._indexed = (tuple(demos), _VectorIndex([array("f", b64decode(each)) for each in vectors]))
        return made

    def __deepcopy__(self, memo: object) -> NearestDemos:
        return NearestDemos(self.count, self.vectorizer)

    def __repr__(self) -> str:
        return f"NearestDemos({self.count})"


class _TextIndex:
    """Texts by their words."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sigwire.core.words import WordIndex  # loaded when demos are first chosen

        self._index = WordIndex[int]()
        for number, text in enumerate(texts):
            self._index.add(number, text)

    def scores(self, text: str, vectorizer: object) -> list[float]:
        found = dict(self._index.search(text, len(self._index)))
        return [found.get(number, 0.0) for number in range(len(self._index))]


class _VectorIndex:
    """Vectors of texts."""

    def __init__(self, vectors: Sequence[Sequence[float]]) -> None:
        self.vectors = vectors
        self._norms = [sqrt(sum(value * value for value in vector)) for vector in vectors]

    def scores(self, text: str, vectorizer: Vectorizer | None) -> list[float]:
        assert vectorizer is not None
        (asked,) = _vectors(vectorizer, [text])
        return [
            sum(map(float.__mul__, asked, map(float, vector))) / norm if norm else 0.0
            for vector, norm in zip(self.vectors, self._norms, strict=True)
        ]


def _vectors(vectorizer: Vectorizer, texts: list[str]) -> list[list[float]]:
    made = [[float(value) for value in vector] for vector in vectorizer(texts)]
    if len(made) != len(texts):
        raise ConfigurationError(f"The vectorizer made {len(made)} vectors of {len(texts)} texts (choosing demos).")
    return made


def fields_text(
    fields: Mapping[str, Any], names: Iterable[str] | None = None, spec: SignatureSpec | None = None
) -> str:
    """Return the values of fields as text, by their types; ``names``: of some. Tools are not compared.

    >>> fields_text({"question": "Where?", "days": [1, 2]})
    'Where? | [1,2]'
    """
    parts: list[str] = []
    dump = plain_of if spec is None else spec.dump
    for name in fields if names is None else names:
        value: object = fields.get(name)
        if value is not None and not isinstance(value, Tool) and name != "tools":
            plain = value if isinstance(value, str) else dump({name: value})[name]
            parts.append(plain if isinstance(plain, str) else dumps(plain))
    return " | ".join(parts)


def _fields_of(demo: object) -> Mapping[str, Any]:
    return demo if is_mapping(demo) else vars(demo)
