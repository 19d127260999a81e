"""Progress of an evaluation: a line in a terminal, one output in a notebook, log lines in files, or a function.

Reporters write to stderr, and count what they are given: ``update`` for each finished run, ``close`` at the end. They are
thread-safe. The clock and the stream are parameters, so that a test needs no terminal and no time.
"""

from __future__ import annotations

import html
import math
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TextIO, TypeAlias

from sigwire.errors import ConfigurationError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.costs import add_cost, program_cost
from sigwire.show.card import Card
from sigwire.show.cleaning import display_width, inline
from sigwire.show.numbers import money_text
from sigwire.show.text import text_card

__all__ = ["EvaluationProgress", "ProgressReporter", "progress_reporter"]

Clock: TypeAlias = Callable[[], float]
ProgressListener: TypeAlias = "Callable[[EvaluationProgress], object]"

_LINE_SECONDS = 0.1
_NOTEBOOK_SECONDS = 0.25
_LOG_SECONDS = 30.0
_LOG_SHARE = 0.1
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


class ProgressReporter(Protocol):
    """Receives each finished run, then the end."""

    def update(self, cell: Cell) -> None:
        """Count a finished run."""

    def note(self, text: str) -> None:
        """Write lines, such as a traceback, without mixing them with a line of progress."""

    def close(self, status: str, result: object = None) -> None:
        """Show the end. A notebook shows the card of ``result`` in place of the progress."""


def progress_reporter(
    mode: object,
    total: int,
    metric_name: str,
    *,
    stream: TextIO | None = None,
    clock: Clock = time.monotonic,
) -> ProgressReporter:
    """Return the reporter of a mode: "auto" or True, "line", "log", "notebook", "off", False or None, or a function.

    "auto": a notebook's output, a line in a terminal, else log lines. A function receives an ``EvaluationProgress`` for each
    run. ``SIGWIRE_PROGRESS=off|line|log`` replaces the mode, unless that is a function. ``stream``: default stderr.
    Raises ``ConfigurationError`` for another mode.

    >>> reporter = progress_reporter(print, 1, "exact", clock=lambda: 0.0)
    >>> reporter.update(Cell(1.0))
    EvaluationProgress(metric='exact', done=1, total=1, failed=0, mean=1.0, ...)
    """
    counter, file = _Counter(total, metric_name, clock), stream or sys.stderr
    if callable(mode):
        return _ListenerProgress(counter, file, mode)
    name = "off" if mode is None or mode is False else "auto" if mode is True else mode
    name = os.environ.get("SIGWIRE_PROGRESS") or name
    make = _MODES.get(_best_mode(file) if name == "auto" else name)
    if make is None:
        raise ConfigurationError(
            f"progress={name!r:.80} is unknown (starting an evaluation). Use 'auto', 'line', 'log', 'off' or a function."
        )
    return make(counter, file)


def _best_mode(file: TextIO) -> str:
    if _has_notebook():
        return "notebook"
    is_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return "line" if file.isatty() and os.environ.get("TERM") != "dumb" and not is_ci else "log"


