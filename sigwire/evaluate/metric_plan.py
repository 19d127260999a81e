"""``MetricPlan``: how a metric is called, found once from its parameters. ``called_steps``: call any function of a user.

A metric is a function, sync or async, or a ``Module``:

    metric(example, prediction)                                    two arguments
    metric(example, prediction, trace=None)                        trace: a list while demos are collected
    metric(gold, pred, trace, pred_name, pred_trace)               feedback for one predictor
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from sigwire.core.example import Example
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.evaluate.scores import MetricError, Score, read_score
from sigwire.modules.module import Module
from sigwire.settings import context, current

__all__ = ["Metric", "MetricPlan", "TraceList", "called_steps"]

Metric: TypeAlias = "Callable[..., object] | Module"
TraceList: TypeAlias = "Sequence[tuple[Any, Mapping[str, Any], Any]]"
"""``(predictor, inputs, prediction)`` of each call of a ``Predict``."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ENTRIES = ("steps", "forward", "aforward")


class MetricPlan:
    """Calls one metric with the arguments that it takes. ``name``: that of the function or class.

    ``takes_predictor``: the metric takes ``pred_name`` and ``pred_trace``. Raises ``ConfigurationError`` for a metric that is
    not callable or does not take an example and a prediction.

    >>> MetricPlan(lambda example, prediction: 1.0).takes_predictor
    False
    >>> MetricPlan(lambda example: 1.0)
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: The metric <lambda> takes no (example, prediction) (planning its call). ...
    """

    __slots__ = ("_arguments", "_metric", "name", "takes_predictor")

    def __init__(self, metric: Metric) -> None:
        if isinstance(metric, type) or not callable(metric):
            raise ConfigurationError(
                f"A metric is a function or a module, not {metric!r:.80}. Write def metric(example, prediction, trace=None)."
            )
        self.name = _name_of(metric)
        if getattr(metric, "__annotations__", {}).get("return") == "ScoreMetric":
            raise ConfigurationError(f"{self.name} makes a metric (planning its call). Write metric={self.name}().")
        self._metric = metric
        self._arguments = _arguments_of(metric, self.name)
        self.takes_predictor = self._arguments.takes_predictor

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
        given = {"trace": trace, "pred_name": pred_name, "pred_trace": pred_trace}
        args, kwargs = self._arguments.bind(given)
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


def called_steps(function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> Steps[Any]:
    """Return the steps that call a module, or a function, sync or async. Awaited, a sync function runs in a thread.

    >>> from sigwire.effects.steps import run
    >>> run(called_steps(max, [1, 2], {}))
    2
    """
    if isinstance(function, Module):
        return (yield from function.call_steps(*args, **kwargs))
    return (yield _UserCall(partial(cast("Callable[..., Any]", function), *args, **kwargs), _is_async(function)))


class _UserCall:
    """An effect: call a function of the user."""

    __slots__ = ("_call", "_is_async")

    nests = True

    def __init__(self, call: Callable[[], Any], is_async: bool) -> None:
        self._call, self._is_async = call, is_async

    def run(self) -> object:
        result = self._call()
        return block_on(_await(result)) if inspect.isawaitable(result) else result

    async def arun(self) -> object:
        result = self._call() if self._is_async else await to_thread(self._call)
        return await result if inspect.isawaitable(result) else result


async def _await(awaitable: Any) -> Any:
    return await awaitable


def _is_async(function: object) -> bool:
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _name_of(metric: object) -> str:
    while isinstance(metric, partial):
        metric = cast("partial[object]", metric).func
    return getattr(metric, "__name__", None) or type(metric).__name__


@dataclass(frozen=True, slots=True)
class _MetricArguments:
    """The arguments behind example and prediction: ``positions`` by position in order, ``names`` by keyword."""

    positions: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def takes_predictor(self) -> bool:
        return "pred_name" in (*self.positions, *self.names)

    def bind(self, given: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
        return [given[name] for name in self.positions], {name: given[name] for name in self.names}


_OPTIONAL = ("trace", "pred_name", "pred_trace")


def _arguments_of(metric: Metric, name: str) -> _MetricArguments:
    entry: object = metric
    if isinstance(metric, Module):
        entry = next((getattr(metric, each) for each in _ENTRIES if hasattr(metric, each)), metric)
    try:
        parameters = inspect.signature(cast("Callable[..., object]", entry)).parameters
    except (TypeError, ValueError):  # a function of C without a signature
        return _MetricArguments((), ())
    places = [each for each in parameters.values() if each.kind in _POSITIONAL]
    takes_more = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters.values())
    required = [each for each in places if each.default is inspect.Parameter.empty]
    if (len(places) < 2 and not takes_more) or len(required) > 2 + len(_OPTIONAL):
        raise ConfigurationError(
            f"The metric {name} takes no (example, prediction) (planning its call). Its parameters are "
            f"{', '.join(parameters) or 'none'}; write def {name}(example, prediction, trace=None)."
        )
    by_position = _OPTIONAL[: max(0, len(required) - 2)]
    if not by_position and len(places) > 2 and places[2].name not in _OPTIONAL and places[2].default is None:
        by_position = ("trace",)  # a trace under another name
    by_name = [each for each in _OPTIONAL if each in parameters and each not in by_position]
    return _MetricArguments(by_position, tuple(by_name))
