"""Searches whose runs are made on an executor: the path, the scores and the program of one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sigwire
from sigwire import LM, BootstrapFewShot, BootstrapRS, ConfigurationError, Example, Module, Predict
from sigwire.jobs.errors import JobRefused
from sigwire.testing import FakeProvider
from tests.jobs import app
from tests.jobs.engines import InlineExecutor, answer_text, questions

ROWS = questions(10)


def search(executor: Any, optimizer: Any = BootstrapRS, **options: Any) -> tuple[Module, FakeProvider]:
    given = {"num_candidate_programs": 2} if optimizer is BootstrapRS else {}
    with FakeProvider(answer_text) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", cache=False)
        with sigwire.context(lm=lm), pytest.MonkeyPatch.context() as patch:
            # The model of a worker reads its key itself: this one runs in a thread of the test.
            patch.setattr("sigwire.jobs.worker._lm_of", lambda job: lm)
            made = optimizer(metric=app.exact, executor=executor, if_worse="return", **given, **options)
            return made.compile(app.Answer(), trainset=ROWS), provider


@pytest.mark.parametrize("optimizer", [BootstrapRS, BootstrapFewShot])
def test_search_on_an_executor_finds_the_program_of_one_process(optimizer: Any) -> None:
    alone, asked = search(None, optimizer)
    with ThreadPoolExecutor(2) as executor:
        spread, asked_spread = search(executor, optimizer)
    assert spread.dump_state() == alone.dump_state()
    one, other = alone.optimization, spread.optimization  # type: ignore[attr-defined]
    assert (one.spent.runs, one.spent.calls) == (other.spent.runs, other.spent.calls)
    assert len(asked.requests) == len(asked_spread.requests)


def test_front_of_a_search_on_an_executor_is_that_of_one_process() -> None:
    alone, _ = search(None, objectives=("score", "tokens", "calls"))
    with ThreadPoolExecutor(2) as executor:
        spread, _ = search(executor, objectives=("score", "tokens", "calls"))
    one, other = alone.optimization, spread.optimization  # type: ignore[attr-defined]
    assert one.front
    assert one.front == other.front
    assert all(entry.means["tokens"] > 0 and entry.means["calls"] == 1 for entry in one.front)


def test_run_that_kills_its_worker_has_the_failure_score() -> None:
    rows = questions(12, {3: "death"})
    with FakeProvider(answer_text) as provider, pytest.MonkeyPatch.context() as patch:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        patch.setattr("sigwire.jobs.worker._lm_of", lambda job: lm)
        with sigwire.context(lm=lm):
            optimizer = BootstrapRS(metric=app.exact, executor=InlineExecutor(), num_candidate_programs=1)
            found = optimizer.compile(app.Answer(), trainset=rows)
    assert any("WorkerLost" in warning for warning in found.optimization.warnings)  # type: ignore[attr-defined]


def test_budget_of_a_search_holds_over_its_workers() -> None:
    program, provider = search(InlineExecutor(), budget=14)
    assert len(provider.requests) <= 14
    assert program.optimization.spent.calls <= 14  # type: ignore[attr-defined]


def test_metric_of_a_search_on_an_executor_is_importable() -> None:
    def local(example: Example, prediction: object) -> float:
        return 1.0

    optimizer = BootstrapRS(metric=local, executor=InlineExecutor(), num_candidate_programs=1)
    with pytest.raises(ConfigurationError, match="no name that a worker can import"):
        optimizer.compile(Predict("question -> answer"), trainset=ROWS)


def test_fault_of_the_metric_ends_a_search_on_an_executor() -> None:
    optimizer = BootstrapRS(metric=app.faulty, executor=InlineExecutor(), num_candidate_programs=1)
    with sigwire.context(lm=LM("offline/lexical")), pytest.raises(JobRefused, match="KeyError"):
        optimizer.compile(app.Answer(), trainset=ROWS)