def _has_notebook() -> bool:
    """Return True inside a kernel of IPython. IPython is not imported: a kernel has imported it."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class _Counter:
    """The sums of the finished runs."""

    def __init__(self, total: int, metric: str, clock: Clock) -> None:
        self.total, self.metric, self.clock, self.lock = total, metric, clock, threading.Lock()
        self.start = clock()
        self._done = self._failed = self._scored = 0
        self._sum = self._squares = 0.0
        self._cost: float | None = 0.0
        self._is_partial, self._is_bounded = False, True
        self._recent: deque[tuple[float, int]] = deque([(self.start, 0)])

    def add(self, cell: Cell) -> None:
        self._done += 1
        self._failed += cell.failure is not None
        if cell.score is not None:
            self._scored += 1
            self._sum += cell.score
            self._squares += cell.score * cell.score
            self._is_bounded = self._is_bounded and 0 <= cell.score <= 1
        self._cost, self._is_partial = add_cost(self._cost, self._is_partial, program_cost(cell))
        now = self.clock()
        self._recent.append((now, self._done))
        while len(self._recent) > 2 and now - self._recent[0][0] > _RATE_SECONDS:
            self._recent.popleft()

    def progress(self, status: str = "running") -> EvaluationProgress:
        mean = self._sum / self._scored if self._scored else None
        cost = self._cost if self._done else None
        return EvaluationProgress(
            inline(self.metric, 30),
            self._done,
            self.total,
            self._failed,
            mean,
            self._half(mean),
            cost,
            None if cost is None or self._is_partial else cost / self._done * self.total,
            self.clock() - self.start,
            self._remaining(),
            status,
        )

    def _half(self, mean: float | None) -> float | None:
        """Return half of a normal 95 % interval of the runs, adjusted as that of the result, which is by example."""
        if mean is None or self._scored < 5:
            return None
        added = 1 if self._is_bounded else 0  # a 0 and a 1: five right runs of five are no certainty
        n = self._scored + 2 * added
        adjusted = (self._sum + added) / n
        return 1.96 * math.sqrt(max((self._squares + added) / n - adjusted * adjusted, 0.0) / n)

    def _remaining(self) -> float | None:
        (first, before), (last, done) = self._recent[0], self._recent[-1]
        return (self.total - self._done) * (last - first) / (done - before) if done > before and last > first else None


# --- texts


def _clock_text(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _cost_text(progress: EvaluationProgress, join: str) -> str:
    if progress.cost is None:
        return "cost unknown"
    if progress.whole_cost is None:
        return f"≥ {money_text(progress.cost)}"
    return f"{money_text(progress.cost)}{join}≈{money_text(progress.whole_cost)}"


def _score_text(progress: EvaluationProgress, digits: int) -> str:
    mean = "…" if progress.mean is None else f"{progress.mean:.{digits}f}"
    return f"{progress.metric} {mean}{'' if progress.half is None else f'±{progress.half:.{digits}f}'}"


def _line_text(progress: EvaluationProgress, width: int) -> str:
    """Return the line of a terminal, fitted to a width: without the bar, then without the cost, then cut."""
    filled = progress.share * 20
    partial = "▏▎▍▌▋▊▉"[int(filled % 1 * 8) - 1] if filled % 1 >= 0.125 else ""
    bar = f"{'█' * int(filled) + partial:<20} "
    rest = f"<{_clock_text(progress.remaining)}" if progress.status == "running" else f" {progress.status}"
    failed = f"{progress.failed} failed  " if progress.failed else ""
    cost = f"{_cost_text(progress, '/')}  "

    def text(bar: str, cost: str) -> str:
        head = f"{progress.share:4.0%} {bar}{progress.done}/{progress.total}  {_score_text(progress, 2)}  "
        return f"{head}{failed}{cost}{_clock_text(progress.seconds)}{rest}"

    candidates = [text(bar, cost), text("", cost), text("", "")]
    return next((each for each in candidates if display_width(each) <= width), candidates[-1][:width])


def _log_text(progress: EvaluationProgress) -> str:
    end = f"≈{_clock_text(progress.remaining)} left" if progress.status == "running" else progress.status
    parts = [
        f"sigwire.evaluate {progress.done}/{progress.total} {progress.share:.0%}",
        _score_text(progress, 3),
        f"failed {progress.failed}",
        _cost_text(progress, " of "),
        f"{_clock_text(progress.seconds)} elapsed, {end}",
    ]
    return "  ".join(parts)


# --- reporters


class _SilentProgress:
    def __init__(self, counter: _Counter, file: TextIO) -> None:
        self._file = file

    def update(self, cell: Cell) -> None:
        pass

    def note(self, text: str) -> None:
        self._file.write(text)

    def close(self, status: str, result: object = None) -> None:
        pass


class _CountedProgress:
    """A reporter that shows the counts at most once in ``seconds``."""

    seconds = 0.0

    def __init__(self, counter: _Counter, file: TextIO) -> None:
        self.counter, self.file = counter, file
        self._next = counter.start

    def update(self, cell: Cell) -> None:
        with self.counter.lock:
            self.counter.add(cell)
            if self.is_due():
                self._next = self.counter.clock() + self.seconds
                self.show(self.counter.progress())

    def note(self, text: str) -> None:
        with self.counter.lock:
            self.clear()
            self.file.write(text)

    def close(self, status: str, result: object = None) -> None:
        with self.counter.lock:
            self.end(self.counter.progress(status), result)

    def is_due(self) -> bool:
        return self.counter.clock() >= self._next

    def clear(self) -> None:
        pass

    def show(self, progress: EvaluationProgress) -> None:
        raise NotImplementedError

    def end(self, progress: EvaluationProgress, result: object) -> None:
        self.show(progress)


class _ListenerProgress(_CountedProgress):
    def __init__(self, counter: _Counter, file: TextIO, listener: ProgressListener) -> None:
        super().__init__(counter, file)
        self._listener = listener

    def show(self, progress: EvaluationProgress) -> None:
        self._listener(progress)


class _LineProgress(_CountedProgress):
    """One line of a terminal. A shorter line is padded, so that no escape sequence is needed."""

    seconds = _LINE_SECONDS

    def __init__(self, counter: _Counter, file: TextIO) -> None:
        super().__init__(counter, file)
        self._width = 0

    def show(self, progress: EvaluationProgress) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns - 1
        text = _line_text(progress, max(columns, 10))
        padding = " " * max(self._width - display_width(text), 0)
        self._width = display_width(text)
        self.file.write(f"\r{text}{padding}")
        self.file.flush()

    def clear(self) -> None:
        self.file.write(f"\r{' ' * self._width}\r")
        self._width = 0

    def end(self, progress: EvaluationProgress, result: object) -> None:
        self.show(progress)
        self.file.write("\n")
        self.file.flush()


class _LogProgress(_CountedProgress):
    """A line at the start, then one after each 10 % and 30 s, then one at the end."""

    def __init__(self, counter: _Counter, file: TextIO) -> None:
        super().__init__(counter, file)
        self._share, self._last = 0.0, counter.start
        self.show(counter.progress())

    def is_due(self) -> bool:
        progress = self.counter.progress()
        is_due = progress.share >= self._share + _LOG_SHARE and self.counter.clock() - self._last >= _LOG_SECONDS
        return is_due and progress.done < progress.total

    def show(self, progress: EvaluationProgress) -> None:
        self._share, self._last = progress.share, self.counter.clock()
        self.file.write(_log_text(progress) + "\n")
        self.file.flush()


class _NotebookProgress(_CountedProgress):
    """One output of a notebook's cell, updated in place; the card of the result replaces it. It needs no widget."""

    seconds = _NOTEBOOK_SECONDS

    def __init__(self, counter: _Counter, file: TextIO) -> None:
        super().__init__(counter, file)
        display: Any = import_module("IPython.display").display  # has no types without the package
        self._handle = display(_bundle(counter.progress()), raw=True, display_id=True)

    def show(self, progress: EvaluationProgress) -> None:
        self._handle.update(_bundle(progress), raw=True)

    def end(self, progress: EvaluationProgress, result: object) -> None:
        if (card := _card_bundle(result)) is None:
            self.show(progress)
        else:
            self._handle.update(card, raw=True)
            _show_once(result)


