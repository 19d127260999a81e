"""``EvaluationOptions``: the options of an evaluation, checked before any call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from sigwire.core.example import Example
from sigwire.errors import ConfigurationError, InputError, suggest
from sigwire.evaluate.examples import check_devset
from sigwire.evaluate.metric_plan import MetricPlan, Metrics
from sigwire.evaluate.statistics import check_reducer
from sigwire.keywords import ChecksKeywords

if TYPE_CHECKING:
    from sigwire.lm.policy.money.budget import Budget

__all__ = ["EvaluationOptions", "FilePath"]

FilePath: TypeAlias = "str | os.PathLike[str]"
_ErrorsMode: TypeAlias = Literal["score", "raise", "skip"]


@dataclass(kw_only=True, eq=False, repr=False)
class EvaluationOptions(ChecksKeywords):
    """The options of an evaluation, checked. ``Evaluate`` has their meanings."""

    devset: Sequence[Example]
    metric: Metrics | None = None
    num_threads: int | None = None
    display_progress: bool | None = None
    display_table: bool | int = False
    max_errors: int | Literal["provider"] | None = None
    provide_traceback: bool | None = None
    failure_score: float = 0.0
    save_as_csv: FilePath | None = None
    save_as_json: FilePath | None = None
    callback_metadata: Mapping[str, object] | None = None
    repeat: int = 1
    reduce: str = "mean"
    errors: _ErrorsMode = "score"
    timeout: float | None = None
    budget: Budget | None = None
    executor: Any = None
    log: FilePath | bool | None = None
    resume: bool | Literal["append", "force"] = True
    requests: bool | Literal["failed"] = "failed"
    cluster: str | None = None
    fresh: bool = False
    progress: Any = "auto"
    interval: float = 0.95
    callbacks: Sequence[object] = field(default=())

    def __new__(cls, *args: object, **kwargs: Any) -> Self:
        if args:
            raise ConfigurationError(
                "Evaluate takes its options by name (making it). Write Evaluate(devset=examples, metric=my_metric)."
            )
        return super().__new__(cls, **kwargs)

    def __post_init__(self) -> None:
        for name, (fits, wanted) in _CHECKS.items():
            if not fits(value := getattr(self, name)):
                raise ConfigurationError(f"{name} of an Evaluate is {wanted}, not {value!r:.80} (making it).")
        if not isinstance(self.devset, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            self.devset = list(self.devset)
        check_reducer(str(self.reduce), self.repeat)
        examples = check_devset(self.devset)
        without = (each for each in examples if self.cluster is not None and self.cluster not in each)
        if self.cluster is not None and (example := next(without, None)) is not None:
            raise InputError(
                f"An example of the devset has no field {self.cluster!r} (reading the devset, cluster=). "
                f"{suggest(self.cluster, example.__dict__)}It has {', '.join(example.__dict__) or 'no fields'}."
            )
        self.plan = None if self.metric is None else MetricPlan(self.metric)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "num_threads": (lambda value: value is None or _is_count(value, 1), "a number above 0"),
    "max_errors": (
        lambda value: value is None or value == "provider" or _is_count(value, 0),
        'a number, 0 or more, or "provider"',
    ),
    "failure_score": (lambda value: _is_number(value) and isfinite(value), "a finite number"),
    "repeat": (lambda value: _is_count(value, 1), "a number above 0"),
    "errors": (lambda value: value in ("score", "raise", "skip"), '"score", "raise" or "skip"'),
    "timeout": (lambda value: value is None or (_is_number(value) and value > 0), "a number of seconds above 0"),
    "budget": (lambda value: value is None or hasattr(value, "deadline"), "a Budget such as Budget(money=1.0)"),
    "executor": (
        lambda value: value is None or callable(value) or hasattr(value, "submit"),
        "a PEP 3148 executor or a function that makes one",
    ),
    "resume": (
        lambda value: value is True or value is False or value in ("append", "force"),
        'True, False, "append" or "force"',
    ),
    "requests": (lambda value: value is True or value is False or value == "failed", 'True, False or "failed"'),
    "interval": (lambda value: _is_number(value) and 0 < value < 1, "a number between 0 and 1, such as 0.95"),
}
