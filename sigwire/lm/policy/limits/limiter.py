"""``Limiter``: the layer that lets exchanges go at the rate and in the number that a provider takes.

One limiter for each target and ``Limit``, shared by all threads, tasks and event loops of the process. Processes do not
share it; a forked child starts with empty ones. A call waits on the way in: for a slot, the pace and the buckets. The way out
never waits, also not for the lock (``Guard``): it works in ``finally``, on cancellation and in a collected generator.

Three waits would never end, and do not start (``_Queued``, ``_lend``): of a blocking call on a thread whose event loop runs
a holder; of a stream's reader that calls the same model; of calls behind a stream that its reader has left.
"""

from __future__ import annotations

import math
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from sigwire.effects.emitting import Emit
from sigwire.effects.loops import blocked_threads
from sigwire.effects.steps import Steps
from sigwire.errors import LMError, LMRateLimitError, LMTimeoutError, LMTransportError
from sigwire.lm.policy.guard import Guard
from sigwire.lm.policy.limits.buckets import LONGEST_WAIT, Buckets
from sigwire.lm.policy.limits.limit import Limit, LimitState
from sigwire.lm.policy.limits.pace import Pace, Slots
from sigwire.lm.policy.limits.queue import CallQueue, Ticket
from sigwire.lm.policy.waiting import claim

if TYPE_CHECKING:
    from sigwire.lm.policy.call import Call, Exchange

__all__ = ["Limiter"]

T = TypeVar("T")


