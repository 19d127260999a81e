"""The exit status of a command, and the line that it prints for an error."""

from __future__ import annotations

import os
import sys
from enum import IntEnum

from sigwire.errors import CallerError, LMNotConfigured

__all__ = ["Status", "UsageError", "report_error"]


class Status(IntEnum):
    """The exit status of a command."""

    DONE = 0
    BELOW = 1  # below --fail-under, or worse than the baseline
    USAGE = 2
    ABORTED = 3
    INTERRUPTED = 130


class UsageError(CallerError):
    """The arguments of a command do not fit; nothing was run."""


def report_error(verb: str, error: BaseException) -> Status:
    """Print one line for an error on stderr; return its exit status."""
    if isinstance(error, BrokenPipeError):  # the reader of a pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.DONE
    if isinstance(error, KeyboardInterrupt):
        print(f"sigwire {verb}: {error or 'interrupted'}", file=sys.stderr)
        return Status.INTERRUPTED
    text = " ".join(str(error).split()) or type(error).__name__
    text += " On the command line: --lm MODEL." if isinstance(error, LMNotConfigured) else ""
    known = isinstance(error, (CallerError, OSError))
    print(f"sigwire {verb}: {text if known else f'{type(error).__name__}: {text}'}", file=sys.stderr)
    return Status.USAGE if known else Status.ABORTED
