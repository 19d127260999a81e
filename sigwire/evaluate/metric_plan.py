"""``MetricPlan``: how a metric is called, found once from its parameters.

A metric is a function, sync or async, or a ``Module``:

    metric(example, prediction)                                    two arguments
    metric(example, prediction, trace=None)                        trace: a list while demos are collected
    metric(gold, pred, trace, pred_name, pred_trace)               feedback for one predictor
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from sigwire.core.example import Example
from sigwire.core.tools.inspection import function_name
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.evaluate.scores import MetricError, Score, read_score
from sigwire.modules.calling import called_steps
from sigwire.modules.module import Module
from sigwire.settings import context, current

__all__ = ["Metric", "MetricPlan", "Metrics", "TraceList"]

Metric: TypeAlias = "Callable[..., object] | Module"
Metrics: TypeAlias = "Metric | Sequence[Metric]"
"""One metric, or several, the first of which is the headline."""
TraceList: TypeAlias = "Sequence[tuple[Any, Mapping[str, Any], Any]]"
"""``(predictor, inputs, prediction)`` of each call of a ``Predict``."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ENTRIES = ("steps", "forward", "aforward")


class MetricPlan:
    """Calls one metric, or each of several, with the arguments that it takes. ``name``: that of the function or class.

    Several metrics are equal to one that returns a dict of their scores; ``names`` has all of their names, ``name`` is the
    first. ``takes_predictor``: the metric takes ``pred_name`` and ``pred_trace``. ``accepts_unsure``: the attribute of that
    name of each metric is true: it gets the error ``Unsure`` of a run in place of a prediction. Raises ``ConfigurationError``
    for a metric that is not callable or does not take an example and a prediction.

    >>> MetricPlan(lambda example, prediction: 1.0).takes_predictor
    False
    >>> MetricPlan(lambda example: 1.0)
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: The metric <lambda> takes no (example, prediction) (planning its call). ...
    """

    __slots__ = ("_arguments", "_metric", "_parts", "accepts_unsure", "name", "names", "takes_predictor")

    def __init__(self, metric: Metrics) -> None:
        self._parts: Sequence[MetricPlan] = ()
        if several := _listed(metric):
            self._plan_parts([MetricPlan(each) for each in several])
            return
        if isinstance(metric, type) or not callable(metric):
            raise ConfigurationError(
                f"A metric is a function or a module, not {metric!r:.80}. Write def metric(example, prediction, trace=None); "
                "for several scores it returns a dict of them."
            )
        self.name = type(metric).__name__ if isinstance(metric, Module) else function_name(metric)
        if getattr(metric, "__annotations__", {}).get("return") == "ScoreMetric":
            raise ConfigurationError(f"{self.name} makes a metric (planning its call). Write metric={self.name}().")
        self._metric = metric
        self._arguments = _arguments_of(metric, self.name)
        self.names: tuple[str, ...] = (self.name,)
        self.takes_predictor = self._arguments.takes_predictor
        self.accepts_unsure = bool(getattr(metric, "accepts_unsure", False))

    def _plan_parts(self, parts: Sequence[MetricPlan]) -> None:
        self._parts, self.names = parts, tuple(part.name for part in parts)
        self.name, self.takes_predictor = self.names[0], any(part.takes_predictor for part in parts)
        self.accepts_unsure = all(part.accepts_unsure for part in parts)
        if len({*self.names}) < len(parts):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ConfigurationError(f"Two metrics have the name {twice!r} (planning their call). Rename one of them.")

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Each metric by its name.

        >>> def exact(example, prediction):
        ...     return 1.0
        >>> MetricPlan(exact).metrics == {"exact": exact}
        True
        """
        return {part.name: part._metric for part in self._parts or (self,)}

    def steps(
        self,
        example: Example,
        prediction: object,
        trace: TraceList | None = None,
        pred_name: str | None = None,
        pred_trace: TraceList | None = None,
    ) -> Steps[Score]:
        """Return the steps of one call. Predictors of the metric do not enter the trace of the settings.

        Raises ``MetricError`` if the metric returns no score; errors of the metric pass.
        """
        if self._parts:
            scores: dict[str, Score] = {}
            for part in self._parts:
                scores[part.name] = yield from part.steps(example, prediction, trace, pred_name, pred_trace)
            return read_score(scores)
        args, kwargs = self._arguments.bind(trace, pred_name, pred_trace)
        call = called_steps(self._metric, (example, prediction, *args), kwargs)
        if current().trace is None:
            result = yield from call
        else:
            with context(trace=None):
                result = yield from call
        try:
            return read_score(result)
        except MetricError as error:
            raise MetricError(f"{self.name}: {error} The example is {example!r:.200}.") from None


def _listed(metric: object) -> Sequence[Metric]:
    return cast("Sequence[Metric]", metric) if isinstance(metric, (list, tuple)) else ()


@dataclass(frozen=True, slots=True)
class _MetricArguments:
    """The arguments behind example and prediction: ``positions`` by position in order, ``names`` by keyword."""

    positions: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def takes_predictor(self) -> bool:
        return "pred_name" in (*self.positions, *self.names)

    def bind(self, *optional: object) -> tuple[Sequence[object], dict[str, object]]:
        """Return the arguments: the values ``optional`` are in the order of their names."""
        if not self.positions:  # most metrics take a trace by name, or none
            return (), {name: optional[_OPTIONAL.index(name)] for name in self.names}
        given: dict[str, object] = dict(zip(_OPTIONAL, optional, strict=True))
        return [given[name] for name in self.positions], {name: given[name] for name in self.names}


_OPTIONAL = ("trace", "pred_name", "pred_trace")


def _arguments_of(metric: Metric, name: str) -> _MetricArguments:
    parameters = _parameters_of(metric)
    if parameters is None:
        return _MetricArguments((), ())
    places = [each for each in parameters.values() if each.kind in _POSITIONAL]
    required = sum(each.default is inspect.Parameter.empty for each in places)
    if not _takes_two(parameters) or required > 2 + len(_OPTIONAL):
        raise ConfigurationError(
            f"The metric {name} takes no (example, prediction) (planning its call). Its parameters are "
            f"{', '.join(parameters) or 'none'}; write def {name}(example, prediction, trace=None)."
        )
    by_position = _OPTIONAL[: max(0, required - 2)] or _unnamed_trace(places)
    return _MetricArguments(by_position, tuple(_named(parameters, by_position)))


def _named(parameters: Mapping[str, inspect.Parameter], by_position: Sequence[str]) -> list[str]:
    return [each for each in _OPTIONAL if each in parameters and each not in by_position]


def _parameters_of(metric: Metric) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a metric, ``None`` for a function of C without a signature."""
    entry: object = metric
    if isinstance(metric, Module):
        entry = next((getattr(metric, each) for each in _ENTRIES if hasattr(metric, each)), metric)
    try:
        return inspect.signature(cast("Callable[..., object]", entry)).parameters
    except (TypeError, ValueError):
        return None


def _takes_two(parameters: Mapping[str, inspect.Parameter]) -> bool:
    kinds = [each.kind for each in parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds or sum(kind in _POSITIONAL for kind in kinds) >= 2


def _unnamed_trace(places: Sequence[inspect.Parameter]) -> tuple[str, ...]:
    """Return ``("trace",)`` if the third parameter is a trace under another name: its default is ``None``."""
    third = places[2] if len(places) > 2 else None
    return ("trace",) if third is not None and third.name not in _OPTIONAL and third.default is None else ()