class Limiter:
    """The queue, the controls and the holders of one target.

    ``idle``: seconds after which the slot of a stream whose reader does not come back is lent. ``clock`` is the time, and
    ``wake_at`` the alarm.

    >>> limiter = Limiter(Limit(concurrency=4))
    >>> limiter.state("acme", "acme/m").concurrency
    4
    """

    def __init__(
        self,
        limit: Limit | None = None,
        *,
        start: int = 32,
        idle: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        wake_at: Callable[[Callable[[], object], float], object] | None = None,
    ) -> None:
        self._limit, self._start, self._idle = limit or Limit(), start, idle
        self._clock, self._wake_at = clock, wake_at
        self.reset()

    def reset(self) -> None:
        """Forget calls and what was learned. A forked child calls it: the lock may be held by a thread of the parent."""
        limit, now = self._limit, self._clock()
        most = limit.concurrency or (512 if limit.adaptive else math.inf)
        self._guard = Guard()
        self._slots = Slots(self._start if limit.adaptive else most, most, adaptive=limit.adaptive)
        self._pace, self._queue = Pace(), CallQueue()
        self._holders: set[Ticket] = set()
        self._in_flight = 0  # slots that are counted: without those of lent streams
        self._buckets = Buckets(limit, now)
        self._is_paced = bool(self._buckets)  # whether anything but the slots may hold a call
        self._mean_seconds = 0.0

    def __deepcopy__(self, memo: object) -> Limiter:
        return self  # copies of a model share it

    # --- the layer

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]:
        """Perform an exchange in its turn. Raises ``LMTimeoutError`` at once if the turn is after the deadline."""
        ticket = Ticket(call.started, threading.get_ident())
        if call.streamed:
            ticket.task = _reference(_current_task())
        try:
            if not self._guard.use(self._enter, call, ticket):
                yield from self._wait(call, ticket)
        except BaseException:
            self._guard.release(self._withdraw, ticket)
            raise
        try:
            result = yield from _watched(inner(), ticket, self._clock) if call.streamed else inner()
        except BaseException as error:
            self._guard.release(self._end, ticket, error, None, call.report.headers, self._clock())
            raise
        self._guard.release(self._end, ticket, None, result, call.report.headers, self._clock())
        return result

    def _enter(self, call: Call, ticket: Ticket) -> bool:
        """Take a slot and return True, or join the queue."""
        now = self._clock()
        if not self._is_paced and self._in_flight < self._slots.limit and not self._queue.waiting:
            self._take(ticket, now)
            return True
        if self._is_paced:
            ticket.tokens = self._buckets.estimate(call.request)
        if not self._queue and self._in_flight < self._slots.limit and self._seconds(ticket, now) <= 0:
            self._take(ticket, now)
            return True
        self._join(call, ticket, now)
        self._serve()
        return ticket.counted

    def _take(self, ticket: Ticket, now: float) -> None:
        ticket.sent = now
        self._holders.add(ticket)
        ticket.counted = True
        self._in_flight += 1
        self._pace.send(now)
        if self._is_paced:
            self._buckets.take(ticket, now)

    def _seconds(self, ticket: Ticket, now: float) -> float:
        """Return the seconds until pace and buckets let a ticket go."""
        seconds = self._pace.wait(now) if self._limit.adaptive else 0.0
        return max(seconds, self._buckets.wait(ticket, now))

    # --- waiting

    def _join(self, call: Call, ticket: Ticket, now: float) -> None:
        from concurrent.futures import Future

        from sigwire.lm.policy.limits.runs import current_run

        again, before = call.report.purpose != "ask", len(self._queue)
        self._check_time(call, 0 if again else before)
        ticket.queued_at, ticket.future = now, Future()
        run = None if call.streamed else current_run.get()
        tokens = sum(ticket.tokens or self._buckets.estimate(call.request)) if run is not None else 0.0
        self._queue.push(ticket, run, tokens, again=again)

    def _check_time(self, call: Call, before: int) -> None:
        """Raise ``LMTimeoutError`` if the deadline of a call is before its turn at the present rate."""
        rate = self._rate()
        if rate == math.inf or call.has_time_for(before / rate):
            return
        call.report.why = why = f"{before} before it at {rate:.3g}/s"
        error = LMTimeoutError(
            f"No time left: {why} (waiting to send). Raise the timeout, or send less at once: limits() shows the rate."
        )
        error.retryable = False
        raise error

    def _rate(self) -> float:
        return min(self._pace.rate, self._buckets.rate)

    def _wait(self, call: Call, ticket: Ticket) -> Steps[None]:
        began = time.monotonic()
        try:
            yield _Queued(self, call, ticket)
        finally:
            queued = max(0.0, self._clock() - ticket.queued_at)
            call.report.queued += queued
            if self._clock is not time.monotonic:
                call.advance(queued - (time.monotonic() - began))

    def _withdraw(self, ticket: Ticket) -> None:
        """Take a ticket out of the queue, or give its slot back if its turn came at the same moment."""
        self._queue.remove(ticket)
        self._release(ticket)
        self._serve()

    def overtake(self, call: Call, ticket: Ticket, threads: set[int], task: object) -> bool:
        """Return True if a call must not wait: it has its turn, or one of ``threads`` or the task would wait for itself.

        The call then goes over the limit by one.
        """
        return self._guard.use(self._overtake, call, ticket, threads, _reference(task))

    def _overtake(self, call: Call, ticket: Ticket, threads: set[int], task: object) -> bool:
        if not ticket.is_queued:
            return True
        others = (*self._holders, *self._queue.waiting)
        if not any(
            other is not ticket and (other.thread in threads or (task is not None and other.task == task))
            for other in others
        ):
            return False
        self._queue.remove(ticket)
        self._take(ticket, self._clock())
        call.report.why = "over the limit: its thread or task holds a slot"
        return True

    # --- serving

    def serve(self) -> None:
        """Give the next calls their turn."""
        self._guard.release(self._serve)

    def _serve(self) -> None:
        """Give the next calls their turn; set the alarm for those that wait for a time."""
        now = self._clock()
        due = math.inf
        while (ticket := self._queue.peek(now)) is not None:
            if self._in_flight >= self._slots.limit and not self._lend(now):
                due = min((t.reads_since for t in self._holders if t.counted and t.reads_since), default=math.inf)
                due += self._idle
                break
            if (seconds := self._seconds(ticket, now)) > 0:
                due = now + seconds
                break
            self._queue.pop(ticket)
            if ticket.future is not None and claim(ticket.future):
                self._take(ticket, now)
                ticket.future.set_result(None)
        if due < math.inf:
            self._alarm(due)

    def _alarm(self, due: float) -> None:
        if self._wake_at is None:
            from sigwire.lm.policy.limits.alarm import wake_at

            self._wake_at = wake_at
        self._wake_at(self.serve, due)

    def _lend(self, now: float) -> bool:
        """Take the slots of streams whose readers do not come back. Return True if a slot is free."""
        for ticket in self._holders:
            if ticket.counted and ticket.reads_since is not None and now >= ticket.reads_since + self._idle:
                ticket.counted = False
                self._in_flight -= 1
        return self._in_flight < self._slots.limit

    # --- after the exchange

    def _end(
        self, ticket: Ticket, error: BaseException | None, result: object, headers: Mapping[str, str] | None, now: float
    ) -> None:
        """Give the slot back, and learn from the outcome."""
        if error is None:
            self._slots.succeed(ticket.sent, now, self._in_flight)
            self._mean_seconds += (now - ticket.sent - self._mean_seconds) * 0.1
            if ticket.tokens is not None:
                self._buckets.correct(ticket, result, now)
        if self._limit.adaptive:
            if error is not None or self._is_paced:
                self._learn(ticket, error, now)
            if headers and self._buckets.mirror(headers, ticket, now):
                self._is_paced = True
        self._release(ticket)
        if self._queue.waiting:
            self._serve()

    def _release(self, ticket: Ticket) -> None:
        self._in_flight -= ticket.counted
        ticket.counted = False
        self._holders.discard(ticket)

    def _learn(self, ticket: Ticket, error: BaseException | None, now: float) -> None:
        """Move pace and slots by an error. The success of a probe opens the pace."""
        if isinstance(error, LMRateLimitError):
            if (error.retry_after or 0.0) > LONGEST_WAIT:  # of a day: each call is better refused than held
                return
            self._pace.refuse(ticket.sent, now, error.retry_after)
            self._is_paced = True
            return
        self._pace.accept(ticket.sent)
        if isinstance(error, LMError) and _is_overload(error):
            self._slots.overload(ticket.sent, now)

    # --- for people and for evaluation

    def suggested(self) -> int:
        """Return how many calls at once are of use: the slots, or as many as the rate starts in the time of an answer."""
        return self._guard.use(self._suggested)

    def _suggested(self) -> int:
        most = min(self._slots.limit, 512.0)
        rate = self._rate()
        return max(1, int(most if rate == math.inf else min(most, rate * self._mean_seconds * 1.25 + 1)))

    def state(self, provider: str, model: str) -> LimitState:
        """Return the present state."""
        return self._guard.use(self._state, provider, model)

    def _state(self, provider: str, model: str) -> LimitState:
        now, rate = self._clock(), self._rate()
        return LimitState(
            provider,
            model,
            int(min(self._slots.limit, 1e9)),
            len(self._holders),
            len(self._queue),
            None if rate == math.inf else rate,
            *self._buckets.remaining(now),
        )


