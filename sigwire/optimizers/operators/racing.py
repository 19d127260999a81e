"""Races: many candidates, the same rows in the same order, losers dropped block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sigwire.errors import BudgetSpent
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Dropped, Measured
from sigwire.optimizers.rule import Measure, RuleSteps, RunKey, report
from sigwire.optimizers.task import Task

__all__ = ["RaceResult", "measure_affordable", "race"]

BLOCK = 8


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The end of a race: the leader, all candidates best first (dropped ones after those that ran on more rows)."""

    leader: Candidate
    ranked: tuple[Candidate, ...]


def race(
    task: Task,
    candidates: Sequence[Candidate],
    rows: Sequence[str],
    *,
    keep: Candidate | None = None,
    block: int = BLOCK,
    survivors: int = 1,
) -> RuleSteps[RaceResult]:
    """Run candidates on blocks of rows; after each block drop the worse half, and those worse than the leader beyond noise.

    ``keep`` is the incumbent: it runs on the same rows and is never dropped. Survivors go on block by block until the rows
    end; after two blocks, those that are less likely than not to be better than the incumbent are dropped. If none is left,
    the incumbent is the leader. Sequential halving (Karnin, Koren and Somekh 2013; for prompts: Shi et al. 2024, *TRIPLE*):
    k candidates and blocks of b rows cost about 2·k·b runs, and the remaining rows for the survivors. Rows have the same
    seeded order in every race, so runs of earlier races are free.
    """
    running = list({each.digest: each for each in candidates if keep is None or each.digest != keep.digest}.values())
    incumbents = [keep] if keep is not None else []
    order = list(rows)
    task.rng("race").shuffle(order)
    dropped: list[Candidate] = []
    seen = 0
    while seen < len(order) and running:
        part, seen = order[seen : seen + block], min(seen + block, len(order))
        running = yield from measure_affordable(running, part, incumbents)
        running, lost = _going_on(task, running, keep, order[:seen], survivors, may_end=seen >= 2 * block)
        dropped[:0] = lost
        yield from _reported(task, lost, order[:seen])
    for each in running:
        yield from report(Measured(each, task.judge.mean(each, order), seen))
    ranked = task.judge.ranked(running, order[:seen])
    leaders = [*ranked, *incumbents, *dropped]
    return RaceResult(leaders[0], (*ranked, *dropped))


def measure_affordable(
    candidates: Sequence[Candidate], rows: Sequence[str], incumbents: Sequence[Candidate] = ()
) -> RuleSteps[list[Candidate]]:
    """Run candidates on rows; if the budget does not allow all, the first half of them, and so on. Returns those that ran.

    Raises ``BudgetSpent`` if not even one fits.
    """
    running = list(candidates)
    while True:
        try:
            yield Measure(tuple(RunKey(each, row) for each in (*incumbents, *running) for row in rows))
        except BudgetSpent:
            if len(running) < 2:
                raise
            running = running[: len(running) // 2]
        else:
            return running


def _reported(task: Task, lost: Sequence[Candidate], rows: Sequence[str]) -> RuleSteps[None]:
    for each in lost:
        yield from report(Dropped(each, f"{task.judge.mean(each, rows):.3f} on {len(rows)} rows"))


def _going_on(
    task: Task,
    running: Sequence[Candidate],
    keep: Candidate | None,
    rows: Sequence[str],
    survivors: int,
    *,
    may_end: bool,
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that go on, and those that do not, each best first."""
    judge, ranked = task.judge, task.judge.ranked(running, rows)
    count = max(survivors, (len(ranked) + 1) // 2)
    going = [each for each in ranked[:count] if not judge.is_worse(each, ranked[0], rows)]
    if keep is not None and may_end:
        going = [each for each in going if judge.may_be_better(each, keep, rows)]
    lost = [each for each in ranked if each not in going]
    return going, lost
