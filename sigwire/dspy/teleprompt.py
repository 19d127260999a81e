"""The names of ``dspy.teleprompt``: the optimizers, and ``Teleprompter``, the base for an optimizer of your own.

DSPy's modules below it (``dspy.teleprompt.random_search``, ``dspy.teleprompt.gepa.gepa_utils``) are this module.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from sigwire.core.example import Prediction
from sigwire.core.example import Prediction as ScoreWithFeedback
from sigwire.errors import ConfigurationError, warn_user
from sigwire.modules.module import Module
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.ensemble import Ensemble
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.knn import KNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch, BootstrapRS
from sigwire.optimizers.rules.simba import SIMBA
from sigwire.optimizers.teleprompter import Teleprompter

__all__ = [
    "COPRO", "GEPA", "SIMBA", "BetterTogether", "BootstrapFewShot", "BootstrapFewShotWithOptuna",
    "BootstrapFewShotWithRandomSearch", "BootstrapRS", "Ensemble", "InferRules", "KNNFewShot", "LabeledFewShot",
    "MIPROv2", "ScoreWithFeedback", "Teleprompter", "eval_candidate_program",
]  # fmt: skip

T = TypeVar("T")

_FILES = (
    "bettertogether bootstrap copro_optimizer ensemble gepa gepa.gepa gepa.gepa_utils infer_rules knn_fewshot "
    "mipro_optimizer_v2 random_search simba teleprompt teleprompt_optuna utils vanilla"
)
sys.modules.update({f"{__name__}.{name}": sys.modules[__name__] for name in _FILES.split()})

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


def __getattr__(name: str) -> NoReturn:
    """Raise the reason for a name of DSPy that is out of scope, ``AttributeError`` for any other."""
    if name in OUT_OF_SCOPE:
        raise ConfigurationError(f"{name} is not in sigwire: {OUT_OF_SCOPE[name]}")
    raise AttributeError(f"sigwire.dspy.teleprompt has no name {name!r}; dir(sigwire.dspy.teleprompt) lists them.")
