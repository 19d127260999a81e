"""BootstrapFewShotWithRandomSearch: the best of many sets of demos."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from sigwire.core.json import JsonObject
from sigwire.errors import BudgetSpent
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Kept, Proposed
from sigwire.optimizers.operators.demos import Success, collect_successes, labelled, taught, with_success_demos
from sigwire.optimizers.operators.racing import race
from sigwire.optimizers.optimizer import SearchOptions
from sigwire.optimizers.reports.programs import scored_programs
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule, RuleSteps, measure, report
from sigwire.optimizers.rules.bootstrap_few_shot import Bootstrapping
from sigwire.optimizers.task import Task

__all__ = ["BootstrapFewShotWithRandomSearch", "BootstrapRS"]

_STUDENT, _LABELLED, _IN_ORDER = -3, -2, -1
_GROUP = 6
_RACE_BLOCK = 6


class BootstrapFewShotWithRandomSearch(Bootstrapping):
    """Make many sets of demos from one pool of successful runs, race them on validation rows, and keep the best.

    (Khattab et al. 2023.) Candidates by seed: -3 the student as it is, -2 labelled rows, -1 the first successful runs,
    from 0 up to ``num_candidate_programs`` random subsets of random size. ``stop_at_score``, in percent: the search ends with
    a candidate that reaches it. ``compile(..., restrict=[-3, 0, 1])`` makes only the candidates of these seeds;
    ``labeled_sample=False`` takes the first rows for -2.

    Cost, with T training and V validation rows and n candidates: at most ``max_rounds``·T runs for the pool, which ends at
    twice ``max_bootstrapped_demos`` successes (8 at least), about 12·n + 2·V runs for the race, and V more on training rows
    if it is undecided whether the winner is better. Result: ``candidate_programs``, a list
    of ``score`` (percent), ``subscores``, ``seed`` and ``program``, best first.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {"restrict": None, "labeled_sample": True}
    _is_fair_on_training_rows = True

    def __init__(
        self,
        metric: Any = None,
        teacher_settings: Mapping[str, Any] | None = None,
        max_bootstrapped_demos: int = 4,
        max_labeled_demos: int = 16,
        max_rounds: int = 1,
        num_candidate_programs: int = 16,
        num_threads: int | None = None,
        max_errors: int | None = None,
        stop_at_score: float | None = None,
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
            max_errors,
            num_threads=num_threads,
            **search,
        )
        self.num_candidate_programs, self.stop_at_score = num_candidate_programs, stop_at_score

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: a pool of runs, subsets of it, and a race."""
        leader = task.baseline
        try:
            yield from measure(leader, task.val)
            if self._is_enough(task, leader):
                return leader
            pool = yield from self._pool(task)
            candidates = yield from self._proposed(task, pool, options)
            size = len(candidates) if self.stop_at_score is None else _GROUP
            for at in range(0, len(candidates), size or 1):
                entered = [*([] if leader == task.baseline else [leader]), *candidates[at : at + size]]
                result = yield from race(task, entered, task.val, keep=task.baseline, block=_RACE_BLOCK)
                best = task.judge.ranked([leader, result.leader], task.val)[0]
                if best != leader:
                    leader = best
                    yield from report(Kept(leader, f"{task.judge.mean(leader, task.val):.3f} on {len(task.val)} rows"))
                if self._is_enough(task, leader):
                    break
        except BudgetSpent:
            pass  # the engine returns the most promising candidate
        return leader

    def _is_enough(self, task: Task, candidate: Candidate) -> bool:
        return self.stop_at_score is not None and 100 * task.judge.mean(candidate, task.val) >= self.stop_at_score

    def _pool(self, task: Task) -> RuleSteps[list[Success]]:
        if not self.max_bootstrapped_demos:
            return []
        order = list(task.train)
        task.rng("pool").shuffle(order)
        wanted = max(8, 2 * self.max_bootstrapped_demos)
        teacher = taught(task, self.max_labeled_demos)
        return (yield from collect_successes(task, teacher, order, wanted=wanted, rounds=self.max_rounds))

    def _proposed(self, task: Task, pool: Sequence[Success], options: Mapping[str, Any]) -> RuleSteps[list[Candidate]]:
        wanted: Collection[int] | None = options["restrict"]
        found: dict[str, Candidate] = {}
        for seed, candidate in self._candidates(task, pool, sample=options["labeled_sample"]):
            if candidate.digest not in found and (wanted is None or seed in wanted):
                found[candidate.digest] = candidate
                yield from report(Proposed(candidate, f"seed {seed}", tuple(candidate.demos)))
        return list(found.values())

    def _candidates(self, task: Task, pool: Sequence[Success], *, sample: bool) -> Iterator[tuple[int, Candidate]]:
        base, most = task.baseline, self.max_labeled_demos
        if most:
            rows = labelled(task, most, "labelled") if sample else _first_labelled(task, most)
            candidate = base
            for name, demos in rows.items():
                candidate = candidate.with_demos(name, demos, base.digest)
            yield _LABELLED, candidate
        first = pool[: self.max_bootstrapped_demos]
        yield _IN_ORDER, with_success_demos(task, base, first, most_labelled=most)
        for seed in range(self.num_candidate_programs):
            source = task.rng("candidate", seed)
            size = source.randint(1, self.max_bootstrapped_demos) if self.max_bootstrapped_demos else 0
            chosen = source.sample(pool, min(size, len(pool)))
            yield seed, with_success_demos(task, base, chosen, most_labelled=most, purpose=f"labelled {seed}")

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add ``candidate_programs``."""
        super().finish_program(program, student, report)
        seeds: dict[str, JsonObject] = {report.baseline.digest: {"seed": _STUDENT}}
        for trial in report.trials:
            if trial.origin.startswith("seed "):
                seeds[trial.candidate.digest] = {"seed": int(trial.origin.removeprefix("seed "))}
        program.candidate_programs = scored_programs(student, report, seeds)


BootstrapRS = BootstrapFewShotWithRandomSearch


def _first_labelled(task: Task, count: int) -> dict[str, Any]:
    return {
        name: tuple(demo for row in task.train if (demo := task.labeled_demo(row, name)) is not None)[:count]
        for name in task.signatures
    }
