"""Races: many candidates, the same rows in the same order, losers dropped block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Dropped, Measured
from sigwire.optimizers.rule import Measure, RuleSteps, RunKey, report
from sigwire.optimizers.task import Task

__all__ = ["RaceResult", "race"]

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

    ``keep`` is never dropped: the incumbent, to which the leader is compared on all rows. ``survivors`` others run to the last
    row. Sequential halving (Karnin, Koren and Somekh 2013; for prompts: Shi et al. 2024, *TRIPLE*): with k candidates and
    blocks of b rows the race costs about 2·k·b runs, and the remaining rows for the survivors. Cells of earlier races are
    free. The rows are those of the caller in a seeded order.
    """
    running = list({each.digest: each for each in candidates if keep is None or each.digest != keep.digest}.values())
    order = list(rows)
    task.rng("race").shuffle(order)
    dropped: list[Candidate] = []
    seen = 0
    while seen < len(order) and (running or keep is not None):
        part = order[seen : seen + block] if len(running) > survivors else order[seen:]
        entered = [*([keep] if keep is not None else []), *running]
        _: list[Cell] = yield Measure(tuple(RunKey(each, row) for each in entered for row in part))
        seen += len(part)
        if len(running) > survivors:
            running, lost = _halved(task, running, order[:seen], survivors)
            dropped[:0] = lost
            for each in lost:
                yield from report(Dropped(each, f"{task.judge.mean(each, order[:seen]):.3f} on {seen} rows"))
    for each in running:
        yield from report(Measured(each, task.judge.mean(each, order), len(order)))
    ranked = task.judge.ranked(running, order)
    leader = ranked[0] if ranked else keep
    assert leader is not None
    return RaceResult(leader, (*ranked, *dropped))


def _halved(
    task: Task, running: Sequence[Candidate], rows: Sequence[str], survivors: int
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that go on, and those that do not, best first."""
    ranked = task.judge.ranked(running, rows)
    count = max(survivors, (len(ranked) + 1) // 2)
    going = [each for each in ranked[:count] if not task.judge.is_worse(each, ranked[0], rows)]
    going = ranked[: max(survivors, len(going))]
    return going, ranked[len(going) :]
