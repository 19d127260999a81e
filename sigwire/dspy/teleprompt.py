"""The names of ``dspy.teleprompt``: the optimizers, ``Teleprompter`` and what an optimizer of your own needs.

DSPy's modules below it (``dspy.teleprompt.random_search``, ``dspy.teleprompt.gepa.gepa_utils``) are this module.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, Never, TypeAlias, TypeVar

from sigwire.core.example import Example, Prediction
from sigwire.core.example import Prediction as ScoreWithFeedback
from sigwire.dspy.optimizers.gepa import GEPA, MultiModalInstructionProposer
from sigwire.dspy.optimizers.random_search import BootstrapFewShotWithRandomSearch
from sigwire.dspy.optimizers.together import BetterTogether
from sigwire.dspy.optimizers.unavailable import GRPO, AvatarOptimizer, BootstrapFinetune
from sigwire.dspy.predict.nearest import KNN
from sigwire.dspy.types import Image
from sigwire.errors import AdapterParseError, LMError, warn_user
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.scores import read_score
from sigwire.modules.ask import resolve_lm
from sigwire.modules.module import Module
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules import copro
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.ensemble import Ensemble
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.knn import KNNFewShot as CoreKNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot as CoreLabeledFewShot
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.simba import SIMBA
from sigwire.optimizers.teleprompter import Teleprompter
from sigwire.settings import context, current

__all__ = [
    "COPRO", "GEPA", "GRPO", "SIMBA", "AvatarOptimizer", "BetterTogether", "BootstrapFewShot",
    "BootstrapFewShotWithOptuna", "BootstrapFewShotWithRandomSearch", "BootstrapFinetune", "BootstrapRS", "CandidateRuns",
    "DspyAdapter", "Ensemble", "FailedPrediction", "InferRules", "KNNFewShot", "LabeledFewShot", "MIPROv2",
    "MultiModalInstructionProposer", "ScoreWithFeedback", "Teleprompter", "bootstrap_trace_data", "eval_candidate_program",
    "prepare_models_for_resampling",
]  # fmt: skip

DSPyTrace: TypeAlias = "list[tuple[Any, dict[str, Any], Prediction]]"
"""A trace, as metrics get it: predictor, inputs and outputs of each call."""
M = TypeVar("M", bound=Module)
T = TypeVar("T")

_FILES = (
    "avatar_optimizer bettertogether bootstrap bootstrap_finetune bootstrap_trace copro_optimizer ensemble gepa gepa.gepa "
    "gepa.gepa_utils gepa.instruction_proposal gepa_utils grpo infer_rules instruction_proposal knn_fewshot mipro_optimizer_v2 "
    "random_search signature_opt simba simba_utils teleprompt teleprompt_optuna utils vanilla"
)
sys.modules.update({f"{__name__}.{name}": sys.modules[__name__] for name in _FILES.split()})


class LabeledFewShot(CoreLabeledFewShot):
    """``sigwire.LabeledFewShot`` for rows that need not declare their inputs: no program is run on them. No rows make no demos,
    with a warning.

    >>> from sigwire.core.example import Example
    >>> from sigwire.modules.predict import Predict
    >>> LabeledFewShot(k=1).compile(Predict("a -> b"), trainset=[Example(a="1", b="2")]).demos[0].b
    '2'
    """

    def compile(
        self, student: M, *rows: Never, trainset: Iterable[Example] = (), sample: bool = True, **options: Any
    ) -> M:
        """Return a copy of the student with demos, of random rows or of the first ones."""
        shown = _declared_rows(student, trainset)
        if not shown and not rows and not options:
            return _without_demos(student)
        return super().compile(student, *rows, trainset=shown, sample=sample, **options)

    async def acompile(
        self, student: M, *rows: Never, trainset: Iterable[Example] = (), sample: bool = True, **options: Any
    ) -> M:
        """``compile``, awaited."""
        shown = _declared_rows(student, trainset)
        if not shown and not rows and not options:
            return _without_demos(student)
        return await super().acompile(student, *rows, trainset=shown, sample=sample, **options)


def _without_demos(student: M) -> M:
    warn_user("The trainset is empty: the program has no demos (compiling with LabeledFewShot).")
    made = student.deepcopy()
    for predictor in made.predictors():
        predictor.demos = []
    return made


def _declared_rows(student: Module, trainset: Iterable[Example]) -> list[Example]:
    signature, forward = getattr(student, "signature", None), getattr(student, "forward", student)
    names = list(signature.input_fields if signature is not None else inspect.signature(forward).parameters)
    return [_declared(row, names) for row in trainset]


def _declared(row: Example, names: Iterable[str]) -> Example:
    # Images of PIL have no JSON form.
    pictures = {
        name: Image(value) for name, value in Example.items(row) if hasattr(value, "mode") and hasattr(value, "save")
    }
    row = Example.copy(row, **pictures) if pictures else row
    undeclared = getattr(row, "_input_keys", ()) is None
    return Example.with_inputs(row, *(name for name in names if name in row)) if undeclared else row


class COPRO(copro.COPRO):
    """``sigwire.COPRO`` with DSPy's statistics: with ``track_stats`` the program has ``results_best``, ``results_latest``.

    They have, by ``id`` of each predictor of the program, "depth", "max", "average", "min" and "std" of scores in percent:
    the ten best candidates that change its instructions, and the newest of ``breadth``. Each list has one item, the end of
    the search; ``program.optimization`` has every step.

    >>> COPRO(metric=lambda row, found, trace=None: 1, track_stats=True).track_stats
    True
    """

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add the statistics."""
        super().finish_program(program, student, report)
        if not self.track_stats:
            return
        best, latest = dict[int, dict[str, list[float]]](), dict[int, dict[str, list[float]]]()
        for name, predictor in program.named_predictors():
            tried = [each.candidate for each in report.trials if f"{name}.instructions" in each.candidate.texts]
            means = [fmean(scores.values()) * 100 for each in tried if (scores := report.scores.get(each.digest))]
            best[id(predictor)] = _statistics(self.depth, sorted(means)[-10:])
            latest[id(predictor)] = _statistics(self.depth, means[-self.breadth :])
        program.results_best, program.results_latest = best, latest


