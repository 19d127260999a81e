"""COPRO: better instructions, a few at a time, from those that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from sigwire.core.json import JsonObject
from sigwire.errors import BudgetSpent, ConfigurationError, warn_user
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.operators.climbing import climb
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.reports.programs import scored_programs
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule
from sigwire.optimizers.task import Task

__all__ = ["COPRO"]

_SHOWN = ("display_progress", "display_table", "provide_traceback")  # options of an evaluation on a terminal


class COPRO(Optimizer):
    """Tune instructions by coordinate ascent (Khattab et al. 2023; prompts with scores of earlier ones: Yang et al.
    2023, *Large Language Models as Optimizers*).

    ``depth`` times, for each predictor in turn: ``breadth - 1`` new instructions, from rows with feedback and from the
    instructions tried before with their scores; they race against the leader on the validation rows. ``init_temperature`` is
    that of the writing model. ``compile(..., eval_kwargs={"num_threads": 8})``: runs at once; options of a display warn, as
    nothing is shown, others are refused.
    Cost, for P predictors: depth · P times 12 runs on training rows, breadth - 1 writing calls, and a race of about
    2 · breadth · 8 runs.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {"eval_kwargs": None}
    _fixed_tunes = frozenset({"instructions"})

    def __init__(
        self,
        prompt_model: Any = None,
        metric: Any = None,
        breadth: int = 10,
        depth: int = 3,
        init_temperature: float = 1.4,
        track_stats: bool = False,
        *,
        num_threads: int | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(metric, prompt_model=prompt_model, num_threads=num_threads, **search)
        self.breadth, self.depth = breadth, depth
        self.init_temperature, self.track_stats = init_temperature, track_stats

    def check_options(self, student: object, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a call, with those of ``eval_kwargs`` among them."""
        given = super().check_options(student, options)
        asked: Mapping[str, Any] = given["eval_kwargs"] or {}
        if unknown := sorted(asked.keys() - {"num_threads", *_SHOWN}):
            raise ConfigurationError(
                f"COPRO takes num_threads in eval_kwargs, not {unknown[0]!r} (compiling). failure_score, errors and timeout "
                "are options of COPRO(...)."
            )
        if shown := sorted(name for name in _SHOWN if asked.get(name)):
            warn_user(
                f"COPRO.compile shows no evaluations: {', '.join(shown)} of eval_kwargs has no effect; on_event= has each."
            )
        return {**given, "num_threads": asked.get("num_threads")}

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule."""
        leader, tried = task.baseline, dict[str, list[Candidate]]()
        try:
            for number in range(self.depth):
                for name in task.signatures:
                    leader = yield from climb(
                        task,
                        leader,
                        name,
                        tried.setdefault(name, []),
                        count=max(1, self.breadth - 1),
                        temperature=self.init_temperature,
                        sample=number * self.breadth,
                    )
        except BudgetSpent:
            pass
        return leader

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add ``candidate_programs``, best first, and ``total_calls``."""
        first = next(iter(report.texts.values()), "")
        known: dict[str, JsonObject] = {
            each.digest: {"instruction": next(iter(each.texts.values()), first), "prefix": ""}
            for each in (report.baseline, *(trial.candidate for trial in report.trials))
        }
        program.candidate_programs = scored_programs(student, report, known)
        program.total_calls = report.spent.runs
