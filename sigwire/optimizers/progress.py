"""Progress of a search: trials, the best score, calls, money and the time left, in the displays of evaluations.

    engine ──runs that end──▶ SearchReporter ──SearchProgress──▶ a line, log lines, a notebook's output or a function
    rule ──events───────────▶       │
    plan ──expected runs────────────┘  asked for once, after a second

A trial gets a line that stays when it is measured on all validation rows, dropped or kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TextIO, TypeAlias

from sigwire.evaluate.progress import ScoreSums
from sigwire.evaluate.reporters import Clock, Reporter, clock_text, fitting_line, progress_bar, reporter_of
from sigwire.observe.tracing.logs import log_milestone, log_warning
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.engine.spending import Spending
from sigwire.optimizers.events import Dropped, Kept, Measured, Proposed, SearchEvent, Spent, Warned
from sigwire.optimizers.task import Task
from sigwire.show.cleaning import inline

__all__ = ["ProgressMode", "SearchLog", "SearchProgress", "SearchReporter"]

_PLAN_SECONDS = 1.0  # a search that ends before needs no plan
_MOST_SHARE = 0.99  # of a search that runs: its length is estimated


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is: ``SearchOptions`` ``progress=`` gives it to a function after each run.

    ``trials``: proposed candidates. ``best``: the mean of the most promising candidate on ``rows`` validation rows, ± ``half``;
    ``student``: that of the student; both ``None`` until they are measured. ``spent``: runs, calls, tokens and money.
    ``expected_runs``: of the plan, known after a second. ``share``: the finished part, of the plan or of the budget.
    ``seconds``: since the start; ``remaining``: estimated seconds. ``status``: "running", then the reason of the end.

    >>> progress = SearchProgress("GEPA", "exact", 3, 0.81, 0.1, 24, 0.62, Spent(calls=90, money=0.2), 300, 0.25, 60.0, 180.0)
    >>> progress.line(100)
    ' 25% █████                trial 3  exact 0.81±0.10 (student 0.62)  90 calls  $0.20  1:00<3:00'
    """

    optimizer: str
    metric: str
    trials: int
    best: float | None
    half: float | None
    rows: int
    student: float | None
    spent: Spent
    expected_runs: int | None
    share: float
    seconds: float
    remaining: float | None
    status: str = "running"

    def line(self, width: int) -> str:
        """Return the line of a terminal, fitted to a width: without the bar, then without calls and money, then cut."""
        rest = f"<{clock_text(self.remaining)}" if self.status == "running" else f" {self.status}"
        head, costs = f"trial {self.trials}  {self._score(2)}  ", f"{self._costs()}  "
        ends = f"{clock_text(self.seconds)}{rest}"
        share = f"{self.share:4.0%} "
        bar = f"{progress_bar(self.share)} "
        return fitting_line([f"{share}{bar}{head}{costs}{ends}", f"{share}{head}{costs}{ends}", f"{head}{ends}"], width)

    def log_line(self) -> str:
        """Return the line of a log."""
        end = f"≈{clock_text(self.remaining)} left" if self.status == "running" else self.status
        spent = f"{clock_text(self.seconds)} elapsed, {end}"
        parts = [f"sigwire.optimize {self.optimizer} {self.share:.0%}", f"trials {self.trials}", self._score(3)]
        return "  ".join([*parts, self._costs(), spent])

    def _score(self, digits: int) -> str:
        if self.best is None:
            return f"{self.metric} …"
        student = "" if self.student is None else f" (student {self.student:.{digits}f})"
        return f"{self.metric} {_score_text(self.best, self.half, digits)}{student}"

    def _costs(self) -> str:
        return _costs_text(self.spent)


ProgressMode: TypeAlias = Callable[[SearchProgress], object] | str | bool | None


class SearchReporter:
    """Shows the progress of a search. ``expect`` returns the runs of its plan; ``mode`` is that of ``reporter_of``.

    ``ran`` is called from any thread, all else by the steps of the search.
    """

    def __init__(
        self,
        optimizer: str,
        metric: str,
        task: Task,
        spending: Spending,
        expect: Callable[[], int],
        mode: object,
        *,
        clock: Clock,
        stream: TextIO | None = None,
    ) -> None:
        self._counter = _SearchCounter(inline(optimizer, 40), inline(metric, 30), task, spending, clock)
        self._task, self._expect, self._is_planned = task, expect, False
        self._reporter: Reporter[Spent] = reporter_of(self._counter, mode, "starting a search", stream)
        self._numbers: dict[str, int] = {}

    def ran(self, cost: Spent) -> None:
        """Count a run that ended."""
        self._reporter.update(cost)

    def settle(self, candidates: Mapping[str, Candidate]) -> None:
        """Take the totals of the search, after some runs: which candidate is the best is decided here."""
        counter = self._counter
        if not self._is_planned and counter.clock() - counter.start >= _PLAN_SECONDS:
            self._is_planned = True
            counter.expected = self._expected()
        counter.settle(candidates)

    def _expected(self) -> int | None:
        try:
            return self._expect()
        except Exception:  # a rule of the user's that cannot be planned: its search goes on without an estimate
            return None

    def event(self, event: SearchEvent) -> None:
        """Count a trial, or write its line."""
        if isinstance(event, Proposed):
            self._numbers.setdefault(event.candidate.digest, len(self._numbers) + 1)
            self._counter.trials = len(self._numbers)
        elif isinstance(event, Warned):
            self._reporter.milestone(f"sigwire.optimize warning: {event.text}")
        elif isinstance(event, (Measured, Dropped, Kept)) and (fate := _fate(event, len(self._task.val))):
            number = self._numbers.get(event.candidate.digest)
            self._reporter.milestone(self._counter.trial_line(event.candidate, number, fate))

    def close(self, status: str, report: object = None) -> None:
        """Show the end."""
        self._reporter.close(status, report)