def _statistics(depth: int, scores: Sequence[float]) -> dict[str, list[float]]:
    if not scores:
        return {name: [] for name in ("depth", "max", "average", "min", "std")}
    ends = {"max": [max(scores)], "min": [min(scores)]}
    return {"depth": [depth - 1], **ends, "average": [fmean(scores)], "std": [pstdev(scores)]}


class KNNFewShot(CoreKNNFewShot):
    """``sigwire.KNNFewShot`` with DSPy's ``KNN``.

    >>> from sigwire.core.example import Example
    >>> KNNFewShot(2, [Example(a="1", b="2").with_inputs("a")]).KNN.k
    2
    """

    @property
    def KNN(self) -> KNN:  # noqa: N802
        """The search of the ``k`` nearest of the rows of the constructor."""
        return KNN(self.k, self._trainset, self.vectorizer)


BootstrapRS = BootstrapFewShotWithRandomSearch


def eval_candidate_program(
    batch_size: int,
    trainset: Sequence[object],
    candidate_program: Module,
    evaluate: Callable[..., T],
    rng: random.Random | None = None,
) -> T | Prediction:
    """Evaluate a program on all examples, or on ``batch_size`` of them by chance; a failed evaluation has the score 0.

    >>> eval_candidate_program(2, [1, 2, 3], Module(), lambda program, devset, **options: len(devset))
    2
    """
    is_whole = batch_size >= len(trainset)
    devset = list(trainset) if is_whole else (rng or random.Random()).sample(list(trainset), batch_size)
    try:
        key = "eval_full" if is_whole else "eval_minibatch"
        return evaluate(candidate_program, devset=devset, callback_metadata={"metric_key": key})
    except Exception as error:
        warn_user(f"The evaluation failed and counts as 0 (evaluating a candidate): {type(error).__name__}: {error}")
        return Prediction(score=0.0, results=[])


