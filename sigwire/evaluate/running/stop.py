"""``StopRule``: when an evaluation ends before all rows are run, and why."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sigwire.errors import BudgetSpent
from sigwire.evaluate.failures import Failure
from sigwire.modules.where import locate

if TYPE_CHECKING:
    from sigwire.lm.policy.money.budget import Budget

__all__ = ["DEFAULT_MAX_ERRORS", "EvaluationStop", "MaxErrors", "StopRule"]

DEFAULT_MAX_ERRORS = 10
_METRIC_FAILURES_AT_START = 3
MaxErrors: TypeAlias = "int | Literal['provider']"


class EvaluationStop(NamedTuple):
    """Why an evaluation stopped. ``sentence``: for the error of an aborted one, without its full stop."""

    status: str
    cause: Exception | None = None
    sentence: str = ""


class StopRule:
    """Ends an evaluation: after too many failures, a metric that fails from the start, the seconds of its budget, or an error.

    ``max_errors``: "provider" counts the failures of the provider since it last answered a row, and no others. ``reason`` is
    the first one. Threads share the rule.

    >>> rule = StopRule("score", max_errors=0)
    >>> rule.add(Failure("program", "ValueError", "no answer"))
    >>> rule.is_over(), rule.reason.status
    (True, 'aborted')
    """

    def __init__(self, errors: str, max_errors: MaxErrors | None = None, budget: Budget | None = None) -> None:
        self._errors, self._budget = errors, budget
        self._is_of_provider = max_errors == "provider"
        self._most = DEFAULT_MAX_ERRORS if max_errors is None or max_errors == "provider" else max_errors
        self._lock = threading.Lock()
        self._failures = 0
        self._metric_failures: int | None = 0  # at the start; None after another row
        self.reason: EvaluationStop | None = None

    def add(self, failure: Failure | None) -> None:
        """Count a finished row. ``failure``: ``None`` if it succeeded. Called by one thread at a time."""
        if self._metric_failures is not None:
            is_of_metric = failure is not None and failure.kind == "metric"
            self._metric_failures = self._metric_failures + 1 if is_of_metric else None
        if self._is_of_provider and (failure is None or failure.kind == "program"):
            self._failures = 0
        if failure is None:
            return
        self._failures += not self._is_of_provider or failure.kind == "provider"
        if self._metric_failures == _METRIC_FAILURES_AT_START:
            self.end("aborted", None, f"The metric failed on the first {_METRIC_FAILURES_AT_START} examples")
        if self._failures > self._most:
            what = "runs in a row failed by the provider" if self._is_of_provider else "examples failed"
            option = "provider" if self._is_of_provider else self._most
            self.end("aborted", None, f"More than {self._most} {what} (max_errors={option!r})")

    def is_over(self) -> bool:
        """Return True if no more rows are run."""
        return self.reason is not None or self.is_out_of_time()

    def is_out_of_time(self) -> bool:
        """End the evaluation, and return True, if the seconds of its budget are over."""
        ends = None if self._budget is None else self._budget.deadline()
        if ends is None or time.monotonic() < ends:
            return False
        self.end("budget", None, "The seconds of the budget are over")
        return True

    def end(self, status: str, cause: Exception | None = None, sentence: str = "") -> None:
        """End the evaluation. The first call counts."""
        with self._lock:
            if self.reason is None:
                self.reason = EvaluationStop(status, cause, sentence)

    def end_by(self, error: Exception, example: str) -> None:
        """End by an error that was raised: a spent budget, a failure of the caller, or the first one with errors="raise"."""
        with suppress(Exception):
            locate(error, example=example)
        if self.is_out_of_time():
            return
        if isinstance(error, BudgetSpent) and self._budget is not None:
            self.end("budget", error, "The budget is spent")
        elif self._errors == "raise":
            self.end("raised", error)
        else:
            self.end("aborted", error, f"No example can succeed: {type(error).__name__}: {error}")
