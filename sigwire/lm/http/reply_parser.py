"""The reply to one request, parsed by httptools (llhttp, Node's parser) as its bytes arrive. Does no I/O.

Both clients use it, so that one reply has one meaning: it has one end, and nothing after it on a reused connection.
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from sigwire.lm.http.compression import BodyDecompressor
from sigwire.lm.http.errors import ProtocolError
from sigwire.lm.http.exchange import read_head

__all__ = ["ReplyParser"]

_MAX_HEAD = 128 * 1024
_FRAMINGS = frozenset({"content-length", "transfer-encoding"})


class ReplyParser:
    """The reply to one request: ``status`` and ``headers`` once ``has_head``; ``failure`` of a broken reply.

    httptools calls ``on_...``.
    """

    def __init__(self, method: str, max_reply: int | None = None) -> None:
        self._has_body, self._max_reply = method != "HEAD", max_reply
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(lenient_chunked_length=True)  # such a connection is not reused
        self._pairs: list[tuple[str, str]] = []
        self._chunks: list[bytes] = []
        self._is_head_parsed = False
        self.head_length = 0  # 0: no byte of a reply arrived
        self.has_head = False
        self.is_whole = False
        self.is_reusable = False  # the server keeps the connection open and sent nothing else on it
        self.failure: Exception | None = None
        self.status = 0
        self.headers: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Parse the next bytes; ``b""`` if the server closed the connection. Raises nothing: see ``failure``."""
        if self.failure is not None:
            return
        if not data:
            self._end_at_close()
            return
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.is_reusable = False
            body_text, head_text = "invalid framing of the reply's body", "the server's answer is not an HTTP/1.1 reply"
            self.fail(ProtocolError(body_text if self._is_head_parsed else head_text))
        if not self.has_head:
            self.head_length += len(data)
            self._check_head()

    def fail(self, error: Exception) -> None:
        """End the reply with an error, unless it ended before."""
        if not (self.is_whole or self.failure is not None):
            self.failure = error

    def take(self) -> bytes | None:
        """Return the decompressed body since the last call; ``b""`` at its end, ``None`` if more must arrive.

        What arrived before the failure is returned before the failure is raised.
        """
        if self._chunks:
            packed = b"".join(self._chunks)
            self._chunks.clear()
            if chunk := self._decompressor.feed(packed):
                return chunk
        if self.failure is not None:
            raise self.failure
        return self._decompressor.feed(b"") if self.is_whole else None

    def close(self) -> None:
        """Break the reference cycles with the parser and the error, so that no garbage collection is needed."""
        del self._parser
        self.failure = None

    def _check_head(self) -> None:
        if self._is_head_parsed:
            try:
                self.headers = read_head(self.status, self._pairs)
                self._decompressor = BodyDecompressor(self.headers.get("content-encoding", ""), self._max_reply)
            except ProtocolError as error:
                self.is_whole, self.failure = False, self.failure or error
                return
            self.has_head = True
            if self.headers.keys() >= _FRAMINGS:  # RFC 9112 6.3: possibly request smuggling
                self.is_reusable = False
        elif self.head_length > _MAX_HEAD:
            self.fail(ProtocolError("the server's answer is not an HTTP/1.1 reply, or its head is too long"))

    def _end_at_close(self) -> None:
        """End the reply because the server closed the connection; right only for a body without a length."""
        if not self.has_head:
            where = "in the middle of the reply's head" if self.head_length else "without a reply"
            self.fail(ProtocolError(f"the server closed the connection {where}"))
        elif self.headers.keys() & _FRAMINGS:
            self.fail(ProtocolError("the server closed the connection in the middle of the reply's body"))
        else:
            self.is_whole = True

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise ProtocolError("the server sent an unsolicited reply")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_head_parsed:  # else a trailer after the last chunk
            self._pairs.append((name.decode("latin-1"), value.decode("latin-1").strip()))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if 100 <= self.status < 200 and self.status != 101:  # provisional, such as 103 Early Hints
            self._pairs.clear()
            return
        self._is_head_parsed = True
        self.is_reusable = self._parser.should_keep_alive()
        self.is_whole = not self._has_body

    def on_body(self, body: bytes) -> None:
        if self._has_body:
            self._chunks.append(body)
        else:
            self.is_reusable = False

    def on_message_complete(self) -> None:
        self.is_whole = self._is_head_parsed