def prepare_models_for_resampling(program: Any, n: int, teacher_settings: Mapping[str, Any] | None = None) -> list[Any]:
    """Return ``n`` copies of the program's model, each for a sample of its own; the first is the ``lm`` of a teacher.

    >>> from sigwire.dspy.lm import DummyLM
    >>> from sigwire.modules.predict import Predict
    >>> [lm.kwargs["rollout_id"] for lm in prepare_models_for_resampling(Predict("a -> b", lm=DummyLM([])), 2)]
    [0, 1]
    """
    lm: Any = resolve_lm(program.get_lm(), "resampling")
    teacher, first = (teacher_settings or {}).get("lm"), lm.kwargs.get("rollout_id") or 0
    models = [lm.copy(rollout_id=first + number, temperature=1.0) for number in range(n)]
    return models if teacher is None else [teacher, *models[1:]]


@dataclass(frozen=True, slots=True)
class FailedPrediction:
    """The answer of a run that could not be read, or the error of a run; ``format_reward`` is its score."""

    completion_text: str
    format_reward: float | None = None


@dataclass(frozen=True, slots=True)
class _TracedRuns:
    """Runs of a program, each with its trace; some failures are results."""

    program: Module
    captures_failed_parses: bool
    captures_crashes: bool
    failure_score: float
    format_failure_score: float

    def run(self, **inputs: Any) -> tuple[Prediction | FailedPrediction, list[object]]:
        with context(trace=[]):
            try:
                return self.program(**inputs), list(current().trace or ())
            except AdapterParseError as error:
                if not self.captures_failed_parses:
                    raise
                failed, asked = self._unread(error), self._predictor_of(error)
                return failed, [*(current().trace or ()), (asked, inputs, failed)]
            except Exception as error:
                if isinstance(error, LMError) or not self.captures_crashes:
                    raise
                text = f"{type(error).__name__}: {error}"
                return FailedPrediction(text, self.format_failure_score), list(current().trace or ())

    def _unread(self, error: AdapterParseError) -> FailedPrediction:
        share = len(error.parsed_result or ()) / len(error.signature.output_fields)
        reward = self.format_failure_score + (self.failure_score - self.format_failure_score) * share
        return FailedPrediction(error.lm_response, reward)

    def _predictor_of(self, error: AdapterParseError) -> object:
        return next((each for each in self.program.predictors() if each.signature == error.signature), None)


def bootstrap_trace_data(
    program: Module,
    dataset: Sequence[Example],
    metric: Callable[..., float] | None = None,
    num_threads: int | None = None,
    raise_on_error: bool = True,
    capture_failed_parses: bool = False,
    failure_score: float = 0,
    format_failure_score: float = -1,
    log_format_failures: bool = False,
    callback_metadata: Mapping[str, object] | None = None,
    capture_crashes: bool = False,
) -> list[dict[str, object]]:
    """Run a program on examples; return "example", "prediction", "trace", "example_ind", with a metric also "score".

    With ``capture_failed_parses`` the prediction of a run whose answer could not be read is a ``FailedPrediction``, scored
    between ``format_failure_score`` and ``failure_score`` by the share of its fields that were found; with
    ``capture_crashes`` that of any other error but a model's. Other errors are raised, or leave the example out. The runs are
    one evaluation, whose callbacks get ``callback_metadata``; ``log_format_failures`` has no effect.

    >>> class Double(Module):
    ...     def forward(self, n):
    ...         return Prediction(n=2 * n)
    >>> rows = [Example(n=n).with_inputs("n") for n in (1, 2)]
    >>> [data["score"] for data in bootstrap_trace_data(Double(), rows, lambda row, found, trace: found.n > 2, 1)]
    [False, True]
    """
    errors: Any = "raise" if raise_on_error else "score"
    evaluate: Any = Evaluate(
        devset=dataset, num_threads=num_threads, errors=errors, max_errors=len(dataset) + 1, display_progress=False
    )
    traced = _TracedRuns(program, capture_failed_parses, capture_crashes, failure_score, format_failure_score)
    found = evaluate(traced.run, metric=_is_run, callback_metadata=callback_metadata).results
    done: list[tuple[int, Example, Any, object]] = [
        (index, row, *ran) for index, (row, ran, _) in enumerate(found) if isinstance(ran, tuple)
    ]
    rows: list[dict[str, object]] = [
        {"example": example, "prediction": prediction, "trace": trace, "example_ind": index}
        for index, example, prediction, trace in done
    ]
    if metric is not None:
        for row, (_, example, prediction, trace) in zip(rows, done, strict=True):
            is_failed = isinstance(prediction, FailedPrediction)
            row["score"] = prediction.format_reward if is_failed else metric(example, prediction, trace)
    return rows


