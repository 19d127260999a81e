"""Rows that must hold: no candidate may be worse than the student on them.

A candidate with a lower score than the student on such a row is run there twice more, as is the student. If the median of the
three is lower, the candidate leaves the search: ``Judge`` ranks it behind every other one.
"""

from __future__ import annotations

from functools import partial
from statistics import median

from sigwire.errors import BudgetSpent
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Dropped, Kept
from sigwire.optimizers.rule import Measure, Report, Rule, RuleEffect, RuleSteps, RunKey, report, through
from sigwire.optimizers.task import Task
from sigwire.show.values import short_repr

__all__ = ["held"]

_AGAIN = (1, 2)  # the repeats that confirm a fall


def held(task: Task, rule: Rule) -> Rule:
    """Return a rule whose runs on rows that must hold are compared with those of the student."""
    return through(rule, partial(_performed, task)) if task.must_hold else rule


def _performed(task: Task, effect: RuleEffect) -> RuleSteps[object]:
    if isinstance(effect, Report):
        event = effect.event
        if isinstance(event, (Dropped, Kept)) and task.judge.fell(event.candidate):
            return None  # its fate is known
    answer: object = yield effect
    if isinstance(effect, Measure) and effect.by == "student":
        yield from _compared(task, effect)
    return answer


def _compared(task: Task, effect: Measure) -> RuleSteps[None]:
    """Compare the candidates of runs with the student on the rows that must hold."""
    baseline, judge, must = task.baseline, task.judge, frozenset(task.must_hold)
    runs = [RunKey(run.candidate, run.row) for run in effect.runs if run.row in must and run.candidate != baseline]
    runs = [run for run in dict.fromkeys(runs) if not judge.fell(run.candidate)]
    try:
        if runs:
            yield Measure(tuple(RunKey(baseline, row) for row in dict.fromkeys(run.row for run in runs)))
        suspects = [run for run in runs if _is_suspect(task, run)]
        both = dict.fromkeys(each for run in suspects for each in (run, RunKey(baseline, run.row)))
        if both:
            yield Measure(tuple(RunKey(run.candidate, run.row, repeat) for run in both for repeat in _AGAIN))
    except BudgetSpent:
        return  # ``Judge.holds`` is False without these runs
    for run in [] if task.plan else suspects:
        if not judge.fell(run.candidate) and _median(task, run.candidate, run.row) < _median(task, baseline, run.row):
            judge.drop(run.candidate)
            shown = short_repr(dict(task.example_of(run.row).inputs().items()), 80)
            yield from report(Dropped(run.candidate, f"must hold: row {run.row} {shown}"))


def _is_suspect(task: Task, run: RunKey) -> bool:
    return task.plan == "many" if task.plan else task.judge.is_lower(run.candidate, task.baseline, run.row)


def _median(task: Task, candidate: Candidate, row: str) -> float:
    return median(task.judge.table.repeats(candidate, row))
