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
from typing import Any, NoReturn, TypeVar

from sigwire.core.example import Example, Prediction
from sigwire.core.example import Prediction as ScoreWithFeedback
from sigwire.dspy.predict.nearest import KNN
from sigwire.dspy.types import Image
from sigwire.dspy.utils.parallelizer import ParallelExecutor
from sigwire.effects.steps import Steps
from sigwire.errors import AdapterParseError, ConfigurationError, LMError, warn_user
from sigwire.modules.module import Module
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules import copro
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.ensemble import Ensemble
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.knn import KNNFewShot as CoreKNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot as CoreLabeledFewShot
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch, BootstrapRS
from sigwire.optimizers.rules.simba import SIMBA
from sigwire.optimizers.teleprompter import Teleprompter
from sigwire.settings import context, current

__all__ = [
    "COPRO", "GEPA", "SIMBA", "BetterTogether", "BootstrapFewShot", "BootstrapFewShotWithOptuna",
    "BootstrapFewShotWithRandomSearch", "BootstrapRS", "Ensemble", "FailedPrediction", "InferRules", "KNNFewShot",
    "LabeledFewShot", "MIPROv2", "ScoreWithFeedback", "Teleprompter", "bootstrap_trace_data", "eval_candidate_program",
]  # fmt: skip

M = TypeVar("M", bound=Module)
T = TypeVar("T")

_FILES = (
    "bettertogether bootstrap bootstrap_trace copro_optimizer ensemble gepa gepa.gepa gepa.gepa_utils infer_rules knn_fewshot "
    "mipro_optimizer_v2 random_search simba teleprompt teleprompt_optuna utils vanilla"
)
sys.modules.update({f"{__name__}.{name}": sys.modules[__name__] for name in _FILES.split()})


class LabeledFewShot(CoreLabeledFewShot):
    """``sigwire.LabeledFewShot`` for rows that need not declare their inputs: no program is run on them.

    >>> from sigwire.core.example import Example
    >>> from sigwire.modules.predict import Predict
    >>> LabeledFewShot(k=1).compile(Predict("a -> b"), trainset=[Example(a="1", b="2")]).demos[0].b
    '2'
    """

    def compile_steps(self, student: M, trainset: Iterable[Example], *others: Any, **named: Any) -> Steps[M]:
        """Return the steps of ``compile``."""
        signature, forward = getattr(student, "signature", None), getattr(student, "forward", student)
        names = list(signature.input_fields if signature is not None else inspect.signature(forward).parameters)
        return (
            yield from super().compile_steps(student, [_declared(row, names) for row in trainset], *others, **named)
        )


def _declared(row: Example, names: Iterable[str]) -> Example:
    # Images of PIL have no JSON form.
    pictures = {name: Image(value) for name, value in row.items() if hasattr(value, "mode") and hasattr(value, "save")}
    row = row.copy(**pictures) if pictures else row
    undeclared = getattr(row, "_input_keys", ()) is None
    return row.with_inputs(*(name for name in names if name in row)) if undeclared else row


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


_WEIGHTS = "it trains weights, and sigwire sends requests only. GEPA, MIPROv2 and SIMBA tune prompts."
OUT_OF_SCOPE = {
    "AvatarOptimizer": "it needs dspy.TypedPredictor, which DSPy removed. Use GEPA on a ReAct program.",
    "BootstrapFinetune": _WEIGHTS,
    "GRPO": _WEIGHTS,
}


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


@dataclass(frozen=True, slots=True)
class FailedPrediction:
    """The answer of a run that could not be read, or the error of a run; ``format_reward`` is its score."""

    completion_text: str
    format_reward: float | None = None


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
    ``capture_crashes`` that of any other error but a model's. Other errors are raised, or leave the example out. The logging
    and callback arguments have no effect.

    >>> class Double(Module):
    ...     def forward(self, n):
    ...         return Prediction(n=2 * n)
    >>> rows = [Example(n=n).with_inputs("n") for n in (1, 2)]
    >>> [data["score"] for data in bootstrap_trace_data(Double(), rows, lambda row, found, trace: found.n > 2, 1)]
    [False, True]
    """

    def run(example: Example) -> tuple[Prediction | FailedPrediction, list[object]]:
        with context(trace=[]):
            try:
                return program(**dict(example.inputs().items())), list(current().trace or ())
            except AdapterParseError as error:
                if not capture_failed_parses:
                    raise
                share = len(error.parsed_result or ()) / len(error.signature.output_fields)
                reward = format_failure_score + (failure_score - format_failure_score) * share
                failed = FailedPrediction(error.lm_response, reward)
                asked = next((each for each in program.predictors() if each.signature == error.signature), None)
                return failed, [*(current().trace or ()), (asked, dict(example.inputs().items()), failed)]
            except Exception as error:
                if isinstance(error, LMError) or not capture_crashes:
                    raise
                text = f"{type(error).__name__}: {error}"
                return FailedPrediction(text, format_failure_score), list(current().trace or ())

    executor = ParallelExecutor(num_threads, max_errors=len(dataset) + 1)
    found = executor.execute(run, dataset)
    if raise_on_error and executor.failed_indices:
        raise executor.exceptions_map[executor.failed_indices[0]]
    done = [(index, dataset[index], *result) for index, result in enumerate(found) if result is not None]
    rows: list[dict[str, object]] = [
        {"example": example, "prediction": prediction, "trace": trace, "example_ind": index}
        for index, example, prediction, trace in done
    ]
    if metric is not None:
        for row, (_, example, prediction, trace) in zip(rows, done, strict=True):
            is_failed = isinstance(prediction, FailedPrediction)
            row["score"] = prediction.format_reward if is_failed else metric(example, prediction, trace)
    return rows


def __getattr__(name: str) -> NoReturn:
    """Raise the reason for a name of DSPy that is out of scope, ``AttributeError`` for any other."""
    if name in OUT_OF_SCOPE:
        raise ConfigurationError(f"{name} is not in sigwire: {OUT_OF_SCOPE[name]}")
    raise AttributeError(f"sigwire.dspy.teleprompt has no name {name!r}; dir(sigwire.dspy.teleprompt) lists them.")
