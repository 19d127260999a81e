"""``RowsInFlight``: rows that run at once, and may end after the first interrupt of a blocked caller.

``KeyboardInterrupt`` is caught where the caller waits. No signal handler is installed, so that of the user stays. An interrupt
that is raised inside a row (a caller that runs one row at a time, in its own thread) ends that row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sigwire.effects.cancellation import INTERRUPT_GRACE_SECONDS
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.effects.waiting import sleep, wait_for

__all__ = ["RowsInFlight", "waiting_text"]

_LOOK_SECONDS = 0.01


def waiting_text(rows: int) -> str:
    """Return the line that is shown after a first interrupt.

    >>> waiting_text(1)
    'interrupted: waiting at most 10 s for 1 row in flight. Press Ctrl-C again to cancel.\\n'
    """
    name = f"{rows} row{'' if rows == 1 else 's'}"
    return f"interrupted: waiting at most {INTERRUPT_GRACE_SECONDS:g} s for {name} in flight. Press Ctrl-C again to cancel.\n"


class RowsInFlight:
    """Counts the rows in flight. ``is_interrupted``: no row may start.

    >>> from sigwire.effects.steps import run
    >>> def row():
    ...     yield Gather([])
    >>> rows = RowsInFlight()
    >>> run(rows.gather([row(), row()], 2, print)), rows.is_interrupted
    (None, False)
    """

    def __init__(self) -> None:
        self._running: set[object] = set()
        self.is_interrupted = False

    def gather(self, rows: Sequence[Steps[None]], limit: int, note: Callable[[str], object]) -> Steps[None]:
        """Run rows, at most ``limit`` at once. After a first interrupt no row starts, and those in flight have ten seconds.

        ``note`` gets a line about it. Raises the interrupt then; a second one is raised at once.
        """
        try:
            yield Gather([self._counted(row) for row in rows], limit=limit)
        except KeyboardInterrupt:
            self.is_interrupted = True
            if count := len(self._running):
                note(waiting_text(count))
                self.wait(INTERRUPT_GRACE_SECONDS)
            raise

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
        try:
            yield from row
        finally:
            self._running.discard(row)
