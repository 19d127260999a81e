"""The call: one request on its way to a model, and the layers around its exchanges.

A backend calls ``through`` for each exchange and knows no policy by name. Layers need no second form for streams:
events that an exchange emits pass through ``yield from``, and ``Call.emitted`` counts them. No I/O.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from sigwire.core.request import Request
from sigwire.core.response import Attempt, Response
from sigwire.effects.steps import Steps
from sigwire.errors import LMTimeoutError

__all__ = ["Call", "Exchange", "Layer", "TargetKey", "answer_once", "through"]

T = TypeVar("T")
Exchange: TypeAlias = Callable[[], Steps[T]]
"""Makes new steps each time it is called: a generator runs once."""


class TargetKey(NamedTuple):
    """The key under which layers keep what is shared between calls.

    ``model`` is the caller's name of the model. ``origin`` is the ``base_url`` given in code; ``None`` if the provider
    table or the environment decides. ``account`` is a fingerprint of the key given in code, valid in this process.
    """

    provider: str
    origin: str | None
    account: int | None
    model: str


class Layer(Protocol):
    """A policy around the exchanges of a call: performs ``inner``, and may wait, repeat it or refuse before it."""

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]: ...


class Call:
    """One request on its way; made for one answer and never shared.

    ``streamed``: whether the answer's events are emitted as they arrive. ``timeout``: seconds from now for all exchanges and
    waits, kept as ``deadline`` (``time.monotonic()``). ``log``: every exchange in order, failed ones included. ``purpose`` of
    the current exchange; a "redial" needs a new connection. ``emitted``: the number of events with content that were emitted;
    a layer repeats nothing once an exchange has added to it.
    """

    __slots__ = ("deadline", "emitted", "layers", "log", "purpose", "request", "streamed", "target")

    def __init__(
        self,
        request: Request,
        target: TargetKey,
        *,
        streamed: bool = False,
        timeout: float | None = None,
        layers: Sequence[Layer] = (),
    ) -> None:
        self.request, self.target, self.streamed, self.layers = request, target, streamed, layers
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.purpose: Literal["ask", "retry", "redial"] = "ask"
        self.log: list[Attempt] = []
        self.emitted = 0

    def part(self) -> Call:
        """Return a call for one of several answers to the request, with a log of its own."""
        call = Call(self.request, self.target, streamed=self.streamed, layers=self.layers)
        call.deadline = self.deadline
        return call

    def without_stream(self) -> Call:
        """Return the call without a stream; both write to one log."""
        call = self.part()
        call.streamed, call.log = False, self.log
        return call

    def remaining(self) -> float | None:
        """Return the seconds until the deadline; ``None`` for no deadline. Raises ``LMTimeoutError`` if it has passed."""
        if self.deadline is None:
            return None
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise LMTimeoutError("The timeout of the call has passed (sending the request). Raise timeout.")
        return seconds

    def has_time_for(self, seconds: float) -> bool:
        """Return True if the deadline does not pass within ``seconds``."""
        return self.deadline is None or time.monotonic() + seconds < self.deadline


def through(layers: Sequence[Layer], call: Call, exchange: Exchange[T]) -> Steps[T]:
    """Return the steps of an exchange inside ``layers``, the first outermost; without layers those of the exchange itself.

    >>> from sigwire.effects.steps import run
    >>> class Shout:
    ...     def around(self, call, inner):
    ...         return (yield from inner()).upper()
    >>> def answer():
    ...     return "done"
    ...     yield
    >>> run(through([Shout()], Call(Request(), TargetKey("acme", None, None, "acme/m")), answer))
    'DONE'
    """
    for layer in layers[:0:-1]:
        exchange = partial(layer.around, call, exchange)
    return layers[0].around(call, exchange) if layers else exchange()


def answer_once(call: Call, exchange: Exchange[Response]) -> Steps[Response]:
    """Answer a call with one exchange. The attempts are on the response only if an exchange failed."""
    response = yield from through(call.layers, call, exchange)
    if not call.log:
        return response
    call.log.append(Attempt(call.purpose, call.target.model, response.usage))
    return response.with_attempts(call.log)
