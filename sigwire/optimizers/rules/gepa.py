"""GEPA: reflect on failing runs, rewrite one step, and keep a Pareto front of candidates."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Unpack

from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Dropped, Kept
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.pareto import ancestors, draw_parent, leads
from sigwire.optimizers.proposals import checked, rewrite_instruction, rewrite_tools
from sigwire.optimizers.racing import BLOCK, race
from sigwire.optimizers.reflection import RowCell, blame
from sigwire.optimizers.rule import Rule, RuleSteps, measure, report
from sigwire.optimizers.task import Task

__all__ = ["GEPA"]

import os
TURNS = {"light": int(os.environ.get("G_TURNS", 12)), "medium": 24, "heavy": 48}
EXTRA = int(os.environ.get("G_EXTRA", 6))
LOOKS = int(os.environ.get("G_LOOKS", 2))
TOUR = int(os.environ.get("G_TOUR", 2))
HARD = int(os.environ.get("G_HARD", 0))
FINAL = int(os.environ.get("G_FINAL", 2))
class GEPA(Optimizer):
    def __init__(self, metric, *, auto=None, max_full_evals=None, max_metric_calls=None, reflection_minibatch_size=3,
                 reflection_lm=None, num_threads=None, failure_score=0.0, perfect_score=1.0, seed=0, use_merge=True, skip_perfect_score=True, **search):
        super().__init__(metric, prompt_model=reflection_lm, num_threads=num_threads, failure_score=failure_score, seed=seed, **search)
        self.auto, self.max_metric_calls = auto, max_metric_calls
        self.reflection_minibatch_size = reflection_minibatch_size
        self.perfect_score = perfect_score
        self.skip_perfect_score = skip_perfect_score

    def rule(self, task, options):
        return _Search(self, task).steps()


class _Search:
    def __init__(self, gepa: GEPA, task: Task) -> None:
        self.gepa, self.task = gepa, task
        self.pool: dict[str, Candidate] = {task.baseline.digest: task.baseline}
        self.known = {task.baseline.digest}
        self.cells: dict[tuple[str, str], Cell] = {}
        self.val = list(task.val)
        task.rng("race").shuffle(self.val)
        self.measured: set[tuple[str, str]] = set()
        self.looks: dict[str, int] = {task.baseline.digest: len(self.val)}

    def limit(self) -> int:
        b, v = self.gepa.reflection_minibatch_size, len(self.val)
        if self.gepa.max_metric_calls:
            return self.gepa.max_metric_calls
        return 2 * v + TURNS[self.gepa.auto or "light"] * (2 * b + BLOCK)

    def run(self, candidate, rows, traced=False):
        cells = yield from measure(candidate, rows, traced=traced)
        self.measured |= {(candidate.digest, row) for row in rows}
        if traced:
            self.cells |= {(candidate.digest, row): cell for row, cell in zip(rows, cells)}
        return cells

    def steps(self) -> Rule:
        try:
            yield from self.run(self.task.baseline, self.val)
            turn = 0
            while len(self.measured) + 2 * self.gepa.reflection_minibatch_size + LOOKS * BLOCK + FINAL * (len(self.val) ) // 1 - 0 <= self.limit() and turn < 200:
                yield from self.turn(turn)
                turn += 1
            return (yield from self.best())
        except BudgetSpent:
            return max(self.pool.values(), key=self.strength)

    def strength(self, candidate: Candidate) -> float:
        differences = self.task.judge.differences(candidate, self.task.baseline, self.val)
        return sum(differences) / (len(differences) + 4)

    def best(self) -> Rule:
        strong = sorted(self.pool.values(), key=lambda each: -self.strength(each))[:FINAL]
        result = yield from race(self.task, strong, self.val, keep=self.task.baseline, block=20)
        return result.leader

    def turn(self, turn: int):
        task, perfect = self.task, self.gepa.perfect_score
        scores = {digest: task.judge.table.scores(each, self.val) for digest, each in self.pool.items()}
        shared = [row for row in self.val if all(row in each for each in scores.values())]
        means = {digest: self.strength(each) for digest, each in self.pool.items()}
        source = task.rng("parent", turn)
        draws = [draw_parent(leads(scores, shared), means, source) for _ in range(TOUR)]
        parent = self.pool[max(draws, key=lambda each: means[each])]
        batch = self.batch(turn)
        if HARD:
            lineage = [parent.digest, *ancestors(parent, self.pool)]
            last = {}
            for digest in reversed(lineage):
                for (d, row), cell in self.cells.items():
                    if d == digest: last[row] = (d, (cell.score or 0) < perfect)
            hard = [row for row, (d, bad) in last.items() if bad and d != parent.digest]
            source.shuffle(hard)
            fresh = [row for row in batch if row not in hard]
            batch = [*hard[:HARD], *fresh][:max(len(batch), 0)]
        cells = yield from self.run(parent, batch, traced=True)
        runs = list(zip(batch, cells))
        extra = [(row, cell) for (digest, row), cell in reversed(self.cells.items()) if digest == parent.digest and row not in batch and (cell.score or 0) < perfect][:EXTRA]
        if all((cell.score or 0) >= perfect for cell in cells):
            return
        child = yield from self.child(parent, [*runs, *extra], turn)
        if child is None:
            return
        self.known.add(child.digest)
        yield from self.run(child, batch, traced=True)
        if sum(task.judge.differences(child, parent, batch)) <= 0:
            yield from report(Dropped(child, "not better on the minibatch"))
            return
        for look in range(1, LOOKS + 1):
            seen = self.val[:look * BLOCK]
            yield from self.run(parent, seen)
            yield from self.run(child, seen)
            if task.judge.is_worse(child, parent, seen):
                yield from report(Dropped(child, "worse"))
                return
            if task.judge.is_better(child, parent, seen):
                break
        if sum(task.judge.differences(child, parent, seen)) < 0:
            yield from report(Dropped(child, "worse"))
            return
        self.pool[child.digest] = child
        yield from report(Kept(child, "joined"))

    def child(self, parent, runs, turn):
        task = self.task
        predictor = next(iter(task.signatures))
        from sigwire.optimizers.tool_tuning import tool_names
        if len(tool_names(task, predictor)) > 1 and turn % 4:
            texts = yield from rewrite_tools(task, parent, predictor, runs, sample=turn)
        else:
            texts = yield from rewrite_instruction(task, parent, predictor, runs, sample=turn)
        return (yield from checked(parent, texts, self.known, "reflection"))

    def batch(self, turn):
        size, rows = self.gepa.reflection_minibatch_size, list(self.task.train)
        each = max(1, len(rows) // size)
        order = list(rows)
        self.task.rng("epoch", turn // each).shuffle(order)
        at = turn % each * size
        return order[at : at + size]
