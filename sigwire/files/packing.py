"""Bytes of a file, compressed; and what is inflated, checked and bounded: the file may be hostile."""

from __future__ import annotations

import zlib

__all__ = ["deflate", "inflate"]


def deflate(data: bytes, level: int) -> bytes:
    """Return the compressed bytes. ``level``: 1 is fast, 9 small."""
    return zlib.compress(data, level)


def inflate(data: bytes, most: int) -> bytes:
    """Return the bytes of ``deflate``. Raises ``ValueError`` for other data, and for more than ``most`` bytes.

    >>> inflate(deflate(b"text", 1), 4)
    b'text'
    >>> inflate(deflate(b"text", 1), 3)
    Traceback (most recent call last):
    ValueError: the compressed data is damaged, or longer than 3 bytes
    """
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, most)
    except zlib.error as error:
        raise ValueError(f"the compressed data is damaged: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise ValueError(f"the compressed data is damaged, or longer than {most} bytes")
    return inflated
