"""The call: one request on its way to a model, and the layers around its exchanges.

A backend calls ``through`` for each exchange and knows no policy by name. Layers need no second form for streams:
events that an exchange emits pass through ``yield from``, and ``call.report`` counts them. No I/O.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from sigwire.core.request import Request
from sigwire.core.response import Attempt, Response, Usage
from sigwire.effects.network import check_network
from sigwire.effects.steps import Steps
from sigwire.errors import LMError, LMTimeoutError
from sigwire.lm.policy.deadlines import current_deadline, shorter
from sigwire.lm.request_ids import request_id_of

__all__ = ["NO_HASTE", "Call", "Exchange", "ExchangeReport", "Haste", "Layer", "TargetKey", "answer_once", "through"]

T = TypeVar("T")
_NO_USAGE = Usage()
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


class Haste(NamedTuple):
    """Limits of a call behind which another model can be asked: seconds of waits between retries, and a deadline of
    ``time.monotonic()``. ``None`` is no limit.
    """

    patience: float | None = None
    deadline: float | None = None


NO_HASTE = Haste()


class Layer(Protocol):
    """A policy around the exchanges of a call: performs ``inner``, and may wait, repeat it or refuse before it."""

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]: ...


class ExchangeReport:
    """The exchanges of a call, as layers and the backend report them.

    ``log`` has every exchange in order. Until ``record`` writes the next entry, ``purpose``, ``queued``, ``waited``, ``cost``
    and ``why`` are its values; a "redial" needs a new connection. ``began``: when the exchange began; ``first``: when its first
    event with content was emitted; ``headers``: those of its reply, if it has any. ``emitted``: the number of such events of
    all exchanges; a layer repeats nothing once an exchange has added to it. ``cache``: the mark of the answer of an exchange.
    """

    __slots__ = (
        "_model",
        "_started",
        "began",
        "cache",
        "cost",
        "emitted",
        "first",
        "headers",
        "log",
        "purpose",
        "queued",
        "waited",
        "why",
    )

    def __init__(self, model: str, started: float) -> None:
        self._model, self._started = model, started
        self.log: list[Attempt] = []
        self.purpose: Literal["ask", "retry", "redial"] = "ask"
        self.queued = self.waited = 0.0
        self.cost: float | None = None
        self.why: str | None = None
        self.began: float | None = None
        self.first: float | None = None
        self.headers: Mapping[str, str] | None = None
        self.emitted = 0
        self.cache: Literal["miss", "off"] = "off"

    def count_emitted(self, events: int) -> None:
        """Count emitted events with content, and note when the first one of the exchange was emitted."""
        self.emitted += events
        if events and self.first is None:
            self.first = time.monotonic()

    def record(self, usage: Usage = _NO_USAGE, error: LMError | None = None) -> None:
        """Write the exchange that ended into the log; one that never began is a "skip"."""
        now = time.monotonic()
        began = self.began
        self.log.append(
            Attempt(
                "skip" if began is None else self.purpose,
                self._model,
                usage,
                error.code if error else None,
                error.status if error else None,
                (error.request_id if error else None) or (None if began is None else request_id_of(self.headers)),
                (began or now) - self._started,
                0.0 if began is None else now - began,
                self.queued,
                self.waited,
                self.cost,
                self.why,
                None if began is None or self.first is None else self.first - began,
            )
        )
        self.began = self.cost = self.why = None
        self.queued = self.waited = 0.0


class Call:
    """One request on its way; made for one answer and never shared.

    ``streamed``: whether the answer's events are emitted as they arrive. ``layers``: those around each exchange, which fill the
    ``report``. ``deadline`` (``time.monotonic()``) bounds all exchanges and waits: that of the context, and ``timeout`` seconds
    from the begin of the first exchange, so that a wait in the queue before it is not counted. ``started`` is the begin of the
    call and its rank in every queue: a retry keeps its place. ``patience``: the most seconds of waits between retries, if
    another model can be asked instead.
    """

    __slots__ = (
        "_timeout",
        "_whole",
        "deadline",
        "layers",
        "patience",
        "report",
        "request",
        "started",
        "streamed",
        "target",
    )

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
        self.started = time.monotonic()
        self.deadline, self._timeout = current_deadline(), timeout
        self.patience: float | None = None
        self._whole: Call | None = None
        self.report = ExchangeReport(target.model, self.started)

    def hurry(self, haste: Haste) -> None:
        """Bound the call."""
        self.patience, self.deadline = haste.patience, shorter(self.deadline, haste.deadline)

    def part(self) -> Call:
        """Return a call for one of several answers to the request, with a report of its own."""
        call = Call(self.request, self.target, streamed=self.streamed, layers=self.layers)
        call.started, call.deadline, call._timeout = self.started, self.deadline, self._timeout
        call.patience, call._whole = self.patience, self
        call.report = ExchangeReport(self.target.model, self.started)
        return call

    def without_stream(self) -> Call:
        """Return the call without a stream; both write to one log."""
        call = self.part()
        call.streamed, call.report.log = False, self.report.log
        return call

    def begin(self, *, in_process: bool = False) -> None:
        """Begin an exchange. The backend calls it when the exchange has passed all layers; a replay refuses it (``network``).

        ``in_process``: whether nothing is sent.
        """
        if not in_process:
            check_network("model", self.target.model)
        report, now = self.report, time.monotonic()
        report.began, report.first, report.headers = now, None, None
        if self._timeout is not None:
            self.start_timeout(now)

    def start_timeout(self, now: float) -> None:
        """Start the timeout, that of the whole call if this is a part of it."""
        if self._timeout is not None:
            if self._whole is not None:
                self._whole.start_timeout(now)
                self.deadline = shorter(self.deadline, self._whole.deadline)
            elif self.deadline is None:  # most calls
                self.deadline = now + self._timeout
            else:
                self.deadline = shorter(self.deadline, now + self._timeout)
            self._timeout = None

    def remaining(self) -> float | None:
        """Return the seconds until the deadline; ``None`` for no deadline. Raises ``LMTimeoutError`` if it has passed.

        That error is final, and the exchange that it prevents is none in the log.
        """
        if self.deadline is None:
            return None
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            self.report.began = None
            error = LMTimeoutError(
                "The deadline of the call has passed (sending the request). Raise timeout, or that of deadline()."
            )
            error.retryable = False
            raise error
        return seconds

    def advance(self, seconds: float) -> None:
        """Count seconds that passed on the clock of a policy and not on the machine's; fewer than 0 count as 0."""
        if self.deadline is not None:
            self.deadline -= max(seconds, 0.0)

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
    """Answer a call with one exchange."""
    response = yield from through(call.layers, call, exchange)
    call.report.record(response.usage)
    return response.with_attempts(call.report.log)
