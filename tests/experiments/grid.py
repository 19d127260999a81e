"""A small grid for the tests of experiments: a model whose accuracy depends on instructions and demos, and countable calls."""

from __future__ import annotations

import threading
from typing import Any

from sigwire.core.example import Example
from sigwire.core.request import Request
from sigwire.data.splitting import DataSplit
from sigwire.evaluate.result import EvaluationResult
from sigwire.experiments.experiment import Experiment
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from sigwire.signatures.signature import make_signature
from tests.optimizers.stub import HINT, exact, label, number_of, rows, share, skill_of

__all__ = ["CountingLM", "calls", "data", "exact", "grid", "random_search", "rows", "table"]


class CountingLM(FakeLM):
    """Answers as ``tests/optimizers/stub.Stub`` does, with a skill that is ``better`` or not; counts what it is asked."""

    def __init__(self, better: float = 0.0, model: str = "counting", **options: Any) -> None:
        super().__init__(self._respond, model=model, **options)
        self._better, self._lock = better, threading.Lock()
        self.asked: list[int] = []

    def _respond(self, request: Request) -> Any:
        text = request.messages[-1].text
        number = number_of(text)
        assert number is not None, text
        with self._lock:
            self.asked.append(number)
        is_right = share(f"{number}/{self.model}") < skill_of(request) + self._better
        return {"answer": label(number if is_right else number + 1)}


def data(train: int = 8, dev: int = 6, test: int = 5) -> DataSplit:
    """Return rows of the task; each has a number of its own."""
    return DataSplit(tuple(rows(train)), tuple(rows(dev, 100)), tuple(rows(test, 200)))


def random_search(metric: Any = exact, **options: Any) -> BootstrapFewShotWithRandomSearch:
    """Return a short search that chooses on rows."""
    return BootstrapFewShotWithRandomSearch(metric, max_labeled_demos=2, num_candidate_programs=2, **options)


def grid(**changes: Any) -> Experiment:
    """Return a grid of two programs, two models and two optimizers; ``models`` of its labels count."""
    given: dict[str, Any] = {
        "programs": {
            "short": Predict("question -> answer"),
            "long": Predict(make_signature("question -> answer", HINT)),
        },
        "models": {"mini": CountingLM(model="mini"), "large": CountingLM(0.3, model="large")},
        "optimizers": {"none": None, "labeled": LabeledFewShot(3)},
        "datasets": data(),
        "metric": exact,
        **changes,
    }
    return Experiment(**given)


def calls(experiment: Experiment) -> int:
    """Return how many requests the models of a grid have answered."""
    return sum(len(model.asked) for model in experiment.models.values())


def table(result: Any) -> list[dict[str, Any]]:
    """Return the rows of a result but what a clock decides."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in result.rows()]


def outputs(result: EvaluationResult) -> list[Any]:
    """Return the outputs of a measurement by row."""
    return [(record.id, record.repeat, record.outputs) for record in result.records]


def example(number: int) -> Example:
    """Return one row of the task."""
    return rows(1, number)[0]
