"""Displays of progress: a line in a terminal, one output in a notebook, log lines in files, or a function.

Reporters write to stderr, and show what a counter counts: ``update`` for each item, ``close`` at the end. They are
thread-safe. The clock and the stream are parameters, so that a test needs no terminal and no time. The counters and the
values that they show are of evaluations (``progress``) and of searches (``sigwire.optimizers.progress``).
"""

from __future__ import annotations

import html
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Generic, Protocol, TextIO, TypeAlias, TypeVar

from sigwire.errors import ConfigurationError
from sigwire.show.card import Card
from sigwire.show.cleaning import display_width
from sigwire.show.text import text_card

__all__ = [
    "Clock",
    "ProgressCounts",
    "Reporter",
    "ShownProgress",
    "clock_text",
    "fitting_line",
    "progress_bar",
    "reporter_of",
]

Clock: TypeAlias = Callable[[], float]
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_LINE_SECONDS = 0.1
_NOTEBOOK_SECONDS = 0.25
_LOG_SECONDS = 30.0
_LOG_SHARE = 0.1


class ShownProgress(Protocol):
    """A value of progress that can be shown."""

    @property
    def share(self) -> float: ...

    def line(self, width: int) -> str:
        """Return the line of a terminal, fitted to a width."""
        ...

    def log_line(self) -> str:
        """Return the line of a log."""
        ...


class ProgressCounts(Protocol[T_contra]):
    """Counts items, and returns the progress. A reporter holds ``lock`` around each call."""

    clock: Clock
    lock: threading.Lock

    def add(self, item: T_contra) -> None: ...

    def progress(self, status: str = "running") -> Any:
        """Return the ``ShownProgress``, which a listener receives with its own type."""
        ...


class Reporter(Protocol[T_contra]):
    """Receives each item, then the end."""

    def update(self, item: T_contra) -> None:
        """Count an item."""

    def note(self, text: str) -> None:
        """Write lines, such as a traceback, without mixing them with a line of progress."""

    def milestone(self, text: str) -> None:
        """Write a line that stays, in a terminal or a log."""

    def close(self, status: str, result: object = None) -> None:
        """Show the end. A notebook shows the card of ``result`` in place of the progress."""


