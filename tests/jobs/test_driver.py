"""``Driver``: what is sent when, while chunks are lost, and what it keeps, decided by hand."""

from __future__ import annotations

import json
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.json import JsonObject
from sigwire.effects.steps import Steps, run
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs.driver import Driver, chunks_of
from sigwire.jobs.journal import RowAttempt
from sigwire.jobs.submissions import Submissions
from sigwire.testing import FakeProvider
from tests.jobs.engines import InlineExecutor, answer_text, job_of, questions


class Sink:
    """Keeps the ids of records and of lost rows, and the number of syncs."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.lost: list[str] = []
        self.syncs = 0

    def keep(self, record: JsonObject) -> Steps[None]:
        self.kept.append(str(record["id"]))
        yield from ()

    def give_up(self, row: JsonObject) -> Steps[None]:
        self.lost.append(str(row["id"]))
        yield from ()

    def sync(self) -> None:
        self.syncs += 1

    def is_over(self) -> bool:
        return False


class Hands(Executor):
    """An engine whose chunks the test answers and loses."""

    def __init__(self, folder: Path, rows: str, size: int, in_flight: int) -> None:
        self.sent: list[dict[str, Any]] = []
        self.has_ended = False
        self._futures: dict[str, Future[Any]] = {}
        self.journal, self.sink = folder / "journal", Sink()
        given: list[JsonObject] = [{"id": name, "repeat": 1} for name in rows]
        self._submissions = Submissions(self, in_flight, 0.01)
        self.driver = Driver(chunks_of([("", row) for row in given], size), self._submissions, self.sink, self.journal)
        self._steps = self.driver.steps()
        next(self._steps)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sent.append(json.loads(args[1]))
        self._futures[self.rows[-1]] = Future()
        return self._futures[self.rows[-1]]

    @property
    def rows(self) -> list[str]:
        """The ids in each chunk that was sent."""
        return ["".join(row["id"] for row in chunk["rows"]) for chunk in self.sent]

    def write(self, rows: str, started: str = "", done: str = "") -> None:
        """Write into the journal of a chunk, as its worker does."""
        chunk = self.sent[len(self.rows) - 1 - self.rows[::-1].index(rows)]
        attempt = RowAttempt(self.journal / chunk["block"])
        for name in started:
            attempt.start({"id": name, "repeat": 1})
        for name in done:
            attempt.done({"id": name, "repeat": 1})
        attempt.close()

    def answer(self, rows: str) -> None:
        records = [{"id": name, "repeat": 1} for name in rows]
        self._futures.pop(rows).set_result(json.dumps({"records": records}))
        self.go_on()

    def lose(self, rows: str, started: str = "") -> None:
        self.write(rows, started)
        self._futures.pop(rows).set_exception(RuntimeError("the worker is gone"))
        self.go_on()

    def refuse(self, rows: str, kind: str) -> None:
        refused = {"kind": kind, "message": f"no {kind}"}
        self._futures.pop(rows).set_result(json.dumps({"records": [], "refused": refused}))
        self.go_on()

    def cancel(self, rows: str) -> None:
        self._futures.pop(rows).cancel()
        self.go_on()

    def interrupt(self, ended: dict[str, str]) -> None:
        """Interrupt the driver; then chunks end with the records of these rows, and the others run on."""
        for future in self._futures.values():
            future.set_running_or_notify_cancel()
        with pytest.raises(KeyboardInterrupt):
            self._steps.throw(KeyboardInterrupt)
        for rows, done in ended.items():
            records = [{"id": name, "repeat": 1} for name in done]
            self._futures.pop(rows).set_result(json.dumps({"records": records}))

    def go_on(self) -> None:
        """Give the driver the chunk that ended; ``None`` if there is none."""
        try:
            self._steps.send(self._submissions.next_ended())
        except StopIteration:
            self.has_ended = True


def test_suspect_is_sent_when_no_other_row_is_out(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "abcd", size=2, in_flight=3)
    hands.lose("ab", started="a")
    assert hands.rows == ["ab", "cd", "b"]
    hands.answer("b")
    assert hands.rows == ["ab", "cd", "b"]
    hands.answer("cd")
    assert hands.rows == ["ab", "cd", "b", "a"]


def test_suspect_of_two_losses_is_sent_when_nothing_else_is_out(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "ab", size=2, in_flight=3)
    hands.lose("ab", started="ab")
    assert hands.rows == ["ab", "a", "b"]
    hands.lose("a", started="a")
    assert hands.rows == ["ab", "a", "b"]
    hands.answer("b")
    assert hands.rows == ["ab", "a", "b", "a"]
    hands.lose("a", started="a")
    assert (hands.sink.kept, hands.sink.lost, hands.driver.status) == (["b"], ["a"], "complete")


def test_losses_in_which_a_row_began_do_not_end_the_run(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "ab", size=2, in_flight=1)  # more than three losses without a started row end it
    hands.lose("ab", started="ab")
    for name in "abab":
        hands.lose(name, started=name)
    assert (hands.sink.lost, hands.driver.status, hands.driver.lost) == (["a", "b"], "complete", 5)


def test_losses_before_the_first_row_are_three_in_a_row_for_each_chunk_that_may_be_out(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "ab", size=1, in_flight=2)
    for name in "abababb":
        assert hands.driver.status == "complete"
        hands.lose(name)
    assert hands.driver.status == "engine-lost"


def test_record_ends_a_row_of_losses(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "abc", size=1, in_flight=1)
    for name in "abc":
        hands.lose(name)
        hands.lose(name)
        hands.answer(name)
    assert (hands.sink.kept, hands.driver.status) == (["a", "b", "c"], "complete")


def test_lost_engine_ends_the_run_while_other_chunks_are_out(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "ab", size=1, in_flight=2)
    hands.write("b", started="b", done="b")
    hands.cancel("a")
    assert (hands.has_ended, hands.driver.status) == (True, "engine-lost")
    assert hands.sink.kept == ["b"]  # from its journal


def test_stalled_run_keeps_the_records_in_its_journals(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "ab", size=2, in_flight=1)
    hands.write("ab", started="ab", done="a")
    hands.go_on()  # a worker wrote to the journal
    hands.go_on()
    assert (hands.has_ended, hands.driver.status, hands.sink.kept) == (True, "stalled", ["a"])


def test_spent_budget_keeps_the_chunks_that_are_out_and_is_the_reason_of_the_end(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "abcd", size=1, in_flight=3)
    hands.refuse("a", "budget")
    assert hands.rows == ["a", "b", "c"]
    hands.answer("b")
    hands.go_on()
    assert (hands.has_ended, hands.sink.kept) == (True, ["b"])
    assert (hands.driver.status, hands.driver.detail) == ("budget", "no budget")


def test_journals_of_finished_blocks_are_removed_while_the_run_goes_on(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "abcdefghijklmn", size=1, in_flight=1)
    for name in "abcdefghijkl":
        hands.write(name, started=name, done=name)
        hands.answer(name)
    assert hands.sink.syncs == 1
    assert len([*hands.journal.iterdir()]) == 3


def test_row_that_kills_a_worker_with_a_folder_of_its_own_is_a_record(tmp_path: Path) -> None:
    class Elsewhere(InlineExecutor):
        """Workers on another machine: they write their journal to a folder that the driver does not see."""

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            job = {**json.loads(args[0]), "journal": str(tmp_path / "elsewhere")}
            return super().submit(fn, json.dumps(job), args[1])

    with FakeProvider(answer_text) as provider:
        job, rows = job_of(provider, concurrency=1), questions(6, {3: "death"})
        result = map_rows(job, rows, tmp_path / "out.jsonl", executor=Elsewhere(), chunk=2, in_flight=1)
    assert (result.status, result.rows, result.failures) == ("complete", 6, {"WorkerLost": 1})


class Pool(Executor):
    """A pool whose futures the test ends. ``waits``: the option of each shutdown."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []
        self.waits: list[bool] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        assert cancel_futures
        self.waits.append(wait)


