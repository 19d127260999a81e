"""BatchLM: programs run unchanged, their requests travel in batches, and no line is paid twice."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from sigwire.core.events import Finished
from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError, LMInvalidRequestError, LMServerError, LMTimeoutError, LMTransportError
from sigwire.evaluate.evaluation import Evaluate
from sigwire.lm.batch.driver import BatchInDoubt
from sigwire.lm.batch.model import BatchLM
from sigwire.lm.batch.queue import BatchQueue
from sigwire.lm.batch.store import FORM
from sigwire.lm.batch.waves import in_waves
from sigwire.lm.client import LM
from sigwire.lm.codecs.batches import openai as openai_batches
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.deadlines import deadline
from sigwire.lm.policy.money.prices import Price
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.observe.usage import track_usage
from sigwire.testing import FakeProvider, Fault
from sigwire.testing.batches.desk import BatchPlan
from tests.lm.batch.clock import JumpingClock
from tests.lm.batch.conftest import MODELS

Make = Callable[..., BatchLM]


def echo(request: Request) -> str:
    """Answer with the number of the question."""
    found = re.findall(r"question (\d+)", request.messages[-1].text)
    return f"[[ ## answer ## ]]\nanswer {found[-1] if found else '?'}"


def batches_of(provider: FakeProvider) -> Counter[str]:
    """Return the number of answered lines by batch; "" is the ordinary API."""
    return Counter(each.headers.get("x-fake-batch", "") for each in provider.requests)


WAVES: dict[str, Any] = {"quiet": 1e9, "max_wait": 1e9}  # a batch is sent only when all programs wait


def ask_all(lm: BatchLM, inputs: Sequence[Mapping[str, object]]) -> list[Any]:
    """Return the answers, or errors, of programs that run at once."""
    program = Predict("question -> answer", lm=lm)

    def ask(values: Mapping[str, object]) -> Steps[Any]:
        try:
            return (yield from program.call_steps(**values)).answer
        except Exception as error:
            return error

    return run(in_waves(lm.queue, [ask(values) for values in inputs], len(inputs)))


def questions(count: int) -> list[dict[str, object]]:
    return [{"question": f"question {number}"} for number in range(count)]


@pytest.mark.parametrize("wire", MODELS)
def test_batch_lm_answers_all_programs_with_one_batch(wire: str, make: Make) -> None:
    with FakeProvider(echo) as provider:
        lm = make(provider, wire, **WAVES)
        assert ask_all(lm, questions(5)) == [f"answer {number}" for number in range(5)]
        assert list(batches_of(provider).values()) == [5]


def test_batch_of_a_module_runs_through_batches(make: Make) -> None:
    with FakeProvider(echo) as provider:
        program = Predict("question -> answer", lm=make(provider))
        assert [result.answer for result in program.batch(questions(5))] == [f"answer {number}" for number in range(5)]
        assert "" not in batches_of(provider)


@pytest.mark.parametrize("wire", MODELS)
async def test_batch_lm_answers_awaited_programs_with_one_batch(wire: str, make: Make) -> None:
    with FakeProvider(echo) as provider:
        lm = make(provider, wire, **WAVES)
        program = Predict("question -> answer", lm=lm)
        with lm.queue.programs(20):
            results = await asyncio.gather(*(program.acall(**each) for each in questions(20)))
        assert [result.answer for result in results] == [f"answer {number}" for number in range(20)]
        assert list(batches_of(provider).values()) == [20]


def test_batch_lm_emits_a_stream_whole(make: Make) -> None:
    with FakeProvider(echo) as provider:
        program = Predict("question -> answer", lm=make(provider))
        events = list(program.stream(question="question 3"))
        assert isinstance(events[-1], Finished)
        assert events[-1].value.answer == "answer 3"
        assert "stream" not in (provider.requests[0].body or {})  # type: ignore[operator]


async def test_batch_lm_emits_an_awaited_stream_whole(make: Make) -> None:
    with FakeProvider(echo) as provider:
        program = Predict("question -> answer", lm=make(provider))
        events = [event async for event in program.astream(question="question 3")]
        assert isinstance(events[-1], Finished)
        assert events[-1].value.answer == "answer 3"


# --- waves


def agent(lm: BatchLM) -> ReAct:
    def look_up(number: int) -> str:
        """Look a number up."""
        return f"the value of {number}"

    return ReAct("question -> answer", tools=[look_up], lm=lm)


def four_turns(request: Request) -> Any:
    turns = sum(message.role == "assistant" for message in request.messages)
    if turns < 3:
        return ToolCall("", "look_up", {"number": turns})
    return ToolCall("", "submit", {"answer": "done"})


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_agents_of_four_turns_take_four_batches(mode: str, make: Make) -> None:
    with FakeProvider(four_turns) as provider:
        lm = make(provider, **WAVES)
        program = agent(lm)
        steps = in_waves(lm.queue, [program.call_steps(question=f"question {number}") for number in range(6)], 6)
        results = run(steps) if mode == "sync" else asyncio.run(arun(steps))
        assert [result.answer for result in results] == ["done"] * 6
        assert list(batches_of(provider).values()) == [6, 6, 6, 6]


def test_full_batch_is_sent_at_once(make: Make) -> None:
    with FakeProvider(echo) as provider:
        lm = make(provider, size=3, **WAVES)
        BatchQueue.count_programs(lm.queue, 10)  # one more than ask, and the clock does not know of them
        Predict("question -> answer", lm=lm).batch(questions(9), num_threads=9)
        assert list(batches_of(provider).values()) == [3, 3, 3]


def test_equal_requests_are_one_line_and_samples_are_several(make: Make) -> None:
    with FakeProvider(echo) as provider:
        lm = make(provider)
        ask_all(lm, [{"question": "question 1"}] * 4)
        assert len(provider.requests) == 1
        for sample in (1, 2, 2):
            Predict("question -> answer", lm=lm)(question="question 1", config={"rollout_id": sample})
        assert len(provider.requests) == 3


def test_headers_for_tracing_do_not_split_a_batch(make: Make) -> None:
    with FakeProvider(echo) as provider:
        lm = make(provider, **WAVES)
        options = [{"extra_headers": {"traceparent": f"00-{number}"}} for number in range(3)]
        asked = [Request((Message.user(f"Hi {each}"),), options=cast("JsonObject", each)) for each in options]
        run(in_waves(lm.queue, [lm.steps(each) for each in asked], 3))
        assert list(batches_of(provider).values()) == [3]


def test_choices_of_one_request_are_lines_of_their_own(make: Make) -> None:
    with FakeProvider(["one", "two", "three"]) as provider:
        lm = make(provider, **WAVES)
        with lm.queue.programs(3):
            assert sorted(lm("Hi", n=3)) == ["one", "three", "two"]
        assert list(batches_of(provider).values()) == [3]


# --- failures


@pytest.mark.parametrize("wire", MODELS)
def test_refused_line_is_an_error_of_its_program_alone(wire: str, make: Make) -> None:
    def some_are_refused(request: Request) -> Any:
        return Fault("bad_request", "too odd") if "question 1" in request.messages[-1].text else echo(request)

    with FakeProvider(some_are_refused) as provider:
        first, error, third = ask_all(make(provider, wire, **WAVES), questions(3))
        assert [first, third] == ["answer 0", "answer 2"]
        assert isinstance(error, LMInvalidRequestError)
        assert "too odd" in str(error)


@pytest.mark.parametrize("wire", MODELS)
def test_failed_line_is_retried_in_the_next_batch(wire: str, make: Make) -> None:
    failed: set[str] = set()

    def fails_once(request: Request) -> Any:
        text = request.messages[-1].text
        if "question 1" in text and text not in failed:
            failed.add(text)
            return Fault("server", "try again")
        return echo(request)

    with FakeProvider(fails_once) as provider:
        assert ask_all(make(provider, wire, **WAVES), questions(3)) == ["answer 0", "answer 1", "answer 2"]
        assert list(batches_of(provider).values()) == [3, 1]


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize("rest", ["batch", "now"])
def test_expired_lines_run_in_the_next_batch_or_alone(wire: str, rest: str, make: Make) -> None:
    with FakeProvider(echo, batches=BatchPlan(expire=2)) as provider:
        answers = ask_all(make(provider, wire, rest=rest, **WAVES), questions(5))
        assert answers == [f"answer {number}" for number in range(5)]
        assert list(batches_of(provider).values()) == [3, 2]
        assert ("" in batches_of(provider)) == (rest == "now")


@pytest.mark.parametrize("wire", MODELS)
def test_batch_that_is_too_large_is_halved(wire: str, make: Make) -> None:
    with FakeProvider(echo, batches=BatchPlan(most=3)) as provider:
        ask_all(make(provider, wire, **WAVES), questions(8))
        assert list(batches_of(provider).values()) == [2, 2, 2, 2]


@pytest.mark.parametrize("wire", MODELS)
def test_batch_that_the_queue_of_the_provider_refuses_waits_for_another_one(
    wire: str, make: Make, clock: JumpingClock
) -> None:
    with FakeProvider(echo, batches=BatchPlan(queue=4, seconds=25, clock=clock.now)) as provider:
        assert ask_all(make(provider, wire, size=3, **WAVES), questions(6)) == [f"answer {n}" for n in range(6)]
        assert list(batches_of(provider).values()) == [3, 3]


def test_batch_that_an_empty_queue_refuses_is_halved(make: Make) -> None:
    with FakeProvider(echo, batches=BatchPlan(queue=4)) as provider:
        ask_all(make(provider, **WAVES), questions(6))
        assert list(batches_of(provider).values()) == [3, 3]


def test_wrong_key_is_an_error_of_every_program(make: Make) -> None:
    with FakeProvider(echo, key="another") as provider:
        results = Predict("question -> answer", lm=make(provider)).batch(questions(2), return_exceptions=True)
        assert ["401" in str(result) for result in results] == [True, True]


def test_retries_end_with_the_last_error(make: Make) -> None:
    with FakeProvider(lambda request: Fault("server")) as provider:
        lm = make(provider).copy(retry=RetryPolicy(retries=1, first_wait=0.001))
        with pytest.raises(LMServerError) as caught:
            lm("Hi")
        assert [attempt.purpose for attempt in caught.value.attempts] == ["ask", "retry"]


# --- doubt


@pytest.mark.parametrize("wire", MODELS)
def test_batch_whose_creation_lost_its_reply_is_found_and_not_sent_again(
    wire: str, make: Make, clock: JumpingClock
) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=1, clock=clock.now)) as provider:
        assert ask_all(make(provider, wire, **WAVES), questions(4)) == [f"answer {number}" for number in range(4)]
        assert list(batches_of(provider).values()) == [4]


def test_doubt_about_two_equal_batches_is_asked_or_resent(make: Make, clock: JumpingClock, tmp_path: Path) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=2, clock=clock.now, seconds=50)) as provider:
        first = make(provider, store=tmp_path / "first", deadline=5)
        with pytest.raises(LMTimeoutError, match="run the program again"):
            first("question 1")
        with pytest.raises(BatchInDoubt, match="msgbatch_1"):
            make(provider, store=tmp_path / "second")("question 2")
        assert make(provider, store=tmp_path / "second", on_doubt="resend")("question 2") == [
            "[[ ## answer ## ]]\nanswer 2"
        ]


# --- what survives


def test_second_run_with_the_same_store_sends_nothing(make: Make) -> None:
    with FakeProvider(echo) as provider:
        for _ in range(2):
            results = Predict("question -> answer", lm=make(provider)).batch(questions(4))
            assert [result.answer for result in results] == [f"answer {number}" for number in range(4)]
        assert len(provider.requests) == 4


def test_next_run_collects_what_a_deadline_left_behind(make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(seconds=5_000, clock=clock.now)) as provider:
        program = Predict("question -> answer", lm=make(provider, deadline=100))
        results = program.batch(questions(3), return_exceptions=True)
        assert [type(result) for result in results] == [LMTimeoutError] * 3
        again = Predict("question -> answer", lm=make(provider)).batch(questions(3))
        assert [result.answer for result in again] == ["answer 0", "answer 1", "answer 2"]
        assert len(provider.requests) == 3


def test_log_has_a_record_when_a_batch_is_created_refused_and_ends(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "sigwire.batch"), FakeProvider(echo, batches=BatchPlan(most=2)) as provider:
        ask_all(make(provider, **WAVES), questions(3))
    assert caplog.messages[:3] == [
        "anthropic: batch 1 of 3 lines is refused with status 413",
        "anthropic: batch msgbatch_1 is created with 1 lines",
        "anthropic: batch msgbatch_2 is created with 1 lines",
    ]
    assert caplog.messages[-1] == "anthropic: batch msgbatch_3 ended with 1 results for 1 lines"


def test_store_holds_no_request_and_no_key(make: Make, tmp_path: Path) -> None:
    with FakeProvider(["an answer"]) as provider:
        make(provider).copy(api_key="sk-canary-1234567")("a secret question")
    path = tmp_path / "runs" / "x.batch"
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(text in path.read_bytes() for text in (b"secret question", b"canary"))
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*), max(length(id)) FROM lines").fetchone() == (1, 64)
    connection.close()


def test_store_that_is_in_use_is_refused(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigwire.lm.batch.store.FORM", replace(FORM, busy_seconds=0.01))
    path = tmp_path / "x.batch"
    with FakeProvider(echo) as provider:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConfigurationError, match="a file of its own"):
            make(provider, store=path)("Hi")
        connection.close()


def test_batches_shows_and_collects_what_a_run_left_behind(make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(seconds=5_000, clock=clock.now)) as provider:
        with pytest.raises(LMTimeoutError):
            make(provider, deadline=100)("question 1")
        lm = make(provider)
        assert [(batch.name, batch.lines, batch.state) for batch in lm.batches()] == [("msgbatch_1", 1, "running")]
        clock.time += 6_000
        assert [batch.state for batch in lm.batches()] == ["ended"]
        sent = clock.time
        assert lm("question 1") == ["[[ ## answer ## ]]\nanswer 1"]
        assert clock.time == sent  # from the store, without a wait


def test_cancelled_batch_is_sent_again_if_a_program_asks(make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(seconds=5_000, clock=clock.now)) as provider:
        with pytest.raises(LMTimeoutError):
            make(provider, deadline=100)("question 1")
        lm = make(provider)
        assert [batch.state for batch in lm.batches(cancel=True)] == ["ended"]
        assert provider.requests == ()
        assert lm("question 1") == ["[[ ## answer ## ]]\nanswer 1"]
        assert [batch.state for batch in lm.batches(cancel=True)] == ["ended", "ended"]


def test_batches_of_another_provider_are_shown_and_not_polled(make: Make, clock: JumpingClock) -> None:
    with FakeProvider(echo, batches=BatchPlan(seconds=5_000, clock=clock.now)) as provider:
        with pytest.raises(LMTimeoutError):
            make(provider, "anthropic", deadline=100)("question 1")
        assert [batch.state for batch in make(provider, "openai").batches()] == ["running"]


@pytest.mark.parametrize("wire", MODELS)
def test_batch_whose_creation_had_no_reply_is_found_and_cancelled_from_another_script(
    wire: str, make: Make, clock: JumpingClock
) -> None:
    with FakeProvider(echo, batches=BatchPlan(lose=1, clock=clock.now, seconds=5_000)) as provider:
        with pytest.raises(LMTimeoutError):
            make(provider, wire, deadline=5)("question 1")
        assert [batch.state for batch in make(provider, wire).batches(cancel=True)] == ["ended"]
        clock.time += 6_000
        assert provider.requests == ()


def test_failure_of_a_line_that_ran_alone_is_not_stored(make: Make) -> None:
    fails = True

    def answer(request: Request) -> Any:
        return Fault("server") if fails else echo(request)

    with FakeProvider(answer, batches=BatchPlan(expire=1)) as provider:
        with pytest.raises(LMServerError):
            make(provider, rest="now")("question 1")
        fails = False
        assert make(provider, rest="now")("question 1") == ["[[ ## answer ## ]]\nanswer 1"]


def test_batch_is_sent_when_its_first_request_has_waited_long_enough(make: Make, clock: JumpingClock) -> None:
    started = clock.time
    with FakeProvider(echo) as provider:
        assert make(provider, quiet=10_000.0, max_wait=60.0, poll=(1.0, 1.0))("question 1")
    assert clock.time - started < 100


def test_batch_that_never_reached_the_provider_is_the_error_of_its_programs(
    tmp_path: Path, clock: JumpingClock
) -> None:
    plain = LM(MODELS["openai"], base_url="http://127.0.0.1:9", api_key="k", cache=False, num_retries=0)
    lm = BatchLM(plain, tmp_path / "x.batch", clock=clock, deadline=1_000)
    with pytest.raises(LMTransportError):
        lm("question 1")
    assert [batch.state for batch in lm.batches()] == ["failed"]


@pytest.mark.parametrize(("room", "sizes"), [(10, [1, 1, 1]), (1_900, [2, 1])])
def test_batch_has_the_lines_that_fit_into_the_bytes_of_the_provider(
    room: int, sizes: list[int], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_batches, "LIMITS", openai_batches.LIMITS._replace(bytes=room))
    with FakeProvider(echo) as provider:
        ask_all(make(provider, "openai", **WAVES), questions(3))
        assert sorted(batches_of(provider).values(), reverse=True) == sizes


# --- costs and limits


def test_answer_costs_half_and_once(make: Make) -> None:
    with FakeProvider(echo) as provider:
        plain = LM(
            MODELS["anthropic"], price=Price(input=1.0, output=1.0), cache=False, base_url=provider.url("anthropic")
        )
        with track_usage() as whole:
            Predict("question -> answer", lm=plain.copy(api_key="k"))(question="question 1")
        lm = make(provider).copy(price=Price(input=1.0, output=1.0))
        with track_usage() as half:
            Predict("question -> answer", lm=lm)(question="question 1")
        with track_usage() as nothing:
            Predict("question -> answer", lm=lm)(question="question 1")
    costs = [usage.get_total_cost()[MODELS["anthropic"]] for usage in (whole, half, nothing)]
    assert costs[0]
    assert costs[1:] == [costs[0] / 2, 0.0]


def test_deadline_of_the_context_ends_the_wait(make: Make, clock: JumpingClock) -> None:
    plan = BatchPlan(seconds=1e12, clock=clock.now)
    with (
        FakeProvider(echo, batches=plan) as provider,
        deadline(0.1),
        pytest.raises(LMTimeoutError, match="waiting for a batch"),
    ):
        make(provider)("Hi")


async def test_cancelled_program_does_not_end_the_others(make: Make) -> None:
    with FakeProvider(echo) as provider:
        program = Predict("question -> answer", lm=make(provider))
        tasks = [asyncio.ensure_future(program.acall(**each)) for each in questions(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)
        assert [result.answer for result in results[1:]] == ["answer 1", "answer 2"]  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["call", "await", "stream"])
def test_fallback_answers_when_the_line_fails(make: Make, mode: str) -> None:
    with FakeProvider([Fault("server")] * 3) as provider:
        lm = make(provider).copy(fallbacks=[FakeLM(["spare"], model="spare")], num_retries=0)
        request = Request((Message.user("Hi"),))
        if mode == "stream":
            assert "spare" in "".join(getattr(event, "text", "") for event in lm.stream(request))
            return
        response = lm.respond(request) if mode == "call" else asyncio.run(lm.arespond(request))
    assert (response.choices[0].text, response.attempts[-1].purpose) == ("spare", "fallback")


def test_evaluate_runs_in_waves(make: Make) -> None:
    devset = [
        Example(question=f"question {number}", answer=f"answer {number % 3}").with_inputs("question")
        for number in range(9)
    ]

    def exact(example: Example, prediction: Any) -> bool:
        return bool(example.answer == prediction.answer)

    with FakeProvider(echo) as provider:
        lm = make(provider, **WAVES)
        with lm.queue.programs(9):
            result = Evaluate(devset=devset, metric=exact, progress=False)(Predict("question -> answer", lm=lm))
        assert round(result.score) == 33
        assert list(batches_of(provider).values()) == [9]


def test_store_that_is_a_folder_is_refused(make: Make, tmp_path: Path) -> None:
    with FakeProvider(echo) as provider, pytest.raises(ConfigurationError, match="is no file that can be written"):
        make(provider, store=tmp_path)("Hi")


def test_batch_lm_without_a_store_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="store="):
        BatchLM("openai/gpt-4.1-mini")


def test_store_below_a_file_is_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with FakeProvider(echo) as provider, pytest.raises(ConfigurationError, match="is no file that can be written"):
        make(provider, store=tmp_path / "file" / "x.batch")("Hi")


# --- the object


def test_provider_without_a_batch_api_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Use one of anthropic, gemini, openai"):
        BatchLM("ollama/qwen3", store=tmp_path / "x")


@pytest.mark.parametrize(
    "options", [{"rest": "never"}, {"on_doubt": "guess"}, {"size": 0}, {"quiet": -1}, {"poll": 3}, {"poll": (1,)}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="making a BatchLM"):
        BatchLM(MODELS["anthropic"], store=tmp_path / "x", **options)


def test_lm_with_a_forward_of_its_own_is_refused(tmp_path: Path) -> None:
    class Louder(LM):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return super().forward(*args, **kwargs)

    with pytest.raises(ConfigurationError, match="not Louder"):
        BatchLM(Louder(MODELS["anthropic"]), store=tmp_path / "x")


def test_copies_share_the_queue_and_keep_their_own_options(tmp_path: Path) -> None:
    lm = BatchLM(LM(MODELS["anthropic"], temperature=0.5), store=tmp_path / "x")
    warm = lm.copy(temperature=1.0)
    assert (lm.kwargs["temperature"], warm.kwargs["temperature"]) == (0.5, 1.0)
    assert warm.queue is lm.queue
    assert copy.deepcopy(lm).queue is lm.queue


def test_pickle_has_the_options_and_the_state_is_that_of_the_plain_model(tmp_path: Path) -> None:
    lm = BatchLM(MODELS["anthropic"], store=tmp_path / "x", size=7)
    assert pickle.loads(pickle.dumps(lm)).queue.options.size == 7
    assert type(LM.load_state(lm.dump_state())) is LM
