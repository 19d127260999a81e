"""Totals of any part of a program, of tokens, calls of tools and warnings: ``with track_usage() as tracker``.

Callers of models call ``record_response``, the toolbox calls ``record_tool_call``. Every open tracker of the context counts it;
threads and tasks copy the context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import reduce
from typing import Any, Self, TypeAlias

from sigwire.core.narrow import is_mapping, is_object
from sigwire.core.record import to_plain
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, LMWarning, Response, Usage, cost_of_attempts
from sigwire.effects.collecting import Collector, collector
from sigwire.effects.steps import Steps
from sigwire.observe.reports import add_entry, failed_attempts, question_steps, reports_of

__all__ = [
    "UsageTracker", "counted_steps", "record_failure", "record_report", "record_response", "record_tool_call",
    "record_usage", "record_warnings", "track_usage",
]  # fmt: skip

_Counts: TypeAlias = Mapping[str, Any]


class UsageTracker:
    """Usage by model. ``usage_data[model]`` has one entry a request, with the names of ``Usage.counts``.

    ``attempts[model]``: the exchanges. ``hits``: the model of each answer that was read from the cache of responses;
    ``spared``: the exchanges that these answers took when they were asked.
    ``tool_calls``: the name of each finished call of a tool, and whether its result is an error. ``warnings``: the feature of
    each warning of an answer ("temperature"), and "tool" for each exception of a tool. ``served``: the name of the model that
    each answer reports, with the fingerprint of the provider's system if it has one. ``runs``: the reports of the outermost
    calls inside the block, for values that are no predictions; ``keep_runs=False`` keeps none.

    >>> tracker = UsageTracker()
    >>> tracker.add_usage("m", {"input_tokens": 3, "details": {"cached": 1}})
    >>> tracker.add_usage("m", {"input_tokens": 4, "details": {"cached": None}})
    >>> tracker.get_total_tokens()
    {'m': {'input_tokens': 7, 'details': {'cached': 1}}}
    """

    def __init__(self, *, keep_runs: bool = True) -> None:
        self._runs = Collector() if keep_runs else None
        self._counted: list[tuple[str, Usage | _Counts]] = []
        self.attempts: dict[str, list[Attempt]] = {}
        self.hits: list[str] = []
        self.spared: list[Attempt] = []
        self.tool_calls: list[tuple[str, bool]] = []
        self.warnings: list[str] = []
        self.served: list[str] = []

    def __enter__(self) -> Self:
        self._before = open_trackers.get()
        open_trackers.set((*self._before, self))
        if self._runs is not None:
            self._around = around = collector.get()
            self._runs.further, self._runs.owner = around, None if around is None else around.owner
            collector.set(self._runs)
        return self

    def __exit__(self, *_: object) -> None:
        open_trackers.set(self._before)
        if self._runs is not None and collector.get() is self._runs:
            collector.set(self._around)

    @property
    def runs(self) -> tuple[CallReport, ...]:
        """The reports of the outermost calls, in order of start; of a call that runs, until now."""
        return () if self._runs is None else reports_of(self._runs.entries or ())

    def add_usage(self, model: str, usage: Usage | Mapping[str, Any], attempts: Sequence[Attempt] = ()) -> None:
        """Count the usage of one request and the cost of its exchanges. Thread-safe."""
        for attempt in attempts or ([Attempt(model=model, usage=usage)] if isinstance(usage, Usage) else ()):
            self.attempts.setdefault(attempt.model or model, []).append(attempt)
        answered = (attempts[-1].model if attempts else None) or model  # a router's answer is that of a target
        self._counted.append((answered, usage if isinstance(usage, Usage) else to_plain(dict(usage))))

    @property
    def usage_data(self) -> dict[str, list[_Counts]]:
        """One entry a request, by model."""
        data: dict[str, list[_Counts]] = {}
        for model, usage in list(self._counted):
            if entry := usage.counts() if isinstance(usage, Usage) else usage:
                data.setdefault(model, []).append(entry)
        return data

    def get_total_cost(self) -> dict[str, float | None]:
        """Return the cost by model in US dollars; ``None`` if that of one exchange is unknown. The first read may load prices.

        >>> with track_usage() as tracker:
        ...     record_usage("m", Usage(input_tokens=3, cost=0.25))
        ...     record_usage("n", Usage(input_tokens=3))
        >>> tracker.get_total_cost()
        {'m': 0.25, 'n': None}
        """
        return {model: cost_of_attempts(list(attempts)) for model, attempts in list(self.attempts.items()) if attempts}

    def get_total_tokens(self) -> dict[str, _Counts]:
        """Return the sums by model. Nested dicts are summed key by key; ``None`` is unknown, not zero."""
        empty: _Counts = {}
        return {model: reduce(_sum, entries, empty) for model, entries in self.usage_data.items()}


def _sum(first: _Counts, second: _Counts) -> _Counts:
    return {key: _add(first.get(key), second.get(key)) for key in dict.fromkeys((*first, *second))}


def _add(first: Any, second: Any) -> Any:
    if is_mapping(first) or is_mapping(second):
        return _sum(first if is_mapping(first) else {}, second if is_mapping(second) else {})
    if first is None or second is None:
        return second if first is None else first
    try:
        return first + second
    except TypeError:
        return second


open_trackers: ContextVar[tuple[UsageTracker, ...]] = ContextVar("sigwire_usage_trackers", default=())


def track_usage() -> UsageTracker:
    """Count the usage of all requests made inside the block.

    >>> with track_usage() as tracker:
    ...     record_usage("m", Usage(input_tokens=3))
    >>> tracker.get_total_tokens()
    {'m': {'input_tokens': 3, 'prompt_tokens': 3, 'total_tokens': 3}}
    """
    return UsageTracker()


def record_usage(
    model: str | None,
    usage: Usage,
    attempts: Sequence[Attempt] = (),
    *,
    spared: Usage | None = None,
    warnings: Sequence[LMWarning] = (),
) -> None:
    """Count the usage of a request, or a hit, and its warnings in every open tracker. Almost free if none is open.

    ``spared``: the answer is a hit, and this is the usage of the stored answer.
    """
    record_warnings(*warnings)
    for tracker in open_trackers.get():
        if spared is not None:
            tracker.hits.append(model or "unknown")
            tracker.spared.append(Attempt(model=model, usage=spared))
        else:
            tracker.add_usage(model or "unknown", usage, attempts)


def counted_steps(name: str, model: str, steps: Steps[Response]) -> Steps[Response]:
    """Run the steps of a question that no module asks; count and report it. ``name``: of the class that asks."""
    try:
        response = yield from question_steps(name, model, steps)
    except BaseException as error:
        record_failure(model, failed_attempts(error, model))
        raise
    record_response(model, response)
    return response


def record_failure(model: str | None, attempts: Sequence[Attempt]) -> None:
    """Count the exchanges of a request that failed in every open tracker."""
    if attempts:
        record_usage(model, sum((attempt.usage for attempt in attempts), Usage()), attempts)


def record_report(report: CallReport) -> None:
    """Count the exchanges of a report in every open tracker."""
    for each in report:
        record_failure(each.own[-1].model if each.own else None, each.own)


def record_response(model: str | None, response: Response) -> None:
    """Count a response in every open tracker: its usage, or the hit, its warnings, and the model that it reports.

    >>> with track_usage() as tracker:
    ...     record_response("p/m", Response(model="m-2026-01-01", raw={"system_fingerprint": "fp_44"}))
    >>> tracker.served
    ['m-2026-01-01 fp_44']
    """
    if not (trackers := open_trackers.get()):
        return
    spared = (response.cached_usage or Usage()) if response.cache == "hit" else None
    record_usage(model, response.usage, response.attempts, spared=spared, warnings=response.warnings)
    if served := _served_by(response):
        for tracker in trackers:
            tracker.served.append(served)


def _served_by(response: Response) -> str:
    raw = response.raw
    if isinstance(raw, list):  # of several requests for one answer
        raw = raw[0] if raw else None
    fingerprint = raw.get("system_fingerprint") if is_object(raw) else None
    parts = (response.model, fingerprint)
    return " ".join(part[:_MOST_SERVED] for part in parts if isinstance(part, str) and part)


def record_tool_call(name: str, *, is_error: bool, warning: LMWarning | None = None) -> None:
    """Count a finished call of a tool in every open tracker. ``warning``: that of its exception.

    >>> with track_usage() as tracker:
    ...     record_tool_call("find", is_error=True, warning=LMWarning("tool", "find raised KeyError"))
    >>> tracker.tool_calls, tracker.warnings
    ([('find', True)], ['tool'])
    """
    for tracker in open_trackers.get():
        tracker.tool_calls.append((name[:_MOST_NAME], is_error))
    if warning is not None:
        record_warnings(warning)
        add_entry(warning)


def record_warnings(*warnings: LMWarning) -> None:
    """Count warnings in every open tracker."""
    for tracker in open_trackers.get() if warnings else ():
        tracker.warnings.extend(warning.feature for warning in warnings)


_MOST_SERVED = 160  # names of models of clouds are paths
_MOST_NAME = 60  # a model may call a tool that does not exist, by any text
