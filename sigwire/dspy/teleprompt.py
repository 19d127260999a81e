"""The names of ``dspy.teleprompt``: the optimizers."""

from __future__ import annotations

from typing import Any

from sigwire.errors import ConfigurationError
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.ensemble import Ensemble
from sigwire.optimizers.rules.gepa import GEPA
from sigwire.optimizers.rules.knn import KNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch, BootstrapRS
from sigwire.optimizers.rules.simba import SIMBA

__all__ = [
    "GEPA", "SIMBA", "BetterTogether", "BootstrapFewShot", "BootstrapFewShotWithOptuna", "BootstrapFewShotWithRandomSearch",
    "BootstrapRS", "Ensemble", "KNNFewShot", "LabeledFewShot",
]  # fmt: skip


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
