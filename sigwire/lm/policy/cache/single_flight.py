"""Equal calls at once make one exchange: the first leads, the others wait for its answer.

A follower gets the leader's answer, or a copy of its error. If the leader is cancelled, left or interrupted, if its own
deadline passes, or if it fails after an emitted event, the oldest follower leads, with its own deadline. Shared by all threads
and event loops of a process; a forked child begins empty.

A follower never waits for itself: it asks alone if the leader runs on an event loop that this call blocks, if both are in one
thread or task, or if the leader is a stream whose reader has not come back for a while.
"""

from __future__ import annotations

import copy
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sigwire.core.response import Attempt, Response, Usage
from sigwire.effects.loops import EventLoop, is_blocked, running_loop
from sigwire.errors import LMError, LMTimeoutError
from sigwire.lm.policy.cache.answers import as_hit
from sigwire.lm.policy.guard import Guard
from sigwire.lm.policy.waiting import Wait, claim

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sigwire.effects.steps import Steps
    from sigwire.lm.policy.call import Call, Exchange

__all__ = ["SingleFlight"]

_PATIENCE = 5.0  # seconds in which the reader of a leading stream must take an event


class _FlightFailure(NamedTuple):
    error: LMError


_Outcome: TypeAlias = Response | _FlightFailure | Literal["lead", "alone", "again"]
"""The end of a wait: the leader's result, or the next step of the follower."""
_Future: TypeAlias = "Future[_Outcome]"


class _Flight:
    """The leader of equal calls, and the futures of its followers, oldest first."""

    __slots__ = ("call", "followers", "loop", "task", "thread")

    def __init__(self, call: Call) -> None:
        self.followers: deque[_Future] = deque()
        self.lead_by(call)

    def lead_by(self, call: Call) -> None:
        self.call, self.thread, self.loop = call, threading.get_ident(), running_loop()
        self.task = _current_task(self.loop)


class SingleFlight:
    """The flights of a process, by key."""

    def __init__(self) -> None:
        self._guard = Guard()
        self._flights: dict[bytes, _Flight] = {}
        self.joined = 0

    def fly(self, key: bytes, call: Call, ask: Exchange[Response]) -> Steps[Response]:
        """Answer by ``ask``, or by the answer of an equal call that is under way."""
        while True:
            flight, future = self._guard.use(self._enter, key, call)
            if future is None:
                return (yield from self._lead(key, flight, ask))
            began = time.monotonic()
            outcome = yield from self._follow(key, flight, future, call)
            if outcome == "lead":
                flight.lead_by(call)
                return (yield from self._lead(key, flight, ask))
            if outcome == "alone":
                return (yield from ask())
            if outcome != "again":
                return self._joined(call, outcome, began)

    def _enter(self, key: bytes, call: Call) -> tuple[_Flight, _Future | None]:
        """Return the flight of a key, and the future of a new follower; ``None`` for its leader."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(call)
            return flight, None
        from concurrent.futures import Future  # loads logging: not before a call waits

        future: _Future = Future()
        flight.followers.append(future)
        return flight, future

    # --- the leader

    def _lead(self, key: bytes, flight: _Flight, ask: Exchange[Response]) -> Steps[Response]:
        call = flight.call
        try:
            response = yield from ask()
        except LMError as error:
            if call.report.emitted or (isinstance(error, LMTimeoutError) and not call.has_time_for(0.0)):
                self._guard.release(self._hand_over, key, flight)
            else:
                self._guard.release(self._land, key, flight, _FlightFailure(error))
            raise
        except BaseException:
            self._guard.release(self._hand_over, key, flight)
            raise
        self._guard.release(self._land, key, flight, response)
        return response

    def _land(self, key: bytes, flight: _Flight, outcome: _Outcome) -> None:
        self._close(key, flight)
        while flight.followers:
            _resolve(flight.followers.popleft(), outcome)

    def _hand_over(self, key: bytes, flight: _Flight) -> None:
        while flight.followers:
            if _resolve(flight.followers.popleft(), "lead"):
                return
        self._close(key, flight)

    def _withdraw(self, key: bytes, flight: _Flight, future: _Future) -> None:
        if not future.cancel() and future.result(0) == "lead":  # resolved at the same moment
            self._hand_over(key, flight)

    def _close(self, key: bytes, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    # --- followers

    def _follow(self, key: bytes, flight: _Flight, future: _Future, call: Call) -> Steps[_Outcome]:
        emitted = flight.call.report.emitted
        now = time.monotonic()
        call.start_timeout(now)
        own, limit = call.deadline, now + _PATIENCE if flight.call.streamed else None
        is_own = limit is None or (own is not None and own <= limit)
        try:
            outcome: _Outcome = yield _Follow(flight, Wait(future, own if is_own else limit))
        except LMTimeoutError:
            if is_own:
                raise
            return "alone" if 0 < emitted == flight.call.report.emitted else "again"
        except BaseException as error:
            if isinstance(error, TimeoutError) and future.done() and not future.cancelled():
                return future.result(0)  # resolved with the deadline
            self._guard.release(self._withdraw, key, flight, future)
            raise
        return outcome

    def _count_joined(self) -> None:
        self.joined += 1

    def _joined(self, call: Call, outcome: Response | _FlightFailure, began: float) -> Response:
        """Return the leader's answer, or raise its error, with the wait in the log of the follower."""
        self._guard.use(self._count_joined)
        error = outcome.error if isinstance(outcome, _FlightFailure) else None
        call.report.log.append(
            Attempt(
                "joined",
                call.target.model,
                Usage(),
                error.code if error else None,
                at=began - call.started,
                seconds=time.monotonic() - began,
            )
        )
        if isinstance(outcome, Response):
            return as_hit(outcome).with_attempts(call.report.log)
        raised = copy.copy(outcome.error)
        raised.attempts = tuple(call.report.log)
        raise raised from outcome.error.__cause__


@dataclass(frozen=True, slots=True)
class _Follow:
    """Effect: wait for the leader, unless the leader waits for this call: the value is "alone" then."""

    flight: _Flight
    wait: Wait[_Outcome]

    def run(self) -> _Outcome:
        flight = self.flight
        mine = flight.thread == threading.get_ident() if flight.loop is None else flight.loop is running_loop()
        return self._alone() if mine or self._is_blocked() else self.wait.run()

    async def arun(self) -> _Outcome:
        task = self.flight.task
        mine = task is not None and task == _current_task(running_loop())
        return self._alone() if mine or self._is_blocked() else await self.wait.arun()

    def _is_blocked(self) -> bool:
        return self.flight.loop is not None and is_blocked(self.flight.loop)

    def _alone(self) -> _Outcome:
        # If it was resolved already, the value counts.
        return "alone" if self.wait.future.cancel() else self.wait.future.result(0)


def _resolve(future: _Future, outcome: _Outcome) -> bool:
    """Give a follower its outcome. Return False if it no longer waits."""
    if not claim(future):
        return False
    future.set_result(outcome)
    return True


def _current_task(loop: EventLoop | None) -> object:
    """Return a weak reference to the running task: a flight must not keep the task of a closed event loop alive."""
    if loop is None:
        return None
    import asyncio

    task = asyncio.current_task(loop)
    return None if task is None else weakref.ref(task)
