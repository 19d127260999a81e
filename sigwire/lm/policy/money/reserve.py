"""The layers for money: ``Reserve`` limits an exchange by the open budgets, ``Priced`` prices it for the log.

``Reserve`` waits on the way in only; on the way out it settles under a lock, also when the exchange is cancelled. It is outside
the limiter, so a call that does not fit a budget does not queue, and inside retries: each exchange reserves for itself.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

from sigwire.core.response import IMPOSSIBLE, LMWarning, Response, Usage
from sigwire.effects.loops import blocked_threads, has_running_loop, to_thread
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import BudgetSpent, CallerError, ConfigurationError, LMError, LMTransportError
from sigwire.lm.policy.call import Call, Exchange
from sigwire.lm.policy.deadlines import shorter
from sigwire.lm.policy.money import catalogs
from sigwire.lm.policy.money.estimates import input_bound, output_bound, usage_of_partial
from sigwire.lm.policy.money.opened import OpenBudget
from sigwire.lm.policy.money.prices import Price, cost_of
from sigwire.lm.policy.money.queue import BudgetAccount, Held, reserve, withdraw
from sigwire.lm.policy.money.sums import Refusal, Sums, dollars, units
from sigwire.lm.policy.retry import Sleep
from sigwire.lm.policy.waiting import Wait

__all__ = ["Priced", "Reserve", "blocks_a_loop", "still_held"]

T = TypeVar("T")
_POLL_SECONDS = 0.05  # another process cannot wake this one
_MOST_RESERVATIONS = 1_000  # tokens of a web search that the provider runs are not reserved, but are no more than this
_largest: dict[str, int] = {}  # by model: the most output tokens of an answer; a forked child has a copy


@dataclass(frozen=True, slots=True)
class Priced:
    """The layer that prices each exchange for the log."""

    price: Price | None

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]:
        result = yield from inner()
        cost = cost_of(call.target.model, _response_of(result).usage, self.price)
        call.report.cost = None if cost is None else float(cost.money)
        return result


class _Bound(NamedTuple):
    """The upper bound of an exchange: as amounts (``unpriced`` without a price), and its input tokens."""

    sums: Sums
    input_tokens: int


@dataclass(frozen=True, slots=True)
class Reserve:
    """The layer that reserves the upper bound of an exchange in the open budgets, and settles it by the usage."""

    budgets: tuple[OpenBudget, ...]
    price: Price | None = None
    output_limit: int | None = None

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]:
        """Perform the exchange if it fits. Raises ``BudgetSpent`` before anything is sent."""
        self._set_deadline(call)
        if not catalogs.is_loaded():
            yield FunctionEffect(catalogs.load, lambda: to_thread(catalogs.load))
        bound = self._bound(call)
        try:
            held = yield from self.hold(call, bound.sums._replace(unpriced=0))
        except BudgetSpent as error:
            error.attempts = tuple(call.report.log)
            raise
        _holding.set((*still_held(), held))
        charge = bound.sums._replace(unpriced=0)
        try:
            result = self._checked((yield from inner()), bound)
            charge = self._charge_of_answer(call, _response_of(result), bound)
        except BaseException as error:
            charge = self._charge_of_failure(call, error, bound)
            held.note(error)
            raise
        finally:
            held.settle(charge)
            _holding.set(still_held())
        return result

    def hold(self, call: Call, need: Sums) -> Steps[Held]:
        """Return the reservation of ``need``, after a wait if reservations of others may come back."""
        return _reserved(call, tuple(budget.account for budget in self.budgets), need)

    def _set_deadline(self, call: Call) -> None:
        for budget in self.budgets:
            call.deadline = shorter(call.deadline, budget.deadline())
        call.remaining()

    # --- before the exchange

    def _bound(self, call: Call) -> _Bound:
        """Return the upper bound; raises ``ConfigurationError`` for a call that the budgets cannot limit."""
        model, request = call.target.model, call.request
        limit = self.output_limit or catalogs.output_limit(model)
        read, written = input_bound(request), output_bound(request, limit, _largest.get(model, 0))
        usages = [Usage(input_tokens=read, output_tokens=written)]
        if request.options.get("prompt_cache"):  # writing into the provider's cache may cost more
            asked = request.options["prompt_cache"]
            hour = read if isinstance(asked, dict) and asked.get("ttl") == "1h" else None
            usages.append(Usage(read, written, cache_write_tokens=read, hour_write_tokens=hour))
        costs = [cost.money for usage in usages if (cost := cost_of(model, usage, self.price)) is not None]
        strict = any(budget.strict for budget in self.budgets)
        if not costs and any(budget.needs_price for budget in self.budgets):
            raise ConfigurationError(
                f"No price of {model} is known, and a budget needs one (reserving the cost of a call; nothing was sent). Write "
                'LM(..., price=sigwire.Price(input=0.25, output=2.0)), pip install "sigwire[prices]", or limit tokens or calls.'
            )
        if strict and not isinstance(request.options.get("max_tokens"), int):
            raise ConfigurationError(
                f"The call of {model} has no max_tokens, and a budget is strict (reserving its cost; nothing was sent). Write "
                "LM(..., max_tokens=1000), or Budget(strict=False)."
            )
        return _Bound(Sums(1, read + written, units(max(costs)) if costs else 0, int(not costs)), read)

    # --- after the exchange

    def _checked(self, result: T, bound: _Bound) -> T:
        """Return the result; without its usage, and with a warning, if that is below nothing or far above the reservation."""
        response = _response_of(result)
        usage = response.usage
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        is_possible = tokens <= _MOST_RESERVATIONS * bound.sums.tokens and (
            not usage.cost or not bound.sums.money or units(usage.cost) <= _MOST_RESERVATIONS * bound.sums.money
        )
        if is_possible and min(usage.counts().values(), default=0) >= 0:
            return result
        return _without_usage(result, response, f"{usage}, where {bound.sums.shown()} were reserved")

    def _charge_of_answer(self, call: Call, response: Response, bound: _Bound) -> Sums:
        if any(warning.feature == IMPOSSIBLE for warning in response.warnings):
            call.report.cost = None if bound.sums.unpriced else dollars(bound.sums.money)
            call.report.why = "the provider sent a usage that no request can have: the reservation was charged"
            return bound.sums._replace(estimated=1)
        usage = response.usage
        is_known = usage.input_tokens is not None and usage.output_tokens is not None
        if not is_known:
            usage = usage_of_partial(response, bound.input_tokens)
        model, written = call.target.model, usage.output_tokens or 0
        _largest[model] = max(written, _largest.get(model, 0))
        return self._charge(call, usage, is_estimated=not is_known)

    def _charge_of_failure(self, call: Call, error: BaseException, bound: _Bound) -> Sums:
        """Return nothing for an exchange that was not sent, the call for one that was refused, else its input and the emitted
        part of the answer."""
        partial: Any = getattr(error, "partial", None)
        if call.report.began is None or _never_sent(error):
            return Sums()
        if isinstance(error, CallerError) or (partial is None and _is_refused(error)):
            return Sums(calls=int(_is_refused(error)))
        usage = usage_of_partial(partial if isinstance(partial, Response) else None, bound.input_tokens)
        charge = self._charge(call, usage, is_estimated=True)
        call.report.why = call.report.why or "sent, and may be billed: the cost is a lower bound"
        return charge

    def _charge(self, call: Call, usage: Usage, *, is_estimated: bool) -> Sums:
        cost = cost_of(call.target.model, usage, self.price)
        call.report.cost = None if cost is None else float(cost.money)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return Sums(1, tokens, 0 if cost is None else units(cost.money), int(cost is None), int(is_estimated))


def _without_usage(result: T, response: Response, what: str) -> T:
    """Return a result without a usage that no request can have, and with a warning."""
    warning = LMWarning(IMPOSSIBLE, f"The provider sent a number that no request can have: {what}. It was not used.")
    whole = replace(response, usage=Usage()).with_warnings(warning)
    if result is response:
        return cast(T, whole)
    kept: Any = result
    kept = kept._replace(response=whole)
    if kept.ends:  # of a streamed reply: they are emitted after the layers
        from sigwire.core.events import ResponseEnd, UsageUpdate

        last = [replace(end, warnings=whole.warnings) if isinstance(end, ResponseEnd) else end for end in kept.ends]
        kept = kept._replace(ends=[UsageUpdate(Usage()), *last])
    return cast(T, kept)


def _is_refused(error: BaseException) -> bool:
    """Return True if the provider refused the request: it bills nothing."""
    return isinstance(error, LMError) and error.status is not None and error.status >= 400


def _never_sent(error: BaseException) -> bool:
    """Return True if the provider did not get the request."""
    return isinstance(error, LMTransportError) and (error.stale or _never_connected(error))


def _never_connected(error: LMError) -> bool:
    import socket  # the transport has loaded it

    return isinstance(error.__cause__, ConnectionRefusedError | socket.gaierror)


def _response_of(result: object) -> Response:
    """Return the response of an exchange's result, whatever the backend makes of it."""
    found: Any = result
    response: Response = found if isinstance(found, Response) else found.response
    return response


