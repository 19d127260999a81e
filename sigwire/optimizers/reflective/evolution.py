"""The search of GEPA: parents from a Pareto front, children from reflection, a gate on a minibatch, then validation rows.

With ``strategy="paired"`` a child that passed the gate runs on validation rows block by block beside its parent, until it is
better or worse beyond noise or the blocks end; it joins the pool if its mean is not lower. Parents are compared on the rows
that the whole pool has. The last finalists race on all validation rows. ``strategy="greedy"`` runs each child that passed the
gate on all validation rows, as the ``gepa`` package does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, cast

from sigwire.core.example import Prediction
from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate, Slot
from sigwire.optimizers.events import Dropped, Kept, Measured, Proposed, Warned
from sigwire.optimizers.operators.labels import other_labels
from sigwire.optimizers.operators.racing import BLOCK, race
from sigwire.optimizers.operators.texts import checked
from sigwire.optimizers.reflective.pareto import ancestors, draw_parent, leads, merged, undominated
from sigwire.optimizers.reflective.reflection import RowCell, blame, text_of
from sigwire.optimizers.reflective.rewriting import rewrite_by, rewrite_instruction, rewrite_tools, rewrite_tools_by
from sigwire.optimizers.reflective.tool_tuning import ToolEvidence, tool_names
from sigwire.optimizers.rule import Report, Rule, RuleSteps, measure, report
from sigwire.optimizers.task import Task

__all__ = ["FINALISTS", "LOOKS", "Evolution", "EvolutionPlan"]

LOOKS = 3  # blocks of validation rows before a child joins the pool
FINALISTS = 3
_DRAWS = 3  # of parents from the front; the strongest is taken
_KNOWN_FAILURES = 6  # of earlier runs that are shown besides the minibatch
_SHARE_OF_THE_END = 1 / 5  # of the runs, at most
_LABEL_TURN = 4  # each fourth turn changes a label
_PRIOR = 4  # rows without a difference that are added to each comparison of strength


@dataclass(frozen=True, slots=True)
class EvolutionPlan:
    """The settings of a search: see ``GEPA``. ``runs``: the most runs; ``turns``: the most rounds of reflection.

    ``is_limited``: ``runs`` is a limit of the user's, or about what a budget of calls allows.
    """

    runs: int
    turns: int
    minibatch: int = 3
    selection: str = "pareto"
    perfect: float = 1.0
    skips_perfect: bool = True
    merges: int = 0
    components: Any = "blame"
    proposer: Any = None
    parse_failures: bool = True
    is_limited: bool = False
    frontier: str = "rows"


@dataclass(slots=True)
class Evolution:
    """One search: the pool of candidates, and the traced runs on training rows."""

    task: Task
    plan: EvolutionPlan
    pool: dict[str, Candidate] = field(default_factory=dict[str, Candidate])
    known: set[str] = field(default_factory=set[str])
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict[tuple[str, str], Cell])
    measured: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    tried_merges: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    turns_of: dict[str, int] = field(default_factory=dict[str, int])
    merges: int = 0
    met_tool_faults: bool = False

    @property
    def val(self) -> list[str]:
        """The validation rows in the order of races."""
        rows = list(self.task.val)
        self.task.rng("race").shuffle(rows)
        return rows

    @property
    def is_greedy(self) -> bool:
        """Whether means decide, and each child runs on all validation rows."""
        return self.task.judge.strategy == "greedy"

    def steps(self) -> Rule:
        """Return the search as a rule."""
        baseline = self.task.baseline
        self.pool[baseline.digest] = baseline
        self.known.add(baseline.digest)
        try:
            yield from self._run(baseline, self.val if self.is_greedy else self.val[: self.looks * BLOCK])
            self._check_frontier()
            joined = False
            for turn in range(self.plan.turns):
                self._drop_fallen()
                if not self._fits():
                    yield from self._stop(turn)
                    break
                joined = (joined and (yield from self._merge(turn))) or (yield from self._mutate(turn))
            yield from self._warn()
            self._drop_fallen()
            return (yield from self._best())
        except BudgetSpent:
            self._drop_fallen()
            return max(self.pool.values(), key=self.strength)

    def _drop_fallen(self) -> None:
        self.pool = {digest: each for digest, each in self.pool.items() if not self.task.judge.fell(each)}

    @property
    def looks(self) -> int:
        """The most blocks of validation rows before a child joins the pool: fewer if there are few runs."""
        return max(1, min(LOOKS, self.plan.runs // (3 * BLOCK)))

    def _turn(self) -> int:
        """Return the likely runs of a turn: most children are dropped on the minibatch, others on the first block."""
        return 2 * self.plan.minibatch + (len(self.task.val) if self.is_greedy else min(BLOCK, len(self.task.val)))

    def _end(self) -> int:
        """Return the runs that are kept for the end: those that compare the strongest candidate with the student on all
        validation rows, at most a share of all runs."""
        best, baseline = max(self.pool.values(), key=self.strength), self.task.baseline
        if best is baseline or self.is_greedy:
            return 0
        missing = sum((each.digest, row) not in self.measured for each in (baseline, best) for row in self.task.val)
        return min(missing, round(_SHARE_OF_THE_END * self.plan.runs))

    def _fits(self) -> bool:
        """Return True if the likely runs of one more turn and of the end are allowed."""
        return len(self.measured) + self._turn() + self._end() <= self.plan.runs

    def _run(self, candidate: Candidate, rows: Sequence[str], traced: bool = False) -> RuleSteps[list[Cell]]:
        cells = yield from measure(candidate, rows, traced=traced)
        self.measured |= {(candidate.digest, row) for row in rows}
        if traced:
            self.cells |= {(candidate.digest, row): cell for row, cell in zip(rows, cells, strict=True)}
        return cells

    # --- parents

    def strength(self, candidate: Candidate) -> float:
        """Return the mean difference to the student on validation rows, drawn to 0 if there are few."""
        differences = self.task.judge.differences(candidate, self.task.baseline, self.task.val)
        return sum(differences) / (len(differences) + _PRIOR)

    def _front(self) -> tuple[Mapping[str, Sequence[str]], Mapping[str, float]]:
        scores = {digest: self.task.judge.table.scores(each, self.task.val) for digest, each in self.pool.items()}
        keys = shared = [row for row in self.task.val if all(row in each for each in scores.values())]
        if self.plan.frontier != "rows" and shared and (names := self._objectives()):
            scores = {digest: self._keyed(each, names, shared) for digest, each in self.pool.items()}
            keys = list(dict.fromkeys(key for each in scores.values() for key in each))
        return leads(scores, keys), {digest: self.strength(each) for digest, each in self.pool.items()}

    def _keyed(self, candidate: Candidate, names: Sequence[str], rows: Sequence[str]) -> dict[str, float]:
        """Return what a candidate may lead: objectives, rows and objectives, or each objective of each row."""
        judge = self.task.judge
        found = {name: judge.values(candidate, name, rows) for name in names}
        if self.plan.frontier == "each":
            return {f"{row}/{name}": value for name, each in found.items() for row, value in each.items()}
        means = {name: sum(each.values()) / len(each) for name, each in found.items() if each}
        return {**judge.table.scores(candidate, rows), **means} if self.plan.frontier == "both" else means

    def _objectives(self) -> list[str]:
        """Return the objectives of the search; if the headline is the only one, what else the metric measures."""
        judge = self.task.judge
        if len(judge.objectives) > 1:
            return list(judge.objectives)
        return list(dict.fromkeys(name for each in judge.table.subscores(self.task.val).values() for name in each))

    def _check_frontier(self) -> None:
        if self.plan.frontier != "rows" and not self.task.plan and not self._objectives():
            raise ConfigurationError(
                f"frontier={self.plan.frontier!r} needs several objectives, and the metric has no subscores (searching). Write "
                'GEPA(objectives=("score", "tokens")), or return subscores.'
            )

    def _parent(self, turn: int) -> Candidate:
        fronts, strengths = self._front()
        source = self.task.rng("parent", turn)
        best = max(strengths, key=lambda each: strengths[each])
        if self.plan.selection == "epsilon_greedy" and source.random() < 0.1:
            return self.pool[source.choice(list(self.pool))]
        if self.plan.selection != "pareto" or not fronts:
            return self.pool[best]
        draws = 1 if self.is_greedy or self.plan.frontier != "rows" else _DRAWS
        drawn = [draw_parent(fronts, strengths, source) for _ in range(draws)]
        return self.pool[max(drawn, key=lambda each: strengths[each])]

    # --- children

    def _mutate(self, turn: int) -> RuleSteps[bool]:
        """Reflect on a minibatch of a parent; return True if the child joined the pool."""
        parent, batch, perfect = self._parent(turn), self._batch(turn), self.plan.perfect
        cells = yield from self._run(parent, batch, traced=True)
        is_perfect = all((cell.score or 0.0) >= perfect for cell in cells)
        child = None
        if self.task.labels and turn % _LABEL_TURN == _LABEL_TURN - 1:
            child = yield from self._other_label(parent, turn)
        elif not (self.plan.skips_perfect and is_perfect):
            runs = [*zip(batch, cells, strict=True), *self._known_failures(parent, batch)]
            texts = yield from self._texts(parent, runs, turn)
            child = yield from checked(self.task, parent, texts, self.known, "reflection")
        if child is None:
            return False
        self.known.add(child.digest)
        yield from self._run(child, batch, traced=True)
        if not self.task.judge.gains(child, parent, batch):
            yield from report(Dropped(child, "not better on the minibatch"))
            return False
        return (yield from self._joins(child, parent))

    def _other_label(self, parent: Candidate, turn: int) -> RuleSteps[Candidate | None]:
        """Return a new candidate that differs from a parent in the label of one choice: no text is written."""
        found = [each for each in other_labels(self.task, parent) if each.digest not in self.known]
        if not found:
            return None
        child = self.task.rng("label", turn).choice(found)
        changed = tuple(f"{name}={label}" for name, label in child.choices.items() if parent.choices.get(name) != label)
        yield from report(Proposed(child, "another choice", changed))
        return child

    def _joins(self, child: Candidate, parent: Candidate) -> RuleSteps[bool]:
        judge, val = self.task.judge, self.val
        seen = list[str]()
        for look in [len(val)] if self.is_greedy else range(BLOCK, self.looks * BLOCK + 1, BLOCK):
            seen = val[:look]
            for each in (parent, child):
                yield from self._run(each, seen)
            if judge.fell(child):
                return False
            is_decided = self.is_greedy and len(judge.objectives) == 1
            if is_decided or judge.is_better(child, parent, seen):
                break
            if judge.is_worse(child, parent, seen):
                yield from report(Dropped(child, f"worse than its parent on {len(seen)} rows"))
                return False
        is_lower = not self.is_greedy and judge.advantage(child, parent, seen) < 0
        if is_lower and not judge.gains(child, parent, seen):
            yield from report(Dropped(child, f"not better than its parent on {len(seen)} rows"))
            return False
        self.pool[child.digest] = child
        yield from report(Measured(child, judge.mean(child, seen), len(seen)))
        yield from report(Kept(child, "joined the pool"))
        return True

    def _batch(self, turn: int) -> list[str]:
        """Return the next rows of a shuffled order; each epoch has another one."""
        rows = list(self.task.train)
        each = max(1, -(-len(rows) // self.plan.minibatch))
        self.task.rng("epoch", turn // each).shuffle(rows)
        at = turn % each * self.plan.minibatch
        return rows[at : at + self.plan.minibatch]

    def _known_failures(self, parent: Candidate, batch: Sequence[str]) -> list[RowCell]:
        """Return earlier failures of the parent on other training rows, the latest first."""
        found = [
            (row, cell)
            for (digest, row), cell in reversed(self.cells.items())
            if digest == parent.digest and row not in batch and (cell.score or 0.0) < self.plan.perfect
        ]
        return [] if self.is_greedy else found[:_KNOWN_FAILURES]

    def _texts(self, parent: Candidate, runs: Sequence[RowCell], turn: int) -> RuleSteps[dict[Slot, str]]:
        """Return new texts of the chosen components."""
        task, plan, texts = self.task, self.plan, dict[Slot, str]()
        chosen = self._components(parent, runs, turn)
        own = [name for name, kind in chosen if kind == "instructions"]
        if plan.proposer is not None and own:
            texts |= yield from rewrite_by(
                task,
                plan.proposer,
                parent,
                own,
                runs,
                perfect=plan.perfect,
                parse_failures=plan.parse_failures,
                sample=turn,
            )
        for name, kind in chosen:
            if kind == "tools" and plan.proposer is not None:
                texts |= yield from rewrite_tools_by(
                    task, plan.proposer, parent, name, runs, perfect=plan.perfect, sample=turn
                )
            elif kind == "tools":
                texts |= yield from rewrite_tools(task, parent, name, runs, perfect=plan.perfect, sample=turn)
            elif plan.proposer is None:
                texts |= yield from rewrite_instruction(task, parent, name, runs, perfect=plan.perfect, sample=turn)
        return texts

    def _components(self, parent: Candidate, runs: Sequence[RowCell], turn: int) -> list[tuple[str, str]]:
        """Return what is rewritten: predictors with "instructions" or "tools"."""
        blamed, chosen = blame(self.task, runs, self.plan.perfect), self.plan.components
        offered = {name: kinds for name in blamed if (kinds := self._kinds(name, runs))}
        every = [(name, kind) for name, kinds in offered.items() for kind in kinds]
        number = self.turns_of.get(parent.digest, 0)
        self.turns_of[parent.digest] = number + 1
        if not every or chosen == "all":
            return every
        if chosen == "round_robin":
            return [every[number % len(every)]]
        if callable(chosen):
            wanted: list[str] = list(cast("Any", chosen)(self._state(turn), *self._seen(parent, runs)))
            return [each for each in every if each[0] in wanted or ".".join(each) in wanted]
        names, source = list(offered), self.task.rng("component", turn)
        name = source.choices(names, [blamed[each] + 0.01 for each in names])[0]
        return [(name, offered[name][-1 if source.random() < 0.75 else 0])]  # tools, if they are to blame

    def _kinds(self, name: str, runs: Sequence[RowCell]) -> list[str]:
        """Return the kinds of texts of a predictor that runs give a reason to rewrite."""
        kinds = ["instructions"] * (f"{name}.instructions" in self.task.slots)
        if len(tool_names(self.task, name)) > 1 and ToolEvidence.of(self.task, name, runs, self.plan.perfect).rows:
            kinds.append("tools")
            self.met_tool_faults = True
        return kinds

    def _seen(self, parent: Candidate, runs: Sequence[RowCell]) -> tuple[Any, ...]:
        """Return the arguments of a component selector behind its state; its trajectories are dicts."""
        texts = {name: text_of(self.task, parent, f"{name}.instructions") for name in self.task.signatures}
        trajectories = [
            {
                "example": self.task.example_of(row),
                "prediction": Prediction(cell.outputs),
                "trace": list(cell.trace),
                "score": cell.score,
                "feedback": cell.feedback,
            }
            for row, cell in runs
        ]
        return trajectories, [cell.score for _, cell in runs], list(self.pool).index(parent.digest), texts

    def _state(self, turn: int) -> Any:
        """Return the state of a component selector: ``i``, ``program_candidates``, ``list_of_named_predictors``."""
        from types import SimpleNamespace

        candidates = [dict(each.texts) for each in self.pool.values()]
        return SimpleNamespace(
            i=turn, program_candidates=candidates, list_of_named_predictors=list(self.task.signatures)
        )

    # --- merges

    def _merge(self, turn: int) -> RuleSteps[bool]:
        """Combine two leaders whose common ancestor has other texts in common with each; return True if the child joined."""
        if self.merges >= self.plan.merges:
            return False
        fronts, strengths = self._front()
        leaders = undominated(fronts, strengths)
        self.task.rng("merge", turn).shuffle(leaders)
        child, better = self._merged(leaders, strengths)
        if child is None or better is None:
            return False
        self.known.add(child.digest)
        yield from report(Proposed(child, "merge", tuple(child.texts)))
        rows = self.val[:BLOCK]
        yield from self._run(child, rows)
        yield from self._run(better, rows)
        judge = self.task.judge
        if judge.advantage(child, better, rows) < 0 and not judge.gains(child, better, rows):
            yield from report(Dropped(child, "worse than the better one of both"))
            return False
        self.merges += 1
        return (yield from self._joins(child, better))

    def _merged(
        self, leaders: Sequence[str], strengths: Mapping[str, float]
    ) -> tuple[Candidate, Candidate] | tuple[None, None]:
        for first, second in permutations(leaders, 2):
            one, two = self.pool[first], self.pool[second]
            above, also = ancestors(one, self.pool), ancestors(two, self.pool)
            if first >= second or first in also or second in above or (first, second) in self.tried_merges:
                continue
            self.tried_merges.add((first, second))
            better = one if strengths[first] >= strengths[second] else two
            least = min(strengths[first], strengths[second])
            for shared in [each for each in above if each in also and strengths[each] <= least]:
                child = merged(one, two, self.pool[shared], prefers_first=better is one)
                if child is not None and child.digest not in self.known:
                    return child, better
        return None, None

    # --- the end

    def _best(self) -> Rule:
        if self.is_greedy:
            return self.task.judge.ranked(list(self.pool.values()), self.task.val)[0]
        finalists = sorted(self.pool.values(), key=lambda each: -self.strength(each))[:FINALISTS]
        result = yield from race(self.task, finalists, self.task.val, keep=self.task.baseline, block=self.looks * BLOCK)
        return result.leader

    def _stop(self, turn: int) -> RuleSteps[None]:
        """Report that the runs allow no further turn."""
        best = max(self.pool.values(), key=self.strength)
        rows = self.task.judge.table.scores(best, self.task.val)
        yield Report(Measured(best, self.task.judge.mean(best, list(rows)), len(rows)), is_cut=self.plan.is_limited)
        if not turn:
            least = len(self.measured) + self._turn()
            text = f"The search allows {self.plan.runs} runs, and its first turn needs {least}: nothing was tried."
            yield from report(Warned(f"{text} Raise max_metric_calls, or give fewer validation rows."))

    def _warn(self) -> RuleSteps[None]:
        """Report why texts of tools were not tuned."""
        counts = [len(tool_names(self.task, name)) for name in self.task.signatures]
        if any(counts) and max(counts) < 2:
            yield from report(Warned("Texts of tools were not tuned: there is no second tool to choose from."))
        elif any(counts) and not self.met_tool_faults:
            yield from report(Warned("Texts of tools were not tuned: no failure was caused by the use of a tool."))
