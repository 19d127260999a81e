"""Progress of an experiment: how many of its points are finished, for the displays of ``evaluate/reporters``."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from sigwire.evaluate.reporters import Clock, clock_text, fitting_line, progress_bar
from sigwire.experiments.point import MeasuredPoint
from sigwire.show.card import BoundedRepr
from sigwire.show.cleaning import inline
from sigwire.show.numbers import money_text

__all__ = ["ExperimentProgress", "PointCounter"]


@dataclass(frozen=True, slots=True)
class ExperimentProgress(BoundedRepr):
    """How far an experiment is: ``done`` of ``total`` points, the last one, and the known cost in US dollars.

    >>> print(ExperimentProgress(2, 8, "cot · gepa, seed 0", 0.61, 0.5, 75.0).line(80))
     25% █████                2/8 points  cot · gepa, seed 0: 0.61  $0.50  1:15
    """

    done: int
    total: int
    last: str
    mean: float | None
    cost: float | None
    seconds: float
    status: str = "running"

    @property
    def share(self) -> float:
        """The finished part, 0 to 1."""
        return self.done / self.total if self.total else 1.0

    def line(self, width: int) -> str:
        """Return the line of a terminal, fitted to a width."""
        count = f"{self.done}/{self.total} points"
        ended = "" if self.status == "running" else f" {self.status}"
        rest = f"{self._cost}{clock_text(self.seconds)}{ended}"
        bar = f"{self.share:4.0%} {progress_bar(self.share)} "
        texts = (f"{bar}{count}  {self._last}{rest}", f"{bar}{count}  {rest}", f"{self.share:4.0%} {count}  {rest}")
        return fitting_line(texts, width)

    def log_line(self) -> str:
        """Return the line of a log."""
        ended = "" if self.status == "running" else f", {self.status}"
        return (
            f"sigwire.experiment {self.done}/{self.total} points  {self._last}{self._cost}{clock_text(self.seconds)} "
            f"elapsed{ended}"
        )

    @property
    def _last(self) -> str:
        mean = "" if self.mean is None else f": {self.mean:.2f}"
        return f"{self.last}{mean}  " if self.last else ""

    @property
    def _cost(self) -> str:
        return "" if self.cost is None else f"{money_text(self.cost)}  "


class PointCounter:
    """Counts finished points. The reporter holds ``lock`` around each call."""

    def __init__(self, total: int, clock: Clock) -> None:
        self.clock, self.lock = clock, threading.Lock()
        self._total, self._start, self._done = total, clock(), 0
        self._last = ""
        self._mean: float | None = None
        self._cost: float | None = None

    def add(self, item: MeasuredPoint) -> None:
        """Count a point."""
        self._done += 1
        self._last = inline(f"{item.point.arm}, seed {item.point.seed}", 60)
        self._mean = item.evaluation.mean
        paid = [] if item.shared else [item.evaluation.cost]
        paid += [] if item.search is None else [item.search.spent.money]
        known = [each for each in paid if each is not None]
        self._cost = sum(known, self._cost or 0.0) if known else self._cost

    def progress(self, status: str = "running") -> ExperimentProgress:
        """Return the progress."""
        seconds = self.clock() - self._start
        return ExperimentProgress(self._done, self._total, self._last, self._mean, self._cost, seconds, status)
