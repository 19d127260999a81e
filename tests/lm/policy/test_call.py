"""The call and the seam of the layers around its exchanges."""

from __future__ import annotations

from typing import TypeVar

import pytest

from sigwire.core.request import Request
from sigwire.core.response import Attempt, Response, Usage
from sigwire.effects.steps import Steps, run
from sigwire.errors import LMServerError, LMTimeoutError
from sigwire.lm.policy.call import Call, Exchange, TargetKey, answer_once, through
from sigwire.lm.policy.retry import RetryPolicy
from tests.lm.policy.test_retry import Clock

T = TypeVar("T")
TARGET = TargetKey("acme", None, None, "acme/m")


def new_call(*layers: object) -> Call:
    return Call(Request(), TARGET, layers=layers)  # type: ignore[arg-type]  # doubles have the one method


class Mark:
    """A layer that writes down its name before and after the exchange."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]:
        self.seen.append(f"{self.name} in")
        value = yield from inner()
        self.seen.append(f"{self.name} out")
        return value


def exchange() -> Steps[Response]:
    return Response(usage=Usage(1, 2))
    yield


def test_through_performs_the_first_layer_outermost() -> None:
    seen: list[str] = []
    call = new_call(Mark("a", seen), Mark("b", seen))
    assert run(through(call.layers, call, exchange)).usage == Usage(1, 2)
    assert seen == ["a in", "b in", "b out", "a out"]


def test_answer_once_lists_the_exchange_when_the_first_exchange_succeeds() -> None:
    call = new_call()

    def begun() -> Steps[Response]:
        call.begin()
        return (yield from exchange())

    (attempt,) = run(answer_once(call, begun)).attempts
    assert attempt == Attempt("ask", "acme/m", Usage(1, 2))
    assert attempt.at is not None
    assert attempt.seconds is not None


def test_exchange_that_never_began_is_a_skip_with_its_reason() -> None:
    call = new_call()
    call.report.why, call.report.queued = "142 before it", 1.5
    call.report.record(error=LMServerError("busy"))
    call.begin()
    call.report.record()
    (skip, ask) = call.report.log
    assert (skip.purpose, skip.error, skip.why, skip.queued, skip.seconds) == (
        "skip",
        "server",
        "142 before it",
        1.5,
        0.0,
    )
    assert (ask.purpose, ask.error, ask.why, ask.queued) == ("ask", None, None, 0.0)


def test_answer_once_lists_failed_and_successful_attempts() -> None:
    outcomes = iter([LMServerError("busy"), None])

    call = new_call(RetryPolicy(clock=Clock()))

    def flaky() -> Steps[Response]:
        call.begin()
        if error := next(outcomes):
            raise error
        return (yield from exchange())

    response = run(answer_once(call, flaky))
    assert response.attempts == (Attempt("ask", "acme/m", error="server"), Attempt("retry", "acme/m", Usage(1, 2)))


def test_parts_of_a_call_share_its_deadline() -> None:
    call = Call(Request(), TARGET, streamed=True, timeout=5.0)
    parts = [call.part(), call.without_stream(), call]
    assert [part.remaining() for part in parts] == [None] * 3  # the timeout starts with the first exchange
    for part in (*parts, call.part()):
        part.begin()
        assert part.deadline == parts[0].deadline
        seconds = part.remaining()
        assert seconds is not None
        assert 0 < seconds <= 5.0
        assert (part.has_time_for(1.0), part.has_time_for(6.0)) == (True, False)
    assert new_call().remaining() is None
    assert new_call().has_time_for(1e9)


def test_call_has_no_seconds_remaining_when_its_deadline_has_passed() -> None:
    call = Call(Request(), TARGET, timeout=0.0)
    call.begin()
    with pytest.raises(LMTimeoutError, match="deadline of the call has passed"):
        call.remaining()


def test_part_has_its_own_log_and_whole_a_shared_log() -> None:
    call = Call(Request(), TARGET, streamed=True)
    call.part().report.log.append(Attempt())
    assert call.report.log == []
    call.without_stream().report.log.append(Attempt())
    assert call.report.log == [Attempt()]
    assert not call.without_stream().streamed


def test_retry_raises_at_once_when_the_exchange_has_emitted_events() -> None:
    call = new_call()

    def emitting() -> Steps[Response]:
        call.begin()
        call.report.emitted += 1
        raise LMServerError("broken")
        yield

    with pytest.raises(LMServerError) as caught:
        run(RetryPolicy(clock=Clock()).around(call, emitting))
    assert len(caught.value.attempts) == 1


def test_retry_repeats_an_exchange_when_only_an_earlier_exchange_emitted_events() -> None:
    call = new_call()
    call.report.emitted = 3
    outcomes = iter([LMServerError("busy"), None])

    def flaky() -> Steps[str]:
        if error := next(outcomes):
            raise error
        return "done"
        yield

    assert run(RetryPolicy(clock=Clock()).around(call, flaky)) == "done"
