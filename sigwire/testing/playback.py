"""Sending a streamed answer: events through the gate and into packets, until the stream ends in one of four ways.

    events ─▶ gate ─▶ keep-alive ─▶ framing ─▶ packets ─▶ ByteSink (the connection)

The server provides the ``ByteSink``; a test sees the ``Progress`` during and after the stream.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.effects.waiting import wait_for
from sigwire.testing.answers import Streamed
from sigwire.testing.framing import Framing, SSEFraming

__all__ = ["ByteSink", "ClientDisconnected", "Ended", "Progress", "StreamPlayback"]

Ended: TypeAlias = Literal["complete", "broken off", "client left", "server stopped"]


class ClientDisconnected(Exception):
    """The client or the server closed the connection."""

    def __init__(self, why: Ended) -> None:
        self.why: Ended = why
        super().__init__(why)


class ByteSink(Protocol):
    """A connection for bytes. Both methods raise ``ClientDisconnected`` if it is closed."""

    def send(self, data: bytes) -> None: ...

    def check(self) -> None: ...


class Progress:
    """The progress of a streamed answer.

    ``sent`` of ``total`` events are sent, keep-alives and end markers excluded. ``ended`` is ``None`` while the stream runs.
    "complete" includes a stream that the script stopped cleanly. "client left": the client closed the connection, which is
    detected between two events and while an event waits at a gate.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.sent = 0
        self.ended: Ended | None = None
        self._finished = threading.Event()

    def wait(self, seconds: float = 5.0) -> Ended | None:
        """Wait for the end and return how it ended; ``None`` if the stream still runs after ``seconds``."""
        wait_for(self._finished.wait, seconds)
        return self.ended

    def finish(self, how: Ended) -> None:
        """Mark the stream as ended."""
        self.ended = how
        self._finished.set()

    def __repr__(self) -> str:
        return f"Progress({self.sent} of {self.total} events, {self.ended or 'running'})"


@dataclass(frozen=True, slots=True)
class StreamPlayback:
    """The events of one answer and how they are sent. ``fault``: the event of a scripted error.

    ``bare``: the script defines every byte; no end marker is added.
    """

    events: Sequence[JsonObject | str | bytes]
    framing: Framing
    how: Streamed
    fault: JsonObject | None = None
    bare: bool = False
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", Progress(len(self.events)))

    def play(self, sink: ByteSink) -> bool:
        """Send all events; return True if the body ends properly. Does not raise if the client disconnects."""
        try:
            ended = self._play(_Packets(sink, self.how.packets))
        except ClientDisconnected as error:
            self.progress.finish(error.why)
            return False
        self.progress.finish(ended)
        return ended == "complete"

    def _play(self, packets: _Packets) -> Ended:
        framing = self._framing()
        last = 0 if self.fault is not None and self.how.stop_after is None else self.how.stop_after
        for number, event in enumerate(self.events[:last]):
            if self.how.gate is not None:
                packets.flush()
                self.how.gate.enter(packets.sink.check)
            if self.how.ping_every and number % self.how.ping_every == 0:
                packets.add(framing.ping())
            self._send(_frame(event, framing, first=number == 0), packets)
        packets.add(self._ending(framing))
        packets.flush()
        return "broken off" if self._breaks else "complete"

    def _send(self, event: bytes, packets: _Packets) -> None:
        self.progress.sent += 1  # before sending: the client may read the event and check at once
        try:
            packets.add(event)
        except ClientDisconnected:
            self.progress.sent -= 1
            raise

    def _framing(self) -> Framing:
        if self.how.newline and isinstance(self.framing, SSEFraming):
            return replace(self.framing, newline=self.how.newline)
        return self.framing

    @property
    def _breaks(self) -> bool:
        return self.how.stop_after is not None and self.fault is None and not self.how.clean

    def _ending(self, framing: Framing) -> bytes:
        if self.fault is not None:
            return framing.frame(self.fault, first=self.progress.sent == 0) + framing.end(empty=False, failed=True)
        if self.bare or self.how.stop_after is not None:
            return b""
        return framing.end(empty=self.progress.sent == 0)


def _frame(event: JsonObject | str | bytes, framing: Framing, *, first: bool) -> bytes:
    if isinstance(event, str):
        return event.encode()
    return event if isinstance(event, bytes) else framing.frame(event, first=first)


class _Packets:
    def __init__(self, sink: ByteSink, cuts: int | Sequence[int] | None) -> None:
        self.sink = sink
        self._buffer = b""
        self._start = 0
        self._cuts = cuts

    def add(self, data: bytes) -> None:
        self._buffer += data
        for position in [*self._cuts_in_buffer()]:
            head, self._buffer = self._buffer[: position - self._start], self._buffer[position - self._start :]
            self._start = position
            self.sink.send(head)

    def flush(self) -> None:
        if self._buffer:
            self._start += len(self._buffer)
            data, self._buffer = self._buffer, b""
            self.sink.send(data)

    def _cuts_in_buffer(self) -> Iterator[int]:
        end = self._start + len(self._buffer)
        if self._cuts is None:
            yield from [end] if self._buffer else []
        elif isinstance(self._cuts, int):
            yield from range(self._start + self._cuts, end + 1, self._cuts)
        else:
            yield from (position for position in sorted(set(self._cuts)) if self._start < position <= end)
