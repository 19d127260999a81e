"""Stream events as bytes: server-sent events, NDJSON, or one JSON array.

A ``Framing`` writes one event, a keep-alive and the end of the body. It knows no provider's events; the wire chooses its
framing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from sigwire.core.json import JsonObject, dumps

__all__ = ["Framing", "JsonArrayFraming", "NdjsonFraming", "SSEFraming"]


class Framing(Protocol):
    """Writes the events of a stream."""

    content_type: ClassVar[str]

    def frame(self, event: JsonObject, *, first: bool) -> bytes:
        """Return one event as bytes."""
        ...

    def ping(self) -> bytes:
        """Return a keep-alive, which clients skip."""
        ...

    def end(self, *, empty: bool, failed: bool = False) -> bytes:
        """Return the end of the body. ``empty``: no event was sent; ``failed``: the last event was an error."""
        ...


@dataclass(frozen=True, slots=True)
class SSEFraming:
    """``data: {...}`` and an empty line. ``named``: with an ``event:`` line. ``done``: the data of the end marker.

    ``alive``: the keep-alive event; default: a comment.

    >>> SSEFraming(named=True).frame({"type": "ping"}, first=True)
    b'event: ping\\ndata: {"type":"ping"}\\n\\n'
    """

    named: bool = False
    done: str = ""
    newline: str = "\n"
    alive: Mapping[str, Any] | None = None

    content_type: ClassVar[str] = "text/event-stream; charset=utf-8"

    def frame(self, event: JsonObject, *, first: bool) -> bytes:
        name = [f"event: {event['type']}"] if self.named and "type" in event else []
        return self._lines(*name, f"data: {dumps(event)}")

    def ping(self) -> bytes:
        if self.alive is not None:
            return self.frame(dict(self.alive), first=False)
        return self._lines(": keep-alive")

    def end(self, *, empty: bool, failed: bool = False) -> bytes:
        return self._lines(f"data: {self.done}") if self.done and not failed else b""

    def _lines(self, *lines: str) -> bytes:
        return "".join(line + self.newline for line in (*lines, "")).encode()


@dataclass(frozen=True, slots=True)
class NdjsonFraming:
    """One JSON object per line.

    >>> NdjsonFraming().frame({"done": True}, first=True)
    b'{"done":true}\\n'
    """

    content_type: ClassVar[str] = "application/x-ndjson"

    def frame(self, event: JsonObject, *, first: bool) -> bytes:
        return dumps(event).encode() + b"\n"

    def ping(self) -> bytes:
        return b"\n"

    def end(self, *, empty: bool, failed: bool = False) -> bytes:
        return b""


@dataclass(frozen=True, slots=True)
class JsonArrayFraming:
    """One JSON array whose items are sent one by one.

    >>> array = JsonArrayFraming()
    >>> array.frame({"a": 1}, first=True) + array.frame({}, first=False) + array.end(empty=False)
    b'[{"a":1}\\n,\\n{}\\n]'
    """

    content_type: ClassVar[str] = "application/json; charset=utf-8"

    def frame(self, event: JsonObject, *, first: bool) -> bytes:
        return (b"[" if first else b",\n") + dumps(event).encode() + b"\n"

    def ping(self) -> bytes:
        return b"\n"

    def end(self, *, empty: bool, failed: bool = False) -> bytes:
        return b"[]" if empty else b"]"
