"""JSON text of a value, interrupted by its images, audio and files as message parts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from sigwire.adapters.values.typed_json import untyped_json
from sigwire.core.json import dumps
from sigwire.core.messages import Part
from sigwire.core.narrow import is_mapping
from sigwire.signatures.types import Audio, File, Image

__all__ = ["json_with_media"]


def json_with_media(value: object) -> list[str | Part]:
    """Return JSON text and media parts in order. Raises ``RecursionError`` for a value that contains itself.

    >>> json_with_media({"page": 1, "scan": Image("https://example.org/1.png")})
    ['{"page":1,"scan":', ImagePart(...), '}']
    """
    merged: list[str | Part] = []
    for is_text, group in groupby(_parts(value), lambda part: isinstance(part, str)):
        parts = list(group)
        merged += ["".join(cast("list[str]", parts))] if is_text else parts
    return merged


def _parts(value: object) -> Iterator[str | Part]:
    if isinstance(value, (Image, Audio, File)):
        yield value.part()
    elif (members := _members(value)) is not None:
        yield from _delimit("{", [(dumps(str(key)) + ":", item) for key, item in members.items()], "}")
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from _delimit("[", [("", item) for item in cast("Iterable[object]", value)], "]")
    else:
        yield untyped_json(value)


def _delimit(opening: str, items: Sequence[tuple[str, object]], closing: str) -> Iterator[str | Part]:
    yield opening
    for position, (before, item) in enumerate(items):
        yield ("," if position else "") + before
        yield from _parts(item)
    yield closing


def _members(value: object) -> Mapping[str, object] | None:
    if is_mapping(value):
        return value
    kind: Any = value.__class__
    names = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", None)
    return None if names is None else {name: getattr(value, name) for name in names}
