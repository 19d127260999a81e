"""The names of ``dspy.teleprompt``: the optimizers, and ``Teleprompter``, the base for an optimizer of your own.

DSPy's modules below it (``dspy.teleprompt.random_search``, ``dspy.teleprompt.gepa.gepa_utils``) are this module.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from sigwire.core.example import Example
from sigwire.core.example import Prediction as ScoreWithFeedback
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.modules.module import Module
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.ensemble import Ensemble
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.knn import KNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot as CoreLabeledFewShot
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch, BootstrapRS
from sigwire.optimizers.rules.simba import SIMBA
from sigwire.optimizers.teleprompter import Teleprompter

__all__ = [
    "COPRO", "GEPA", "SIMBA", "BetterTogether", "BootstrapFewShot", "BootstrapFewShotWithOptuna",
    "BootstrapFewShotWithRandomSearch", "BootstrapRS", "Ensemble", "InferRules", "KNNFewShot", "LabeledFewShot",
    "MIPROv2", "ScoreWithFeedback", "Teleprompter",
]  # fmt: skip

M = TypeVar("M", bound=Module)

_FILES = (
    "bettertogether bootstrap copro_optimizer ensemble gepa gepa.gepa gepa.gepa_utils infer_rules knn_fewshot "
    "mipro_optimizer_v2 random_search simba teleprompt teleprompt_optuna vanilla"
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
    undeclared = getattr(row, "_input_keys", ()) is None
    return row.with_inputs(*(name for name in names if name in row)) if undeclared else row


_WEIGHTS = "it trains weights, and sigwire sends requests only. GEPA, MIPROv2 and SIMBA tune prompts."
OUT_OF_SCOPE = {
    "AvatarOptimizer": "it needs dspy.TypedPredictor, which DSPy removed. Use GEPA on a ReAct program.",
    "BootstrapFinetune": _WEIGHTS,
    "GRPO": _WEIGHTS,
}


def __getattr__(name: str) -> Any:
    """Raise the reason for a name of DSPy that is out of scope, ``AttributeError`` for any other."""
    if name in OUT_OF_SCOPE:
        raise ConfigurationError(f"{name} is not in sigwire: {OUT_OF_SCOPE[name]}")
    raise AttributeError(f"sigwire.dspy.teleprompt has no name {name!r}; dir(sigwire.dspy.teleprompt) lists them.")
