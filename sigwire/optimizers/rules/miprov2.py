"""MIPROv2: instructions and demos together."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, log2
from typing import Any, ClassVar, Unpack

from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Kept, Proposed
from sigwire.optimizers.operators.choosing import DemoSets, Instructions, demo_sets, joined
from sigwire.optimizers.operators.climbing import climb
from sigwire.optimizers.operators.labels import other_labels, picked, sizes_of_choices
from sigwire.optimizers.operators.proposing import TIPS, evidence, proposed, summary_of
from sigwire.optimizers.operators.racing import race
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.reflective.tool_options import tool_options
from sigwire.optimizers.reports.programs import percent, scored_programs, trial_logs
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule, RuleSteps, report
from sigwire.optimizers.task import Task

__all__ = ["MIPROv2"]

_SIZES: Mapping[str, int] = {"light": 6, "medium": 12, "heavy": 18}
_BATCH = 6  # candidates of a race; a setting of the search, not of the number of threads
_RUN, _SHOWN = 16, 8  # rows of evidence
_REFINED = 4
_TOOL_TEXTS = 3  # rewritings of the tools of a predictor


class MIPROv2(Optimizer):
    """Choose an instruction and a set of demos for each predictor (Opsahl-Ong et al. 2024, *Optimizing Instructions and
    Demonstrations for Multi-Stage Language Model Programs*).

    ``auto`` "light", "medium" or "heavy" makes 6, 12 or 18 instructions and sets of demos and as many trials as the paper's
    code; ``auto=None`` takes ``num_candidates`` and ``compile(num_trials=)``. The present instruction and demos are options
    too, and rewritings of tools that the student confuses. Trials are proposed by TPE (Bergstra et al. 2011) in batches; the
    candidates of a batch race against the leader. Options of other libraries without effect here (``minibatch`` among them:
    races decide how many rows a candidate needs) are accepted with a warning. ``log_dir`` has the journal.
    With ``choices`` a trial draws a label of each as well, and at the end the leader races against its other labels.
    Cost: up to 3 · max_bootstrapped_demos successes of runs for the demos, 1 + n · P writing calls for n instructions and P
    predictors, and races of about 2 · trials · 8 runs.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("num_trials", "max_bootstrapped_demos", "max_labeled_demos", "seed", "provide_traceback")),
        **dict.fromkeys(("minibatch", "program_aware_proposer", "data_aware_proposer", "tip_aware_proposer"), True),
        "fewshot_aware_proposer": True,
        "requires_permission_to_run": None,
        "minibatch_size": 35,
        "minibatch_full_eval_steps": 5,
        "view_data_batch_size": 10,
    }
    _idle: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("minibatch", "minibatch_size", "minibatch_full_eval_steps"), "races decide how many rows a candidate needs"
        ),
        **dict.fromkeys(
            ("program_aware_proposer", "fewshot_aware_proposer", "view_data_batch_size"),
            "the writing model sees the program and rows with feedback",
        ),
        "requires_permission_to_run": "nothing is asked; plan(...) has the cost before",
        "provide_traceback": "an error always has its traceback",
        "max_errors": "a run that the provider failed is made again, and a failure of the program is a score",
        "verbose": "program.optimization and on_event= have each step",
    }
    _fixed_tunes = frozenset({"instructions", "demos", "tools"})
    _draws_labels = True

    def __init__(
        self,
        metric: Any = None,
        prompt_model: Any = None,
        task_model: Any = None,
        teacher_settings: Mapping[str, Any] | None = None,
        max_bootstrapped_demos: int = 4,
        max_labeled_demos: int = 4,
        auto: str | None = "light",
        num_candidates: int | None = None,
        num_threads: int | None = None,
        max_errors: int | None = None,
        *,
        init_temperature: float = 1.0,
        verbose: bool = False,
        track_stats: bool = True,
        log_dir: str | None = None,
        metric_threshold: float | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        if auto is not None and (auto not in _SIZES or num_candidates is not None):
            raise ConfigurationError(
                f'auto is "light", "medium" or "heavy" without num_candidates, not {auto!r} (making MIPROv2). Write auto=None '
                "for numbers of your own."
            )
        search.setdefault("seed", 9)
        if log_dir is not None:
            search.setdefault("journal", f"{log_dir}/search.jsonl")
        super().__init__(
            metric,
            prompt_model=prompt_model,
            task_model=task_model,
            teacher_settings=teacher_settings,
            num_threads=num_threads,
            metric_threshold=metric_threshold,
            **search,
        )
        self.max_bootstrapped_demos, self.max_labeled_demos = max_bootstrapped_demos, max_labeled_demos
        self.auto, self.num_candidates, self.max_errors = auto, num_candidates, max_errors
        self.init_temperature, self.verbose, self.track_stats = init_temperature, verbose, track_stats

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule."""
        leader = task.baseline
        count = self._count(options)
        try:
            demos = yield from self._demo_sets(task, options, count)
            tools = yield from tool_options(task, _TOOL_TEXTS)
            texts = yield from self._instructions(task, options, count)
            names = {
                f"{kind}/{name}": len(found[name])
                for kind, found in (("text", texts), ("demos", demos), ("tools", tools))
                for name in found
            }
            names |= sizes_of_choices(task)
            sampler = task.choices("trials", {name: size for name, size in names.items() if size > 1})
            left = options["num_trials"] or _trials(count, len(names))
            while left > 0:
                choices = sampler.ask(min(_BATCH, left))
                left -= len(choices)
                arms = [picked(task, joined(task, choice, texts, demos, tools), choice) for choice in choices]
                for arm in arms:
                    changes = (*arm.texts, *arm.demos, *arm.choices)
                    yield from report(Proposed(arm, "instruction and demos", changes))
                result = yield from race(task, arms, task.val, keep=leader)
                for choice, arm in zip(choices, arms, strict=True):
                    sampler.learn(choice, task.judge.advantage(arm, leader, task.val))
                if task.judge.is_better(result.leader, leader, task.val):
                    leader = result.leader
                    yield from report(Kept(leader, f"{left} trials left"))
            if others := other_labels(task, leader):
                for each in others:
                    yield from report(Proposed(each, "another choice", tuple(each.choices)))
                leader = (yield from race(task, others, task.val, keep=leader)).leader
            for name in texts:
                leader = yield from climb(task, leader, name, [], count=_REFINED, temperature=self.init_temperature)
        except BudgetSpent:
            pass
        return leader

    def _count(self, options: Mapping[str, Any]) -> int:
        if self.auto is not None:
            return _SIZES[self.auto]
        if not self.num_candidates or not options["num_trials"]:
            raise ConfigurationError("MIPROv2(auto=None) needs num_candidates= and compile(num_trials=) (compiling).")
        return self.num_candidates

    def _demo_sets(self, task: Task, options: Mapping[str, Any], count: int) -> RuleSteps[DemoSets]:
        most, labels = (
            getattr(self, name) if options[name] is None else options[name]
            for name in ("max_bootstrapped_demos", "max_labeled_demos")
        )
        if "demos" not in task.tunes or not most + labels:
            return {}
        return (yield from demo_sets(task, count, most, labels))

    def _instructions(self, task: Task, options: Mapping[str, Any], count: int) -> RuleSteps[Instructions]:
        """Return the student's instruction and ``count`` others for each predictor."""
        found: dict[str, list[str | None]] = {}
        if "instructions" not in task.tunes:
            return found
        summary = (yield from summary_of(task, task.train)) if options["data_aware_proposer"] else ""
        examples, rows = yield from evidence(task, task.baseline, _RUN, _SHOWN)
        for name in task.signatures:
            made: list[Candidate] = []
            for number in range(count):
                hint = TIPS[number % len(TIPS)] if options["tip_aware_proposer"] else ""
                made += yield from proposed(
                    task,
                    task.baseline,
                    name,
                    {task.baseline.digest, *(each.digest for each in made)},
                    count=1,
                    temperature=self.init_temperature,
                    examples=examples,
                    rows=rows,
                    summary=summary,
                    hint=hint,
                    sample=number,
                )
            found[name] = [None, *(each.texts[f"{name}.instructions"] for each in made)]
        return found

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add ``candidate_programs``, ``trial_logs``, ``score`` and ``total_calls``."""
        program.candidate_programs = scored_programs(student, report)
        program.trial_logs = trial_logs(report)
        program.score = percent(report.estimate.selection)
        program.total_calls, program.prompt_model_total_calls = report.spent.runs, report.spent.writing_calls


def _trials(count: int, variables: int) -> int:
    return floor(max(2 * variables * log2(count), 1.5 * count))
