"""``BetterTogether`` with what DSPy's class of this name takes and refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sigwire.core.example import Example
from sigwire.dspy.optimizers.random_search import BootstrapFewShotWithRandomSearch
from sigwire.dspy.optimizers.unavailable import BootstrapFinetune, UnavailableOptimizer
from sigwire.errors import ConfigurationError, InputError
from sigwire.optimizers.optimizer import SearchOptions
from sigwire.optimizers.rule import Rule
from sigwire.optimizers.rules import better_together
from sigwire.optimizers.task import Task
from sigwire.optimizers.teleprompter import Teleprompter

__all__ = ["BetterTogether", "WrongStep"]


class WrongStep(ConfigurationError, TypeError):
    """A step of ``BetterTogether`` is no optimizer."""


class BetterTogether(better_together.BetterTogether):
    """``sigwire.BetterTogether`` with DSPy's two optimizers by default: ``p`` for prompts and ``w`` for weights.

    Weights are not trained: a strategy with such a step is refused when it is compiled, before any request.

    >>> list(BetterTogether(metric=lambda row, found, trace=None: 1).optimizers)
    ['p', 'w']
    """

    def __init__(
        self,
        metric: Any = None,
        *,
        num_threads: int | None = None,
        search: SearchOptions | None = None,
        **optimizers: Any,
    ) -> None:
        made = optimizers or {"p": BootstrapFewShotWithRandomSearch(metric), "w": BootstrapFinetune(metric)}
        for name, optimizer in made.items():
            if not isinstance(optimizer, Teleprompter):
                kind = type(optimizer).__name__
                raise WrongStep(f"{name!r} must be a Teleprompter, not {kind} (making BetterTogether).")
        run_here = {name: each for name, each in made.items() if not isinstance(each, UnavailableOptimizer)}
        super().__init__(metric, num_threads=num_threads, search=search, **run_here)
        self.optimizers = made

    def row_sets(
        self, trainset: Iterable[Example], valset: Iterable[Example] | None, given: Mapping[str, Any]
    ) -> tuple[list[Example], list[Example]]:
        """Return the training and the validation rows."""
        train, ratio = list(trainset), given["valset_ratio"]
        if not train:
            raise InputError("trainset cannot be empty: BetterTogether needs training examples (compiling).")
        if not 0 <= ratio < 1:
            raise ConfigurationError(f"valset_ratio must be in range [0, 1), not {ratio} (compiling).")
        return super().row_sets(train, valset, given)

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule. Raises ``ConfigurationError`` for a step that only has its name here."""
        for name in self._names(options):
            optimizer = self.optimizers[name]
            if isinstance(optimizer, UnavailableOptimizer):
                raise ConfigurationError(
                    f"The step {name!r} is {type(optimizer).__name__}, which is not in sigwire (compiling): "
                    f"{optimizer.reason} Leave the step out: strategy=..."
                )
        return super().rule(task, options)
