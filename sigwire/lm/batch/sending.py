"""The calls of one batch: a request with its access to the provider, and the failures of a call.

A generator of a ``BatchWire`` yields calls; ``perform`` sends them, blocking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

from sigwire.errors import LMError, LMUnexpectedError
from sigwire.lm.codecs.batches.shared import BatchCall, BatchCalls, BatchLine, BatchWire
from sigwire.lm.http.messages import HttpReply

__all__ = [
    "PAID",
    "REPEATED",
    "AskedLine",
    "BatchGroup",
    "BatchNotSent",
    "BatchRefused",
    "BatchUnreadable",
    "LineFuture",
    "ParkedLine",
    "perform",
]

T = TypeVar("T")
PAID, REPEATED = {"sigwire-batch": "paid"}, {"sigwire-batch": "repeated"}
"""Headers of a reply that a batch gave: its first delivery, and a later one, which costs nothing."""

LineFuture: TypeAlias = "Future[HttpReply | None]"
"""The reply of a line; ``None``: send it alone."""


class BatchGroup(NamedTuple):
    """The common part of the lines of one batch. ``base``: the base URL, without secrets."""

    provider: str
    base: str
    path: str
    model: str
    headers: tuple[tuple[str, str], ...] = ()


class AskedLine(NamedTuple):
    """A line, its group, the wire of its batch, and the function that sends a call with the key of the moment."""

    line: BatchLine
    group: BatchGroup
    wire: BatchWire
    send: Callable[[Mapping[str, str], BatchCall], HttpReply]


@dataclass(slots=True)
class ParkedLine:
    """A line that callers wait for, since ``since``. ``batch``: the number of the batch that it is in.

    ``sent``: the batches that it was in, without an answer; ``doubts``: those of them whose creation had no reply.
    """

    asked: AskedLine
    since: float
    futures: list[LineFuture] = field(default_factory=list["LineFuture"])
    batch: int | None = None
    sent: int = 0
    doubts: int = 0

    @property
    def is_awaited(self) -> bool:
        """Whether a caller still waits."""
        return any(not future.done() for future in self.futures)

    def deliver(self, reply: HttpReply | None) -> None:
        """Give the reply to the callers; those after the first one get it as repeated."""
        for future in self.futures:
            if future.set_running_or_notify_cancel():
                future.set_result(reply)
                reply = reply if reply is None or not reply.headers else HttpReply(reply.status, REPEATED, reply.body)

    def fail(self, error: Exception) -> None:
        """Raise an error in the callers."""
        for future in self.futures:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)


class BatchUnreadable(LMUnexpectedError):
    """A reply of the batch API has an unknown form. It took effect perhaps, and may be readable the next time."""

    retryable = True


class BatchNotSent(Exception):
    """The access to the provider failed before a request was sent, for the reason ``__cause__``: a key function, an address."""

    @property
    def reason(self) -> Exception:
        assert isinstance(self.__cause__, Exception), "raised from an exception"
        return self.__cause__


class BatchRefused(Exception):
    """The provider answered a call with an error status."""

    def __init__(self, reply: HttpReply) -> None:
        self.reply = reply
        super().__init__(f"status {reply.status}")


def _send(asked: AskedLine, call: BatchCall) -> HttpReply:
    try:
        return asked.send(dict(asked.group.headers), call)
    except LMError:
        raise
    except Exception as error:  # of the user's key function, or of the options: not that of the lines of other accounts
        raise BatchNotSent from error


def perform(calls: BatchCalls[T], asked: AskedLine) -> T:
    """Send the calls and return their result. Raises ``BatchRefused``, ``BatchNotSent``, or an ``LMError`` without a usable
    reply."""
    try:
        call = next(calls)
        while True:
            reply = _send(asked, call)
            if not 200 <= reply.status < 300:
                raise BatchRefused(reply)
            call = calls.send(reply.body)
    except StopIteration as stop:
        value: T = stop.value
        return value
    except ValueError as error:
        raise BatchUnreadable(
            f"A reply of the batch API cannot be read (batch of {asked.group.provider}): {error}."
        ) from error
