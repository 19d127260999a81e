"""A run of an experiment: what it does with points, folders, budgets and errors, blocking, awaited and streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire.adapters.json import JSONAdapter
from sigwire.core.events import Finished
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, LMAuthenticationError, LMServerError
from sigwire.evaluate.running.run import EvaluationAborted, EvaluationInterrupted
from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import load_experiment, point_key
from sigwire.experiments.running import PointDone
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.money.budget import Budget
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from tests.experiments.grid import CountingLM, calls, data, exact, grid, random_search, rows, table


def blocking(experiment: Experiment, folder: Path, **options: Any) -> Any:
    return experiment.run(folder, progress=False, **options)


def awaited(experiment: Experiment, folder: Path, **options: Any) -> Any:
    return asyncio.run(experiment.arun(folder, progress=False, **options))


def streamed(experiment: Experiment, folder: Path, **options: Any) -> Any:
    *points, last = experiment.stream(folder, progress=False, **options)
    assert all(isinstance(each, PointDone) for each in points)
    assert isinstance(last, Finished)
    return last.value


def streamed_async(experiment: Experiment, folder: Path, **options: Any) -> Any:
    async def last() -> Any:
        events = [event async for event in experiment.astream(folder, progress=False, **options)]
        return events[-1]

    found = asyncio.run(last())
    assert isinstance(found, Finished)
    return found.value


DRIVERS: dict[str, Callable[..., Any]] = {
    "run": blocking, "arun": awaited, "stream": streamed, "astream": streamed_async,
}  # fmt: skip


def searching(**changes: Any) -> Experiment:
    """Return a grid with a search that asks the model."""
    given: dict[str, Any] = {
        "programs": Predict("question -> answer"),
        "optimizers": {"none": None, "random": random_search(strategy="greedy")},
        "seeds": range(2),
        **changes,
    }
    return grid(**given)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], int]:
    """Return the table of a run that nothing disturbs, and its calls."""
    one = searching()
    return table(one.run(tmp_path_factory.mktemp("whole") / "run", progress=False)), calls(one)


@pytest.fixture
def undisturbed(whole: tuple[list[dict[str, Any]], int]) -> list[dict[str, Any]]:
    return whole[0]


@pytest.mark.parametrize(("parallel", "threads"), [pytest.param(1, 1, marks=pytest.mark.long), (4, 8)])
@pytest.mark.parametrize("driver", DRIVERS)
def test_result_does_not_depend_on_driver_parallel_points_and_threads(
    driver: str, parallel: int, threads: int, undisturbed: list[dict[str, Any]], tmp_path: Path
) -> None:
    result = DRIVERS[driver](searching(), tmp_path / "run", parallel=parallel, num_threads=threads)
    assert table(result) == undisturbed
    assert table(load_experiment(tmp_path / "run")) == undisturbed
    assert result.status == "complete"


def test_requests_lie_within_the_plan(tmp_path: Path) -> None:
    one = searching(seeds=(3,))
    plan = one.plan(tmp_path / "run")
    one.run(tmp_path / "run", progress=False)
    assert plan.calls.min <= calls(one) <= plan.calls.max
    assert one.plan(tmp_path / "run").calls.max == 0
    assert one.plan(tmp_path / "run").finished == len(one.points)


def test_finished_run_asks_nothing_again_and_writes_no_environment(tmp_path: Path) -> None:
    one = searching(seeds=(3,))
    first = one.run(tmp_path / "run", progress=False)
    asked, record = calls(one), (tmp_path / "run" / "experiment.json").read_text()
    again = one.run(tmp_path / "run", progress=False)
    assert calls(one) == asked
    assert again.rows() == first.rows()
    assert (tmp_path / "run" / "experiment.json").read_text() == record


def test_point_done_events_have_points_and_counts(tmp_path: Path) -> None:
    one = grid()
    *points, _ = one.stream(tmp_path / "run", progress=False)
    assert [(event.done, event.total) for event in points] == [(number, 8) for number in range(1, 9)]  # type: ignore[union-attr]
    assert [event.point.arm for event in points] == [point.arm for point in one.points]  # type: ignore[union-attr]


def test_closed_stream_keeps_what_is_finished(tmp_path: Path) -> None:
    one = grid()
    events = one.stream(tmp_path / "run", progress=False)
    next(events)
    next(events)
    events.close()
    assert len(load_experiment(tmp_path / "run").measured) >= 2
    assert one.run(tmp_path / "run", progress=False).status == "complete"


@pytest.mark.parametrize(
    ("axis", "added"),
    [
        ("models", {"mini": CountingLM(model="mini"), "huge": CountingLM(0.9, model="huge")}),
        ("seeds", (0, 5)),
        ("optimizers", {"none": None, "labeled": LabeledFewShot(3), "more": LabeledFewShot(5)}),
    ],
)
def test_added_label_runs_only_its_points(axis: str, added: Any, tmp_path: Path) -> None:
    start: dict[str, Any] = {"programs": Predict("question -> answer"), "models": {"mini": CountingLM(model="mini")}}
    first = grid(**start)
    old = first.run(tmp_path / "run", progress=False)
    second = grid(**{**start, "models": {"mini": CountingLM(model="mini")}, axis: added})
    plan = second.plan(tmp_path / "run")
    result = second.run(tmp_path / "run", progress=False)
    assert calls(second) == 5 * len(plan.points) == 5 * (len(second.points) - len(first.points))
    kept = [row for row in table(result) if row["model"] == "mini" and row["seed"] == 0 and row["optimizer"] != "more"]
    assert kept == table(old)


# --- searches


def never_better(**changes: Any) -> Experiment:
    """Return a grid whose search finds nothing: the model is always right."""
    lm = FakeLM(lambda request: {"answer": "red"}, model="always")
    split = data(test=6)
    given: dict[str, Any] = {
        "programs": Predict("question -> answer"),
        "models": {"always": lm},
        "datasets": split,
        "metric": lambda example, prediction, trace=None: True,
        **changes,
    }
    return Experiment(**given)


def test_search_that_keeps_its_student_has_the_measurement_of_the_arm_without_one(tmp_path: Path) -> None:
    one = never_better(optimizers={"random": random_search(), "none": None})
    result = one.run(tmp_path / "run", progress=False)
    found = {each.point.labels["optimizer"]: each for each in result.measured}
    assert found["random"].shared
    assert found["random"].evaluation.records == found["none"].evaluation.records
    files = {path.name for path in (tmp_path / "run" / "points" / point_key(found["random"].point)).iterdir()}
    assert files == {"program.json", "search.jsonl", "search.cassette.jsonl"}, "there is no measurement"
    difference = result.compare("optimizer", baseline="none").differences[0].difference
    assert (difference.mean, difference.wins, difference.losses) == (0.0, 0, 0)
    assert load_experiment(tmp_path / "run").rows() == result.rows()


def test_search_that_keeps_its_student_is_measured_if_the_grid_has_no_arm_without_one(tmp_path: Path) -> None:
    result = never_better(optimizers={"random": random_search()}).run(tmp_path / "run", progress=False)
    assert not result.measured[0].shared
    assert len(result.measured[0].evaluation.records) == 6


def test_each_seed_searches_with_its_own_seed_and_asks_for_its_own_samples(tmp_path: Path) -> None:
    one = searching(seeds=(0, 3), models={"mini": CountingLM(model="mini")}, programs=Predict("question -> answer"))
    one.run(tmp_path / "run", progress=False)
    headers = [
        json.loads((tmp_path / "run" / "points" / point_key(point) / "search.jsonl").read_text().splitlines()[0])
        for point in one.points
        if point.labels["optimizer"] == "random"
    ]
    assert [header["seed"] for header in headers] == [0, 3]


# --- failures


def test_failures_of_an_arm_are_data_and_do_not_end_the_run(tmp_path: Path) -> None:
    broken = FakeLM(lambda request: "no field at all", model="broken")
    one = grid(
        models={"broken": broken, "mini": CountingLM(model="mini")},
        adapters={"json": JSONAdapter()},
        optimizers=None,
        datasets=data(test=15),
    )
    result = one.run(tmp_path / "run", progress=False)
    assert result.status == "complete"
    assert [len(each.evaluation.failed) for each in result.measured if each.point.labels["model"] == "broken"] == [
        15,
        15,
    ]


def failing(error: Exception) -> FakeLM:
    def answer(request: Request) -> Any:
        raise error

    return FakeLM(answer, model="failing")


@pytest.mark.parametrize("driver", DRIVERS)
def test_error_of_the_caller_ends_the_run_after_points_under_way_with_the_result(driver: str, tmp_path: Path) -> None:
    one = grid(
        models={"mini": CountingLM(model="mini"), "failing": failing(LMAuthenticationError("wrong key"))},
        programs=Predict("question -> answer"),
    )
    with pytest.raises(EvaluationAborted, match="wrong key") as caught:
        DRIVERS[driver](one, tmp_path / "run", parallel=2)
    result: Any = caught.value.result
    assert "mini" in {each.point.labels["model"] for each in result.measured}
    assert result.status == "partial"


def test_long_failure_of_the_provider_ends_the_run_and_a_short_one_does_not(tmp_path: Path) -> None:
    down = LMServerError("The provider is down.", model="failing", provider="fake")
    one = grid(
        models={"failing": failing(down)},
        optimizers=None,
        datasets=data(test=30),
        programs=Predict("question -> answer"),
    )
    with pytest.raises(EvaluationAborted, match="in a row failed by the provider") as caught:
        one.run(tmp_path / "down", progress=False, num_threads=1)
    result: Any = caught.value.result
    assert result.status == "partial"

    counted: list[int] = []

    def answer(request: Request) -> Any:
        counted.append(1)
        if len(counted) % 2:
            raise down
        return {"answer": "red"}

    shaky = grid(
        models={"shaky": FakeLM(answer, model="shaky")},
        optimizers=None,
        datasets=data(test=30),
        programs=Predict("question -> answer"),
    )
    result = shaky.run(tmp_path / "shaky", progress=False, num_threads=1)
    assert len(result.measured[0].evaluation.not_scored) == 15


def test_exception_of_the_metric_ends_the_run_with_the_result(tmp_path: Path) -> None:
    def broken(example: Any, prediction: Any, trace: object = None) -> float:
        raise KeyError("gold")

    with pytest.raises(EvaluationAborted, match="metric failed") as caught:
        grid(metric=broken).run(tmp_path / "run", progress=False)
    result: Any = caught.value.result
    assert result.measured == []


# --- budgets


def test_spent_budget_ends_after_whole_seeds_and_the_same_call_continues(
    whole: tuple[list[dict[str, Any]], int], tmp_path: Path
) -> None:
    one = searching()
    budget = Budget(calls=150)
    result = one.run(tmp_path / "run", budget=budget, progress=False, num_threads=2)
    asked = calls(one)
    assert result.status == "partial"
    assert asked <= 150
    assert budget.spent.calls == asked
    done = [point_key(each.point) for each in result.measured]
    order = [point_key(point) for point in one.points]
    assert sorted(done, key=order.index) == order[: len(done)], "points end in their order"
    assert {point_key(point) for point in result.missing} == {*order} - {*done}
    second = searching()
    assert (table(second.run(tmp_path / "run", progress=False)), asked + calls(second)) == whole


@pytest.mark.parametrize("limit", [12, *(pytest.param(limit, marks=pytest.mark.long) for limit in (25, 47, 60))])
def test_search_that_the_budget_around_it_cuts_is_no_point(
    limit: int, undisturbed: list[dict[str, Any]], tmp_path: Path
) -> None:
    result = searching().run(tmp_path / "run", budget=Budget(calls=limit), progress=False, parallel=2)
    for point in result.missing:
        assert not (tmp_path / "run" / "points" / point_key(point) / "program.json").exists() or (
            point.labels["optimizer"] == "none"
        )
    measured = table(result)
    assert [row for row in undisturbed if row in measured] == measured
    assert table(searching().run(tmp_path / "run", progress=False)) == undisturbed


def test_search_that_spends_its_own_budget_is_a_point(tmp_path: Path) -> None:
    one = searching(optimizers={"none": None, "random": random_search(budget=20)}, seeds=(0,))
    result = one.run(tmp_path / "run", budget=Budget(calls=10_000), progress=False)
    assert result.status == "complete"
    assert {each.search.reason.value for each in result.measured if each.search is not None} == {"budget"}


def test_budget_that_the_caller_opened_ends_the_run_as_the_option_does(tmp_path: Path) -> None:
    one = searching()
    with Budget(calls=30):
        result = one.run(tmp_path / "run", progress=False)
    assert result.status == "partial"
    assert calls(one) <= 30


# --- the folder


def test_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="has other files"):
        grid().run(tmp_path, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_folder_in_use_is_refused(tmp_path: Path) -> None:
    one = grid()
    events = one.stream(tmp_path / "run", progress=False)
    next(events)
    with pytest.raises(ConfigurationError, match="in use"):
        grid().run(tmp_path / "run", progress=False)
    events.close()


def test_no_experiment_is_loaded_from_another_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no experiment"):
        load_experiment(tmp_path)


def test_interrupt_keeps_what_is_finished(tmp_path: Path) -> None:
    count = 0

    def stop(progress: Any) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt

    with pytest.raises(EvaluationInterrupted, match="points are finished") as caught:
        grid().run(tmp_path / "run", progress=stop)
    assert len(caught.value.result.measured) == 3
    assert rows(1)  # the data of the grid is there for the next run
    assert grid().run(tmp_path / "run", progress=False).status == "complete"


@pytest.mark.parametrize("option", [{"parallel": 0}, {"num_threads": 0}, {"budget": 3}, {"progress": "loud"}])
def test_option_of_a_run_that_is_wrong_is_refused(option: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        grid().run(tmp_path / "run", **option)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("driver", DRIVERS)
def test_unknown_option_of_a_run_is_refused_at_the_call(driver: str, tmp_path: Path) -> None:
    call: Any = getattr(grid(), driver)
    with pytest.raises(ConfigurationError, match=r"no option 'num_thread' .* Did you mean num_threads\?"):
        asyncio.run(call(tmp_path / "run", num_thread=2)) if driver == "arun" else call(tmp_path / "run", num_thread=2)
    assert not (tmp_path / "run").exists()


def test_metric_of_the_experiment_is_called_with_each_test_row_once(tmp_path: Path) -> None:
    seen: list[str] = []

    def counted(example: Any, prediction: Any, trace: object = None) -> bool:
        seen.append(example.question)
        return exact(example, prediction)

    grid(metric=counted, optimizers=None, models={"mini": CountingLM()}, programs=Predict("question -> answer")).run(
        tmp_path / "run", progress=False
    )
    assert sorted(seen) == sorted(row["question"] for row in data().test)
