"""Output of commands: tables for people and JSON for machines on stdout, one line for an error on stderr, the exit status."""

from __future__ import annotations

import json
import math
import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import cast

from sigwire.errors import CallerError, LMNotConfigured

__all__ = ["Status", "UsageError", "add_json", "print_json", "print_table", "report_error"]


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


def add_json(parser: ArgumentParser) -> None:
    """Add ``--json`` to a parser."""
    parser.add_argument("--json", action="store_true", help="print JSON on stdout instead of text")


def print_json(value: object) -> None:
    """Print a value as JSON. NaN and infinity are null."""
    print(json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the first row is the head."""
    from sigwire.show.cleaning import display_width, inline

    clean = [[inline(value, 100) for value in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*clean, strict=True)]
    for row in clean:
        print("  ".join(v + " " * (w - display_width(v)) for v, w in zip(row, widths, strict=True)).rstrip())


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in cast("Mapping[object, object]", value).items()}
    return [_finite(each) for each in cast("list[object]", value)] if isinstance(value, list | tuple) else value
