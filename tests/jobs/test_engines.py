"""Rows on real clusters of Dask and Ray, with workers that are killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.evaluate.evaluation import load_records
from sigwire.evaluate.rows.map_result import MapResult
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs.coordinator import Coordinator
from sigwire.jobs.job import Job
from sigwire.jobs.ray_executor import RayExecutor
from sigwire.testing import FakeProvider
from tests.jobs.app import process_id

pytestmark = pytest.mark.long

CANARY = "canary-key-of-the-worker"  # of tests.jobs.app:key
IN_FLIGHT = 8  # two processes with four rows at once


class Recorder(Executor):
    """Passes calls on, and keeps their arguments."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.texts: list[str] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.texts += args
        return self._executor.submit(function, *args, **kwargs)


@dataclass
class Engine:
    """Two worker processes: an executor, and their ids now."""

    executor: Executor
    process_ids: Callable[[], list[int]]


@dataclass
class Answers:
    """The answers of a provider; kills a worker when it has answered so many requests."""

    kills: dict[int, int] = field(default_factory=dict)
    count: int = 0

    def __call__(self, request: object) -> str:
        self.count += 1
        if (victim := self.kills.pop(self.count, None)) is not None:
            os.kill(victim, signal.SIGKILL)
        time.sleep(0.01)
        return "[[ ## answer ## ]]\nHello\n\n[[ ## completed ## ]]"


@pytest.fixture(scope="module", params=["dask", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    yield from (dask if request.param == "dask" else ray)()


def dask() -> Iterator[Engine]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    config = pytest.importorskip("dask.config")
    settings = {
        "distributed.logging.distributed": "critical",
    }
    with (
        config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield Engine(client.get_executor(pure=False), lambda: [*client.run(os.getpid).values()])


def ray() -> Iterator[Engine]:
    module = pytest.importorskip("ray", reason="ray is not installed")
    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    executor = RayExecutor()

    def process_ids() -> list[int]:
        return sorted({future.result() for future in [executor.submit(process_id) for _ in range(16)]})[:2]

    try:
        yield Engine(executor, process_ids)
    finally:
        module.shutdown()


def job(provider: FakeProvider) -> Job:
    lm = sigwire.LM("openai/gpt-4o-mini", base_url=provider.url("openai"), cache=False)
    return Job(program="tests.jobs.app:Answer", lm=lm, key="tests.jobs.app:key", concurrency=IN_FLIGHT // 2)


def outputs(result: MapResult) -> dict[str, object]:
    return {record.id: record.outputs for record in load_records(result.path).records}


def test_killed_workers_change_no_record_and_cost_at_most_the_calls_under_way(engine: Engine, tmp_path: Path) -> None:
    rows = [{"question": f"Question {number}?"} for number in range(100)]
    with FakeProvider(Answers()) as provider, ThreadPoolExecutor(1) as pool:
        expected = map_rows(job(provider), rows, tmp_path / "one.jsonl", executor=pool)
    answers = Answers(dict(zip((20, 50), engine.process_ids(), strict=True)))
    recorder = Recorder(engine.executor)
    with FakeProvider(answers) as provider, Coordinator(calls=200, rate=500) as coordinator:
        result = map_rows(
            job(provider), rows, tmp_path / "out.jsonl", executor=recorder, chunk=10, coordinator=coordinator.url
        )
        assert coordinator.spent.calls >= answers.count
    assert (result.status, result.rows, result.failures) == ("complete", 100, {})
    assert outputs(result) == outputs(expected)
    assert result.lost >= 2
    assert 100 <= answers.count <= 100 + IN_FLIGHT
    assert not any(CANARY in text for text in recorder.texts)
    assert CANARY not in (tmp_path / "out.jsonl").read_text(encoding="utf-8")


def test_records_of_workers_have_the_evidence_of_one_process(engine: Engine, tmp_path: Path) -> None:
    rows = [{"question": f"number {number}"} for number in range(30)]
    of_triage = Job(program="tests.jobs.app:Triage")
    result = map_rows(of_triage, rows, tmp_path / "out.jsonl", executor=engine.executor, chunk=4)
    with ThreadPoolExecutor(1) as pool:
        expected = map_rows(of_triage, rows, tmp_path / "one.jsonl", executor=pool)
    one, other = (
        {record.id: record.cell.evidence for record in load_records(each.path).records} for each in (result, expected)
    )
    assert one == other
    assert {each["urgent"]["source"] for each in one.values()} == {"stated"}
    assert (result.rows, result.failures) == (30, expected.failures)


def test_poisoned_row_is_one_record_and_the_run_ends(engine: Engine, tmp_path: Path) -> None:
    rows = [{"question": f"Question {number}?" + " poison" * (number == 7)} for number in range(30)]
    with FakeProvider(Answers()) as provider:
        result = map_rows(job(provider), rows, tmp_path / "out.jsonl", executor=engine.executor, chunk=10, stall=30)
    assert (result.status, result.rows, result.failures) == ("complete", 30, {"WorkerLost": 1})


def test_budget_of_all_workers_is_exact_then_raised_and_resumed(engine: Engine, tmp_path: Path) -> None:
    rows, answers = [{"question": f"Question {number}?"} for number in range(60)], Answers()
    with FakeProvider(answers) as provider:
        first = map_rows(job(provider), rows, tmp_path / "out.jsonl", executor=engine.executor, chunk=10, calls=25)
        assert (first.status, answers.count, first.rows) == ("budget", 25, 25)
        second = map_rows(job(provider), rows, tmp_path / "out.jsonl", executor=engine.executor, chunk=10, calls=100)
    assert (second.status, second.rows, second.failures, answers.count) == ("complete", 60, {}, 60)
