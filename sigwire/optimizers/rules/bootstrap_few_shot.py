"""BootstrapFewShot: successful runs of a teacher as demos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from sigwire.optimizers.demos import collect_successes, labelled, with_success_demos
from sigwire.optimizers.events import Proposed
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.rule import Rule, report
from sigwire.optimizers.task import Task

__all__ = ["BootstrapFewShot"]


class BootstrapFewShot(Optimizer):
    """Run a teacher on training rows and keep the calls of successful runs as demos (Khattab et al. 2023, *DSPy*).

    The teacher is the student with ``max_labeled_demos`` labelled demos, or the program given to ``compile``. Each predictor
    gets the demos of up to ``max_bootstrapped_demos`` runs, then labelled rows up to ``max_labeled_demos`` in all.
    Cost: at most ``max_rounds`` runs a training row; the search ends at enough successes.
    """

    _chooses = False
    _fixed_tunes = frozenset({"demos"})

    def __init__(
        self,
        metric: Any = None,
        metric_threshold: float | None = None,
        teacher_settings: Mapping[str, Any] | None = None,
        max_bootstrapped_demos: int = 4,
        max_labeled_demos: int = 16,
        max_rounds: int = 1,
        max_errors: int | None = None,
        *,
        num_threads: int | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(
            metric,
            metric_threshold=metric_threshold,
            teacher_settings=teacher_settings,
            num_threads=num_threads,
            **search,
        )
        self.max_bootstrapped_demos, self.max_labeled_demos = max_bootstrapped_demos, max_labeled_demos
        self.max_rounds, self.max_errors = max_rounds, max_errors

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: one candidate."""
        teacher = task.teacher
        if not task.is_taught:
            for name, demos in labelled(task, self.max_labeled_demos, "teacher").items():
                teacher = teacher.with_demos(name, demos)
        successes = yield from collect_successes(
            task, teacher, task.train, wanted=self.max_bootstrapped_demos, rounds=self.max_rounds
        )
        candidate = with_success_demos(task, task.baseline, successes, most_labelled=self.max_labeled_demos)
        yield from report(Proposed(candidate, f"{len(successes)} successful runs", tuple(task.signatures)))
        return candidate
