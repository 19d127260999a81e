"""Texts of tools as options of a choice: a few rewritings for each predictor whose runs confuse its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sigwire.optimizers.candidate import Candidate, Slot
from sigwire.optimizers.operators.texts import checked
from sigwire.optimizers.reflective.rewriting import rewrite_tools
from sigwire.optimizers.reflective.tool_tuning import tool_names
from sigwire.optimizers.rule import RuleSteps, measure
from sigwire.optimizers.task import Task

__all__ = ["ToolOptions", "tool_options"]

ToolOptions: TypeAlias = Mapping[str, Sequence[Mapping[Slot, str]]]
"""Texts of tools by predictor; the first option is no change."""

_RUN = 16  # training rows


def tool_options(task: Task, count: int) -> RuleSteps[ToolOptions]:
    """Run the student on training rows and ask ``count`` times for better texts of the tools that it confuses.

    Costs 16 runs if a predictor has two or more tools that may be tuned, else nothing.
    """
    predictors = [name for name in task.signatures if len(tool_names(task, name)) > 1]
    if "tools" not in task.tunes or not predictors:
        return {}
    rows = task.rng("tool evidence").sample(task.train, min(_RUN, len(task.train)))
    cells = yield from measure(task.baseline, rows, traced=True)
    runs = list(zip(rows, cells, strict=True))
    found: dict[str, list[Mapping[Slot, str]]] = {}
    for name in predictors:
        made: list[Candidate] = []
        for sample in range(count):
            texts = yield from rewrite_tools(task, task.baseline, name, runs, sample=sample)
            known = {task.baseline.digest, *(each.digest for each in made)}
            candidate = yield from checked(task, task.baseline, texts, known, f"tools of {name}")
            made += [] if candidate is None else [candidate]
        if made:
            found[name] = [{}, *(each.texts for each in made)]
    return found