def _is_overload(error: LMError) -> bool:
    is_refused = isinstance(error, LMTransportError) and isinstance(error.__cause__, ConnectionRefusedError)
    return error.overload or error.status == 503 or is_refused or isinstance(error, LMTimeoutError)


def _current_task() -> object:
    """Return the running task, if any; ``asyncio`` is not imported for it."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    loop = asyncio._get_running_loop()
    return None if loop is None else asyncio.current_task(loop)


def _reference(task: object) -> object:
    """Return a weak reference: a holder must not keep a task of a closed event loop, whose slot its collection frees."""
    return None if task is None else weakref.ref(task)


def _watched(steps: Steps[T], ticket: Ticket, clock: Callable[[], float]) -> Steps[T]:
    """Perform the steps of a stream; ``ticket`` has the time since which its reader has events, and the reader's thread."""
    try:
        effect = steps.send(None)
        while True:
            if type(effect) is Emit:
                ticket.thread, ticket.reads_since = threading.get_ident(), clock()
            try:
                value = yield effect
            except BaseException as error:
                ticket.reads_since = None
                effect = steps.throw(error)
            else:
                ticket.reads_since = None
                effect = steps.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result


class _Queued:
    """Effect: wait for the turn of a ticket, unless the wait would never end."""

    __slots__ = ("_call", "_limiter", "_ticket")

    def __init__(self, limiter: Limiter, call: Call, ticket: Ticket) -> None:
        self._limiter, self._call, self._ticket = limiter, call, ticket

    def run(self) -> None:
        threads = {threading.get_ident(), *blocked_threads()}
        if not self._limiter.overtake(self._call, self._ticket, threads, None):
            self._turn().run()

    async def arun(self) -> None:
        if not self._limiter.overtake(self._call, self._ticket, blocked_threads(), _current_task()):
            await self._turn().arun()

    def _turn(self) -> Any:
        from sigwire.lm.policy.waiting import Wait

        return Wait(self._ticket.future, self._call.deadline)  # type: ignore[arg-type]
