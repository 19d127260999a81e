"""KNNFewShot: successful runs as demos, of which each call shows the nearest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from sigwire.core.example import Example
from sigwire.effects.steps import Steps
from sigwire.modules.module import Module
from sigwire.modules.nearest import NearestDemos, Vectorizer
from sigwire.optimizers.candidate import Demo
from sigwire.optimizers.events import Proposed
from sigwire.optimizers.operators.demos import collect_successes, demos_of, taught
from sigwire.optimizers.rule import Rule, report
from sigwire.optimizers.rules.bootstrap_few_shot import Bootstrapping
from sigwire.optimizers.task import Task

__all__ = ["KNNFewShot"]

M = TypeVar("M", bound=Module)


class KNNFewShot(Bootstrapping):
    """Keep the successful runs on all training rows; each call of a predictor shows the ``k`` demos with the nearest inputs.

    (For demos by similarity: Liu et al. 2022, *What Makes Good In-Context Examples for GPT-3?*) ``vectorizer``: a function of a
    list of texts to their vectors; without one, inputs are compared by their words. Rows without a successful run are demos by
    their labels if ``max_labeled_demos`` is above 0. ``bootstrap``: options of ``BootstrapFewShot``. The demos are saved with
    the program; a vectorizer is not, and is set again by ``predictor.nearest.vectorizer = embed``.

    Cost: at most ``max_rounds`` runs a training row, once; afterwards each call makes no request more.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> rows = [Example(animal=name, legs=legs).with_inputs("animal") for name, legs in (("ant", "6"), ("cat", "4"))]
    >>> lm = FakeLM([{"legs": "6"}, {"legs": "4"}, {"legs": "4"}])
    >>> program = KNNFewShot(1, rows, num_threads=1).compile(Predict("animal -> legs", lm=lm))
    >>> program(animal="a big cat").legs, lm.requests[-1].messages[1].text
    ('4', '[[ ## animal ## ]]\\ncat')
    """

    _chooses = False
    _needs_metric = False

    def __init__(
        self, k: int = 4, trainset: Iterable[Example] = (), vectorizer: Vectorizer | None = None, **bootstrap: Any
    ) -> None:
        self._nearest = NearestDemos(k, vectorizer)  # refuses a wrong k
        super().__init__(**bootstrap)
        self.k, self.vectorizer = k, vectorizer
        self._trainset = list(trainset)

    def compile_steps(
        self,
        student: M,
        trainset: Iterable[Example],
        teacher: Module | None = None,
        valset: Iterable[Example] | None = None,
        testset: Iterable[Example] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Steps[M]:
        """Return the steps of ``compile``."""
        type(self).check_options(self, student, options or {})
        choosing = student.deepcopy()
        for predictor in choosing.predictors():
            predictor.nearest = NearestDemos(self.k, self.vectorizer)
        return super().compile_steps(choosing, trainset, teacher or student, valset, testset, options)

    def row_sets(
        self, trainset: Iterable[Example], valset: Iterable[Example] | None, given: Mapping[str, Any]
    ) -> tuple[list[Example], list[Example]]:
        """Return the training and the validation rows."""
        return super().row_sets(list(trainset) or self._trainset, valset, given)

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: one candidate with all demos."""
        teacher = taught(task, self.max_labeled_demos)
        successes = yield from collect_successes(task, teacher, task.train, rounds=self.max_rounds)
        made = {success.row: demos_of(task, success, "last") for success in successes}
        candidate = task.baseline
        for name in task.signatures:
            demos: list[Demo] = []
            for row in task.train:
                demo = task.labeled_demo(row, name) if row not in made and self.max_labeled_demos else None
                demos += made[row].get(name, []) if row in made else [demo] if demo is not None else []
            candidate = candidate.with_demos(name, demos, task.baseline.digest)
        yield from report(Proposed(candidate, f"{len(successes)} successful runs", tuple(task.signatures)))
        return candidate
