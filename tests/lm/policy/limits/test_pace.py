"""The controls of a limiter, on a clock of numbers: slots, pace, buckets; and a simulation of many calls at once."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.lm.policy.limits.pace import Pace, RefillBucket, Slots


class Simulation:
    """Calls that all begin at once, a server with a token bucket, and the controls between them."""

    def __init__(self, rate: float, burst: int, answer: float, hint: str, seed: int = 0) -> None:
        self.rate, self.burst, self.answer, self.hint = rate, burst, answer, hint
        self.random, self.pace, self.slots = random.Random(seed), Pace(), Slots()
        self.events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.number, self.queue = itertools.count(), list[int]()
        self.in_flight = self.done = self.refused = 0
        self.level, self.level_at, self.end, self.wake = float(burst), 0.0, 0.0, math.inf

    def share(self, calls: int) -> float:
        """Return the share of the allowed rate that the calls use until the last is answered."""
        for number in range(calls):
            self.at(0.0, self.enter, number)
        while self.done < calls:
            now, _, step, arguments = heapq.heappop(self.events)
            step(now, *arguments)
        return ((calls - self.burst) / self.rate + self.answer) / self.end

    def at(self, time: float, step: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self.events, (time, next(self.number), step, arguments))

    def enter(self, now: float, call: int) -> None:
        heapq.heappush(self.queue, call)
        self.serve(now)

    def serve(self, now: float) -> None:
        while self.queue and self.in_flight < self.slots.limit:
            if (seconds := self.pace.wait(now)) > 0:
                if now + seconds < self.wake or self.wake <= now:
                    self.wake = now + seconds
                    self.at(self.wake, self.serve)
                return
            self.pace.send(now)
            self.in_flight += 1
            self.at(now + self.random.uniform(0.002, 0.01), self.arrive, heapq.heappop(self.queue), now)

    def arrive(self, now: float, call: int, sent: float) -> None:
        self.level = min(self.burst, self.level + (now - self.level_at) * self.rate)
        self.level_at = now
        if self.level >= 1:
            self.level -= 1
            self.at(now + self.answer * self.random.uniform(0.7, 1.3), self.answered, sent)
            return
        exact = (1 - self.level) / self.rate
        stated = {"none": None, "one": 1.0, "exact": exact}[self.hint]
        self.at(now + 0.003, self.refuse, call, sent, stated)

    def answered(self, now: float, sent: float) -> None:
        self.slots.succeed(sent, now, self.in_flight)
        self.pace.accept(sent)
        self.in_flight -= 1
        self.done += 1
        self.end = now
        self.serve(now)

    def refuse(self, now: float, call: int, sent: float, stated: float | None) -> None:
        self.in_flight -= 1
        self.refused += 1
        self.pace.refuse(sent, now, stated)
        self.at(now + (stated or 0.0), self.enter, call)
        self.serve(now)


@pytest.mark.parametrize("answer", [0.02, 0.2, 3.0])
@pytest.mark.parametrize("burst", [1, 20])
@pytest.mark.parametrize("hint", ["none", "one", "exact"])
def test_pace_uses_most_of_the_allowed_rate(burst: int, answer: float, hint: str) -> None:
    simulation = Simulation(20, burst, answer, hint)
    assert simulation.share(300) >= 0.75
    assert simulation.refused < 100


@pytest.mark.parametrize(("rate", "least"), [(1, 0.65), (5, 0.75), (100, 0.4)])
def test_pace_finds_slow_and_fast_rates(rate: float, least: float) -> None:
    assert Simulation(rate, 1, 0.2, "none").share(100 if rate < 20 else 500) >= least


def test_pace_is_unlimited_until_the_first_refusal() -> None:
    pace = Pace()
    for _ in range(1000):
        assert pace.wait(0.0) == 0
        pace.send(0.0)
    for _ in range(60):
        pace.refuse(0.0, 0.1, None)
    assert pace.wait(0.1) > 0


def test_pace_stays_unlimited_when_one_of_a_hundred_sends_is_refused() -> None:
    pace = Pace()
    for number in range(3000):
        now = number / 1000
        assert pace.wait(now) == 0
        pace.send(now)
        pace.refuse(now, now, None) if number % 100 == 60 else pace.accept(now)
    assert pace.rate == math.inf


def test_pace_is_unlimited_again_when_twenty_sends_after_a_lone_refusal_are_answered() -> None:
    pace = Pace()
    pace.send(0.0)
    pace.refuse(0.0, 0.01, None)
    assert pace.rate == 20
    for number in range(1, 21):
        pace.send(number / 20)
        pace.accept(number / 20)
    assert pace.wait(1.01) == 0


def test_pace_keeps_its_rate_when_the_first_refusal_is_not_alone() -> None:
    pace = Pace()
    for at in (0.0, 0.005):
        pace.send(at)
        pace.refuse(at, at + 0.01, None)
    for number in range(1, 21):
        pace.send(number / 20)
        pace.accept(number / 20)
    assert pace.rate < 30


def closed_pace() -> Pace:
    """A pace that got no answer but refusals for three seconds."""
    pace = Pace()
    for number in range(40):
        pace.send(number / 10)
        pace.refuse(number / 10, number / 10 + 0.01, None)
    return pace


def test_pace_sends_one_probe_at_a_time_when_all_is_refused() -> None:
    pace = closed_pace()
    opens = 4.0 + pace.wait(4.0)
    assert pace.wait(opens) == 0
    pace.send(opens)
    assert pace.wait(opens + 0.1) > 1  # until the probe is answered, or not refused for two seconds
    pace.refuse(opens, opens + 0.1, 3.0)
    assert pace.wait(opens + 0.1) == pytest.approx(3.0)


def test_pace_opens_when_a_probe_is_answered() -> None:
    pace = closed_pace()
    opens = 4.0 + pace.wait(4.0)
    pace.send(opens)
    pace.accept(opens)
    assert pace.wait(opens + 0.1) < 1


def test_pace_opens_when_a_probe_is_not_refused_for_two_seconds() -> None:
    pace = closed_pace()
    opens = 4.0 + pace.wait(4.0)
    pace.send(opens)
    assert pace.wait(opens + 2.0) <= 1 / pace.rate
    pace.send(opens + 2.0)
    assert pace.wait(opens + 4.0) == 0


@given(st.lists(st.tuples(st.floats(0, 5), st.sampled_from(["send", "refuse", "accept"])), max_size=60))
def test_pace_never_waits_for_ever(steps: list[tuple[float, str]]) -> None:
    pace, now, sent = Pace(), 0.0, 0.0
    for seconds, step in steps:
        now += seconds
        if step == "send":
            pace.send(now)
            sent = now
        elif step == "refuse":
            pace.refuse(sent, now, None)
        else:
            pace.accept(sent)
        assert 0 <= pace.wait(now) <= 200
        assert pace.rate > 0


def test_slots_double_until_the_first_overload_then_grow_slowly() -> None:
    slots = Slots()
    slots.succeed(0.0, 1.0, 32)
    slots.succeed(1.0, 2.0, 60)
    assert slots.limit == 128
    slots.overload(2.0, 3.0)
    assert slots.limit == pytest.approx(102.4)
    slots.succeed(3.0, 4.0, 90)
    assert slots.limit == pytest.approx(102.4 * 1.05 + 1)


def test_slots_do_not_grow_when_less_than_half_is_used() -> None:
    slots = Slots()
    slots.succeed(0.0, 1.0, 15)
    assert slots.limit == 32


def test_slots_fall_once_a_round() -> None:
    slots = Slots()
    for _ in range(20):
        slots.overload(0.0, 1.0)
    assert slots.limit == pytest.approx(25.6)
    slots.overload(0.5, 9.0)  # sent before the last cut
    assert slots.limit == pytest.approx(25.6)
    slots.overload(2.0, 9.0)
    assert slots.limit == pytest.approx(20.48)


@given(st.lists(st.booleans(), max_size=200))
def test_slots_stay_between_one_and_the_most(outcomes: list[bool]) -> None:
    slots = Slots(4, 64)
    for number, is_overload in enumerate(outcomes):
        now = number * 3.0
        if is_overload:
            slots.overload(now, now + 1)
        else:
            slots.succeed(now, now + 1, 64)
        assert 1 <= slots.limit <= 64


def test_bucket_is_full_at_the_start_and_refills_evenly() -> None:
    bucket = RefillBucket(60, 60.0, 0.0)
    bucket.take(60, 0.0)
    assert bucket.wait(1, 0.0) == pytest.approx(1.0)
    assert bucket.wait(1, 1.0) == 0
    assert bucket.level(1000.0) == 60


def test_bucket_lets_more_than_its_limit_pass_when_it_is_full() -> None:
    bucket = RefillBucket(10, 10.0, 0.0)
    assert bucket.wait(50, 0.0) == 0
    bucket.take(50, 0.0)
    assert bucket.wait(1, 0.0) == pytest.approx(41.0)


def test_bucket_mirrors_a_limit_of_a_minute_and_one_of_a_day() -> None:
    bucket = RefillBucket(1, 1.0, 0.0)
    bucket.mirror(500, 499, 0.12, taken=0.0, sent=0.0)
    assert bucket.rate == pytest.approx(500 / 60)
    bucket.mirror(14400, 14399, 6.0, taken=0.0, sent=1.0)
    assert bucket.rate * 86400 == pytest.approx(14400)


def test_bucket_takes_off_what_was_sent_after_the_exchange_of_the_reply() -> None:
    bucket = RefillBucket(100, 1000.0, 0.0)
    bucket.take(1, 0.0)
    at_exchange = bucket.taken
    for _ in range(5):
        bucket.take(1, 0.0)
    bucket.mirror(100, 50, 500.0, taken=at_exchange, sent=0.0)
    assert bucket.level(0.0) == 45