def _is_run(row: Example, ran: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class CandidateRuns:
    """The runs of a candidate, in the order of the rows; a row whose run failed has no output and the ``failure_score``.

    ``objective_scores``: what else the metric measured of each run, or ``None`` if it measured nothing else.
    """

    outputs: Sequence[object]
    scores: Sequence[float]
    trajectories: Sequence[Mapping[str, object]] | None = None
    objective_scores: Sequence[Mapping[str, float]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DspyAdapter:
    """Makes and runs the programs of candidates, which are instructions by the names of predictors, as DSPy's GEPA does.

    ``feedback_map`` is kept and not used: ``GEPA`` itself reflects on the runs.

    >>> from sigwire.modules.predict import Predict
    >>> adapter = DspyAdapter(student_module=Predict("question -> answer"), metric_fn=lambda row, found, trace: 1)
    >>> adapter.build_program({"self": "Answer in French."}).signature.instructions
    'Answer in French.'
    """

    student_module: Module
    metric_fn: Callable[..., Any]
    feedback_map: Mapping[str, Callable[..., Any]] | None = None
    failure_score: float = 0.0
    num_threads: int | None = None
    reflection_minibatch_size: int | None = None

    def build_program(self, candidate: Mapping[str, str]) -> Any:
        """Return a copy of the program with the texts of a candidate."""
        program = self.student_module.deepcopy()
        for name, predictor in program.named_predictors():
            if name in candidate:
                predictor.signature = predictor.signature.with_instructions(candidate[name])
        return program

    def evaluate(
        self, batch: Sequence[Example], candidate: Mapping[str, str], capture_traces: bool = False
    ) -> CandidateRuns:
        """Run the program of a candidate on rows, and score the runs; ``capture_traces`` keeps them as trajectories."""
        is_minibatch = self.reflection_minibatch_size is not None and len(batch) <= self.reflection_minibatch_size
        found: list[Any] = bootstrap_trace_data(
            self.build_program(candidate),
            batch,
            self.metric_fn,
            self.num_threads,
            raise_on_error=False,
            capture_failed_parses=True,
            failure_score=self.failure_score,
            format_failure_score=self.failure_score,
            callback_metadata={"disable_logging": True} if is_minibatch else {"metric_key": "eval_full"},
        )
        runs = {run["example_ind"]: run for run in found}
        outputs = [runs[at]["prediction"] if at in runs else None for at in range(len(batch))]
        scores = [runs[at]["score"] if at in runs else self.failure_score for at in range(len(batch))]
        read = [read_score(score) for score in scores]
        others = [each.subscores for each in read]
        trajectories = found if capture_traces else None
        return CandidateRuns(outputs, [each.value for each in read], trajectories, others if any(others) else None)
