"""Tracebacks of sigwire's errors as people see them: the frames of the user's code, without those of the library.

The message of an error has what happened, where, and what to do next; the library's frames add nothing. They are left out when
the error is shown: by IPython, or at the end of a program. The exception keeps its whole traceback for loggers, debuggers and
post-mortems. ``SIGWIRE_TRACEBACK=full`` shows all frames.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

__all__ = ["NOT_THE_USERS", "install", "render", "shortened"]

NOT_THE_USERS = frozenset({"sigwire", "asyncio", "concurrent", "contextlib", "contextvars", "functools", "threading"})
"""The library, and the packages of Python through which it calls itself and the user's functions."""


@contextmanager
def shortened(error: BaseException) -> Generator[None]:
    """Take the library's frames out of an error, its causes and contexts inside the block. A note has their number."""
    wants_all = os.environ.get("SIGWIRE_TRACEBACK", "").lower() == "full"
    whole = [] if wants_all else [(each, each.__traceback__) for each in _chain(error)]
    note = ""
    try:
        hidden = 0
        for each, frames in whole:
            each.__traceback__ = kept = _without_own(frames)
            hidden += _count(frames) - _count(kept)
        if hidden:
            note = f"({hidden} frame{'s' * (hidden > 1)} of sigwire not shown: SIGWIRE_TRACEBACK=full shows all)"
            error.add_note(note)
        yield
    finally:
        for each, frames in whole:
            each.__traceback__ = frames
        if note:
            error.__notes__.remove(note)


def render(error: BaseException) -> list[str]:
    """Return the lines of an error for IPython, in its style; without IPython in that of Python."""
    import traceback  # needed for errors only

    module: Any = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    with shortened(error):
        if shell is None:
            return traceback.format_exception(error)
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
        return lines


def install(kind: type[BaseException]) -> None:
    """Shorten errors of a kind that end a program. A hook that is already set stays: then nothing is shortened."""

    def show(cls: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
        if not isinstance(error, kind):
            sys.__excepthook__(cls, error, frames)
            return
        with shortened(error):
            sys.__excepthook__(cls, error, error.__traceback__)

    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = show


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on; the context where there is no cause, as Python shows them."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _without_own(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the library's frames and what they go through. Frames before the first of them stay."""
    kept: list[TracebackType] = []
    is_inside = False
    while frames is not None:
        package = str(frames.tb_frame.f_globals.get("__name__")).partition(".")[0]
        is_inside = is_inside or package == "sigwire"
        if not (is_inside and package in NOT_THE_USERS):
            kept.append(frames)
        frames = frames.tb_next
    last: TracebackType | None = None
    for each in reversed(kept):
        last = TracebackType(last, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return last


def _count(frames: TracebackType | None) -> int:
    count = 0
    while frames is not None:
        count, frames = count + 1, frames.tb_next
    return count
