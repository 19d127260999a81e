"""JSON around media: the text of a value whose images, audio and files are parts of their own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from sigwire.adapters.values.type_shape import is_mapping
from sigwire.adapters.values.typed_json import untyped_json
from sigwire.core.json import dumps
from sigwire.core.messages import Part
from sigwire.signatures.types import Audio, File, Image

__all__ = ["json_with_media"]


def json_with_media(value: Any) -> list[str | Part]:
    """A value as JSON text, interrupted by the media in it.

    Raises ``RecursionError`` for a value that holds itself.

    >>> json_with_media({"page": 1, "scan": Image("https://example.org/1.png")})
    ['{"page":1,"scan":', ImagePart(...), '}']
    """
    joined: list[str | Part] = []
    for piece in _pieces(value):
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def _pieces(value: Any) -> Iterator[str | Part]:
    if isinstance(value, (Image, Audio, File)):
        yield value.part()
    elif (members := _members(value)) is not None:
        yield from _joined("{", [(dumps(str(key)) + ":", item) for key, item in members.items()], "}")
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from _joined("[", [("", item) for item in cast("Iterable[Any]", value)], "]")
    else:
        yield untyped_json(value)


def _joined(opening: str, items: Sequence[tuple[str, Any]], closing: str) -> Iterator[str | Part]:
    yield opening
    for position, (before, item) in enumerate(items):
        yield ("," if position else "") + before
        yield from _pieces(item)
    yield closing


def _members(value: Any) -> Mapping[Any, Any] | None:
    if is_mapping(value):
        return value
    kind: Any = value.__class__
    names = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", None)
    return None if names is None else {name: getattr(value, name) for name in names}
