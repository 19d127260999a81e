"""The optimizers under the acceptance tests: one row each, with small settings, and the rows and programs of the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sigwire.modules.predict import Predict
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.knn import KNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from sigwire.optimizers.rules.simba import SIMBA
from tests.optimizers.stub import exact, pure_writer, rows
from tests.optimizers.writer import Writer

TRAIN, VAL = rows(16), rows(8, 100)

TABLE: dict[str, Callable[..., Optimizer]] = {
    "LabeledFewShot": lambda metric=exact, **options: LabeledFewShot(3, **options),
    "BootstrapFewShot": lambda metric=exact, **options: BootstrapFewShot(metric, max_labeled_demos=2, **options),
    "BootstrapFewShotWithRandomSearch": lambda metric=exact, **options: BootstrapFewShotWithRandomSearch(
        metric, max_labeled_demos=2, num_candidate_programs=4, **options
    ),
    "BootstrapFewShotWithOptuna": lambda metric=exact, **options: BootstrapFewShotWithOptuna(
        metric, max_labeled_demos=0, num_candidate_programs=6, **options
    ),
    "KNNFewShot": lambda metric=exact, **options: KNNFewShot(2, metric=metric, max_labeled_demos=0, **options),
    "GEPA": lambda metric=exact, **options: GEPA(metric, max_metric_calls=150, reflection_lm=Writer(), **options),
    "SIMBA": lambda metric=exact, **options: SIMBA(
        metric=metric, bsize=8, num_candidates=3, max_steps=2, prompt_model=Writer(), **options
    ),
    "BetterTogether": lambda metric=exact, num_threads=None, **options: BetterTogether(
        metric,
        num_threads=num_threads,
        search=options,
        p=LabeledFewShot(2),
        q=BootstrapFewShotWithRandomSearch(metric, num_candidate_programs=2),
    ),
    "COPRO": lambda metric=exact, **options: COPRO(pure_writer(), metric, breadth=3, depth=2, **options),
    "InferRules": lambda metric=exact, **options: InferRules(
        metric=metric, prompt_model=pure_writer(), num_candidates=2, max_labeled_demos=2, **options
    ),
    "MIPROv2": lambda metric=exact, **options: MIPROv2(
        metric, prompt_model=pure_writer(), auto="light", max_labeled_demos=2, **options
    ),
}
"""Makes an optimizer of a metric and options of the search, ``num_threads`` among them."""

CALLS = {name: make for name, make in TABLE.items() if name != "LabeledFewShot"}
"""Those that run the program."""

CHOOSES = {name: make for name, make in CALLS.items() if name not in ("BootstrapFewShot", "KNNFewShot")}
"""Those that choose on validation rows."""

UNLISTED = frozenset({"GEPA", "InferRules"})
"""Those without ``candidate_programs``, as in DSPy."""


def student(lm: Any) -> Any:
    """Return the program of the tests."""
    return Predict("question -> answer", lm=lm)


def outcome(program: Any) -> Any:
    """Return what a search found, for comparisons."""
    report = program.optimization
    return (
        report.winner.to_json(),
        report.found.to_json(),
        [trial.candidate.digest for trial in report.trials],
        report.scores,
        report.estimate,
        report.reason,
        report.spent.runs,
    )
