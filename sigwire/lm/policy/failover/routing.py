"""``Routing``: the settings and the memory of a router. ``_RoutedCall``: one call on its way through the targets.

    order ─▶ cannot take it? skip ─▶ circuit open? skip ─▶ ask ─▶ answer, next target, or error

A target is asked with the target's own encoding, options and layers. While others are left it retries once, and waits no longer
than ``patience``. Once an event with content is emitted, no other target is asked. The log has each target in order with the
reason. Written once, as steps; the clock of the circuits is an argument, and deadlines are of ``time.monotonic()``.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from sigwire.core.messages import Message
from sigwire.core.parts import TextPart
from sigwire.core.request import Request
from sigwire.core.response import Attempt, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.effects.emitting import Emit
from sigwire.effects.relaying import relayed
from sigwire.effects.steps import Steps
from sigwire.errors import (
    BudgetSpent,
    CallerError,
    ConfigurationError,
    LMContentFilteredError,
    LMError,
    ModelError,
    UnsupportedFeature,
    UnsupportedOption,
)
from sigwire.lm.policy.call import NO_HASTE, Haste
from sigwire.lm.policy.deadlines import current_deadline, shorter
from sigwire.lm.policy.failover.consequences import RAISE, Consequence, consequence_of
from sigwire.lm.policy.failover.filters import unfiltered
from sigwire.lm.policy.failover.health import Admission, Circuit, Health, circuit_of
from sigwire.lm.policy.failover.records import HealthTable, health_row
from sigwire.lm.policy.failover.targets import RouteTarget, asks_to_reason, misfit

if TYPE_CHECKING:
    from sigwire.core.events import ResponseEnd, StreamEvent

__all__ = ["OnFilter", "Routing", "check_on_filter"]

OnFilter: TypeAlias = Literal["raise", "next"]
_MOST_CONVERSATIONS = 4096


def check_on_filter(value: object, stage: str) -> None:
    """Raise ``ConfigurationError`` for a value that is no ``OnFilter``."""
    if value not in ("raise", "next"):
        raise ConfigurationError(f'on_filter is "raise" or "next", not {value!r:.80} ({stage}).')


class Routing:
    """The settings of a router, the health of the targets that only it knows, and its open conversations.

    ``patience``: the most seconds of waits between retries of a target while another one is left. ``total``: seconds of a whole
    call from its first exchange, ``None`` for the limits of each target. ``on_filter="next"``: a refused request, or an answer
    that the filter stopped, goes to the next target; the answer of the last one is returned.
    """

    def __init__(
        self,
        health: Health | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        patience: float = 2.0,
        on_filter: OnFilter = "raise",
        total: float | None = None,
    ) -> None:
        self.health, self.clock = health or Health(), clock
        self.patience, self.on_filter, self.total = patience, on_filter, total
        self._own: dict[int, Circuit] = {}
        self._conversations: OrderedDict[Hashable, int] = OrderedDict()

    def __deepcopy__(self, memo: object) -> Routing:
        return self  # copies of a model share its health

    def __reduce__(self) -> tuple[Callable[..., Routing], tuple[object, ...]]:
        return _unpickled, (self.health, self.clock, self.patience, self.on_filter, self.total)

    def steps(self, targets: Sequence[RouteTarget], request: Request, *, streamed: bool) -> Steps[Response]:
        """Answer a request by the first target that does."""
        for target in targets:
            if _holds(target, request):
                steps = target.ask(request, streamed, NO_HASTE)
                if self.on_filter == "raise":
                    return (yield from steps)
                with suppress(LMContentFilteredError):  # the next hit, or a target that is asked
                    return (yield from unfiltered(steps, target.lm.model))
        call = _RoutedCall(self, targets, request, streamed)
        try:
            return (yield from call.steps())
        finally:
            call.forget_failure()

    def circuit(self, targets: Sequence[RouteTarget], number: int) -> Circuit:
        """Return the circuit of a target."""
        key = targets[number].key
        if key is not None:
            return circuit_of(key, self.health, self.clock)
        return self._own.get(number) or self._own.setdefault(number, Circuit(self.health))

    def table(self, targets: Sequence[RouteTarget]) -> HealthTable:
        """Return the health of each target."""
        now = self.clock()
        return HealthTable(
            tuple(health_row(each.lm.model, self.circuit(targets, n), now) for n, each in enumerate(targets))
        )

    # --- conversations: those that the first target answers need no memory

    def order(self, targets: Sequence[RouteTarget], request: Request) -> list[int]:
        """Return the numbers of the targets in the order of a request; the one that answered its conversation is first."""
        numbers = list(range(len(targets)))
        place = _last_answer(request.messages) if self._conversations else None
        kept = None if place is None else self._conversations.get(place)
        if kept is not None and kept < len(numbers):
            numbers.remove(kept)
            numbers.insert(0, kept)
        return numbers

    def remember(self, request: Request, response: Response, number: int) -> None:
        """Keep which target answered, for the next request of the conversation."""
        if not request.messages or not (number or self._conversations):
            return
        for choice in response.choices:
            place = _place(request.messages[-1], choice.message())
            if number:
                self._conversations[place] = number
            else:
                self._conversations.pop(place, None)
        while len(self._conversations) > _MOST_CONVERSATIONS:
            self._conversations.popitem(last=False)


def _holds(target: RouteTarget, request: Request) -> bool:
    try:
        return target.holds(request)
    except CallerError:  # raised again if the target is asked
        return False


def _unpickled(
    health: Health, clock: Callable[[], float], patience: float, on_filter: OnFilter, total: float | None
) -> Routing:
    return Routing(health, clock, patience=patience, on_filter=on_filter, total=total)


def _last_answer(messages: Sequence[Message]) -> Hashable | None:
    found = [number for number, message in enumerate(messages) if message.role == "assistant"]
    return _place(messages[found[-1] - 1], messages[found[-1]]) if found and found[-1] else None


def _place(before: Message, answer: Message) -> Hashable:
    return hash((_outline(before), _outline(answer)))


def _outline(message: Message) -> Hashable:
    """Return what a caller keeps of a message: its texts, calls and results."""
    return (message.role, *[each for part in message.parts if (each := _outline_of_part(part))])


def _outline_of_part(part: object) -> str:
    if isinstance(part, TextPart | ToolResult):
        return part.text.strip()
    return f"{part.name}({part.arguments_text})" if isinstance(part, ToolCall) else ""


class _RoutedCall:
    """One call of a router."""

    def __init__(self, routing: Routing, targets: Sequence[RouteTarget], request: Request, streamed: bool) -> None:
        self._routing, self._targets, self._request, self._streamed = routing, [*targets], request, streamed
        self._numbers = routing.order(targets, request)
        self._circuits = [routing.circuit(targets, number) for number in range(len(targets))]
        self._misfits = [misfit(target, request) if len(targets) > 1 else None for target in targets]
        self._started, self._offset = time.monotonic(), 0.0
        self._deadline: float | None = None
        self._log: list[Attempt] = []
        self._asked: set[int] = set()
        self._failure: Exception | None = None
        self._emitted, self._usage = False, Usage()

    def steps(self) -> Steps[Response]:
        """Ask the targets in their order until one answers; at last an open one, so that no call ends without a try."""
        for place, number in enumerate(self._numbers):
            admission = self._admit(number)
            if admission is None:
                continue
            if not self._has_time():
                self._circuits[number].withdraw(admission)
                break
            others = self._numbers[place + 1 :]
            response = yield from self._ask(number, admission, hasty=any(map(self._may_ask, others)))
            if response is not None:
                return response
        last = self._soonest()
        if last is not None and self._has_time():
            response = yield from self._ask(last, "forced", hasty=False)
            if response is not None:
                return response
        assert self._failure is not None
        raise self._final_error(self._failure)

    def forget_failure(self) -> None:
        """Drop the failure: its traceback has frames that refer to this call, with the request."""
        self._failure = None

    # --- which target

    def _admit(self, number: int) -> Admission | None:
        """Admit the call to a target, or write a "skip" with the reason into the log."""
        now, circuit = self._routing.clock(), self._circuits[number]
        why = self._misfits[number]
        admission = None if why else circuit.enter(now)
        if admission is None:
            self._skip(number, why or circuit.refusal(now) or "probed by another call")
        return admission

    def _may_ask(self, number: int) -> bool:
        return self._misfits[number] is None and not self._circuits[number].wait(self._routing.clock())

    def _soonest(self) -> int | None:
        """Return the open target that is due soonest. If none takes the request, the first one, unless one was asked."""
        now = self._routing.clock()
        fit = [number for number in self._numbers if self._misfits[number] is None and number not in self._asked]
        if not fit and not self._asked:
            return self._numbers[0]
        return min(fit, key=lambda number: self._circuits[number].wait(now), default=None)

    def _has_time(self) -> bool:
        """Return True if another target may be asked. If the deadline has passed, the last attempt has that as its reason."""
        limit = shorter(self._deadline, current_deadline())
        if not self._asked or limit is None or time.monotonic() < limit:
            return True
        self._log[-1] = replace(self._log[-1], why="no time left")
        return False

    # --- one target

    def _ask(self, number: int, admission: Admission, *, hasty: bool) -> Steps[Response | None]:
        """Ask a target. Return its answer, or nothing if the next one may be asked. Raises every other failure."""
        target, circuit = self._targets[number], self._circuits[number]
        self._asked.add(number)
        self._offset = time.monotonic() - self._started
        haste = Haste(self._routing.patience if hasty else None, self._deadline)
        try:
            try:
                response = yield from self._steps_of(number, self._request, haste, hasty=hasty)
            except UnsupportedFeature:  # nothing was sent
                if number == self._numbers[0] or not asks_to_reason(target.lm, self._request):
                    raise
                plain = self._request.with_options({**self._request.options, "reasoning": None})
                self._targets[number] = replace(target, warnings=(*target.warnings, _no_reasoning(target)))
                response = yield from self._steps_of(number, plain, haste, hasty=hasty)
        except Exception as error:
            self._settle(number, admission, error)
            return None
        except BaseException:
            circuit.withdraw(admission)
            raise
        circuit.succeed(self._routing.clock(), admission)
        self._routing.remember(self._request, response, number)
        return self._finished(number, response)

    def _steps_of(self, number: int, request: Request, haste: Haste, *, hasty: bool) -> Steps[Response]:
        target = self._targets[number]
        steps = target.ask(request, self._streamed, haste)
        if hasty and self._routing.on_filter == "next":
            steps = unfiltered(steps, target.lm.model)
        return (yield from (relayed(steps, partial(self._relayed, number)) if self._streamed else steps))

    def _settle(self, number: int, admission: Admission, error: Exception) -> None:
        """Count a failure and keep it, or raise it."""
        circuit, consequence = self._circuits[number], consequence_of(error, on_filter=self._routing.on_filter)
        if consequence.step == "next":
            what = error.code if isinstance(error, LMError) else type(error).__name__
            circuit.fail(self._routing.clock(), admission, weight=consequence.weight, rest=consequence.rest, what=what)
        else:
            circuit.withdraw(admission)
        self._log_failure(number, consequence, error)
        if consequence.step == "raise" or self._emitted or getattr(error, "partial", None) is not None:
            _set_attempts(error, self._log)
            raise error
        if consequence.step == "next" or self._failure is None:
            self._failure = error

    def _relayed(self, number: int, emit: Emit) -> Emit:
        """Note emitted content, and complete the end of the response."""
        return Emit(*[self._relayed_event(number, event) for event in emit.events])

    def _relayed_event(self, number: int, event: StreamEvent) -> StreamEvent:
        from sigwire.core.events import ResponseEnd, ResponseStart, UsageUpdate

        if isinstance(event, ResponseStart):
            return event if event.model is not None else replace(event, model=self._targets[number].lm.model)
        if isinstance(event, UsageUpdate):
            self._usage = event.usage
            return event
        self._emitted = True
        return self._completed_end(number, event) if isinstance(event, ResponseEnd) else event

    # --- the log

    def _completed_end(self, number: int, end: ResponseEnd) -> ResponseEnd:
        warnings = (*end.warnings, *self._targets[number].warnings)
        if end.cache == "hit" and not end.attempts:
            return replace(end, attempts=tuple(self._log), warnings=warnings)
        own = end.attempts or (Attempt(model=self._targets[number].lm.model, usage=self._usage, at=0.0),)
        return replace(end, attempts=(*self._log, *self._placed(number, own)), warnings=warnings)

    def _finished(self, number: int, response: Response) -> Response:
        own = response.attempts
        if not own and response.cache != "hit":
            own = (Attempt(model=self._targets[number].lm.model, usage=response.usage, at=0.0),)
        response = response.with_attempts([*self._log, *self._placed(number, own)])
        if response.model is None:
            response = replace(response, model=self._targets[number].lm.model)
        return response.with_warnings(*self._targets[number].warnings)

    def _placed(self, number: int, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Return the attempts of a target as attempts of this call: their times, and "fallback" for another target."""
        other = number != self._numbers[0]
        return [
            replace(
                each,
                at=None if each.at is None else each.at + self._offset,
                purpose="fallback" if other and each.purpose == "ask" else each.purpose,
            )
            for each in attempts
        ]

    def _skip(self, number: int, why: str) -> None:
        at = time.monotonic() - self._started
        self._log.append(Attempt("skip", self._targets[number].lm.model, at=at, why=why))

    def _log_failure(self, number: int, consequence: Consequence, error: Exception) -> None:
        own: Sequence[Attempt] = getattr(error, "attempts", ())
        if own:
            self._start_total(own)
        elif isinstance(error, UnsupportedFeature):
            self._skip(number, f"option {error.option}" if isinstance(error, UnsupportedOption) else f"{error!s:.120}")
        elif consequence is not RAISE or isinstance(error, LMError):
            own = (_attempt_of(error, self._targets[number].lm.model),)
        self._log += self._placed(number, own)

    def _start_total(self, attempts: Sequence[Attempt]) -> None:
        """Start the limit of the whole call with its first exchange."""
        sent = [each.at for each in attempts if each.purpose != "skip" and each.at is not None]
        if sent and self._deadline is None and self._routing.total is not None:
            self._deadline = self._started + self._offset + sent[0] + self._routing.total

    def _final_error(self, error: Exception) -> Exception:
        """Return the error of the call after the last target."""
        if len(self._targets) > 1 and isinstance(error, LMError):
            seen = [f"{each.model} {each.error or each.why}" for each in self._log]
            error.message = f"{error.message} No other model is left: {', '.join(dict.fromkeys(seen))}."
            error.args = (error.message,)
        _set_attempts(error, self._log)
        return error


def _no_reasoning(target: RouteTarget) -> LMWarning:
    return LMWarning("reasoning", f"{target.lm.model} does not take the reasoning that was asked for; it was left out.")


def _attempt_of(error: Exception, model: str) -> Attempt:
    """Return the attempt of a failure of a model without a log."""
    if not isinstance(error, LMError):
        return Attempt("ask", model, error=type(error).__name__, at=0.0)
    return Attempt("ask", model, error=error.code, status=error.status, request_id=error.request_id, at=0.0)


def _set_attempts(error: Exception, log: Sequence[Attempt]) -> None:
    if isinstance(error, LMError | ModelError | BudgetSpent):
        error.attempts = tuple(log)
