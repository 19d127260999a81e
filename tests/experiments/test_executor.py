"""Experiments whose rows run on the processes of an executor: the table of one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import load_experiment
from sigwire.lm.client import LM
from sigwire.lm.policy.money.budget import Budget
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from tests.experiments.grid import data, exact, random_search, table
from tests.jobs.engines import InlineExecutor, pool


def lexical(**changes: Any) -> Experiment:
    """Return a grid whose model needs no key, so that workers can make it."""
    given: dict[str, Any] = {
        "programs": Predict("question -> answer"),
        "models": {"lexical": LM("offline/lexical")},
        "optimizers": {
            "none": None,
            "labeled": LabeledFewShot(3),
            "random": random_search(strategy="greedy"),
        },
        "datasets": data(train=6, dev=4, test=4),
        "metric": exact,
        "seeds": (0, 1),
        **changes,
    }
    return Experiment(**given)


@contextmanager
def inline() -> Iterator[Any]:
    yield InlineExecutor()


@contextmanager
def processes() -> Iterator[Any]:
    with pool() as made:
        yield made


@contextmanager
def dask() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        cluster.get_client() as client,
    ):
        yield client.get_executor()


@pytest.mark.parametrize(
    "executor", [inline, pytest.param(processes, marks=pytest.mark.long), pytest.param(dask, marks=pytest.mark.long)]
)
def test_executor_gives_the_table_of_one_process(executor: Callable[[], Any], tmp_path: Path) -> None:
    alone = lexical().run(tmp_path / "alone", progress=False)
    with executor() as made:
        spread = lexical().run(tmp_path / "spread", progress=False, executor=made)
    assert table(spread) == table(alone)
    assert table(load_experiment(tmp_path / "spread")) == table(alone)
    assert not [*(tmp_path / "spread").rglob("*.cassette.jsonl")]
    (here,) = json.loads((tmp_path / "spread" / "experiment.json").read_text())["environments"]
    assert here["cassettes"] is False


@pytest.mark.long
@pytest.mark.parametrize("make", [partial(ThreadPoolExecutor, 2), InlineExecutor], ids=["threads", "caller"])
def test_budget_holds_over_the_workers_and_the_run_goes_on(make: Callable[[], Executor], tmp_path: Path) -> None:
    budget = Budget(calls=30)
    with make() as executor:
        result = lexical().run(tmp_path / "run", progress=False, executor=executor, budget=budget)
        assert result.status == "partial"
        assert 0 < (budget.spent.calls or 0) <= 30
        whole = lexical().run(tmp_path / "run", progress=False, executor=executor)
    assert table(whole) == table(lexical().run(tmp_path / "alone", progress=False))


def test_metric_that_no_worker_can_import_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no name that a worker can import"):
        lexical(metric=lambda example, prediction: True).run(
            tmp_path / "run", progress=False, executor=InlineExecutor()
        )
