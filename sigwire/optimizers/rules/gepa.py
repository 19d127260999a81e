"""GEPA: reflect on failing runs, rewrite one component, and keep a Pareto front of candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from sigwire.errors import ConfigurationError
from sigwire.modules.module import Module
from sigwire.optimizers.operators.racing import BLOCK
from sigwire.optimizers.optimizer import Optimizer, SearchOptions
from sigwire.optimizers.reflective.evolution import FINALISTS, LOOKS, Evolution, EvolutionPlan
from sigwire.optimizers.reflective.gepa_result import GEPAResult
from sigwire.optimizers.reports.programs import scored_programs
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rule import Rule
from sigwire.optimizers.task import Task

__all__ = ["GEPA"]

_TURNS = {"light": 26, "medium": 52, "heavy": 104}
_SELECTIONS = ("pareto", "current_best", "epsilon_greedy")
_SELECTORS = ("blame", "round_robin", "all")
_FRONTIERS = ("rows", "objectives", "both", "each")
_TRACKING = "no service is called; on_event gets each event of the search, and the program's report has them all"
_REFUSED = {
    **dict.fromkeys(("use_wandb", "wandb_api_key", "wandb_init_kwargs", "use_mlflow"), _TRACKING),
    "track_best_outputs": "outputs are not kept; Evaluate(devset=valset, metric=...)(program) has those of the result",
    "code_proposer": "texts are tuned, code is not",
    "gepa_kwargs": "the search is not that of the gepa package; its options are those of GEPA",
}


class GEPA(Optimizer):
    """Rewrite instructions and texts of tools by reflection on failing runs (Agrawal et al. 2025, *GEPA: Reflective Prompt
    Evolution Can Outperform Reinforcement Learning*).

    Each turn draws a parent from the Pareto front, runs it on ``reflection_minibatch_size`` training rows, shows the failures
    with the metric's feedback to ``reflection_lm``, and runs the child on the same rows. A better child runs on validation
    rows (see ``strategy`` in ``SearchOptions``) and joins the pool. Two leaders that changed different components are merged.

    Exactly one of ``auto`` ("light", "medium", "heavy"), ``max_full_evals`` (times all rows), ``max_metric_calls`` (runs) and
    ``budget`` (calls) limits the search. The metric returns feedback as ``Prediction(score=, feedback=)``; it may take
    ``pred_name`` and ``pred_trace`` and give each predictor its own. ``component_selector``: "blame" (the predictors that
    failing runs passed), "round_robin", "all", or a function as in the ``gepa`` package. ``instruction_proposer(candidate,
    reflective_dataset, components_to_update)`` replaces the writing model: it returns texts by component, which is the name of
    a predictor for its instruction and a slot such as ``answer.tools.search.desc`` for the text of a tool. ``log_dir`` has the
    journal. ``frontier``: what a parent leads in: "rows" (the score of a row; the default), "objectives" (the mean of one of
    ``objectives``, or without them of a subscore), "both", or "each" (an objective of a row; the default with ``objectives``).
    ``warn_on_score_mismatch`` is accepted: the score of a run is that of one call of the metric.

    Tools: if runs fail by calls of wrong tools or with wrong arguments, the descriptions of all tools that these runs blame are
    rewritten together; ``tune={"instructions"}`` turns this off, ``tune={"tools", "tool_names"}`` tunes names as well.
    Cost, for V validation rows and minibatches of b: 2·V + about 26 turns of 2·b + 8 runs and a writing call ("light").
    """

    _fixed_tunes = frozenset({"instructions", "tools"})
    _explains = True
    _draws_labels = True
    _hooks: ClassVar[Sequence[str]] = ("evolution_plan",)
    _refused = _REFUSED

    def __init__(
        self,
        metric: Any = None,
        *,
        auto: str | None = None,
        max_full_evals: int | None = None,
        max_metric_calls: int | None = None,
        reflection_minibatch_size: int | None = 3,
        candidate_selection_strategy: str = "pareto",
        reflection_lm: Any = None,
        skip_perfect_score: bool = True,
        add_format_failure_as_feedback: bool = True,
        instruction_proposer: Callable[..., Any] | None = None,
        component_selector: Any = "blame",
        use_merge: bool = True,
        max_merge_invocations: int | None = 5,
        num_threads: int | None = None,
        failure_score: float = 0.0,
        perfect_score: float = 1.0,
        track_stats: bool = False,
        log_dir: str | None = None,
        warn_on_score_mismatch: bool = True,
        prompt_model: Any = None,
        frontier: str | None = None,
        **search: Unpack[SearchOptions],
    ) -> None:
        if max_metric_calls is not None and search.get("budget") is None and max_metric_calls < 1:
            raise ConfigurationError(f"max_metric_calls is above 0, not {max_metric_calls} (making GEPA).")
        search["seed"] = search.get("seed") or 0  # None is allowed
        if log_dir is not None:
            search.setdefault("journal", f"{log_dir}/search.jsonl")
        super().__init__(
            metric,
            prompt_model=reflection_lm or prompt_model,
            num_threads=num_threads,
            failure_score=failure_score,
            **search,
        )
        self.auto, self.max_full_evals, self.max_metric_calls = auto, max_full_evals, max_metric_calls
        self.reflection_minibatch_size = reflection_minibatch_size or 3
        self.candidate_selection_strategy, self.component_selector = candidate_selection_strategy, component_selector
        self.skip_perfect_score, self.perfect_score = skip_perfect_score, perfect_score
        self.add_format_failure_as_feedback = add_format_failure_as_feedback
        self.instruction_proposer = instruction_proposer
        self.use_merge, self.max_merge_invocations = use_merge, max_merge_invocations or 0
        self.track_stats = track_stats
        self.frontier = frontier or ("each" if len(search.get("objectives", ())) > 1 else "rows")
        self._check()

    def _check(self) -> None:
        limits = {"auto": self.auto, "max_full_evals": self.max_full_evals, "max_metric_calls": self.max_metric_calls}
        given = [name for name, value in limits.items() if value is not None]
        if len(given) > 1 or (not given and self.search.get("budget") is None):
            raise ConfigurationError(
                f"GEPA takes exactly one of {', '.join(limits)}, or a budget; got {', '.join(given) or 'none'} (making it). "
                'Write GEPA(metric=my_metric, auto="light").'
            )
        checks = (
            ("auto", self.auto in (None, *_TURNS), tuple(_TURNS)),
            ("candidate_selection_strategy", self.candidate_selection_strategy in _SELECTIONS, _SELECTIONS),
            (
                "component_selector",
                callable(self.component_selector) or self.component_selector in _SELECTORS,
                _SELECTORS,
            ),
            ("frontier", self.frontier in _FRONTIERS, _FRONTIERS),
        )
        for name, fits, known in checks:
            if not fits:
                raise ConfigurationError(
                    f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r:.80} (making GEPA)."
                )

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule."""
        return Evolution(
            task, type(self).evolution_plan(self, len(task.train), len(task.val), len(task.signatures))
        ).steps()

    def evolution_plan(self, train: int, val: int, predictors: int) -> EvolutionPlan:
        """Return the plan of a search over so many rows and predictors. A subclass may change it."""
        batch = min(self.reflection_minibatch_size, train)
        turns = int(_TURNS[self.auto or "heavy"] * (1 + predictors) / 2)
        runs = auto = 2 * val + turns * (2 * batch + BLOCK)
        if self.max_full_evals is not None:
            runs = self.max_full_evals * (train + val)
        elif self.max_metric_calls is not None:
            runs = self.max_metric_calls
        if (calls := self.budget.limits.calls) is not None:
            runs = min(runs, int(calls) // max(1, predictors))
        return EvolutionPlan(
            runs=runs,
            turns=max(1, runs // batch),
            minibatch=batch,
            selection=self.candidate_selection_strategy,
            perfect=self.perfect_score,
            skips_perfect=self.skip_perfect_score,
            merges=self.max_merge_invocations if self.use_merge and predictors > 1 else 0,
            components=self.component_selector,
            proposer=self.instruction_proposer,
            parse_failures=self.add_format_failure_as_feedback,
            is_limited=runs < auto,
            frontier=self.frontier,
        )

    def _most(self, task: Task) -> tuple[int, int]:
        settings = type(self).evolution_plan(self, len(task.train), len(task.val), len(task.signatures))
        over = 0 if self.limit_of_runs(task) is not None else 2 * LOOKS * BLOCK + (FINALISTS + 1) * len(task.val)
        return settings.runs + over, settings.turns * len(task.signatures)

    def limit_of_runs(self, task: Task) -> int | None:
        """Return ``max_metric_calls``, or ``max_full_evals`` as runs."""
        if self.max_full_evals is None and self.max_metric_calls is None:
            return None
        return type(self).evolution_plan(self, len(task.train), len(task.val), len(task.signatures)).runs

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add ``candidate_programs``, best first, and with ``track_stats`` ``detailed_results``, made when they are read."""
        program.candidate_programs = scored_programs(student, report)
        if self.track_stats:
            program.detailed_results = GEPAResult(student, report)