def _card_bundle(result: object) -> dict[str, str] | None:
    """Return the card of a result by MIME type; None if it has no card."""
    render, card = getattr(result, "_repr_html_", None), getattr(result, "_card", None)
    if not callable(render) or not callable(card) or not isinstance(shown := card(), Card):
        return None
    return {"text/plain": text_card(shown), "text/html": str(render())}


def _show_once(result: object) -> None:
    """Suppress a second card of the result in this cell, whose last expression it often is."""
    shell: Any = sys.modules["IPython"].get_ipython()
    formatter: Any = shell.display_formatter.ipython_display_formatter
    display: Any = import_module("IPython.display").display

    def show(other: object) -> None:
        if other is not result:
            display(_card_bundle(other), raw=True)

    def forget(*_: object) -> None:
        formatter.pop(type(result), None)
        shell.events.unregister("post_run_cell", forget)

    formatter.for_type(type(result), show)
    shell.events.register("post_run_cell", forget)


def _bundle(progress: EvaluationProgress) -> dict[str, str]:
    """Return the progress by MIME type. The attributes of the bar are numbers."""
    text = _line_text(progress, 100)
    bar = f'<progress value="{progress.done}" max="{max(progress.total, 1)}"></progress>'
    return {"text/plain": text, "text/html": f"{bar} <code>{html.escape(text)}</code>"}


_MODES: Mapping[object, Callable[[_Counter, TextIO], ProgressReporter]] = {
    "off": _SilentProgress,
    "line": _LineProgress,
    "log": _LogProgress,
    "notebook": _NotebookProgress,
}
