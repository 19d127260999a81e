"""LabeledFewShot: training rows as demos, as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from sigwire.optimizers.events import Proposed, Warned
from sigwire.optimizers.operators.demos import labelled
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.rule import Rule, report
from sigwire.optimizers.task import Task

__all__ = ["LabeledFewShot"]


class LabeledFewShot(Optimizer):
    """Give each predictor up to ``k`` training rows as demos. No call is made.

    ``balance=True`` draws as many rows of each label, as far as there are. ``compile(..., sample=False)`` takes the first
    ``k`` rows in place of a random draw. A predictor whose fields no row has gets no demos; the report has a warning.
    ``metric`` is needed for a ``testset`` only.

    >>> from sigwire.core.example import Example
    >>> from sigwire.modules.predict import Predict
    >>> rows = [Example(question=f"{n}+1?", answer=str(n + 1)).with_inputs("question") for n in range(9)]
    >>> program = LabeledFewShot(k=2).compile(Predict("question -> answer"), trainset=rows)
    >>> len(program.demos)
    2
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {"sample": True}
    _chooses = False
    _needs_metric = False
    _fixed_tunes = frozenset({"demos"})

    def __init__(
        self, k: int = 16, *, balance: bool = False, metric: Any = None, **search: Unpack[SearchOptions]
    ) -> None:
        super().__init__(metric, **search)
        self.k, self.balance = k, balance

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: one candidate, no run."""
        candidate = task.baseline
        if options["sample"]:
            demos = labelled(task, self.k, "labelled", balance=self.balance)
        else:
            demos = {
                name: tuple(demo for row in task.train if (demo := task.labeled_demo(row, name)) is not None)[: self.k]
                for name in task.signatures
            }
        for name, chosen in demos.items():
            candidate = candidate.with_demos(name, chosen, task.baseline.digest)
            if not chosen:
                fields = ", ".join(task.signatures[name].output_fields)
                yield from report(Warned(f"{name} has no demos: no training row has its outputs ({fields})."))
            elif partial := _partial(task, name, chosen[0].fields):
                yield from report(Warned(f"The demos of {name} lack {', '.join(partial)}, which no label gives."))
        yield from report(Proposed(candidate, "labelled rows", tuple(demos)))
        return candidate


def _partial(task: Task, name: str, fields: Mapping[str, Any]) -> list[str]:
    """Return the fields of a predictor that a demo lacks."""
    signature = task.signatures[name]
    return [each for each in (*signature.input_fields, *signature.output_fields) if each not in fields]
