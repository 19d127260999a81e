"""InferRules: rules that the data teaches, appended to the instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from sigwire.errors import BudgetSpent
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.operators.demos import collect_successes, taught, with_success_demos
from sigwire.optimizers.operators.proposing import InduceRules, accepted, evidence, fields_of
from sigwire.optimizers.operators.racing import race
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.rule import Rule, RuleSteps, write
from sigwire.optimizers.rules.bootstrap_few_shot import Bootstrapping
from sigwire.optimizers.task import Task

__all__ = ["InferRules"]

_RUN, _SHOWN = 40, 20  # rows of evidence
_HEADING = "Rules:"


class InferRules(Optimizer):
    """Append rules to instructions that a model finds in the training rows, beside bootstrapped demos.

    The bootstrapped program is a candidate; ``num_candidates`` others have up to ``num_rules`` rules for each predictor, drawn
    from rows that it answered wrongly first. All race against the student on the validation rows.
    Cost: at most two runs a training row, num_candidates · P writing calls for P predictors, and one race.
    """

    _fixed_tunes = frozenset({"instructions", "demos"})
    _idle = Bootstrapping._idle  # pyright: ignore[reportPrivateUsage]

    def __init__(
        self,
        num_candidates: int = 10,
        num_rules: int = 10,
        num_threads: int | None = None,
        teacher_settings: Mapping[str, Any] | None = None,
        *,
        metric: Any = None,
        max_bootstrapped_demos: int = 4,
        max_labeled_demos: int = 16,
        max_rounds: int = 1,
        max_errors: int | None = None,
        metric_threshold: float | None = None,
        prompt_model: Any = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(
            metric,
            prompt_model=prompt_model,
            teacher_settings=teacher_settings,
            num_threads=num_threads,
            metric_threshold=metric_threshold,
            **search,
        )
        self.num_candidates, self.num_rules = num_candidates, num_rules
        self.max_bootstrapped_demos, self.max_labeled_demos = max_bootstrapped_demos, max_labeled_demos
        self.max_rounds, self.max_errors = max_rounds, max_errors

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule."""
        candidates: list[Candidate] = []
        try:
            demos = yield from self._with_demos(task)
            candidates.append(demos)
            examples, rows = yield from evidence(task, demos, _RUN, _SHOWN)
            for number in range(self.num_candidates):
                known = {task.baseline.digest, *(each.digest for each in candidates)}
                candidate = demos
                for name in task.signatures:
                    candidate = yield from self._with_rules(task, candidate, name, examples, rows, known, number)
                if candidate.digest not in known:
                    candidates.append(candidate)
            return (yield from race(task, candidates, task.val, keep=task.baseline)).leader
        except BudgetSpent:
            return task.judge.ranked([task.baseline, *candidates], task.val)[0]

    def _with_demos(self, task: Task) -> RuleSteps[Candidate]:
        if "demos" not in task.tunes or not self.max_bootstrapped_demos + self.max_labeled_demos:
            return task.baseline
        teacher = taught(task, self.max_labeled_demos)
        found = yield from collect_successes(
            task, teacher, task.train, wanted=self.max_bootstrapped_demos, rounds=self.max_rounds
        )
        return with_success_demos(task, task.baseline, found, most_labelled=self.max_labeled_demos)

    def _with_rules(
        self, task: Task, base: Candidate, name: str, examples: str, rows: Sequence[str], known: set[str], number: int
    ) -> RuleSteps[Candidate]:
        """Ask for rules of a predictor; return the candidate with them, or the same candidate."""
        slot = f"{name}.instructions"
        instruction = base.texts.get(slot, task.slots.get(slot, ""))
        inputs = {
            "step": fields_of(task, name),
            "current_instruction": instruction,
            "examples": examples,
            "most_rules": str(self.num_rules),
        }
        answers = yield from write(InduceRules, inputs, rows=rows, sample=number)
        rules = [] if answers[0] is None else _distinct(answers[0]["rules"])[: self.num_rules]
        if not rules:
            return base
        text = "\n".join([instruction, "", _HEADING, *(f"- {each}" for each in rules)])
        return (yield from accepted(task, base, slot, text, known)) or base


def _distinct(rules: Sequence[object]) -> list[str]:
    """Return rules without repetitions, by their letters alone."""
    found: dict[str, str] = {}
    for rule in rules:
        text = " ".join(str(rule).split()).lstrip("-*0123456789. ")
        if text:
            found.setdefault("".join(filter(str.isalnum, text.casefold())), text)
    return list(found.values())
