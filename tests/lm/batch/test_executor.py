"""BatchExecutor: the rows of ``map_rows`` in this process, their requests in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwire.errors import ConfigurationError, StateError
from sigwire.evaluate.evaluation import load_records
from sigwire.evaluate.rows.map_rows import amap_rows, map_rows
from sigwire.jobs.job import Job
from sigwire.lm.base import BaseLM
from sigwire.lm.batch.executor import BatchExecutor
from sigwire.lm.batch.model import BatchLM
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider
from tests.lm.batch.test_batch_lm import batches_of, echo, questions


def test_rows_of_a_job_travel_in_batches_and_a_second_run_sends_nothing(
    make: Callable[..., BatchLM], tmp_path: Path
) -> None:
    with FakeProvider(echo) as provider:
        for out in ("one.jsonl", "two.jsonl"):
            lm = make(provider)
            job = Job.of(Predict("question -> answer"), lm=lm)
            with BatchExecutor(lm) as executor:
                result = map_rows(job, questions(12), tmp_path / out, executor=executor, chunk=4)
            assert (result.status, result.rows, dict(result.failures)) == ("complete", 12, {})
            answers = {str((row.outputs or {})["answer"]) for row in load_records(tmp_path / out).records}
            assert answers == {f"answer {number}" for number in range(12)}
        assert sum(batches_of(provider).values()) == 12
        assert "" not in batches_of(provider)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_map_rows_takes_provider_batches_by_name(mode: str, make: Callable[..., BatchLM], tmp_path: Path) -> None:
    with FakeProvider(echo) as provider:
        job, out = Job.of(Predict("question -> answer"), lm=make(provider)), tmp_path / "out.jsonl"
        result = (
            map_rows(job, questions(3), out, executor="provider-batch")
            if mode == "sync"
            else asyncio.run(amap_rows(job, questions(3), out, executor="provider-batch"))
        )
        assert (result.status, result.rows, dict(result.failures)) == ("complete", 3, {})
        assert "" not in batches_of(provider)


def test_executor_for_a_file_takes_the_model_of_the_job(make: Callable[..., BatchLM], tmp_path: Path) -> None:
    with FakeProvider() as provider:
        BatchExecutor.for_file(tmp_path / "out.jsonl", make(provider))
    BatchExecutor.for_file(tmp_path / "out.jsonl", "anthropic/claude-haiku-4-5")
    for lm in (None, "app:make_lm"):
        with pytest.raises(ConfigurationError, match="need a job with lm"):
            BatchExecutor.for_file(tmp_path / "out.jsonl", lm)


def test_values_that_are_no_job_are_passed_on(make: Callable[..., BatchLM]) -> None:
    with FakeProvider() as provider, BatchExecutor(make(provider)) as executor:
        assert executor.submit("{}{}".format, '{"rows": []}', "text").result() == '{"rows": []}text'
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()


def test_shared_state_is_of_this_process(make: Callable[..., BatchLM]) -> None:
    with FakeProvider() as provider:
        lm = make(provider)
        assert BaseLM.load_state(lm.shared_state(), allow_unsafe_lm_state=True) is lm
        with pytest.raises(StateError, match="in the process that made it"):
            BaseLM.load_state({**lm.shared_state(), "shared": 0}, allow_unsafe_lm_state=True)
