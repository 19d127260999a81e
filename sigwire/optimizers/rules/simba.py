"""SIMBA: rules and demos from rows on which runs differ or fail, a few at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from sigwire.core.json import JsonObject
from sigwire.modules.module import Module
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.reflective.ascent import FINALISTS, Ascent, AscentPlan
from sigwire.optimizers.reports.programs import scored_programs
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule
from sigwire.optimizers.task import Task

__all__ = ["SIMBA"]


class SIMBA(Optimizer):
    """Add rules and demos that rows with failures or differing runs teach (stochastic introspective
    mini-batch ascent).

    Each of ``max_steps`` steps runs the leader on ``bsize`` training rows, and, at temperature 1, programs drawn by their
    scores on those that failed. From the rows with the widest gaps it makes ``num_candidates`` candidates: rules that the
    writing model derives from better and worse runs with the metric's feedback, every second one with a demo of a successful
    run too. Rules are items of the instruction; a rule that is there already is not added, and a proposal that adds nothing
    costs no run. The candidates race on the same rows; the winners of all steps race on the validation rows.
    Samples carry a ``seed``. A provider that has seeds gives the same winner to a search that was killed and goes on; one
    without draws the samples that were under way again, as new ones.

    Cost: steps · (up to 2 · bsize + about 2 · 8 · num_candidates) runs, steps · num_candidates writing calls, one race.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {"seed": None}
    _fixed_tunes = frozenset({"instructions", "demos", "tools"})
    _explains = True

    def __init__(
        self,
        *,
        metric: Any = None,
        bsize: int = 32,
        num_candidates: int = 6,
        max_steps: int = 8,
        max_demos: int = 4,
        prompt_model: Any = None,
        teacher_settings: Mapping[str, Any] | None = None,
        demo_input_field_maxlen: int = 100_000,
        num_threads: int | None = None,
        temperature_for_sampling: float = 0.2,
        temperature_for_candidates: float = 0.2,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(
            metric, prompt_model=prompt_model, teacher_settings=teacher_settings, num_threads=num_threads, **search
        )
        self.bsize, self.num_candidates, self.max_steps, self.max_demos = bsize, num_candidates, max_steps, max_demos
        self.demo_input_field_maxlen = demo_input_field_maxlen
        self.temperature_for_sampling = temperature_for_sampling
        self.temperature_for_candidates = temperature_for_candidates

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule."""
        plan = AscentPlan(
            batch=min(self.bsize, len(task.train)),
            candidates=self.num_candidates,
            steps=self.max_steps,
            demos=self.max_demos if "demos" in task.tunes else 0,
            longest_input=self.demo_input_field_maxlen,
            sampling=self.temperature_for_sampling,
            choosing=self.temperature_for_candidates,
            by_teacher=bool(self.teacher_settings),
        )
        return Ascent(task, plan).steps()

    def _most(self, task: Task) -> tuple[int, int]:
        batch, count = min(self.bsize, len(task.train)), self.num_candidates
        runs = self.max_steps * batch * (2 + count) + (1 + FINALISTS) * len(task.val)
        return runs, self.max_steps * count

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add ``candidate_programs``, best first, and ``trial_logs`` by step; scores are those on validation rows."""
        program.candidate_programs = scored_programs(student, report)
        logs: dict[int, JsonObject] = {}
        for trial in report.trials:
            step = (
                int(trial.origin.removeprefix("step ").partition(":")[0]) if trial.origin.startswith("step ") else None
            )
            if step is not None:
                log = logs.setdefault(step, {"train_score": None, "candidates": []})
                log["candidates"] = [*log["candidates"], trial.candidate.to_json()]  # type: ignore[misc]
                if trial.mean is not None:
                    log["train_score"] = trial.mean
        program.trial_logs = logs
