"""Results that are damaged, missing or gone: they are the fault of their lines alone, and no line is paid three times."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.events import Finished
from sigwire.core.example import Example
from sigwire.effects.steps import Steps, run
from sigwire.errors import LMInvalidRequestError, LMTimeoutError, LMUnexpectedError
from sigwire.evaluate.evaluation import Evaluate
from sigwire.lm.batch.model import BatchLM
from sigwire.lm.batch.outcome import is_final, outcome_of
from sigwire.lm.batch.waves import in_waves
from sigwire.lm.client import LM
from sigwire.lm.codecs.batches.shared import BatchCounts, BatchStatus, LineResult
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider
from sigwire.testing.batches.desk import BatchPlan
from tests.lm.batch.clock import JumpingClock
from tests.lm.batch.conftest import MODELS
from tests.lm.batch.edits import EditingTransport, edit_results, has_results, on_line
from tests.lm.batch.test_batch_lm import WAVES, ask_all, batches_of, echo, questions


class Bench:
    """The BatchLM of one wire and one store, made for each run, at a provider whose replies are edited."""

    def __init__(self, provider: FakeProvider, wire: str, store: Path, clock: JumpingClock) -> None:
        given: dict[str, Any] = {"wire": "responses"} if wire == "openai-responses" else {}
        self.transport = EditingTransport()
        url = provider.url("openai" if wire == "openai-responses" else wire)
        given |= {"retry": RetryPolicy(first_wait=0.001, longest_backoff=0.001), "transport": self.transport}
        self._lm = LM(MODELS[wire], base_url=url, api_key="k", cache=False, **given)
        self._options: dict[str, Any] = {"store": store, "clock": clock, **WAVES}

    def lm(self, **options: Any) -> BatchLM:
        lm = BatchLM(self._lm, **{**self._options, **options})
        self._options["clock"].follow(lm.queue)
        return lm

    def run(self, count: int = 3, **options: Any) -> list[Any]:
        """Ask the questions in one wave of a new process, as it were; return answers and errors."""
        return ask_all(self.lm(**options), questions(count))


@pytest.fixture
def bench(tmp_path: Path, clock: JumpingClock) -> Callable[[FakeProvider, str], Bench]:
    return lambda provider, wire: Bench(provider, wire, tmp_path / "x.batch", clock)


Benches = Callable[[FakeProvider, str], Bench]
JSON_LINES = ["anthropic", "openai", "openai-responses"]


def cut_off(line: bytes) -> list[bytes]:
    """Return the first half of a JSON line; of an item of Gemini, which is no line, one without its response."""
    item = json.loads(line)
    return [json.dumps({"metadata": item["metadata"]}).encode()] if "metadata" in item else [line[: len(line) // 2]]


DAMAGES: dict[str, Callable[[bytes], list[bytes]]] = {
    "cut off": cut_off,
    "missing": lambda line: [],
}


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_result_that_is_damaged_in_one_transfer_is_read_again_and_not_paid_again(
    wire: str, damage: str, bench: Benches
) -> None:
    spoil, reads = on_line("answer 1", DAMAGES[damage]), 0

    def once(request: HttpRequest, reply: HttpReply) -> HttpReply:
        nonlocal reads
        reads += has_results(request)
        return spoil(request, reply) if reads == 1 else reply

    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = once
        assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert list(batches_of(provider).values()) == [3]


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_line_without_a_readable_result_is_paid_a_second_time_and_then_an_error_that_is_kept(
    wire: str, damage: str, bench: Benches
) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = on_line("answer 1", DAMAGES[damage])
        first, error, third = one.run()
        assert [first, third] == ["answer 0", "answer 2"]
        assert isinstance(error, LMUnexpectedError)
        assert re.search(r"perhaps paid twice: .*collecting batch .*batches\(again=True\)", str(error))
        assert sum(batches_of(provider).values()) == 4
        one.transport.edit = None  # the next run asks nothing, not even the state of the batch
        calls = len(one.transport.sent)
        assert str(one.run()[1]) == str(error)
        assert len(one.transport.sent) == calls
        one.lm().batches(again=True)
        assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert sum(batches_of(provider).values()) == 5


@pytest.mark.parametrize("mode", ["await", "stream", "astream"])
def test_line_without_a_result_is_an_error_of_awaited_and_streamed_programs(mode: str, bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, "anthropic")
        one.transport.edit = on_line("answer 1", DAMAGES["missing"])
        program = Predict("question -> answer", lm=one.lm(quiet=0.0))

        async def last_event() -> Any:
            return [event async for event in program.astream(question="question 1")][-1]

        def ask() -> Any:
            if mode == "await":
                return asyncio.run(program.acall(question="question 1"))
            event = list(program.stream(question="question 1"))[-1] if mode == "stream" else asyncio.run(last_event())
            assert not isinstance(event, Finished)
            return event

        with pytest.raises(LMUnexpectedError, match="perhaps paid twice"):
            ask()
        assert len(provider.requests) == 2


def test_lost_line_is_a_record_with_its_error_and_no_score(bench: Benches) -> None:
    devset = [Example(question=f"question {n}", answer=f"answer {n}").with_inputs("question") for n in range(3)]

    def exact(example: Example, prediction: Any) -> bool:
        return bool(example.answer == prediction.answer)

    with FakeProvider(echo) as provider:
        one = bench(provider, "openai")
        one.transport.edit = on_line("answer 1", DAMAGES["missing"])
        program = Predict("question -> answer", lm=one.lm(quiet=1.0))
        result = Evaluate(devset=devset, metric=exact, progress=False)(program)
        failures = [record.cell.failure for record in result.records]
        assert [failure is None for failure in failures] == [True, False, True]
        assert failures[1] is not None
        assert failures[1].type == "LMUnexpectedError"
        assert "perhaps paid twice" in failures[1].message
        assert [record.score for record in result.records][::2] == [1.0, 1.0]
        assert result.records[1].score is None


@pytest.mark.parametrize("wire", MODELS)
def test_lost_line_goes_through_the_ordinary_api_once_when_the_rest_runs_now(wire: str, bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = on_line("answer 1", DAMAGES["missing"])
        assert one.run(rest="now") == ["answer 0", "answer 1", "answer 2"]
        assert batches_of(provider)[""] == 1
        assert len(provider.requests) == 4


def test_lost_line_of_a_run_that_ended_is_paid_a_second_time_by_the_next_runs_together(bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, "openai")
        one.transport.edit = on_line("answer 1", DAMAGES["missing"])
        results = [one.run(deadline=15, settle=40)[1] for _ in range(12)]  # each run ends before the loss is certain
        assert isinstance(results[0], LMTimeoutError)
        assert "perhaps paid twice" in str(results[-1])
        assert len(provider.requests) == 4


@pytest.mark.parametrize("wire", ["openai", "openai-responses"])
def test_completed_batch_without_files_is_paid_a_second_time_at_most(wire: str, bench: Benches) -> None:
    def without_files(request: HttpRequest, reply: HttpReply) -> HttpReply:
        return HttpReply(reply.status, reply.headers, reply.body.replace(b'"output_file_id"', b'"none"'))

    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = without_files
        assert {type(each) for each in one.run()} == {LMUnexpectedError}
        assert list(batches_of(provider).values()) == [3, 3]
        assert {type(each) for each in one.run()} == {LMUnexpectedError}
        assert len(provider.requests) == 6


@pytest.mark.parametrize("wire", MODELS)
def test_number_that_json_has_not_does_not_lose_the_answer(wire: str, bench: Benches) -> None:
    def with_nan(line: bytes) -> list[bytes]:
        return [line.replace(b"{", b'{"p":[NaN,-Infinity,1e999],', 1)]

    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = on_line("answer 1", with_nan)
        assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert len(provider.requests) == 3


def test_lone_surrogate_in_a_result_reaches_its_program_alone(bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, "anthropic")
        one.transport.edit = on_line("answer 1", lambda line: [line.replace(b"answer 1", rb"answer \ud800 1")])
        first, _, third = one.run()
        assert [first, third] == ["answer 0", "answer 2"]
        assert len(provider.requests) == 3


ODD_LINES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "byte order mark": lambda lines: [b"\xef\xbb\xbf" + lines[0], *lines[1:]],
    "empty lines": lambda lines: [b"", *lines, b"  ", b""],
    "duplicates": lambda lines: [*lines, *(line.replace(b"answer ", b"another ") for line in lines)],
    "a damaged duplicate first": lambda lines: [*(line[:-9] for line in lines), *lines],
    "foreign lines": lambda lines: [b"3", b"{}", b"null", lines[0].replace(b'custom_id":"', b'custom_id":"f'), *lines],
    "status that is no status": lambda lines: [
        b'{"custom_id":"x","response":{"status_code":1e30,"body":{}}}',
        b'{"custom_id":"y","response":{"status_code":%d,"body":{}}}' % 10**30,
        *lines,
    ],
    "bytes that are no text": lambda lines: [b"\xff\xfe\x00", *lines],
    "depth": lambda lines: [b'{"custom_id":"x","result":' + b"[" * 5000 + b"]" * 5000 + b"}", *lines],
}


@pytest.mark.parametrize("wire", JSON_LINES)
@pytest.mark.parametrize("odd", ODD_LINES)
def test_odd_line_beside_the_results_changes_no_answer(wire: str, odd: str, bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = edit_results(ODD_LINES[odd])
        for _ in range(2):  # the second time from the store
            assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert len(provider.requests) == 3


# --- results that expired


def gone(request: HttpRequest, reply: HttpReply) -> HttpReply:
    return (
        HttpReply(404, {}, b'{"error":{"message":"No such file object","type":"x"}}') if has_results(request) else reply
    )


@pytest.mark.parametrize("wire", MODELS)
def test_expired_results_are_an_error_that_is_kept_until_they_are_asked_for_again(wire: str, bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = gone
        errors = one.run()
        assert {type(error) for error in errors} == {LMUnexpectedError}
        assert re.search(r"has no results of batch .*status 404.*batches\(again=True\)", str(errors[0]))
        assert [batch.state for batch in one.lm().batches()] == ["lost"]
        one.transport.edit, calls = None, len(one.transport.sent)
        assert [str(error) for error in one.run()] == list(map(str, errors))
        assert len(one.transport.sent) == calls  # no run asks for them
        assert [batch.state for batch in one.lm().batches(again=True)] == ["ended"]
        assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert len(provider.requests) == 3  # they were there, and are not paid again


@pytest.mark.parametrize("wire", MODELS)
def test_results_that_stay_expired_are_paid_again_only_after_a_call_of_the_user(wire: str, bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.edit = gone
        one.run()
        assert [batch.state for batch in one.lm().batches(again=True)] == ["failed"]
        assert len(provider.requests) == 3
        one.transport.edit = None
        assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert len(provider.requests) == 6


def test_state_of_a_new_batch_that_is_not_found_yet_is_asked_for_again(bench: Benches) -> None:
    asked = 0

    def late(request: HttpRequest, reply: HttpReply) -> HttpReply:
        nonlocal asked
        asked += (is_status := request.method == "GET" and request.url.rpartition("/")[2].startswith("msgbatch_"))
        return HttpReply(404, {}, b"{}") if is_status and asked == 1 else reply

    with FakeProvider(echo) as provider:
        one = bench(provider, "anthropic")
        one.transport.edit = late
        assert one.run() == ["answer 0", "answer 1", "answer 2"]


def test_batch_that_cannot_be_polled_does_not_hide_the_others(bench: Benches, clock: JumpingClock) -> None:
    def forbidden(request: HttpRequest, reply: HttpReply) -> HttpReply:
        return HttpReply(403, {}, b"{}") if request.url.endswith("msgbatch_1") else reply

    with FakeProvider(echo, batches=BatchPlan(seconds=5_000, clock=clock.now)) as provider:
        one = bench(provider, "anthropic")
        for number in (1, 2):
            one.run(number, deadline=100)
        one.transport.edit = forbidden
        clock.time += 6_000
        with pytest.raises(LMUnexpectedError, match="403"):
            one.lm().batches()
        one.transport.edit = None
        assert one.run(2) == ["answer 0", "answer 1"]


@pytest.mark.parametrize("wire", MODELS)
def test_lines_that_never_run_are_sent_in_few_batches_and_then_an_error_of_this_run(wire: str, bench: Benches) -> None:
    with FakeProvider(echo, batches=BatchPlan(expire=100)) as provider:
        errors = bench(provider, wire).run()
        assert ["3 batches brought no answer" in str(error) for error in errors] == [True] * 3
        assert len(provider.requests) == 0


@pytest.mark.parametrize("wire", MODELS)
def test_creation_whose_reply_cannot_be_read_is_found_and_not_paid_again(
    wire: str, bench: Benches, clock: JumpingClock
) -> None:
    def unreadable(request: HttpRequest, reply: HttpReply) -> HttpReply:
        is_creation = request.method == "POST" and not request.url.endswith("/files")
        return HttpReply(200, {}, b"<html>") if is_creation else reply

    with FakeProvider(echo, batches=BatchPlan(clock=clock.now)) as provider:
        one = bench(provider, wire)
        one.transport.edit = unreadable
        assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert len(provider.requests) == 3


def test_state_that_stays_unreadable_is_an_error_of_the_programs_that_wait(bench: Benches) -> None:
    with FakeProvider(echo) as provider:
        one = bench(provider, "gemini")
        one.transport.edit = lambda request, reply: HttpReply(200, {}, b"<html>") if has_results(request) else reply
        errors = one.run()
        assert ["cannot be read" in str(error) for error in errors] == [True] * 3
        one.transport.edit = None
        assert one.run() == ["answer 0", "answer 1", "answer 2"]
        assert len(provider.requests) == 3


def test_key_function_that_fails_while_a_batch_runs_is_asked_again_and_holds_no_other_account(
    bench: Benches, clock: JumpingClock
) -> None:
    failing = {"from": 4, "to": 7}  # after two lines, the file and the creation
    asked = 0

    def key() -> str:
        nonlocal asked
        asked += 1
        if failing["from"] < asked <= failing["to"]:
            raise RuntimeError("no token now")
        return "k"

    def ask(program: Predict, number: int) -> Steps[Any]:
        try:
            return (yield from program.call_steps(question=f"question {number}")).answer
        except RuntimeError as error:
            return error

    with FakeProvider(echo, batches=BatchPlan(seconds=500, clock=clock.now)) as provider:
        one = bench(provider, "anthropic")
        lm = one.lm()
        other = lm.copy(model=MODELS["openai"], base_url=provider.url("openai"), api_key=key)
        programs = [Predict("question -> answer", lm=each) for each in (lm, other)]
        steps = [ask(programs[number % 2], number) for number in range(4)]
        assert run(in_waves(lm.queue, steps, 4)) == [f"answer {number}" for number in range(4)]
        failing["to"], asked = 10**6, 0
        steps = [ask(programs[number % 2], number) for number in range(4, 8)]
        results = run(in_waves(lm.queue, steps, 4))
        assert [str(each) for each in results] == ["answer 4", "no token now", "answer 6", "no token now"]


# --- lines that a refusal names


def questions_in(body: bytes) -> list[int]:
    """Return the numbers of the questions of a creation, in the order of its lines."""
    return [int(number) for number in re.findall(rb"question (\d+)", body)]


def test_line_that_a_failed_batch_names_fails_alone(bench: Benches) -> None:
    def fails(request: HttpRequest, reply: HttpReply) -> HttpReply:
        if not request.url.endswith("batches/batch_1"):
            return reply
        errors = {"data": [{"code": "invalid_value", "message": "bad param", "line": 2}]}
        return HttpReply(200, {}, json.dumps({"id": "batch_1", "status": "failed", "errors": errors}).encode())

    with FakeProvider(echo) as provider:
        one = bench(provider, "openai")
        one.transport.edit = fails
        results = one.run(4)
        files = [questions_in(each.body) for each in one.transport.sent if each.url.endswith("/files")]
        named = files[0][1]
        assert sorted(files[1]) == sorted({0, 1, 2, 3} - {named})
        assert isinstance(results[named], LMInvalidRequestError)
        assert "bad param" in str(results[named])
        assert [each for each in results if isinstance(each, str)] == [f"answer {n}" for n in sorted(files[1])]


REFUSALS = {
    "anthropic": "requests.{}.params.max_tokens: the limit is 64000",
    "gemini": "Invalid JSON payload received. Unknown name at 'batch.input_config.requests.requests[{}].request'",
}


@pytest.mark.parametrize("wire", REFUSALS)
def test_line_that_a_refused_creation_names_fails_alone(wire: str, bench: Benches) -> None:
    creations: list[list[int]] = []

    def refuse(request: HttpRequest) -> HttpReply | None:
        if request.method != "POST":
            return None
        creations.append(questions_in(request.body))
        if 2 not in creations[-1]:
            return None
        text = REFUSALS[wire].format(creations[-1].index(2))
        error = {"type": "invalid_request_error", "status": "INVALID_ARGUMENT", "code": 400, "message": text}
        return HttpReply(400, {}, json.dumps({"type": "error", "error": error}).encode())

    with FakeProvider(echo) as provider:
        one = bench(provider, wire)
        one.transport.refuse = refuse
        results = one.run(4)
        assert [each for each in results if isinstance(each, str)] == ["answer 0", "answer 1", "answer 3"]
        assert isinstance(results[2], LMInvalidRequestError)
        assert list(map(len, creations)) == [4, 3]


@pytest.mark.parametrize("text", ["Request contains an invalid argument.", "The request exceeds what is allowed."])
@pytest.mark.parametrize("bad", [{3}, {0, 9}, set(range(10))])
def test_refused_creation_without_a_reason_is_tried_by_halves(text: str, bad: set[int], bench: Benches) -> None:
    creations: list[list[int]] = []

    def refuse(request: HttpRequest) -> HttpReply | None:
        if request.method != "POST":
            return None
        creations.append(questions_in(request.body))
        error = {"status": "INVALID_ARGUMENT", "code": 400, "message": text}
        return HttpReply(400, {}, json.dumps({"error": error}).encode()) if bad & set(creations[-1]) else None

    with FakeProvider(echo) as provider:
        one = bench(provider, "gemini")
        one.transport.refuse = refuse
        results = one.run(10)
        assert {number for number, each in enumerate(results) if not isinstance(each, str)} == bad
        is_bounded = len(bad) == 10 and "argument" in text
        assert len(creations) <= (6 if is_bounded else 30)
        creations.clear()
        # Threads add their lines in any order, so a half of bad and good lines may be refused as a whole.
        good = ask_all(one.lm(size=20), questions(20)[10:]) if is_bounded else one.run(20, size=20)[10:]
        assert good == [f"answer {number}" for number in range(10, 20)]


def test_line_over_a_limit_does_not_make_the_batches_of_other_models_small(bench: Benches) -> None:
    creations: list[list[int]] = []

    def refuse(request: HttpRequest) -> HttpReply | None:
        if request.method != "POST":
            return None
        creations.append(questions_in(request.body))
        return HttpReply(400, {}, b'{"error":{"message":"a text exceeds the limit"}}') if 0 in creations[-1] else None

    with FakeProvider(echo) as provider:
        one = bench(provider, "anthropic")
        one.transport.refuse = refuse
        lm = one.lm()
        small, large = (
            Predict("question -> answer", lm=each) for each in (lm, lm.copy(model="anthropic/claude-opus-4-1"))
        )

        def ask(program: Predict, number: int) -> Steps[Any]:
            try:
                return (yield from program.call_steps(question=f"question {number}")).answer
            except LMInvalidRequestError as error:
                return error

        steps = [ask(small if number < 8 else large, number) for number in range(30)]
        results = run(in_waves(lm.queue, steps, 30))
        assert [number for number, each in enumerate(results) if not isinstance(each, str)] == [0]
        assert [sorted(each) for each in creations if min(each) >= 8] == [list(range(8, 30))]


def test_queue_that_a_batch_of_an_earlier_run_fills_is_free_when_that_batch_ends(
    bench: Benches, clock: JumpingClock
) -> None:
    with FakeProvider(echo, batches=BatchPlan(queue=4, seconds=50, clock=clock.now)) as provider:
        one = bench(provider, "anthropic")
        one.run(2, deadline=5)
        assert one.run(8, deadline=10_000)[2:] == [f"answer {number}" for number in range(2, 8)]
        assert sorted(batches_of(provider).values()) == [2, 3, 3]


# --- files of earlier versions

EARLIER_SCHEMA = """
CREATE TABLE batches (number INTEGER PRIMARY KEY, provider TEXT NOT NULL, base TEXT NOT NULL, mark TEXT NOT NULL,
  name TEXT, created REAL NOT NULL, lines INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE lines (id TEXT PRIMARY KEY, batch INTEGER NOT NULL, status INTEGER, answer BLOB) WITHOUT ROWID;
CREATE INDEX lines_of_batch ON lines (batch) WHERE status IS NULL;
PRAGMA user_version = 1;
"""


def test_file_of_an_earlier_version_is_continued(bench: Benches, clock: JumpingClock, tmp_path: Path) -> None:
    with FakeProvider(echo, batches=BatchPlan(seconds=50, clock=clock.now)) as provider:
        one = bench(provider, "openai")
        one.run(2, deadline=5)
        with closing(sqlite3.connect(tmp_path / "x.batch")) as new, closing(sqlite3.connect(tmp_path / "old")) as old:
            old.executescript(EARLIER_SCHEMA)
            for table, width in (("batches", 8), ("lines", 4)):
                rows = new.execute(f"SELECT * FROM {table}").fetchall()
                old.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)
            old.commit()
        one.transport.edit = on_line("answer 1", DAMAGES["missing"])
        first, second = one.run(2, store=tmp_path / "old")
        assert first == "answer 0"
        assert "perhaps paid twice" in str(second)
        assert len(provider.requests) == 3


# --- outcomes


@given(
    ids=st.sets(st.sampled_from("abcde")),
    results=st.lists(
        st.builds(LineResult, st.sampled_from("abcdx"), st.sampled_from([None, 0, 200, 400, 429, 500]), st.integers())
    ),
    is_cut=st.booleans(),
)
def test_each_line_has_one_outcome_and_an_answer_if_one_came(
    ids: set[str], results: list[LineResult], is_cut: bool
) -> None:
    outcome = outcome_of(ids, BatchStatus("ended", BatchCounts(), {}, is_cut=is_cut), results)
    found: Sequence[str] = [*(id for id, _, _ in outcome.answers), *outcome.unsent, *outcome.lost]
    assert sorted(found) == sorted(ids)
    for id in ids:
        own = [each.status for each in results if each.id == id]
        final = [status for status in own if status is not None and is_final(status)]
        answered = [status for each, status, _ in outcome.answers if each == id]
        assert answered[:1] == (final[:1] or [status for status in own if status][:1])
        assert (id in outcome.unsent) == (not answered and 0 not in own and (None in own or is_cut))