def test_broken_pool_is_replaced_when_nothing_of_it_is_out() -> None:
    pools = [Pool(), Pool()]
    submissions = Submissions(iter(pools).__next__, 3, 1.0)
    one, two = chunks_of([("", {"id": name, "repeat": 1}) for name in "ab"], 1)
    assert submissions.submit(one)
    assert submissions.submit(two)
    for future, has_room in zip(pools[0].futures, (False, True), strict=True):
        future.set_exception(BrokenExecutor())
        assert submissions.next_ended() is not None
        assert submissions.has_room() is has_room
    assert submissions.submit(one)
    assert [len(pool.futures) for pool in pools] == [2, 1]


def test_pool_is_closed_without_a_wait_for_chunks_that_are_out() -> None:
    pool = Pool()
    submissions = Submissions(lambda: pool, 2, 1.0)
    (chunk,) = chunks_of([("", {"id": "a", "repeat": 1})], 1)
    submissions.submit(chunk)
    submissions.close()
    assert (pool.waits, pool.futures[0].cancelled()) == ([False], True)


def test_pool_without_chunks_that_are_out_is_waited_for() -> None:
    pool = Pool()
    submissions = Submissions(lambda: pool, 2, 1.0)
    (chunk,) = chunks_of([("", {"id": "a", "repeat": 1})], 1)
    submissions.submit(chunk)
    pool.futures[0].set_result("{}")
    submissions.next_ended()
    assert pool.waits == []
    submissions.close()
    assert pool.waits == [True]


def test_interrupted_driver_stops_the_rows_of_its_chunks_and_keeps_what_ends(tmp_path: Path) -> None:
    hands, noted = Hands(tmp_path, "abcdef", size=2, in_flight=2), list[int]()
    hands.write("ab", started="ab", done="a")
    hands.interrupt({"cd": "cd"})
    run(hands.driver.let_end(0.0, noted.append))
    assert (hands.rows, hands.sink.kept, noted) == (["ab", "cd"], ["c", "d", "a"], [1])
    attempts = [RowAttempt(hands.journal / chunk["block"]) for chunk in hands.sent]
    assert [attempt.is_stopped() for attempt in attempts] == [True, False]  # no row of the second one is missing


def test_driver_that_is_interrupted_twice_keeps_what_the_journals_have(tmp_path: Path) -> None:
    hands = Hands(tmp_path, "ab", size=2, in_flight=1)
    hands.write("ab", started="ab", done="a")
    hands.interrupt({})

    def interrupted_again(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(hands.driver.let_end(10, interrupted_again))
    assert hands.sink.kept == ["a"]