def reporter_of(counter: ProgressCounts[T], mode: object, stage: str, stream: TextIO | None = None) -> Reporter[T]:
    """Return the reporter of a mode: "auto" or True, "line", "log", "notebook", "off", False or None, or a function.

    "auto": a notebook's output, a line in a terminal, else log lines. A function receives the progress after each item.
    ``SIGWIRE_PROGRESS=off|line|log`` replaces the mode, unless that is a function. ``stream``: default stderr; ``stage``: of an
    error. Raises ``ConfigurationError`` for another mode.
    """
    file = stream or sys.stderr
    if callable(mode):
        return _ListenerProgress(counter, file, mode)
    name = "off" if mode is None or mode is False else "auto" if mode is True else mode
    name = os.environ.get("SIGWIRE_PROGRESS") or name
    make = _MODES.get(_best_mode(file) if name == "auto" else name)
    if make is None:
        raise ConfigurationError(
            f"progress={name!r:.80} is unknown ({stage}). Use 'auto', 'line', 'log', 'off' or a function."
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


# --- texts


def clock_text(seconds: float | None) -> str:
    """Return seconds as minutes or hours.

    >>> clock_text(75), clock_text(4000), clock_text(None)
    ('1:15', '1:06:40', '?')
    """
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def progress_bar(share: float) -> str:
    """Return a bar of 20 columns.

    >>> progress_bar(0.5)
    '██████████          '
    """
    filled = share * 20
    partial = "▏▎▍▌▋▊▉"[int(filled % 1 * 8) - 1] if filled % 1 >= 0.125 else ""
    return f"{'█' * int(filled) + partial:<20}"


def fitting_line(candidates: Iterable[str], width: int) -> str:
    """Return the first text that fits a width, else the start of the last."""
    texts = [*candidates]
    return next((each for each in texts if display_width(each) <= width), texts[-1][:width])


# --- reporters


class _SilentProgress(Generic[T]):
    def __init__(self, counter: ProgressCounts[T], file: TextIO) -> None:
        self._file = file

    def update(self, item: T) -> None:
        pass

    def note(self, text: str) -> None:
        self._file.write(text)

    def milestone(self, text: str) -> None:
        pass

    def close(self, status: str, result: object = None) -> None:
        pass


class _CountedProgress(Generic[T]):
    """A reporter that shows the counts at most once in ``seconds``."""

    seconds = 0.0

    def __init__(self, counter: ProgressCounts[T], file: TextIO) -> None:
        self.counter, self.file = counter, file
        self._next = counter.clock()

    def update(self, item: T) -> None:
        with self.counter.lock:
            self.counter.add(item)
            if self.is_due():
                self._next = self.counter.clock() + self.seconds
                self.show(self.counter.progress())

    def note(self, text: str) -> None:
        with self.counter.lock:
            self.clear()
            self.file.write(text)

    def milestone(self, text: str) -> None:
        pass

    def close(self, status: str, result: object = None) -> None:
        with self.counter.lock:
            self.end(self.counter.progress(status), result)

    def is_due(self) -> bool:
        return self.counter.clock() >= self._next

    def clear(self) -> None:
        pass

    def show(self, progress: ShownProgress) -> None:
        raise NotImplementedError

    def end(self, progress: ShownProgress, result: object) -> None:
        self.show(progress)


class _ListenerProgress(_CountedProgress[T]):
    def __init__(self, counter: ProgressCounts[T], file: TextIO, listener: Callable[[Any], object]) -> None:
        super().__init__(counter, file)
        self._listener = listener

    def show(self, progress: ShownProgress) -> None:
        self._listener(progress)


class _LineProgress(_CountedProgress[T]):
    """One line of a terminal. A shorter line is padded, so that no escape sequence is needed."""

    seconds = _LINE_SECONDS

    def __init__(self, counter: ProgressCounts[T], file: TextIO) -> None:
        super().__init__(counter, file)
        self._width = 0

    def show(self, progress: ShownProgress) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns - 1
        text = progress.line(max(columns, 10))
        padding = " " * max(self._width - display_width(text), 0)
        self._width = display_width(text)
        self.file.write(f"\r{text}{padding}")
        self.file.flush()

    def milestone(self, text: str) -> None:
        with self.counter.lock:
            self.clear()
            self.file.write(text + "\n")
            self.show(self.counter.progress())

    def clear(self) -> None:
        self.file.write(f"\r{' ' * self._width}\r")
        self._width = 0

    def end(self, progress: ShownProgress, result: object) -> None:
        self.show(progress)
        self.file.write("\n")
        self.file.flush()


class _LogProgress(_CountedProgress[T]):
    """A line at the start, then one after each 10 % and 30 s, then one at the end."""

    def __init__(self, counter: ProgressCounts[T], file: TextIO) -> None:
        super().__init__(counter, file)
        self._share, self._last = 0.0, counter.clock()
        self.show(counter.progress())

    def is_due(self) -> bool:
        progress = self.counter.progress()
        is_due = progress.share >= self._share + _LOG_SHARE and self.counter.clock() - self._last >= _LOG_SECONDS
        return is_due and progress.share < 1

    def milestone(self, text: str) -> None:
        with self.counter.lock:
            self.file.write(text + "\n")
            self.file.flush()

    def show(self, progress: ShownProgress) -> None:
        self._share, self._last = progress.share, self.counter.clock()
        self.file.write(progress.log_line() + "\n")
        self.file.flush()


class _NotebookProgress(_CountedProgress[T]):
    """One output of a notebook's cell, updated in place; the card of the result replaces it. It needs no widget."""

    seconds = _NOTEBOOK_SECONDS

    def __init__(self, counter: ProgressCounts[T], file: TextIO) -> None:
        super().__init__(counter, file)
        display: Any = import_module("IPython.display").display  # has no types without the package
        self._handle = display(_bundle(counter.progress()), raw=True, display_id=True)

    def show(self, progress: ShownProgress) -> None:
        self._handle.update(_bundle(progress), raw=True)

    def end(self, progress: ShownProgress, result: object) -> None:
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


def _bundle(progress: ShownProgress) -> dict[str, str]:
    """Return the progress by MIME type. The attributes of the bar are numbers."""
    text = progress.line(100)
    bar = f'<progress value="{progress.share:.4f}" max="1"></progress>'
    return {"text/plain": text, "text/html": f"{bar} <code>{html.escape(text)}</code>"}


_MODES: Mapping[object, Callable[[ProgressCounts[Any], TextIO], Reporter[Any]]] = {
    "off": _SilentProgress,
    "line": _LineProgress,
    "log": _LogProgress,
    "notebook": _NotebookProgress,
}
