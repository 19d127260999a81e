"""Decompression of reply bodies, chunk by chunk, up to a maximum length. Some servers compress without being asked to."""

from __future__ import annotations

import sys
import zlib

from sigwire.lm.http.errors import ProtocolError, TooLongError

__all__ = ["BodyDecompressor"]


_COMPRESSED = frozenset({"deflate", "gzip", "x-gzip"})


class BodyDecompressor:
    """Decompress a body of gzip or deflate, fed in chunks.

    A body of more than ``limit`` bytes is refused, and no byte beyond the limit is decompressed: a few compressed kilobytes can
    expand to gigabytes.

    >>> BodyDecompressor("identity").feed(b"plain")
    b'plain'
    """

    __slots__ = ("_inflater", "_is_empty", "_limit", "_remaining")

    def __init__(self, coding: str, limit: int | None = None) -> None:
        self._limit = limit
        self._remaining = sys.maxsize - 1 if limit is None else limit
        self._is_empty = True
        is_compressed = coding.lower() not in ("", "identity")
        if is_compressed and coding.lower() not in _COMPRESSED:
            raise ProtocolError(f"the reply's content-encoding is {coding!r}, which was not requested")
        self._inflater = (
            zlib.decompressobj(47) if is_compressed else None
        )  # 32 + 15: detects the header of zlib or gzip

    def feed(self, chunk: bytes) -> bytes:
        """Return the decompressed chunk; feed ``b""`` at the end. Raises ``ProtocolError``."""
        plain = chunk if self._inflater is None else self._decompress(chunk)
        self._remaining -= len(plain)
        if self._remaining < 0:
            raise TooLongError(f"the reply's body is longer than {self._limit:,} bytes")
        return plain

    def _decompress(self, chunk: bytes) -> bytes:
        if self._inflater is None or (self._is_empty and not chunk):
            return chunk
        self._is_empty = False
        if not chunk and not self._inflater.eof:
            raise ProtocolError("the reply's compressed body is truncated")
        try:
            return self._inflater.decompress(chunk, self._remaining + 1)
        except zlib.error as error:
            raise ProtocolError("the reply's compressed body is damaged") from error
