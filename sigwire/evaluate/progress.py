"""Progress of an evaluation: its counts, and the texts that the displays of ``reporters`` show.

The clock and the stream are parameters, so that a test needs no terminal and no time.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TextIO

from sigwire.evaluate.cell import Cell
from sigwire.evaluate.costs import add_cost, program_cost
from sigwire.evaluate.reporters import Clock, Reporter, clock_text, fitting_line, progress_bar, reporter_of
from sigwire.show.cleaning import inline
from sigwire.show.numbers import money_text

__all__ = ["EvaluationProgress", "ScoreSums", "progress_reporter"]

_RATE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class EvaluationProgress:
    """How far an evaluation is. ``done`` of ``total`` runs; ``failed`` runs of any kind; ``mean`` of the scores, ± ``half``.

    ``cost``: US dollars, ``None`` if nothing of it is known; ``whole_cost``: estimated for all runs, ``None`` if a part is
    unknown, so that ``cost`` is a lower bound. ``seconds``: since the start; ``remaining``: estimated seconds, by the rate of
    the last 30 s. ``status``: "running", then that of the result.
    """

    metric: str
    done: int
    total: int
    failed: int
    mean: float | None
    half: float | None
    cost: float | None
    whole_cost: float | None
    seconds: float
    remaining: float | None
    status: str = "running"

    @property
    def share(self) -> float:
        """The finished part, 0 to 1."""
        return self.done / self.total if self.total else 1.0

    def line(self, width: int) -> str:
        """Return the line of a terminal, fitted to a width: without the bar, then without the cost, then cut."""
        rest = f"<{clock_text(self.remaining)}" if self.status == "running" else f" {self.status}"
        failed = f"{self.failed} failed  " if self.failed else ""
        cost = f"{_cost_text(self, '/')}  "

        def text(bar: str, cost: str) -> str:
            head = f"{self.share:4.0%} {bar}{self.done}/{self.total}  {_score_text(self, 2)}  "
            return f"{head}{failed}{cost}{clock_text(self.seconds)}{rest}"

        return fitting_line([text(f"{progress_bar(self.share)} ", cost), text("", cost), text("", "")], width)

    def log_line(self) -> str:
        """Return the line of a log."""
        end = f"≈{clock_text(self.remaining)} left" if self.status == "running" else self.status
        parts = [
            f"sigwire.evaluate {self.done}/{self.total} {self.share:.0%}",
            _score_text(self, 3),
            f"failed {self.failed}",
            _cost_text(self, " of "),
            f"{clock_text(self.seconds)} elapsed, {end}",
        ]
        return "  ".join(parts)


def progress_reporter(
    mode: object,
    total: int,
    metric_name: str,
    *,
    stream: TextIO | None = None,
    clock: Clock = time.monotonic,
) -> Reporter[Cell]:
    """Return the reporter of a mode (see ``reporter_of``) for a number of runs.

    >>> reporter = progress_reporter(print, 1, "exact", clock=lambda: 0.0)
    >>> reporter.update(Cell(1.0))
    EvaluationProgress(metric='exact', done=1, total=1, failed=0, mean=1.0, ...)
    """
    return reporter_of(_Counter(total, metric_name, clock), mode, "starting an evaluation", stream)


class ScoreSums:
    """The sums of ``count`` scores: their mean, and half of its interval."""

    def __init__(self) -> None:
        self.count, self._sum, self._squares, self._is_bounded = 0, 0.0, 0.0, True

    def add(self, score: float) -> None:
        """Add a score."""
        self.count += 1
        self._sum += score
        self._squares += score * score
        self._is_bounded = self._is_bounded and 0 <= score <= 1

    @property
    def mean(self) -> float | None:
        """The mean; ``None`` without a score."""
        return self._sum / self.count if self.count else None

    @property
    def half(self) -> float | None:
        """Half of a normal 95 % interval, adjusted as that of a result, which is by example; ``None`` for fewer than five."""
        if self.count < 5:
            return None
        added = 1 if self._is_bounded else 0  # a 0 and a 1: five right runs of five are no certainty
        n = self.count + 2 * added
        adjusted = (self._sum + added) / n
        return 1.96 * math.sqrt(max((self._squares + added) / n - adjusted * adjusted, 0.0) / n)


class _Counter:
    """The sums of the finished runs."""

    def __init__(self, total: int, metric: str, clock: Clock) -> None:
        self.total, self.metric, self.clock, self.lock = total, metric, clock, threading.Lock()
        self.start = clock()
        self._done = self._failed = 0
        self._scores = ScoreSums()
        self._cost: float | None = 0.0
        self._is_partial = False
        self._recent: deque[tuple[float, int]] = deque([(self.start, 0)])

    def add(self, item: Cell) -> None:
        self._done += 1
        self._failed += item.failure is not None
        if item.score is not None:
            self._scores.add(item.score)
        self._cost, self._is_partial = add_cost(self._cost, self._is_partial, program_cost(item))
        now = self.clock()
        self._recent.append((now, self._done))
        while len(self._recent) > 2 and now - self._recent[0][0] > _RATE_SECONDS:
            self._recent.popleft()

    def progress(self, status: str = "running") -> EvaluationProgress:
        cost = self._cost if self._done else None
        return EvaluationProgress(
            inline(self.metric, 30),
            self._done,
            self.total,
            self._failed,
            self._scores.mean,
            self._scores.half,
            cost,
            None if cost is None or self._is_partial else cost / self._done * self.total,
            self.clock() - self.start,
            self._remaining(),
            status,
        )

    def _remaining(self) -> float | None:
        (first, before), (last, done) = self._recent[0], self._recent[-1]
        return (self.total - self._done) * (last - first) / (done - before) if done > before and last > first else None


# --- texts


def _cost_text(progress: EvaluationProgress, join: str) -> str:
    if progress.cost is None:
        return "cost unknown"
    if progress.whole_cost is None:
        return f"≥ {money_text(progress.cost)}"
    return f"{money_text(progress.cost)}{join}≈{money_text(progress.whole_cost)}"


def _score_text(progress: EvaluationProgress, digits: int) -> str:
    mean = "…" if progress.mean is None else f"{progress.mean:.{digits}f}"
    return f"{progress.metric} {mean}{'' if progress.half is None else f'±{progress.half:.{digits}f}'}"
