"""BetterTogether: several optimizers one after another, each from what the one before found."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Kept
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.reports.programs import scored_programs
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule, RuleSteps, measure, report
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from sigwire.optimizers.task import Task

__all__ = ["BetterTogether"]

M = TypeVar("M", bound=Module)

_SHARED = {"eval_kwargs", "num_threads"}  # options of a call that its steps have in common
_ARROW = " -> "


class BetterTogether(Optimizer):
    """Run optimizers one after another and keep the best candidate of all steps (Soylu et al. 2024, *Fine-Tuning and Prompt
    Optimization: Two Great Steps that Work Better Together*, here for prompts and demos).

    ``optimizers`` by name; ``compile(..., strategy="p -> q -> p")`` names their order, by default each once in the order of the
    arguments. Without optimizers, ``p`` is ``BootstrapFewShotWithRandomSearch``. All steps share runs, budget, journal and the
    comparison at the end; ``metric``, models and options of the search (``search={"seed": 1}``) are
    those of this optimizer. Optimizers of weights are
    out of scope. ``valset_ratio``: the share of ``trainset`` that is set apart without a ``valset``.

    Cost: the sum of the optimizers' costs, and V runs on validation rows a step; a run that a step shares with an earlier one
    is not made again. Result: ``candidate_programs`` with ``strategy`` and ``score``.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {
        "num_threads": None,
        "max_errors": None,
        "provide_traceback": None,
        "seed": None,
        "valset_ratio": 0.1,
        "shuffle_trainset_between_steps": True,
        "strategy": None,
        "optimizer_compile_args": None,
    }
    _idle: ClassVar[Mapping[str, str]] = {
        "max_errors": "a run that the provider failed is made again, and a failure of the program is a score",
        "provide_traceback": "an error always has its traceback",
    }

    def __init__(
        self,
        metric: Any = None,
        *,
        num_threads: int | None = None,
        search: SearchOptions | None = None,
        **optimizers: Optimizer,
    ) -> None:
        for name, optimizer in optimizers.items():
            _check_step(name, optimizer)
        options: SearchOptions = search if search is not None else {}
        super().__init__(metric, num_threads=num_threads, **options)
        made = dict(optimizers) or {"p": BootstrapFewShotWithRandomSearch(metric)}
        self.optimizers = made
        self.prompt_model = next((each.prompt_model for each in made.values() if each.prompt_model is not None), None)
        self.teacher_settings = {key: value for each in made.values() for key, value in each.teacher_settings.items()}

    def check_options(self, student: object, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a call, with their defaults; the steps of ``strategy`` are known."""
        given = super().check_options(student, options)
        self._names(given)
        return given

    def row_sets(
        self, trainset: Iterable[Example], valset: Iterable[Example] | None, given: Mapping[str, Any]
    ) -> tuple[list[Example], list[Example]]:
        """Return the rows; without a ``valset`` a share of the training rows is set apart."""
        train, ratio = list(trainset), given["valset_ratio"]
        if valset is not None or len(train) < 2:
            return train, list(valset or ())
        if not 0 < ratio < 1:
            raise ConfigurationError(f"valset_ratio is between 0 and 1, not {ratio} (compiling).")
        count = max(1, round(len(train) * ratio))
        return train[:-count], train[-count:]

    def _names(self, options: Mapping[str, Any]) -> list[str]:
        """Return the names of the steps."""
        strategy: str | None = options["strategy"]
        names = list(self.optimizers) if strategy is None else [each.strip() for each in strategy.split("->")]
        for name in names:
            if name not in self.optimizers:
                known = ", ".join(self.optimizers)
                raise ConfigurationError(
                    f"The strategy has a step {name!r}, and the optimizers are {known} (compiling). Name each step by the "
                    "keyword of its optimizer. Steps that train weights are out of scope."
                )
        return names

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: the rules of the steps, one after another."""
        leader = found = task.baseline
        names = self._names(options)
        arguments: Mapping[str, Mapping[str, Any]] = options["optimizer_compile_args"] or {}
        try:
            yield from measure(leader, task.val)
            for number, name in enumerate(names):
                given = arguments.get(name, {})
                step = _step_task(task, found, self.optimizers[name], number, options["shuffle_trainset_between_steps"])
                found = yield from _merged(self.optimizers[name], step, found, given)
                yield from measure(found, task.val)
                yield from report(Kept(found, _ARROW.join(names[: number + 1])))
                leader = task.judge.ranked([leader, found], task.val)[0]
                found = leader if task.judge.fell(found) else found
        except BudgetSpent:
            pass
        return leader

    def finish_program(self, program: Module, student: Module, report: OptimizationReport) -> None:
        """Add ``candidate_programs`` and ``flag_compilation_error_occurred``, which is always False: an error is raised."""
        super().finish_program(program, student, report)
        known: dict[str, JsonObject] = {report.baseline.digest: {"strategy": ""}}
        for trial in report.trials:
            if set(trial.fate.split(_ARROW)) <= self.optimizers.keys():
                known.setdefault(trial.candidate.digest, {"strategy": trial.fate})
        made = cast(Any, program)
        made.candidate_programs = scored_programs(student, report, known)
        made.flag_compilation_error_occurred = False
        made._compiled = True


def _check_step(name: str, optimizer: object) -> None:
    if not isinstance(optimizer, Optimizer):
        raise ConfigurationError(f"{name!r} is an optimizer, not {type(optimizer).__name__} (making BetterTogether).")
    if type(optimizer).compile_steps is not Optimizer.compile_steps:
        raise ConfigurationError(f"{type(optimizer).__name__} cannot be a step of BetterTogether: it changes calls.")


def _step_task(task: Task, found: Candidate, optimizer: Optimizer, number: int, shuffles: bool) -> Task:
    """Return the task of a step: from what was found, with the families of texts and the threshold of its optimizer."""
    tunes = task.tunes & optimizer._fixed_tunes  # pyright: ignore[reportPrivateUsage]
    train = list(task.train)
    if shuffles and number:
        task.rng("between steps", number).shuffle(train)
    return replace(
        task,
        baseline=found,
        teacher=found if number else task.teacher,
        slots={slot: found.texts.get(slot, text) for slot, text in task.slots.items() if _family(slot) in tunes},
        train=tuple(train),
        judge=task.judge if task.plan else task.judge.with_threshold(optimizer.metric_threshold),
        tunes=tunes,
        is_taught=bool(found.demos) or task.is_taught,
    )


def _family(slot: str) -> str:
    if slot.endswith(".instructions"):
        return "instructions"
    return "fields" if ".fields." in slot else "tool_names" if slot.endswith(".alias") else "tools"


def _merged(optimizer: Optimizer, task: Task, found: Candidate, given: Mapping[str, Any]) -> RuleSteps[Candidate]:
    """Run the rule of a step; return its candidate with what earlier steps found and it did not change."""
    known = optimizer._compile_options.keys() - _SHARED  # pyright: ignore[reportPrivateUsage]
    if unknown := sorted(given.keys() - known):
        raise ConfigurationError(f"{type(optimizer).__name__} as a step has no option {unknown[0]!r} (compiling).")
    if given.get("seed") is not None:
        task = replace(task, seed=given["seed"])
    steps: Generator[Any, Any, Candidate] = optimizer.rule(task, {**optimizer._compile_options, **given})  # pyright: ignore[reportPrivateUsage]
    made = yield from steps
    return replace(
        made,
        texts={**found.texts, **made.texts},
        demos={**found.demos, **made.demos},
        lm_options={**found.lm_options, **made.lm_options},
    )
