"""COPRO: better instructions, a few at a time, from those that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from sigwire.errors import BudgetSpent
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Kept
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.proposing import evidence, proposed
from sigwire.optimizers.racing import race
from sigwire.optimizers.rule import Rule, report
from sigwire.optimizers.task import Task

__all__ = ["COPRO"]

_RUN, _SHOWN = 8, 4  # rows of evidence


class COPRO(Optimizer):
    """Tune instructions by coordinate ascent (Khattab et al. 2023, *DSPy*; prompts with scores of earlier ones: Yang et al.
    2023, *Large Language Models as Optimizers*).

    ``depth`` times, for each predictor in turn: ``breadth - 1`` new instructions, from rows with feedback and from the
    instructions tried before with their scores; they race against the leader on the validation rows. ``init_temperature`` is
    that of the writing model.
    Cost: at most depth · P · (breadth - 1) writing calls for P predictors, and a race of about 2 · breadth · 8 runs each, after 8 runs on
    training rows.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {"eval_kwargs": None}
    _fixed_tunes = frozenset({"instructions"})

    def __init__(
        self,
        prompt_model: Any = None,
        metric: Any = None,
        breadth: int = 10,
        depth: int = 3,
        init_temperature: float = 1.4,
        track_stats: bool = False,
        *,
        num_threads: int | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(metric, prompt_model=prompt_model, num_threads=num_threads, **search)
        self.breadth, self.depth = breadth, depth
        self.init_temperature, self.track_stats = init_temperature, track_stats

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule."""
        leader, tried = task.baseline, dict[str, list[Candidate]]()
        try:
            for number in range(self.depth):
                for name in task.signatures:
                    examples, shown = yield from evidence(task, leader, _RUN, _SHOWN)
                    known = tried.setdefault(name, [])
                    new = yield from proposed(
                        task,
                        leader,
                        name,
                        {task.baseline.digest, *(each.digest for each in known)},
                        count=max(1, self.breadth - 1),
                        temperature=self.init_temperature,
                        examples=examples,
                        rows=shown,
                        earlier=_earlier(task, name, known),
                        sample=number * self.breadth,
                    )
                    known += new
                    found = (yield from race(task, new, task.val, keep=leader)).leader
                    if task.judge.is_better(found, leader, task.val):
                        leader = found
                        yield from report(Kept(leader, f"depth {number}, {name}"))
        except BudgetSpent:
            pass
        return leader


def _earlier(task: Task, predictor: str, tried: list[Candidate]) -> str:
    slot = f"{predictor}.instructions"
    ranked = task.judge.ranked(tried, task.val)[:10]
    return "\n".join(f"{task.judge.mean(each, task.val):.2f}: {each.texts[slot]}" for each in reversed(ranked))
