"""DSPy's optimizers that only have their names here: a program can make them and pass them on, and ``compile`` raises why."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import Any, ClassVar, NoReturn, TypeVar

from sigwire.errors import ConfigurationError, InputError
from sigwire.modules.module import Module
from sigwire.optimizers.teleprompter import Teleprompter

__all__ = ["GRPO", "AvatarOptimizer", "BootstrapFinetune", "UnavailableOptimizer"]

T = TypeVar("T")

_WEIGHTS = "it trains weights, and sigwire sends requests only. GEPA, MIPROv2 and SIMBA tune prompts."


class UnavailableOptimizer(Teleprompter):
    """The base of these optimizers. ``reason``: why there is no ``compile``, and what to use instead."""

    reason: ClassVar[str]

    def compile(self, student: Module, *rows: object, **options: object) -> NoReturn:
        """Raise ``ConfigurationError`` with the reason."""
        raise ConfigurationError(f"{type(self).__name__} is not in sigwire (compiling): {self.reason}")

    async def acompile(self, student: Module, *rows: object, **options: object) -> NoReturn:
        """``compile``, awaited."""
        self.compile(student, *rows, **options)


@dataclass(eq=False)
class _TrainsWeights(UnavailableOptimizer):
    reason = _WEIGHTS

    metric: Any = None
    multitask: bool = True
    train_kwargs: Mapping[Any, Any] | None = field(default=None, repr=False)  # it may hold keys
    adapter: Any = None
    exclude_demos: bool = False
    num_threads: int | None = None


@dataclass(eq=False)
class BootstrapFinetune(_TrainsWeights):
    """DSPy's fine-tuning on successful runs, with DSPy's options.

    >>> from sigwire.modules.predict import Predict
    >>> BootstrapFinetune(multitask=False).compile(Predict("question -> answer"), trainset=[])
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: BootstrapFinetune is not in sigwire (compiling): it trains weights, ...
    """


@dataclass(eq=False)
class GRPO(_TrainsWeights):
    """DSPy's reinforcement learning, with DSPy's options; what is left of it is the choice of rows."""

    num_threads: int | None = 6
    num_train_steps: int = 100
    seed: int = 0
    num_dspy_examples_per_grpo_step: int = 1
    num_rollouts_per_grpo_step: int = 1
    use_train_as_val: bool = False
    num_steps_for_val: int = 5
    report_train_scores: bool = False
    failure_score: float = 0
    format_failure_score: float = -1
    variably_invoked_predictor_grouping_mode: str = "truncate"
    variably_invoked_predictor_fill_strategy: str | None = None

    def select_training_sample_and_update_shuffled_trainset(
        self, original_trainset: Sequence[T], train_step_idx: int
    ) -> list[T]:
        """Return the rows of a step, from 0: each row equally often in an epoch, and each epoch in an order of its own.

        Raises ``InputError`` without rows.

        >>> choose = GRPO(num_dspy_examples_per_grpo_step=2).select_training_sample_and_update_shuffled_trainset
        >>> sorted(row for step in range(3) for row in choose("abc", step))
        ['a', 'a', 'b', 'b', 'c', 'c']
        """
        if not original_trainset:
            raise InputError("There are no training rows (choosing the rows of a step). Pass at least one.")
        size = self.num_dspy_examples_per_grpo_step
        length = lcm(len(original_trainset), size)
        epoch, step = divmod(train_step_idx, length // size)
        order = list(original_trainset) * (length // len(original_trainset))
        random.Random(f"{self.seed} {epoch}").shuffle(order)
        return order[step * size : (step + 1) * size]


@dataclass(eq=False)
class AvatarOptimizer(UnavailableOptimizer):
    """DSPy's optimizer of the instruction of an ``Avatar``, with DSPy's options."""

    reason = "it tunes an Avatar, an older agent of DSPy. Use GEPA on a ReAct program."

    metric: Any
    max_iters: int = 10
    lower_bound: int = 0
    upper_bound: int = 1
    max_positive_inputs: int | None = None
    max_negative_inputs: int | None = None
    optimize_for: str = "max"
