"""DSPy's optimizers that only have their names here: a program can make them and pass them on, and ``compile`` raises why.

``_ROWS`` has DSPy's options and the reason of each; the classes are its names.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from math import lcm
from typing import ClassVar, NoReturn, TypeVar

from sigwire.errors import ConfigurationError, InputError
from sigwire.modules.module import Module
from sigwire.optimizers.teleprompter import Teleprompter

__all__ = ["GRPO", "AvatarOptimizer", "BootstrapFinetune", "UnavailableOptimizer"]

T = TypeVar("T")

_WEIGHTS = "it trains weights, and sigwire sends requests only. GEPA, MIPROv2 and SIMBA tune prompts."
_OPTIONS: Mapping[str, object] = {
    "metric": None, "multitask": True, "train_kwargs": None, "adapter": None, "exclude_demos": False, "num_threads": None,
}  # fmt: skip
_ROWS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "AvatarOptimizer": (
        {
            "metric": Parameter.empty, "max_iters": 10, "lower_bound": 0, "upper_bound": 1, "max_positive_inputs": None,
            "max_negative_inputs": None, "optimize_for": "max",
        },
        "it tunes an Avatar, an older agent of DSPy. Use GEPA on a ReAct program.",
    ),
    "BootstrapFinetune": (_OPTIONS, _WEIGHTS),
    "GRPO": (
        {
            **_OPTIONS, "num_threads": 6, "num_train_steps": 100, "seed": 0, "num_dspy_examples_per_grpo_step": 1,
            "num_rollouts_per_grpo_step": 1, "use_train_as_val": False, "num_steps_for_val": 5, "report_train_scores": False,
            "failure_score": 0, "format_failure_score": -1, "variably_invoked_predictor_grouping_mode": "truncate",
            "variably_invoked_predictor_fill_strategy": None,
        },
        _WEIGHTS,
    ),
}  # fmt: skip


class UnavailableOptimizer(Teleprompter):
    """The base of these optimizers. ``reason``: why there is no ``compile``, and what to use instead.

    >>> from sigwire.modules.predict import Predict
    >>> BootstrapFinetune(multitask=False).compile(Predict("question -> answer"), trainset=[])
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: BootstrapFinetune is not in sigwire (compiling): it trains weights, ...
    """

    reason: ClassVar[str]
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__name__ in _ROWS:
            options, cls.reason = _ROWS[cls.__name__]
            kind = Parameter.POSITIONAL_OR_KEYWORD
            cls.__signature__ = Signature([Parameter(name, kind, default=value) for name, value in options.items()])

    def __init__(self, *given: object, **options: object) -> None:
        bound = self.__signature__.bind(*given, **options)
        bound.apply_defaults()
        vars(self).update(bound.arguments)

    def compile(self, student: Module, *rows: object, **options: object) -> NoReturn:
        """Raise ``ConfigurationError`` with the reason."""
        raise ConfigurationError(f"{type(self).__name__} is not in sigwire (compiling): {self.reason}")

    async def acompile(self, student: Module, *rows: object, **options: object) -> NoReturn:
        """``compile``, awaited."""
        self.compile(student, *rows, **options)


class AvatarOptimizer(UnavailableOptimizer):
    """DSPy's optimizer of the instruction of an ``Avatar``, with DSPy's options."""


class BootstrapFinetune(UnavailableOptimizer):
    """DSPy's fine-tuning on successful runs, with DSPy's options."""


class GRPO(UnavailableOptimizer):
    """DSPy's reinforcement learning, with DSPy's options; what is left of it is the choice of rows."""

    num_dspy_examples_per_grpo_step: int
    seed: int

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
