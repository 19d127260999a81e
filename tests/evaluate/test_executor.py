"""Evaluations on an executor: blocking, awaited and streamed, with their limits, logs and listeners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import LM, BaseCallback, Budget, ConfigurationError, Evaluate, EvaluationAborted, ExampleDone, Finished
from sigwire.jobs.errors import JobRefused
from sigwire.testing import FakeProvider
from tests.jobs import app
from tests.jobs.engines import InlineExecutor, answer_text, questions


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    with FakeProvider(answer_text) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", num_retries=0)
        # The model of a worker reads its key itself: this one runs in a thread of the test.
        monkeypatch.setattr("sigwire.jobs.worker._lm_of", lambda job: lm)
        with sigwire.context(lm=lm):
            yield provider


def evaluation(count: int = 12, **options: Any) -> Evaluate:
    given = {"executor": InlineExecutor(), "metric": app.exact, "progress": False, **options}
    return Evaluate(devset=questions(count, options.pop("odd", None)), **{k: v for k, v in given.items() if k != "odd"})


async def test_forms_of_an_evaluation_have_the_same_records(provider: FakeProvider) -> None:
    program = app.Answer()
    whole = evaluation(executor=None)(program)
    blocking = evaluation()(program)
    awaited = await evaluation().acall(program)
    *events, end = evaluation().stream(program)
    *later, last = [event async for event in evaluation().astream(program)]
    assert isinstance(end, Finished)
    assert isinstance(last, Finished)
    for result in (blocking, awaited, end.value, last.value):
        assert (result.score, result.n, result.usage) == (whole.score, 12, whole.usage)
        assert [record.outputs for record in result.records] == [record.outputs for record in whole.records]
    assert [event.done for event in events if isinstance(event, ExampleDone)] == [*range(1, 13)]
    assert len(later) == 12


def test_log_of_one_process_goes_on_on_an_executor(provider: FakeProvider, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with pytest.raises(EvaluationAborted):
        evaluation(odd={1: "fault", 4: "fault"}, max_errors=1, num_threads=1, executor=None, log=log)(app.Answer())
    before = len(provider.requests)
    result = evaluation(odd={1: "fault", 4: "fault"}, log=log)(app.Answer())
    assert (result.status, len(result.records), len(result.failed)) == ("complete", 12, 2)
    assert before + len(provider.requests[before:]) == 10
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_too_many_failures_end_an_evaluation_on_an_executor(provider: FakeProvider) -> None:
    executor = InlineExecutor()
    odd = dict.fromkeys(range(40), "fault")
    with pytest.raises(EvaluationAborted, match="max_errors=2") as aborted:
        evaluation(40, odd=odd, max_errors=2, executor=executor)(app.Answer())
    assert aborted.value.result is not None
    assert len(aborted.value.result.records) < 40


def test_first_failure_ends_an_evaluation_that_raises(provider: FakeProvider) -> None:
    with pytest.raises(JobRefused, match=r"ValueError: no answer to number 1 fault"):
        evaluation(odd={1: "fault"}, errors="raise")(app.Answer())


def test_budget_ends_an_evaluation_on_an_executor(provider: FakeProvider) -> None:
    result = evaluation(budget=Budget(calls=5))(app.Answer())
    assert (result.status, len(result.records), len(provider.requests)) == ("budget", 5, 5)


def test_listeners_in_the_driver_see_the_facts_of_each_example_as_in_threads(provider: FakeProvider) -> None:
    seen: list[dict[str, Any]] = []

    class Listener(BaseCallback):
        def on_example_start(self, call_id: str, instance: object, inputs: dict[str, Any]) -> None:
            seen.append(inputs)

    result = evaluation(3, callbacks=[Listener()])(app.Answer())
    there = [*seen]
    seen.clear()
    evaluation(3, callbacks=[Listener()], executor=None, num_threads=1)(app.Answer())
    assert [facts["id"] for facts in there] == [record.id for record in result.records]
    assert there == seen


def test_repeats_are_other_samples(provider: FakeProvider) -> None:
    result = evaluation(2, repeat=3)(app.Answer())
    assert (len(result.records), len(provider.requests)) == (6, 6)


def test_executor_of_an_evaluation_is_checked_by_its_constructor() -> None:
    with pytest.raises(ConfigurationError, match="executor of an Evaluate is a PEP 3148 executor"):
        evaluation(executor=4)
