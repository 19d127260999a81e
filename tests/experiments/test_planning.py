"""The plan of an experiment: calls and money before any call, and what its text shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.experiments.planning import ExperimentPlan
from sigwire.lm.client import LM
from sigwire.lm.policy.money.prices import Price
from sigwire.lm.preview.preview import Preview, preview_of
from sigwire.modules.agents.react import ReAct
from sigwire.modules.cascade import Cascade
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.modules.sampling.best_of_n import BestOfN
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.testing import FakeProvider
from tests.experiments.grid import CountingLM, data, exact, grid, random_search
from tests.optimizers.stub import label, number_of


def priced(name: str = "openai/gpt-5-mini", **options: Any) -> LM:
    return LM(name, price=Price(input=0.25, output=2.0), max_tokens=500, **options)


def test_plan_counts_test_rows_times_repeats_times_predictors() -> None:
    one = grid(
        programs={"one": Predict("question -> answer"), "cot": ChainOfThought("question -> answer")},
        repeat=3,
        optimizers=None,
    )
    plan = one.plan()
    assert [point.runs for point in plan.points] == [15] * 4
    assert (plan.calls.min, plan.calls.expected, plan.calls.max, plan.runs) == (60, 60, 60, 60)


def test_plan_adds_what_a_search_may_cost_and_knows_that_it_may_need_no_measurement() -> None:
    one = grid(
        programs=Predict("question -> answer"),
        models={"mini": priced()},
        optimizers={"none": None, "random": random_search()},
    )
    plain, searched = one.plan().points
    split = data()
    search = random_search().plan(Predict("question -> answer", lm=priced()), split.train, split.dev)
    assert (plain.calls.min, plain.calls.max) == (5, 5)
    assert (searched.calls.min, searched.calls.max) == (search.calls.min, search.calls.max + 5)
    assert plain.money is not None
    assert searched.money is not None
    assert searched.money > plain.money


def test_plan_names_a_model_without_a_price() -> None:
    plan = grid(models={"mini": priced(), "free": CountingLM(model="nobody/knows-1")}, optimizers=None).plan()
    assert (plan.money, plan.most_money, plan.unpriced) == (None, None, ("nobody/knows-1",))
    assert "price unknown of nobody/knows-1" in str(plan)


class PreviewedLM(CountingLM):
    """Counts the requests that are previewed."""

    previews = 0

    def preview(self, request: Request | str) -> Preview:
        assert isinstance(request, Request)
        self.previews += 1
        return preview_of(self, request)


def test_plan_previews_the_test_rows_of_a_program_once_for_all_its_optimizers_and_seeds() -> None:
    lm = PreviewedLM()
    optimizers = {"none": None, "three": LabeledFewShot(3), "four": LabeledFewShot(4)}
    grid(programs=Predict("question -> answer"), models=lm, optimizers=optimizers, seeds=range(5)).plan()
    measured, searched = 5 + 1, 3 + 1  # test rows and the longest of them; training rows and a request that writes
    assert lm.previews == measured + 2 * searched


@pytest.mark.parametrize(("seeds", "is_warned"), [(range(4), True), (range(5), False)])
def test_plan_warns_of_few_seeds_of_an_optimizer(seeds: range, is_warned: bool) -> None:
    plan = grid(seeds=seeds).plan()
    assert bool(plan.warnings) is is_warned
    assert ("4 seeds of an optimizer" in str(plan)) is is_warned
    assert grid(seeds=(0,), optimizers=None).plan().warnings == ()


def test_plan_of_an_agent_is_a_lower_bound() -> None:
    def look(name: str) -> str:
        """Look a name up."""
        return name

    plan = grid(programs=ReAct("question -> answer", tools=[look]), models={"mini": priced()}, optimizers=None).plan()
    assert plan.is_least
    assert "at least 5 calls" in str(plan)  # of 5 rows; an agent asks once or more
    assert "at most" not in str(plan)


class Sorts(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Predict("question -> topic")
        self.second = Cascade([Predict("question -> answer"), ChainOfThought("question -> answer")])

    def forward(self, question: str) -> object:
        """Sort a question."""
        return self.second(question=question)


@pytest.mark.parametrize(
    ("program", "fewest", "most"),
    [
        (Cascade([Predict("question -> answer"), Predict("question -> answer")]), 5, 10),
        (Sorts(), 10, 15),
        (ReAct("question -> answer", tools=[Sorts()]), 5, None),
        (BestOfN(Sorts(), N=3, reward_fn=lambda inputs, prediction: 1.0, threshold=1.0), 10, None),
    ],
)
def test_fewest_calls_of_a_plan_are_those_of_one_stage_and_of_one_turn(
    program: Module, fewest: int, most: int | None
) -> None:
    plan = grid(programs=program, models={"mini": priced()}, optimizers=None).plan()
    assert plan.calls.min == fewest
    assert plan.is_least == (most is None)
    assert plan.is_least or plan.calls.max == most


def test_text_of_a_plan_fits_80_columns() -> None:
    names = {f"a program with a long label that goes on and on {n}": Predict("question -> answer") for n in range(2)}
    models = {"mini": priced(), "another long label of a model": priced()}
    one = grid(
        programs=names,
        models=models,
        optimizers={"none": None, "gepa": GEPA(exact, max_metric_calls=60, reflection_lm=priced())},
    )
    text = str(one.plan())
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.splitlines()[0].startswith("8 points, ")


def test_plan_of_a_folder_counts_what_is_missing_and_writes_nothing(tmp_path: Path) -> None:
    given: dict[str, Any] = {"programs": Predict("question -> answer"), "models": CountingLM()}
    grid(**given, seeds=(0,)).run(tmp_path / "run", progress=False)
    files = sorted(path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*"))
    plan = grid(**given, seeds=(0, 1)).plan(tmp_path / "run")
    assert (plan.finished, [each.point.seed for each in plan.points]) == (2, [1, 1])
    assert sorted(path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")) == files


def test_spent_money_is_below_the_most_of_the_plan(tmp_path: Path) -> None:
    def text_of(request: Request) -> str:
        number = number_of(request.messages[-1].text)
        assert number is not None
        return f"[[ ## answer ## ]]\n{label(number + number % 3 // 2)}\n\n[[ ## completed ## ]]"

    with FakeProvider(text_of) as provider:
        lm = priced("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", limit=False, cache=False)
        one = grid(
            programs=Predict("question -> answer"),
            models={"mini": lm},
            optimizers={"none": None, "random": random_search(strategy="greedy")},
        )
        plan = one.plan()
        assert not provider.requests
        result = one.run(tmp_path / "run", progress=False)
        sent = len(provider.requests)
    assert plan.calls.min <= sent <= plan.calls.max
    paid = sum(each.evaluation.cost or 0 for each in result.measured if not each.shared)
    paid += sum(each.search.spent.money or 0 for each in result.measured if each.search is not None)
    assert plan.money is not None
    assert plan.most_money is not None
    assert 0 < paid <= plan.most_money
    assert plan.money <= plan.most_money


def test_empty_plan_costs_nothing() -> None:
    plan = ExperimentPlan((), 4)
    assert (plan.calls.max, plan.money, plan.most_money) == (0, 0, 0)
    assert "4 points of the folder finished" in str(plan)