class SearchLog:
    """The events of a search, each with what was spent until then."""

    def __init__(
        self, spending: Spending, listener: Callable[[SearchEvent], object] | None, progress: SearchReporter
    ) -> None:
        self.spending, self._listener, self._progress = spending, listener, progress
        self.seen: list[tuple[SearchEvent, Spent]] = []

    def add(self, event: SearchEvent) -> None:
        self.seen.append((event, self.spending.total))
        self._progress.event(event)
        if isinstance(event, Kept):
            log_milestone("optimize", f"candidate {event.candidate.digest[:10]} is kept: {event.why}")
        elif isinstance(event, Warned):
            log_warning("optimize", event.text)
        if self._listener is not None:
            self._listener(event)


class _SearchCounter:
    """The totals of a search, and the runs that ended since they were taken."""

    def __init__(self, optimizer: str, metric: str, task: Task, spending: Spending, clock: Clock) -> None:
        self.clock, self.lock, self.start = clock, threading.Lock(), clock()
        self.trials = 0
        self.expected: int | None = None
        self._optimizer, self._metric, self._task, self._spending = optimizer, metric, task, spending
        self._total = self._pending = Spent()
        self._best = self._student = ScoreSums()
        self._first: float | None = None  # the share at the start: a journal has finished runs

    def add(self, item: Spent) -> None:
        if self._first is None:
            self._first = self._share()
        self._pending = self._pending.plus(item)

    def settle(self, candidates: Mapping[str, Candidate]) -> None:
        task = self._task
        best = task.judge.promising([task.baseline, *candidates.values()], task.baseline, task.val)
        with self.lock:
            self._total, self._pending = self._spending.total, Spent()
            self._best, self._student = self._scores(best), self._scores(task.baseline)

    def _scores(self, candidate: Candidate) -> ScoreSums:
        sums = ScoreSums()
        for score in self._task.judge.table.scores(candidate, self._task.val).values():
            sums.add(score)
        return sums

    def _share(self) -> float:
        spent = self._total.plus(self._pending)
        planned = spent.runs / self.expected if self.expected else 0.0
        return min(max(planned, self._spending.share(spent)), _MOST_SHARE)

    def progress(self, status: str = "running") -> SearchProgress:
        share, seconds = self._share(), self.clock() - self.start
        gained = share - (self._first or 0.0)
        return SearchProgress(
            self._optimizer,
            self._metric,
            self.trials,
            self._best.mean,
            self._best.half,
            self._best.count,
            self._student.mean,
            self._total.plus(self._pending),
            self.expected,
            share if status == "running" else 1.0,
            seconds,
            seconds * (1 - share) / gained if gained > 0 else None,
            status,
        )

    def trial_line(self, candidate: Candidate, number: int | None, fate: str) -> str:
        """Return the line of a trial that was measured, dropped or kept."""
        sums, progress = self._scores(candidate), self.progress()
        mean = "…" if sums.mean is None else f"{_score_text(sums.mean, sums.half, 3)} on {sums.count} rows"
        name = "the student" if number is None else f"trial {number}"
        left = "" if progress.remaining is None else f"  ≈{clock_text(progress.remaining)} left"
        costs = _costs_text(progress.spent)
        return f"sigwire.optimize {name}  {self._metric} {mean}  {inline(fate, 80)}  {costs}{left}"


def _score_text(mean: float, half: float | None, digits: int) -> str:
    return f"{mean:.{digits}f}{'' if half is None else f'±{half:.{digits}f}'}"


def _costs_text(spent: Spent) -> str:
    known = "$ unknown" if spent.money is None else f"{'≥ ' * spent.is_partial}${spent.money:.2f}"
    return f"{spent.calls:,} calls  {known}"


def _fate(event: Measured | Dropped | Kept, rows: int) -> str:
    """Return the fate of a trial in words; "" for a candidate that was measured on a part of the rows."""
    if isinstance(event, Measured):
        return "measured" if event.rows >= rows else ""
    return f"{'kept' if isinstance(event, Kept) else 'dropped'}: {event.why}"
