"""BootstrapFewShotWithOptuna: sets of demos by predictor, chosen by TPE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, Demo
from sigwire.optimizers.events import Measured, Proposed
from sigwire.optimizers.operators.demos import Success, collect_successes, demos_of, labelled, taught
from sigwire.optimizers.operators.labels import picked, sizes_of_choices
from sigwire.optimizers.operators.racing import measure_affordable, race
from sigwire.optimizers.optimizer import SearchOptions
from sigwire.optimizers.reports.programs import scored_programs
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule, RuleSteps, report
from sigwire.optimizers.rules.bootstrap_few_shot import Bootstrapping
from sigwire.optimizers.sampling import Choice
from sigwire.optimizers.task import Task

__all__ = ["BootstrapFewShotWithOptuna"]

_BATCH = 4
_TRIAL_ROWS = 24
_FINALISTS = 4


class BootstrapFewShotWithOptuna(Bootstrapping):
    """Choose a set of demos for each predictor by a tree-structured Parzen estimator (Bergstra et al. 2011, optuna).

    One pool of successful runs gives each predictor 8 sets of up to ``max_demos`` demos (``compile(..., max_demos=2)``, by
    default ``max_bootstrapped_demos``), and the empty set. Of ``num_candidate_programs`` trials, 4 are made at once, each on
    the same 24 validation rows; the four best race on all rows. Needs the extra ``sigwire[optuna]``.

    Cost, with T training and V validation rows and n trials: at most ``max_rounds``·T runs for the pool, at most 24·n for the
    trials, and about 2·V + 32 for the race, and V more on training rows if
    it is undecided whether the winner is better. Result: ``candidate_programs``.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {"max_demos": None}
    _is_fair_on_training_rows = True
    _draws_labels = True

    def __init__(
        self,
        metric: Any = None,
        teacher_settings: Mapping[str, Any] | None = None,
        max_bootstrapped_demos: int = 4,
        max_labeled_demos: int = 16,
        max_rounds: int = 1,
        num_candidate_programs: int = 16,
        num_threads: int | None = None,
        *,
        metric_threshold: float | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(
            metric,
            metric_threshold,
            teacher_settings,
            max_bootstrapped_demos,
            max_labeled_demos,
            max_rounds,
            num_threads=num_threads,
            **search,
        )
        self.num_candidate_programs = num_candidate_programs

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: trials of sets, then a race of the best."""
        most: int = self.max_bootstrapped_demos if options["max_demos"] is None else options["max_demos"]
        if most < 1:
            raise ConfigurationError(f"max_demos is a number above 0, not {most} (compiling).")
        tried: list[Candidate] = []
        rows = list(task.val)
        task.rng("race").shuffle(rows)  # the order of the race, whose first blocks are then known
        rows = rows[:_TRIAL_ROWS]
        try:
            order = list(task.train)
            task.rng("pool").shuffle(order)
            teacher = taught(task, self.max_labeled_demos)
            pool = yield from collect_successes(task, teacher, order, wanted=max(12, 3 * most), rounds=self.max_rounds)
            sets = {name: self._sets(task, name, pool, most) for name in task.signatures}
            yield from self._trials(task, sets, rows, tried)
            finalists = task.judge.ranked(tried, rows)[:_FINALISTS]
            result = yield from race(task, finalists, task.val, keep=task.baseline)
            tried = [result.leader]
        except BudgetSpent:
            pass
        return task.judge.ranked([task.baseline, *tried], task.val)[0]

    def _trials(
        self, task: Task, sets: Mapping[str, Sequence[tuple[Demo, ...]]], rows: Sequence[str], tried: list[Candidate]
    ) -> RuleSteps[None]:
        """Run the trials in batches; add their candidates to ``tried``."""
        sampler = task.choices("optuna", {name: len(found) for name, found in sets.items()} | sizes_of_choices(task))
        for at in range(0, self.num_candidate_programs, _BATCH):
            choices = sampler.ask(min(_BATCH, self.num_candidate_programs - at))
            candidates = [_candidate(task, sets, choice) for choice in choices]
            for candidate in candidates:
                yield from report(Proposed(candidate, "sets of demos", tuple(sets)))
            candidates = yield from measure_affordable(candidates, rows)
            tried += [each for each in candidates if each not in tried]
            for choice, candidate in zip(choices, candidates, strict=False):
                mean = task.judge.mean(candidate, rows)
                sampler.learn(choice, mean)
                yield from report(Measured(candidate, mean, len(rows)))

    def _sets(self, task: Task, name: str, pool: Sequence[Success], most: int) -> list[tuple[Demo, ...]]:
        """Return sets of demos of a predictor; the first is empty, the second has labelled rows only."""
        demos = [demo for success in pool for demo in demos_of(task, success).get(name, [])]
        sets: list[tuple[Demo, ...]] = [(), labelled(task, self.max_labeled_demos, "labelled")[name]]
        for number in range(8):
            source = task.rng("set", name, number)
            chosen = source.sample(demos, min(len(demos), source.randint(1, most)))
            used = {demo.row for demo in chosen}
            rest = [row for row in task.train if row not in used]
            fill = labelled(task, self.max_labeled_demos, f"set {number}", rest)[name]
            sets.append((*chosen, *fill[: max(0, self.max_labeled_demos - len(chosen))]))
        return list(dict.fromkeys(sets))

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add ``candidate_programs``."""
        super().finish_program(program, student, report)
        program.candidate_programs = scored_programs(student, report)


def _candidate(task: Task, sets: Mapping[str, Sequence[tuple[Demo, ...]]], choice: Choice) -> Candidate:
    candidate = task.baseline
    for name, found in sets.items():
        candidate = candidate.with_demos(name, found[choice[name]], task.baseline.digest)
    return picked(task, candidate, choice)
