"""Rows in processes that are killed, and drivers that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import sigwire
from sigwire import LM, Evaluate
from sigwire.core.request import Request
from sigwire.evaluate.evaluation import load_records
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.testing import Delivered, FakeProvider
from tests.jobs import app
from tests.jobs.engines import answer_text, job_of, pool, questions
from tests.patience import wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]
ROOT = Path(__file__).resolve().parents[2]


def late_text(request: Request) -> Delivered:
    return Delivered(answer_text(request), after=0.01)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(late_text) as found:
        yield found


def times_asked(provider: FakeProvider) -> Counter[str]:
    """Return how often each question was asked."""
    asked = [recorded.request.messages[-1].text for recorded in provider.requests if recorded.request]
    return Counter(text.split("number ")[1].split()[0] for text in asked)


def test_evaluation_on_processes_equals_that_of_one(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    devset = questions(60, {7: "fault"})
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
    monkeypatch.setenv("OPENAI_API_KEY", app.CANARY)
    with sigwire.context(lm=LM("openai/gpt-4o-mini", limit=False)):
        whole = Evaluate(devset=devset, metric=app.exact, progress=False)(app.Answer())
        spread = Evaluate(devset=devset, metric=app.exact, progress=False, executor=pool)(app.Answer())
    assert (spread.score, spread.status, spread.failures) == (whole.score, "complete", whole.failures)
    for one, other in zip(spread.records, whole.records, strict=True):
        assert (one.id, one.score, one.outputs, one.labels) == (other.id, other.score, other.outputs, other.labels)
    assert spread.usage == whole.usage


def test_killed_workers_cost_no_record_and_only_what_was_under_way(provider: FakeProvider, tmp_path: Path) -> None:
    victims = {13: f"victim {tmp_path / 'first'}", 77: f"victim {tmp_path / 'second'}"}
    rows, out = questions(120, victims), tmp_path / "out.jsonl"
    result = map_rows(job_of(provider, concurrency=4), rows, out, executor=pool, chunk=30)
    assert (result.status, result.rows, result.failures) == ("complete", 120, {})
    assert (tmp_path / "first").exists()
    assert (tmp_path / "second").exists()
    assert [record.index for record in load_records(out).records] == [*range(120)]
    again = sum(count - 1 for count in times_asked(provider).values())
    assert again <= 2 * 2 * 4  # kills, processes, rows under way in each


def test_poisoned_row_ends_as_a_record_and_costs_no_other(provider: FakeProvider, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    job = job_of(provider, concurrency=2)
    result = map_rows(job, questions(30, {21: "poison"}), out, executor=pool, chunk=10)
    assert (result.status, result.rows, result.failures) == ("complete", 30, {"WorkerLost": 1})
    assert [record.index for record in load_records(out).not_scored] == [21]


DRIVER = """
import sys
from concurrent.futures import ProcessPoolExecutor
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.lm.client import LM
from sigwire.jobs.job import Job
from tests.jobs import app
from tests.jobs.engines import pool, questions

if __name__ == "__main__":
    lm = LM("openai/gpt-4o-mini", base_url=sys.argv[1], limit=False, num_retries=0)
    job = Job.of(app.Answer(), app.exact, lm=lm, key="tests.jobs.app:key", concurrency=4)
    result = map_rows(job, questions(100), sys.argv[2], executor=pool, chunk=10)
    print(result.status, result.rows, result.kept)
"""


def has_processes(group: int) -> bool:
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def test_killed_driver_ends_its_workers_and_goes_on_when_it_is_started_again(
    provider: FakeProvider, tmp_path: Path
) -> None:
    out, script = tmp_path / "out.jsonl", tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), provider.url("openai"), str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        wait_until(lambda: len(provider.requests) > 40)
        killed.kill()
        killed.wait()
        wait_until(lambda: not has_processes(killed.pid))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(killed.pid, signal.SIGKILL)
    assert done.stdout.split()[:2] == ["complete", "100"], done.stderr
    assert int(done.stdout.split()[2]) > 0
    assert [record.index for record in load_records(out).records] == [*range(100)]
    assert sum(count - 1 for count in times_asked(provider).values()) <= 2 * 4 * 2
    assert not out.with_name("out.jsonl.journal").exists()


LAZY = """
import json, resource, sys
from concurrent.futures import Executor, Future
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs.job import Job

class Echo(Executor):
    def submit(self, fn, /, *args, **kwargs):
        records = [{"type": "record", "score": 1.0, "started": "", **row} for row in json.loads(args[1])["rows"]]
        future = Future()
        future.set_result(json.dumps({"records": records}))
        return future

def rows(count):
    for number in range(count):
        if number == 5_000:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        yield {"question": f"{number} " + "x" * 3_000}

result = map_rows(Job(program="tests.jobs.app:shout"), rows(20_000), sys.argv[1], executor=Echo(), in_flight=4)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, result.rows)
"""


def test_memory_of_the_driver_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LAZY, str(tmp_path / "out.jsonl")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, last, rows = map(int, done.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024
    assert rows == 20_000
    assert (last - first) * unit < 15_000 * 800  # ids of rows that have records; a row takes 4,000 bytes
