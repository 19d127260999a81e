"""JSON values as bytes for the database: compressed above 1 KB, with long texts apart.

A text of more than 64 KB (a document, an image) is kept under its digest, once for all values. The bytes are the JSON of
``[value, [[path, digest], ...]]``; each path leads to a text that was taken out. Bytes that were not made here raise
``StateError``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeVar, cast

from sigwire.core.json import JsonValue, ShapeError
from sigwire.core.narrow import is_array, is_object
from sigwire.errors import StateError
from sigwire.files.packing import deflate, inflate

__all__ = ["digest_of", "pack", "reading", "unpack"]

T = TypeVar("T")

_COMPRESSED_FROM = 1024
_LONG = 65_536
_MOST = 1 << 30  # bytes of one value
_COMPRESSED = b"z"
_PLAIN = b"j"


def digest_of(value: object) -> str:
    """Return the SHA-256 of a JSON value; the order of keys does not matter.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return sha256(_dumps(value, sort_keys=True)).hexdigest()


def pack(value: JsonValue, keep: Callable[[str, bytes], object]) -> bytes:
    """Return a value as bytes. ``keep(digest, packed)`` stores each long text.

    >>> unpack(pack({"a": [1, "text"]}, print), {}.__getitem__)
    {'a': [1, 'text']}
    """
    taken: list[tuple[list[str | int], str]] = []

    def without_long(value: Any, path: list[str | int]) -> Any:
        if isinstance(value, str) and len(value) > _LONG:
            data = _dumps(value)
            digest = sha256(data).hexdigest()
            keep(digest, _compress(data))
            taken.append((path, digest))
            return None
        if is_object(value):
            return {name: without_long(item, [*path, name]) for name, item in value.items()}
        return [without_long(item, [*path, at]) for at, item in enumerate(value)] if is_array(value) else value

    return _compress(_dumps([without_long(value, []), taken]))


def unpack(data: object, kept: Callable[[str], object]) -> Any:
    """Return the value of packed bytes. ``kept(digest)`` returns the packed bytes of a long text."""

    def read() -> Any:
        value, taken = _loads(data)
        holder = [value]
        for path, digest in cast("list[Any]", taken):
            target: Any = holder
            for step in (steps := [0, *path])[:-1]:
                target = target[step]
            target[steps[-1]] = _loads(kept(digest))
        return holder[0]

    return reading(read)


def reading(read: Callable[[], T]) -> T:
    """Return the value of ``read``, which decodes what a file holds. Raises ``StateError`` if it does not fit."""
    try:
        return read()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        if isinstance(error, StateError) and not isinstance(error, ShapeError):
            raise
        raise StateError(
            f"The journal holds a value that cannot be read: {error!s:.200} (reading the journal). Begin another run."
        ) from error


def _dumps(value: object, sort_keys: bool = False) -> bytes:
    return (_encode_sorted if sort_keys else _encode)(value).encode()


def _compress(data: bytes) -> bytes:
    return _COMPRESSED + deflate(data, 6) if len(data) > _COMPRESSED_FROM else _PLAIN + data


def _loads(data: object) -> Any:
    if not isinstance(data, bytes):
        raise TypeError("not bytes")
    body = data[1:]
    if data[:1] == _COMPRESSED:
        body = inflate(body, _MOST)
    elif data[:1] != _PLAIN:
        raise ValueError("of another format")
    return json.loads(body)


# Made once: ``json.dumps`` with an option makes an encoder for each call.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_encode_sorted = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