# --- waiting


def _reserved(call: Call, accounts: tuple[BudgetAccount, ...], need: Sums) -> Steps[Held]:
    """Return the reservation, after a wait if reservations of others may come back."""
    while True:
        outcome = reserve(accounts, need, still_held())
        if isinstance(outcome, Held):
            return outcome
        if isinstance(outcome, Future):
            held: Held = yield _QueueEffect(outcome, call.deadline, accounts, need)
            return held
        if outcome.final:
            raise outcome.error()
        call.remaining()
        yield _PollEffect(outcome)


def still_held() -> tuple[Held, ...]:
    """Return the reservations of calls that wait for the running code: streams that it reads, here or in an outer task."""
    return tuple(held for held in _holding.get() if held.tickets)


_holding: ContextVar[tuple[Held, ...]] = ContextVar("sigwire_reservations", default=())


@dataclass(frozen=True, slots=True)
class _PollEffect:
    """Effect: wait a moment for another process to give back a reservation."""

    refusal: Refusal

    def run(self) -> None:
        if blocks_a_loop():
            raise self.refusal.error()
        Sleep(_POLL_SECONDS).run()

    async def arun(self) -> None:
        await Sleep(_POLL_SECONDS).arun()


@dataclass(frozen=True, slots=True)
class _QueueEffect:
    """Effect: wait for a reservation. A wait that ends early withdraws from the queue."""

    future: Future[Held]
    deadline: float | None
    accounts: tuple[BudgetAccount, ...]
    need: Sums

    def run(self) -> Held:
        if blocks_a_loop():  # calls on the blocked event loop cannot end while this thread waits for them
            withdraw(self.future)
            outcome = reserve(self.accounts, self.need, still_held(), waits=False)
            if isinstance(outcome, Refusal):
                raise outcome.error()
            assert isinstance(outcome, Held)
            return outcome
        try:
            return Wait(self.future, self.deadline).run()
        except BaseException:
            withdraw(self.future)
            raise

    async def arun(self) -> Held:
        try:
            return await Wait(self.future, self.deadline).arun()
        except BaseException:
            withdraw(self.future)
            raise


def blocks_a_loop() -> bool:
    """Return True if an event loop is blocked until the running code ends: work on that loop must not be waited for."""
    return bool(blocked_threads()) or has_running_loop()
