"""Reports of searches are true: whole searches in worlds whose truth is known.

An answer is right by a number that depends on the world, the prompt and the row, so the scores of candidates are independent.
In the null world no candidate differs from the student; in the other one, prompts with demos or with the hint are better.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, stdev
from typing import Any

import pytest

from sigwire import ConfigurationError, FakeLM, OptimizationReport, Predict
from sigwire.core.request import Request
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.reports.report import Estimate
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from tests.optimizers.stub import HINT, exact, label, number_of, pure_writer, rows, share
from tests.optimizers.writer import Writer

BASE, GAIN = 0.45, 0.25


class World(FakeLM):
    """A model whose accuracy is known. ``skill``: that of its last answer."""

    def __init__(self, seed: int, gain: float) -> None:
        super().__init__(self._respond)
        self._seed, self._gain, self.skill = seed, gain, BASE

    def _respond(self, request: Request) -> Any:
        *before, asked = [message.text for message in request.messages]
        number = number_of(asked)
        assert number is not None
        is_new = HINT in before[0] or len(before) > 1
        self.skill = BASE + self._gain * is_new
        is_right = share(f"{self._seed}/{before}/{number}") < self.skill
        return {"answer": label(number if is_right else number + 1)}


Make = Callable[..., Optimizer]
SEARCHES: dict[str, tuple[int, Make]] = {
    "BootstrapFewShot": (24, lambda **options: BootstrapFewShot(exact, max_labeled_demos=2, **options)),
    "random search": (
        10,
        lambda **options: BootstrapFewShotWithRandomSearch(
            exact, max_labeled_demos=2, num_candidate_programs=5, **options
        ),
    ),
    "COPRO": (20, lambda **options: COPRO(pure_writer(), exact, breadth=4, depth=1, **options)),
    "GEPA": (10, lambda **options: GEPA(exact, max_metric_calls=260, reflection_lm=Writer(), **options)),
    "MIPROv2": (
        6,
        lambda **options: MIPROv2(exact, prompt_model=pure_writer(), auto="light", max_labeled_demos=2, **options),
    ),
}
"""How many searches of each kind, and what makes one."""
TRAIN, TEST = rows(24), rows(120, 1000)


def search(make: Make, seed: int, gain: float, count: int, **options: Any) -> tuple[Estimate, float, bool]:
    """Return the estimate of a search, the true gain of its program, and whether it was accepted."""
    world = World(seed, gain)
    program = make(seed=seed, strategy="greedy", num_threads=1, **options).compile(
        Predict("question -> answer", lm=world), trainset=TRAIN, valset=rows(count, 100), testset=TEST
    )
    report = OptimizationReport.of(program)
    program(question="colour of 7?")
    return report.estimate, world.skill - BASE, report.winner != report.baseline


@pytest.mark.long
@pytest.mark.parametrize("count", [48, 200])
@pytest.mark.parametrize("gain", [0.0, GAIN], ids=["null", "alternative"])
def test_gain_on_test_rows_is_unbiased_for_accepted_programs(gain: float, count: int) -> None:
    share_of_searches = 1 if count == 48 else 3
    ended = [
        search(make, 100 * kind + seed, gain, count)
        for kind, (number, make) in enumerate(SEARCHES.values())
        for seed in range(number // share_of_searches)
    ]
    accepted = [(found, truth) for found, truth, is_accepted in ended if is_accepted]
    errors = [found.test_gain - truth for found, truth in accepted if found.test_gain is not None]
    assert len(errors) >= len(ended) // 3
    spread = stdev(errors) / len(errors) ** 0.5
    assert abs(mean(errors)) < max(0.02, 2.5 * spread)
    flattered = [
        found.selection - found.baseline - truth
        for found, truth in accepted
        if found.selection is not None and found.baseline is not None
    ]
    if count == 48:
        assert mean(flattered) > 0.03  # the rows that choose a program cannot show its gain
        assert spread < 0.015
    if not gain:
        sure = [found.sure for found, _, _ in ended if found.baseline is not None]
        assert sum(each is not None and each >= 0.9 for each in sure) <= 0.15 * len(sure)


def test_test_rows_choose_nothing() -> None:
    """A program that is better on the validation rows is kept, also if the test rows show it to be worse."""

    class Turned(World):
        def _respond(self, request: Request) -> Any:
            *before, asked = [message.text for message in request.messages]
            number = number_of(asked)
            assert number is not None
            is_new = HINT in before[0] or len(before) > 1
            return {"answer": label(number if is_new == (number < 1000) else number + 1)}

    compiled = BootstrapFewShotWithRandomSearch(exact, max_labeled_demos=2, num_candidate_programs=2).compile(
        Predict("question -> answer", lm=Turned(0, 0.0)), trainset=TRAIN, valset=rows(30, 100), testset=rows(30, 1000)
    )
    report = OptimizationReport.of(compiled)
    assert (report.kept_student, report.winner == report.found) == ("", True)
    assert report.estimate.test_gain == -1
    assert "-1.000" in report.headline


def test_rows_that_choose_show_no_gain_in_the_headline() -> None:
    make = SEARCHES["random search"][1]
    compiled = make().compile(Predict("question -> answer", lm=World(1, 0.5)), trainset=TRAIN, valset=rows(48, 100))
    report = OptimizationReport.of(compiled)
    assert report.winner != report.baseline
    assert report.headline.startswith("chosen on 48 rows, ")
    assert "gain not measured (testset= or hold_out= measures it)" in report.headline


@pytest.mark.parametrize("has_val", [True, False])
def test_held_out_share_measures_the_gain_and_chooses_nothing(has_val: bool) -> None:
    make, world = SEARCHES["random search"][1], World(1, 0.5)
    optimizer = make(hold_out=0.25)
    student, val = Predict("question -> answer", lm=world), rows(48, 100) if has_val else None
    assert optimizer.plan(student, rows(48), val).runs.expected > 24  # student and winner on the rows apart
    report = OptimizationReport.of(optimizer.compile(student, trainset=rows(48), valset=val))
    assert (report.estimate.test_rows, report.estimate.rows) == (12, 36 if has_val else 18)
    assert report.estimate.test_gain is not None
    with pytest.raises(ConfigurationError, match="testset or hold_out, not both"):
        optimizer.compile(student, trainset=TRAIN, testset=TEST)
