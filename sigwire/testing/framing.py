"""Events as bytes: server-sent events, lines of JSON, or one array that grows.

A ``Framing`` knows how one event is written, what keeps a connection alive between two, and how the body ends. It knows no
provider's events; which framing a wire uses, the wire says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from sigwire.core.json import JsonObject, dumps

__all__ = ["Framing", "JsonArrayFraming", "NdjsonFraming", "SSEFraming"]


class Framing(Protocol):
    """How the events of a stream are written."""

    content_type: ClassVar[str]

    def frame(self, event: JsonObject, *, first: bool) -> bytes:
        """One event."""
        ...

    def ping(self) -> bytes:
        """What a client passes over."""
        ...

    def end(self, *, empty: bool, failed: bool = False) -> bytes:
        """What stands after the last event; ``empty``: there was none; ``failed``: it was an error."""
        ...


@dataclass(frozen=True, slots=True)
class SSEFraming:
    """``data: {...}`` and an empty line. ``named``: the event's type stands before it. ``done``: the data of the end.

    ``alive``: the event that keeps a connection alive; without it, a comment does.

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
    """One object a line.

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
    """One array whose items come piece by piece.

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
