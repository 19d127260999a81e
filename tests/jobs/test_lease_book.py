"""Permits of several workers, on a clock of the test."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire import Budget
from sigwire.jobs.lease_book import LeaseAsk, LeaseBook, Settlement
from sigwire.lm.policy.money.sums import Refusal, Sums

ONE = Sums(1, 100, 10)


@dataclass
class Time:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Worker:
    """A worker that sends ``most`` exchanges at once, and holds each for ``seconds``."""

    name: str
    most: int = 8
    seconds: float = 0.3
    again: float = 0.0
    open: list[tuple[float, int]] = field(default_factory=list)
    settled: list[Settlement] = field(default_factory=list)


def simulate(
    book: LeaseBook, time: Time, workers: list[Worker], seconds: float, *, refuse_above: float | None = None
) -> list[float]:
    """Return the starts of all exchanges. ``refuse_above``: a provider that answers 429 above this rate in a second."""
    starts: list[float] = []
    while time.now < seconds:
        for worker in workers:
            ended = [each for each in worker.open if each[0] + worker.seconds <= time.now]
            worker.open = [each for each in worker.open if each not in ended]
            for start, number in ended:
                crowd = sum(start - 1 < other <= start for other in starts)
                is_refused = refuse_above is not None and crowd > refuse_above
                worker.settled.append(Settlement(number, Sums(), 0.0) if is_refused else Settlement(number, ONE))
            if time.now >= worker.again and (worker.most > len(worker.open) or worker.settled):
                asks = [LeaseAsk(ONE)] * (worker.most - len(worker.open))
                reply = book.answer(worker.name, asks, worker.settled)
                worker.settled, worker.again = [], time.now + (reply.again or 0.0)
                for answer in reply.answers:
                    assert not isinstance(answer, Refusal)
                    starts.append(time.now + answer[1])
                    worker.open.append((time.now + answer[1], answer[0]))
        time.now += 0.01
    return sorted(starts)


def most_in_a_window(starts: list[float], seconds: float = 1.0) -> int:
    return max(sum(start - seconds < other <= start for other in starts) for start in starts)


@pytest.mark.parametrize("rate", [3, 20, 200])
def test_rate_holds_in_each_second_over_four_workers(rate: float) -> None:
    time = Time()
    book = LeaseBook(rate=rate, clock=time)
    workers = [Worker(f"w{number}", most=64) for number in range(4)]
    starts = simulate(book, time, workers, 5.0)
    assert 0.95 * rate * 5 - 1 <= sum(start <= 5 for start in starts) <= rate * 5 + 1
    assert most_in_a_window(starts) <= rate + 1


@given(st.integers(1, 100), st.lists(st.integers(1, 40), min_size=1, max_size=5), st.floats(0.01, 2.0))
def test_rate_holds_for_any_workers(rate: int, most: list[int], seconds: float) -> None:
    time = Time()
    book = LeaseBook(rate=rate, clock=time)
    starts = simulate(book, time, [Worker(f"w{n}", count, seconds) for n, count in enumerate(most)], 1.5)
    assert most_in_a_window(starts, 0.5) <= rate / 2 + 1


@given(st.integers(1, 60), st.lists(st.tuples(st.sampled_from([0.05, 0.2, 0.8, 3.2]), st.floats(0, 1)), max_size=60))
def test_rate_holds_when_permits_are_used_late(rate: int, lateness: list[tuple[float, float]]) -> None:
    time = Time()
    book, sends = LeaseBook(rate=rate, clock=time), list[float]()
    for slack, part in lateness:
        while not (reply := book.answer("a", [LeaseAsk(ONE, slack=slack)], [])).answers:
            assert reply.again is not None
            time.now += max(reply.again, 0.01)
        ((_, delay),) = granted(reply.answers)
        sends.append(time.now + delay + part * slack)
    for end in sends:
        assert sum(end - 1 + 1e-6 < other <= end for other in sends) <= rate + 1


def test_permit_starts_at_most_a_fifth_of_a_second_ahead() -> None:
    book = LeaseBook(rate=1, clock=Time())
    reply = book.answer("a", [LeaseAsk(ONE)] * 3, [])
    assert reply.answers == [(1, 0.0)]
    assert reply.again == pytest.approx(0.95)
    assert book.answer("b", [LeaseAsk(ONE)], []).again == pytest.approx(1.95)  # the turn after that of "a"


def test_refusal_of_one_worker_slows_all_workers() -> None:
    time = Time()
    book = LeaseBook(clock=time)
    workers = [Worker(f"w{number}", most=10, seconds=0.1) for number in range(4)]
    starts = simulate(book, time, workers, 12.0, refuse_above=20)
    late = [start for start in starts if start > 6]
    assert 30 < len(late) < 200  # of 2,400 without the rate limit; the provider takes 120
    assert len([start for start in starts if start < 0.5]) > 40


def test_budget_is_exact_over_workers() -> None:
    budget = Budget(calls=7)
    book = LeaseBook(accounts=(budget.account,), clock=Time())
    first = book.answer("a", [LeaseAsk(ONE)] * 5, [])
    second = book.answer("b", [LeaseAsk(ONE)] * 5, [])
    assert (len(first.answers), len(second.answers), second.again) == (5, 2, 0.1)
    book.answer("a", [], [Settlement(number, ONE) for number, _ in granted(first.answers)])
    book.answer("b", [], [Settlement(number, ONE) for number, _ in granted(second.answers)])
    (refusal,) = book.answer("b", [LeaseAsk(ONE)], []).answers
    assert isinstance(refusal, Refusal)
    assert refusal.final
    assert (budget.spent.calls, budget.spent.estimated) == (7, 0)


def granted(answers: list[tuple[int, float] | Refusal]) -> list[tuple[int, float]]:
    return [answer for answer in answers if not isinstance(answer, Refusal)]


def test_permits_of_a_lost_worker_stay_spent_at_their_bound() -> None:
    budget = Budget(calls=3, tokens=1_000)
    book = LeaseBook(accounts=(budget.account,), clock=Time())
    lost = granted(book.answer("a", [LeaseAsk(ONE)] * 2, []).answers)
    book.answer("b", [LeaseAsk(ONE)], [])
    book.drop("a")
    assert (budget.spent.calls, budget.spent.tokens, budget.spent.estimated, budget.reserved.calls) == (2, 200, 2, 1)
    book.answer("a", [], [Settlement(lost[0][0], Sums())])  # too late: the permit counts as used
    assert budget.spent.calls == 2


def test_unused_permit_comes_back() -> None:
    budget = Budget(calls=1)
    book = LeaseBook(accounts=(budget.account,), clock=Time())
    ((number, _),) = granted(book.answer("a", [LeaseAsk(ONE)], []).answers)
    assert book.answer("b", [LeaseAsk(ONE)], []).answers == []
    reply = book.answer("a", [], [Settlement(number, Sums())])
    assert (reply.again, budget.spent.calls) == (None, 0)
    assert len(granted(book.answer("b", [LeaseAsk(ONE)], []).answers)) == 1


def test_ask_that_cannot_wait_is_refused() -> None:
    budget = Budget(calls=1)
    book = LeaseBook(accounts=(budget.account,), clock=Time())
    ((number, _),) = granted(book.answer("a", [LeaseAsk(ONE)], []).answers)
    (refusal,) = book.answer("a", [LeaseAsk(ONE, waits=False)], []).answers
    assert isinstance(refusal, Refusal)
    (refusal,) = book.answer("a", [LeaseAsk(ONE, own=[number])], []).answers  # it waits for itself
    assert isinstance(refusal, Refusal)
