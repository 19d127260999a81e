"""The search of SIMBA: a leader climbs on minibatches of training rows by rules and demos from its own runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from sigwire.errors import BudgetSpent
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate, Demo, Slot
from sigwire.optimizers.events import Kept
from sigwire.optimizers.operators.proposing import fields_of
from sigwire.optimizers.operators.racing import race
from sigwire.optimizers.operators.texts import checked
from sigwire.optimizers.reflective.items import with_items
from sigwire.optimizers.reflective.reflection import RowCell, blame, records_of, shown_runs, text_of
from sigwire.optimizers.reflective.rewriting import rewrite_tools
from sigwire.optimizers.reflective.tool_tuning import ToolEvidence, tool_names
from sigwire.optimizers.reflective.writing import ContrastRuns
from sigwire.optimizers.rule import Measure, Rule, RuleSteps, RunKey, measure, report, write
from sigwire.optimizers.task import Task

__all__ = ["FINALISTS", "Ascent", "AscentPlan"]

_ROWS_SHOWN = 4  # rows behind one candidate
FINALISTS = 3


@dataclass(frozen=True, slots=True)
class AscentPlan:
    """The settings of a search: see ``SIMBA``."""

    batch: int
    candidates: int
    steps: int
    demos: int
    longest_input: int
    sampling: float
    choosing: float
    by_teacher: bool = False


@dataclass(frozen=True, slots=True)
class _RowRuns:
    """The runs on one row, the best first."""

    row: str
    cells: tuple[Cell, ...]

    @property
    def scores(self) -> list[float]:
        return [_score(cell) for cell in self.cells]

    @property
    def order(self) -> tuple[float, float, float]:
        """The gap, the best, and the best over the mean: higher ones teach more."""
        scores = self.scores
        return max(scores) - min(scores), max(scores), max(scores) - sum(scores) / len(scores)


@dataclass(slots=True)
class Ascent:
    """One search. ``pool``: the student and the winners of the steps."""

    task: Task
    plan: AscentPlan
    pool: list[Candidate] = field(default_factory=list[Candidate])
    known: set[str] = field(default_factory=set[str])

    def steps(self) -> Rule:
        """Return the search as a rule."""
        leader = self.task.baseline
        self.pool, self.known = [leader], {leader.digest}
        try:
            for step in range(self.plan.steps):
                rows = self._batch(step)
                buckets = yield from self._buckets(leader, rows, step)
                if not buckets:
                    continue
                candidates = yield from self._candidates(leader, buckets, step)
                if not candidates:
                    continue
                winner = (yield from race(self.task, candidates, rows, keep=leader)).leader
                if winner.digest != leader.digest and self.task.judge.advantage(winner, leader, rows) > 0:
                    yield from report(Kept(winner, f"best of step {step}"))
                    self.pool.append(winner)
                    leader = winner
            finalists = self.pool[1:][-FINALISTS:]
            return (yield from race(self.task, finalists, self.task.val, keep=self.task.baseline)).leader
        except BudgetSpent:
            return leader

    def _batch(self, step: int) -> list[str]:
        rows, size = list(self.task.train), self.plan.batch
        each = max(1, len(rows) // size)
        self.task.rng("epoch", step // each).shuffle(rows)
        return rows[step % each * size :][:size]

    def _buckets(self, leader: Candidate, rows: Sequence[str], step: int) -> RuleSteps[list[_RowRuns]]:
        """Run the leader on rows, and sampled programs on those that are not perfect; return these, the widest gap first."""
        first = yield from measure(leader, rows, traced=True)
        cells = dict(zip(rows, first, strict=True))
        top = max(map(_score, first))
        low = [row for row in rows if top <= 0 or _score(cells[row]) < top]
        source = self.task.rng("rollouts", step)
        drawn = [self.task.sampled(self._draw(source, self.plan.sampling), "samples", step) for _ in low]
        runs = tuple(RunKey(candidate, row, step + 1) for candidate, row in zip(drawn, low, strict=True))
        second: list[Cell] = yield Measure(runs, True, "teacher" if self.plan.by_teacher and not step else "student")
        buckets = [
            _RowRuns(row, tuple(sorted((cells[row], again), key=_score, reverse=True)))
            for row, again in zip(low, second, strict=True)
        ]
        return sorted(buckets, key=lambda bucket: tuple(-part for part in bucket.order))

    def _draw(self, source: Random, temperature: float) -> Candidate:
        """Return a program of the pool, drawn by its standardised score."""
        judge, rows = self.task.judge, self.task.train
        scores = [judge.advantage(each, self.task.baseline, rows) for each in self.pool]
        mean = sum(scores) / len(scores)
        spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / len(scores)) or 1.0
        heights = [(score - mean) / spread * 0.2 / max(temperature, 1e-6) for score in scores]
        weights = [math.exp(height - max(heights)) for height in heights]
        return source.choices(self.pool, weights)[0]

    # --- candidates

    def _candidates(self, leader: Candidate, buckets: Sequence[_RowRuns], step: int) -> RuleSteps[list[Candidate]]:
        found: list[Candidate] = []
        for number in range(self.plan.candidates):
            source = self.task.rng("candidate", step, number)
            base = leader if number % 2 == 0 else self._draw(source, self.plan.choosing)
            mine = buckets[number % len(buckets) :: self.plan.candidates][:_ROWS_SHOWN] or buckets[:_ROWS_SHOWN]
            made = self._with_fewer_demos(base, source)
            texts = yield from self._texts(base, mine, step * self.plan.candidates + number)
            adds_demo = number % 2 == 1 or not texts
            made = self._with_demo(made, mine, source) if adds_demo else made
            origin = f"step {step}: {len(texts)} texts" + (", a demo" if adds_demo else "")
            candidate = None
            if texts or made.demos != base.demos:
                candidate = yield from checked(self.task, made, texts, {*self.known, base.digest}, origin)
            if candidate is not None:
                self.known.add(candidate.digest)
                found.append(candidate)
        return found

    def _texts(self, base: Candidate, buckets: Sequence[_RowRuns], sample: int) -> RuleSteps[dict[Slot, str]]:
        """Return an instruction with new rules, or new texts of tools if tools are to blame."""
        task = self.task
        runs: list[RowCell] = [(bucket.row, cell) for bucket in buckets for cell in reversed(bucket.cells)]
        scores = [score for bucket in buckets for score in bucket.scores]
        perfect = max(scores) if max(scores) > min(scores) else max(scores) + 1.0  # below it a run is a failure
        blamed = blame(task, runs, perfect)
        if not blamed:
            return {}
        most = [each for each in blamed if blamed[each] == max(blamed.values())]
        name = most[sample % len(most)]  # those that are equally to blame take turns
        if len(tool_names(task, name)) > 1 and sample % 4 and ToolEvidence.of(task, name, runs, perfect).rows:
            return (yield from rewrite_tools(task, base, name, runs, perfect=perfect, sample=sample))
        return (yield from self._rules(base, name, runs, perfect, sample))

    def _rules(
        self, base: Candidate, name: str, runs: Sequence[RowCell], perfect: float, sample: int
    ) -> RuleSteps[dict[Slot, str]]:
        """Return the instruction of a predictor with rules that the writing model derives from runs."""
        task, slot = self.task, f"{name}.instructions"
        if slot not in task.slots:
            return {}
        records = records_of(task, name, runs, perfect=perfect)
        inputs = {
            "program": task.outline,
            "step": fields_of(task, name),
            "current_instruction": text_of(task, base, slot),
            "runs": shown_runs(records),
        }
        rows = [record.row for record in records]
        (answer,) = yield from write(ContrastRuns, inputs, rows=rows, sample=sample)
        current = text_of(task, base, slot)
        text = with_items(current, answer["rules"]) if answer else current
        return {} if text == current else {slot: text}

    def _with_fewer_demos(self, base: Candidate, source: Random) -> Candidate:
        """Drop demos at random if there are as many as allowed, so that new ones fit."""
        candidate = base
        for name, demos in base.demos.items():
            if len(demos) >= max(1, self.plan.demos):
                kept = list(demos)
                kept.pop(source.randrange(len(kept)))
                candidate = candidate.with_demos(name, kept, base.digest)
        return candidate

    def _with_demo(self, base: Candidate, buckets: Sequence[_RowRuns], source: Random) -> Candidate:
        """Add the last call of each predictor in the best successful run."""
        best = [(bucket.row, bucket.cells[0]) for bucket in buckets if self.task.judge.is_success(bucket.cells[0])]
        if not best or not self.plan.demos:
            return base
        row, cell = best[0]
        candidate = base
        last = {step.path: step for step in cell.trace if step.path in self.task.signatures}
        for name, step in last.items():
            demos = candidate.demos.get(name, ())
            if len(str(step.demo)) <= self.plan.longest_input and all(demo.row != row for demo in demos):
                candidate = candidate.with_demos(name, (*demos, Demo(step.demo, row)), base.digest)
        return candidate


def _score(cell: Cell) -> float:
    return cell.score or 0.0
