"""The names of ``dspy.teleprompt``: the optimizers."""

from __future__ import annotations

from typing import Any

from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.ensemble import Ensemble
from sigwire.optimizers.rules.knn import KNNFewShot
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch, BootstrapRS

__all__ = [
    "BetterTogether", "BootstrapFewShot", "BootstrapFewShotWithOptuna", "BootstrapFewShotWithRandomSearch",
    "BootstrapRS", "Ensemble", "KNNFewShot", "LabeledFewShot",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Raise the error of the door, which has the reason for the names that are out of scope."""
    if name.startswith("_"):
        raise AttributeError(f"sigwire.dspy.teleprompt has no name {name!r}.")
    from sigwire import dspy

    return getattr(dspy, name)
