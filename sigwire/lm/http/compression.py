"""TODO map."""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

from sigwire.lm.http.errors import ProtocolError, TooLongError

__all__ = ["BodyDecompressor"]


_COMPRESSED = frozenset({"deflate", "gzip", "x-gzip"})


class _Unzip(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class BodyDecompressor:
    """Takes the compression off a body. Some servers compress although nobody asked them to.

    A body of more than ``limit`` bytes is refused, and no more than that is unpacked: a few kilobytes can be gigabytes.

    >>> BodyDecompressor("identity").feed(b"plain")
    b'plain'
    """

    __slots__ = ("_coded", "_left", "_limit", "_unzip")

    def __init__(self, coding: str, limit: int | None = None) -> None:
        self._limit = limit
        self._left = sys.maxsize - 1 if limit is None else limit
        self._coded = coding.lower() not in ("", "identity")
        if self._coded and coding.lower() not in _COMPRESSED:
            raise ProtocolError(f"the reply's content-encoding is {coding!r}, which was not asked for")
        self._unzip: _Unzip | None = None

    def feed(self, piece: bytes) -> bytes:
        """The next piece of the body; ``b""`` is its end. Raises ``ProtocolError``."""
        plain = self._unpacked(piece) if self._coded else piece
        self._left -= len(plain)
        if self._left < 0:
            raise TooLongError(f"the reply's body is longer than {self._limit:,} bytes")
        return plain

    def _unpacked(self, piece: bytes) -> bytes:
        if not piece and self._unzip is None:
            return piece
        self._unzip = self._unzip or zlib.decompressobj(47)  # 32 + 15: zlib's or gzip's own header, whichever is there
        if not piece and not self._unzip.eof:
            raise ProtocolError("the reply's compressed body is cut off")
        try:
            return self._unzip.decompress(piece, self._left + 1)
        except zlib.error as error:
            raise ProtocolError("the reply's compressed body is damaged") from error
