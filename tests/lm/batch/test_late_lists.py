"""Batches whose creation had no reply, and that the provider lists late: found, or sent again and cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sigwire.errors import LMTimeoutError
from sigwire.lm.batch.model import BatchLM
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.testing import FakeProvider
from sigwire.testing.batches.desk import BatchPlan
from tests.lm.batch.clock import JumpingClock
from tests.lm.batch.conftest import MODELS
from tests.lm.batch.test_batch_lm import WAVES, ask_all, batches_of, echo, questions

Make = Callable[..., BatchLM]
ANSWERS = [f"answer {number}" for number in range(4)]
WITH_MARKS = [wire for wire in MODELS if wire != "anthropic"]


@pytest.mark.parametrize("wire", MODELS)
def test_batch_that_is_listed_late_is_found_and_paid_once(wire: str, make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=1, lag=60, clock=clock.now)) as provider:
        assert ask_all(make(provider, wire, **WAVES), questions(4)) == ANSWERS
        assert list(batches_of(provider).values()) == [4]


@pytest.mark.parametrize("wire", MODELS)
def test_batch_that_is_listed_late_is_found_by_later_runs(wire: str, make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=1, lag=200, clock=clock.now)) as provider:
        for _ in range(4):  # each run ends before the list is complete; the doubt began in the first one
            results = ask_all(make(provider, wire, deadline=12, **WAVES), questions(4))
            assert {type(each) for each in results} == {LMTimeoutError}
        clock.time += 200
        assert ask_all(make(provider, wire, **WAVES), questions(4)) == ANSWERS
        assert list(batches_of(provider).values()) == [4]


@pytest.mark.parametrize("wire", WITH_MARKS)
def test_batch_that_is_listed_after_its_lines_were_sent_again_is_cancelled(
    wire: str, make: Make, clock: JumpingClock, caplog: pytest.LogCaptureFixture
) -> None:
    plan = BatchPlan(lose=1, lag=1_000, seconds=5_000, clock=clock.now)
    with caplog.at_level("INFO", "sigwire.batch"), FakeProvider(echo, batches=plan) as provider:
        lm = make(provider, wire, settle=100, **WAVES)
        assert ask_all(lm, questions(4)) == ANSWERS
        assert list(batches_of(provider).values()) == [4]  # the first one was cancelled before it ran
        assert [batch.state for batch in lm.batches()] == ["ended", "ended"]
    assert ["is cancelled" in text for text in caplog.messages].count(True) == 1


@pytest.mark.parametrize("wire", WITH_MARKS)
def test_batch_that_is_listed_after_the_run_is_cancelled_from_another_script(
    wire: str, make: Make, clock: JumpingClock
) -> None:
    plan = BatchPlan(lose=1, lag=1_000, seconds=50_000, clock=clock.now)
    with FakeProvider(echo, batches=plan) as provider:
        results = ask_all(make(provider, wire, settle=100, deadline=500, **WAVES), questions(4))
        assert {type(each) for each in results} == {LMTimeoutError}
        assert [batch.state for batch in make(provider, wire).batches()] == ["orphan", "running"]
        clock.time += 1_000
        assert [batch.state for batch in make(provider, wire).batches()] == ["ended", "running"]
        clock.time += 60_000
        assert [batch.state for batch in make(provider, wire).batches()] == ["ended", "ended"]
        assert list(batches_of(provider).values()) == [4]


def test_batch_without_a_mark_that_is_listed_after_its_lines_were_sent_again_is_named_in_the_log(
    make: Make, clock: JumpingClock, caplog: pytest.LogCaptureFixture
) -> None:
    plan = BatchPlan(lose=1, lag=1_000, seconds=5_000, clock=clock.now)
    with caplog.at_level("INFO", "sigwire.batch"), FakeProvider(echo, batches=plan) as provider:
        assert ask_all(make(provider, settle=100, **WAVES), questions(4)) == ANSWERS
        assert list(batches_of(provider).values()) == [4, 4]  # cancelling it could cancel the work of another program
    assert ["msgbatch_1 could be it: cancel it" in text for text in caplog.messages].count(True) == 1


@pytest.mark.parametrize("wire", MODELS)
def test_batch_that_was_never_made_is_sent_again_after_some_time(wire: str, make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=1, lag=1e9, clock=clock.now)) as provider:
        started = clock.time
        assert ask_all(make(provider, wire, settle=100, **WAVES), questions(4)) == ANSWERS
        assert clock.time - started > 100


@pytest.mark.parametrize("wire", MODELS)
def test_creations_that_are_never_answered_and_never_listed_end(wire: str, make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=99, lag=1e9, clock=clock.now)) as provider:
        results = ask_all(make(provider, wire, settle=100, **WAVES), questions(4))
        assert ["2 batches brought no answer" in str(each) for each in results] == [True] * 4
        assert list(batches_of(provider).values()) == [4, 4]


def test_batch_of_another_program_that_is_listed_first_is_not_taken_for_the_lost_one(
    make: Make, clock: JumpingClock, tmp_path: Path
) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=2, lag=150, clock=clock.now)) as provider:
        other = make(provider, store=tmp_path / "other.batch", deadline=5, **WAVES)
        ask_all(other, [{"question": f"question {number}"} for number in range(10, 14)])
        clock.time += 95
        assert ask_all(make(provider, settle=1_000, poll=(10.0, 30.0), **WAVES), questions(4)) == ANSWERS
        assert list(batches_of(provider).values()) == [4, 4]  # one of each program


def test_batch_of_another_program_without_a_mark_is_not_taken_for_one_with_a_mark(
    make: Make, clock: JumpingClock, tmp_path: Path
) -> None:
    class WithoutMark(HttpTransport):
        def send(self, request: HttpRequest) -> HttpReply:
            return super().send(replace(request, body=request.body.replace(b'"sigwire"', b'"other"')))

    with FakeProvider(echo, batches=BatchPlan(lose=2, lag=150, clock=clock.now)) as provider:
        url = provider.url("openai")
        plain = LM(MODELS["openai"], base_url=url, api_key="k", cache=False, transport=WithoutMark())
        other = BatchLM(plain, tmp_path / "other.batch", clock=clock, deadline=5, **WAVES)
        ask_all(other, [{"question": f"question {number}"} for number in range(10, 14)])
        clock.time += 95
        assert ask_all(make(provider, "openai", settle=1_000, **WAVES), questions(4)) == ANSWERS
        assert list(batches_of(provider).values()) == [4, 4]
