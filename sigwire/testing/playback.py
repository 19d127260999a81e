"""Sending a streamed answer: event by event, through its gate, in its packets, until it ends in one of four ways.

    events ─▶ gate ─▶ keep-alive ─▶ framing ─▶ packets ─▶ Outlet (the connection)

``ByteSink`` is what the server gives; ``Progress`` is what a test sees of it all, while it happens and afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.testing.answers import Streamed
from sigwire.testing.framing import Framing, SSEFraming

__all__ = ["ByteSink", "ClientDisconnected", "Ended", "Progress", "StreamPlayback"]

Ended: TypeAlias = Literal["complete", "broken off", "client left", "server stopped"]


class ClientDisconnected(Exception):
    """Nobody takes the rest."""

    def __init__(self, why: Ended) -> None:
        self.why: Ended = why
        super().__init__(why)


class ByteSink(Protocol):
    """A connection that takes bytes. Both raise ``ClientDisconnected`` where there is nobody to take them."""

    def send(self, data: bytes) -> None: ...

    def look(self) -> None: ...


class Progress:
    """How far a streamed answer has come.

    ``sent`` events are out of ``total``, keep-alives and end markers not among them. ``ended`` says how it came to its end, and
    is ``None`` while it runs. "complete" is also what the script cut short cleanly; "client left": the client closed the
    connection, which is noticed between two events and while an event waits at a gate.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.sent = 0
        self.ended: Ended | None = None
        self._over = threading.Event()

    def wait(self, seconds: float = 5.0) -> Ended | None:
        """How it ended; waits for that. ``None`` where it still runs after the seconds."""
        self._over.wait(seconds)
        return self.ended

    def finish(self, how: Ended) -> None:
        """Nothing more will be sent."""
        self.ended = how
        self._over.set()

    def __repr__(self) -> str:
        return f"Progress({self.sent} of {self.total} events, {self.ended or 'running'})"


@dataclass(frozen=True, slots=True)
class StreamPlayback:
    """The events of one answer and how they are sent. ``fault`` is the error's event, where one is scripted.

    ``bare``: the script says everything, so that neither the wire's end marker nor an error is added.
    """

    events: Sequence[JsonObject | str | bytes]
    framing: Framing
    how: Streamed
    fault: JsonObject | None = None
    bare: bool = False
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", Progress(len(self.events)))

    def play(self, outlet: ByteSink) -> bool:
        """Send everything; whether the body is to be ended properly. Never raises for a client that left."""
        try:
            ended = self._play(_Packets(outlet, self.how.packets))
        except ClientDisconnected as over:
            self.progress.finish(over.why)
            return False
        self.progress.finish(ended)
        return ended == "complete"

    def _play(self, packets: _Packets) -> Ended:
        framing = self._framing()
        for number, event in enumerate(self.events[: self._last()]):
            if self.how.gate is not None:
                packets.flush()
                self.how.gate.enter(packets.outlet.look)
            if self.how.ping_every and number % self.how.ping_every == 0:
                packets.add(framing.ping())
            self._send(_framed(event, framing, first=number == 0), packets)
        packets.add(self._ending(framing))
        packets.flush()
        return "broken off" if self._breaks else "complete"

    def _send(self, event: bytes, packets: _Packets) -> None:
        self.progress.sent += 1  # beforehand: who reads the event may look here at once
        try:
            packets.add(event)
        except ClientDisconnected:
            self.progress.sent -= 1
            raise

    def _framing(self) -> Framing:
        if self.how.newline and isinstance(self.framing, SSEFraming):
            return replace(self.framing, newline=self.how.newline)
        return self.framing

    def _last(self) -> int | None:
        return 0 if self.fault is not None and self.how.stop_after is None else self.how.stop_after

    @property
    def _breaks(self) -> bool:
        return self.how.stop_after is not None and self.fault is None and not self.how.clean

    def _ending(self, framing: Framing) -> bytes:
        if self.fault is not None:
            return framing.frame(self.fault, first=self.progress.sent == 0) + framing.end(empty=False, failed=True)
        if self.bare or self.how.stop_after is not None:
            return b""
        return framing.end(empty=self.progress.sent == 0)


def _framed(event: JsonObject | str | bytes, framing: Framing, *, first: bool) -> bytes:
    if isinstance(event, str):
        return event.encode()
    return event if isinstance(event, bytes) else framing.frame(event, first=first)


class _Packets:
    """Cuts what is added at the places of the body that are asked for, and hands the pieces on."""

    def __init__(self, outlet: ByteSink, cuts: int | Sequence[int] | None) -> None:
        self.outlet = outlet
        self._held = b""
        self._start = 0
        self._cuts = cuts

    def add(self, data: bytes) -> None:
        """More of the body. What stands before a cut leaves; the rest is held."""
        self._held += data
        for place in [*self._places()]:
            head, self._held = self._held[: place - self._start], self._held[place - self._start :]
            self._start = place
            self.outlet.send(head)

    def flush(self) -> None:
        """Hand on what is held."""
        if self._held:
            self._start += len(self._held)
            held, self._held = self._held, b""
            self.outlet.send(held)

    def _places(self) -> Iterator[int]:
        end = self._start + len(self._held)
        if self._cuts is None:
            yield from [end] if self._held else []
        elif isinstance(self._cuts, int):
            yield from range(self._start + self._cuts, end + 1, self._cuts)
        else:
            yield from (place for place in sorted(set(self._cuts)) if self._start < place <= end)
