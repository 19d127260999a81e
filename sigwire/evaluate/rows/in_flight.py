"""``RowsInFlight``: rows that run at once, and may end after the first interrupt of a blocked caller.

``KeyboardInterrupt`` is caught where the caller waits. No signal handler is installed, so that of the user stays. An interrupt
that is raised inside a row (a caller that runs one row at a time, in its own thread) ends that row.

Rows may be inside others: those of an evaluation that is a row of something larger, in a thread. They get no interrupt of the
caller. When the outer ones are interrupted, they start no row either, and end with ``KeyboardInterrupt`` when theirs in flight
have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar

from sigwire.effects.cancellation import INTERRUPT_GRACE_SECONDS
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.effects.waiting import sleep, wait_for

__all__ = ["RowsInFlight", "waiting_text"]

_LOOK_SECONDS = 0.01
_around: ContextVar[RowsInFlight | None] = ContextVar("sigwire_rows_in_flight", default=None)


def waiting_text(rows: int, name: str = "row") -> str:
    """Return the line that is shown after a first interrupt.

    >>> waiting_text(1)
    'interrupted: waiting at most 10 s for 1 row in flight. Press Ctrl-C again to cancel.\\n'
    """
    shown = f"{rows} {name}{'' if rows == 1 else 's'}"
    return f"interrupted: waiting at most {INTERRUPT_GRACE_SECONDS:g} s for {shown} in flight. Press Ctrl-C again to cancel.\n"


class RowsInFlight:
    """Counts the rows in flight. ``is_interrupted``: no row may start. ``name``: of one, for the line of an interrupt.

    >>> from sigwire.effects.steps import run
    >>> def row():
    ...     yield Gather([])
    >>> rows = RowsInFlight()
    >>> run(rows.gather([row(), row()], 2, print)), rows.is_interrupted
    (None, False)
    """

    def __init__(self, name: str = "row") -> None:
        self._name = name
        self._running: set[object] = set()
        self._is_interrupted = False
        self._outer: RowsInFlight | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether these rows are interrupted, or those that they are inside of."""
        return self._is_interrupted or (self._outer is not None and self._outer.is_interrupted)

    def gather(self, rows: Sequence[Steps[None]], limit: int, note: Callable[[str], object]) -> Steps[None]:
        """Run rows, at most ``limit`` at once. After a first interrupt no row starts, and those in flight have ten seconds.

        ``note`` gets a line about it. Raises the interrupt then; a second one is raised at once.
        """
        self._outer = _around.get()
        try:
            yield Gather([self._counted(row) for row in rows], limit=limit)
        except KeyboardInterrupt:
            is_first, self._is_interrupted = not self.is_interrupted, True
            if is_first and (count := len(self._running)):
                note(waiting_text(count, self._name))
                self.wait(INTERRUPT_GRACE_SECONDS)
            raise
        if self.is_interrupted:
            raise KeyboardInterrupt

    def wait(self, seconds: float) -> bool:
        """Wait, blocking, for the rows in flight. Return False if some still run after ``seconds``."""

        def is_idle(left: float) -> bool:
            if self._running:
                sleep(min(left, _LOOK_SECONDS))
            return not self._running

        return wait_for(is_idle, seconds)

    def _counted(self, row: Steps[None]) -> Steps[None]:
        if self.is_interrupted:
            return
        self._running.add(row)
        _around.set(self)  # of this row: it runs in a copy of the context
        try:
            yield from row
        finally:
            self._running.discard(row)
