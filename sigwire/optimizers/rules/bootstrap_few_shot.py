"""BootstrapFewShot: successful runs of a teacher as demos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from sigwire.errors import ConfigurationError
from sigwire.modules.module import Module
from sigwire.optimizers.events import Proposed
from sigwire.optimizers.operators.demos import Preference, TraceSteps, collect_successes, taught, with_success_demos
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule, report
from sigwire.optimizers.task import Task

__all__ = ["BootstrapFewShot", "Bootstrapping"]


class Bootstrapping(Optimizer):
    """Base of the optimizers that run a teacher for demos."""

    _fixed_tunes = frozenset({"demos"})
    _idle: ClassVar[Mapping[str, str]] = {
        "max_errors": "a run that the provider failed is made again, and a failure of the program is no success"
    }

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
        for name, number in (
            ("max_bootstrapped_demos", max_bootstrapped_demos),
            ("max_labeled_demos", max_labeled_demos),
        ):
            if number < 0:
                raise ConfigurationError(f"{name} is a number, 0 or more, not {number} (making {type(self).__name__}).")
        super().__init__(
            metric,
            metric_threshold=metric_threshold,
            teacher_settings=teacher_settings,
            num_threads=num_threads,
            **search,
        )
        self.max_bootstrapped_demos, self.max_labeled_demos = max_bootstrapped_demos, max_labeled_demos
        self.max_rounds, self.max_errors = max_rounds, max_errors

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Mark the program as compiled: a module that contains it does not compile it again."""
        super().finish_program(program, student, report)
        program._compiled = True


class BootstrapFewShot(Bootstrapping):
    """Run a teacher on training rows and keep the calls of successful runs as demos (Khattab et al. 2023).

    The teacher is the student with ``max_labeled_demos`` labelled demos, or the program given to ``compile``. Each predictor
    gets the demos of up to ``max_bootstrapped_demos`` runs, then labelled rows up to ``max_labeled_demos`` in all. ``steps``:
    of several calls of a predictor in one run, "last", one that is "sampled" (default), or "all". ``prefer``: the "first"
    successful runs (default), or the most "diverse" ones of three times as many. Without a metric each run
    without a failure is successful. A ``valset`` is not used.

    Cost: at most ``max_rounds`` runs a training row; the search ends at enough successes, within a wave of 8 runs.

    >>> from sigwire.core.example import Example
    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> rows = [Example(question=f"{n}+1?", answer=str(n + 1)).with_inputs("question") for n in range(3)]
    >>> lm = FakeLM([{"answer": "1"}, {"answer": "7"}, {"answer": "3"}])
    >>> def metric(example, prediction, trace=None):
    ...     return example.answer == prediction.answer
    >>> optimizer = BootstrapFewShot(metric, max_labeled_demos=0, num_threads=1)
    >>> program = optimizer.compile(Predict("question -> answer", lm=lm), trainset=rows)
    >>> [demo.question for demo in program.demos], program.optimization.warnings
    (['0+1?', '2+1?'], ("1 of the teacher's runs on training rows made no demo: 1 scored 0.",))
    """

    _chooses = False
    _needs_metric = False

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
        steps: TraceSteps = "sampled",
        prefer: Preference = "first",
        num_threads: int | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(
            metric,
            metric_threshold,
            teacher_settings,
            max_bootstrapped_demos,
            max_labeled_demos,
            max_rounds,
            max_errors,
            num_threads=num_threads,
            **search,
        )
        for name, given, known in (
            ("steps", steps, ("last", "sampled", "all")),
            ("prefer", prefer, ("first", "diverse")),
        ):
            if given not in known:
                raise ConfigurationError(f"{name} is one of {known}, not {given!r} (making BootstrapFewShot).")
        self.steps: TraceSteps = steps
        self.prefer: Preference = prefer

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: one candidate."""
        successes = yield from collect_successes(
            task,
            taught(task, self.max_labeled_demos),
            task.train,
            wanted=self.max_bootstrapped_demos,
            rounds=self.max_rounds,
            prefer=self.prefer,
        )
        candidate = with_success_demos(
            task, task.baseline, successes, most_labelled=self.max_labeled_demos, steps=self.steps
        )
        yield from report(Proposed(candidate, f"{len(successes)} successful runs", tuple(task.signatures)))
        return candidate
