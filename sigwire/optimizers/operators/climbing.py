"""One step of coordinate ascent: new instructions of one predictor, from what the leader answers wrongly."""

from __future__ import annotations

from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Kept
from sigwire.optimizers.operators.proposing import evidence, proposed
from sigwire.optimizers.operators.racing import race
from sigwire.optimizers.rule import RuleSteps, report
from sigwire.optimizers.task import Task

__all__ = ["climb"]

_RUN, _SHOWN = 12, 6  # rows of evidence
_EARLIER = 10


def climb(
    task: Task,
    leader: Candidate,
    predictor: str,
    tried: list[Candidate],
    *,
    count: int,
    temperature: float,
    sample: int = 0,
) -> RuleSteps[Candidate]:
    """Ask for ``count`` instructions and race them against the leader; return the leader after that. ``tried`` gets them.

    The leader is the better one on the validation rows, also if by little: a step of one predictor is often too small to be
    shown, several may not be. The end of the search compares with the student.

    Cost: 12 runs on training rows, ``count`` writing calls, one race.
    """
    examples, rows = yield from evidence(task, leader, _RUN, _SHOWN)
    new = yield from proposed(
        task,
        leader,
        predictor,
        {task.baseline.digest, leader.digest, *(each.digest for each in tried)},
        count=count,
        temperature=temperature,
        examples=examples,
        rows=rows,
        earlier=_earlier(task, predictor, tried),
        sample=sample,
    )
    tried += new
    found = (yield from race(task, new, task.val, keep=leader)).leader
    if task.judge.advantage(found, leader, task.val) <= 0:
        return leader
    yield from report(Kept(found, f"better than {task.judge.mean(leader, task.val):.3f}"))
    return found


def _earlier(task: Task, predictor: str, tried: list[Candidate]) -> str:
    """Return the instructions that were tried with their mean scores, the best last (Yang et al. 2023)."""
    slot = f"{predictor}.instructions"
    ranked = task.judge.ranked(tried, task.val)[:_EARLIER]
    return "\n".join(f"{task.judge.mean(each, task.val):.2f}: {each.texts[slot]}" for each in reversed(ranked))
