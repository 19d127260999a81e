"""Output of commands: tables for people and JSON for machines on stdout, one line for an error on stderr, the exit status."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import zip_longest
from typing import cast

from sigwire.commands.arguments import in_arguments
from sigwire.errors import CallerError, LMNotConfigured, SigwireError

__all__ = [
    "Status",
    "UsageError",
    "add_json",
    "keep_input",
    "place_of",
    "print_error",
    "print_json",
    "print_table",
    "report_error",
]


class Status(IntEnum):
    """The exit status of a command."""

    DONE = 0
    BELOW = 1  # below --fail-under, or worse than the baseline
    USAGE = 2
    ABORTED = 3
    INTERRUPTED = 130


class UsageError(CallerError):
    """The arguments of a command do not fit; nothing was run."""


def keep_input(out: str | os.PathLike[str] | None, paths: Iterable[str | None], option: str = "--out") -> None:
    """Raise ``UsageError`` if a file that is written is one of those that are read, also by another name or a link."""
    for path in paths:
        if out and path and os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
            raise UsageError(
                f"{os.fspath(out)} is the file that is read (writing the result). Name another file with {option}."
            )


def report_error(options: Namespace, error: BaseException) -> Status:
    """Print one line for an error on stderr, with arguments in place of Python; return its exit status."""
    verb = str(options.verb)
    if isinstance(error, BrokenPipeError):  # the reader of a pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.DONE
    if isinstance(error, KeyboardInterrupt):
        print_error(verb, in_arguments(str(error), options) or "interrupted")
        return Status.INTERRUPTED
    text = _text_of(error)
    if not isinstance(error, UsageError):
        text = in_arguments(text, options)
    if isinstance(error, (CallerError, OSError)):
        print_error(verb, text)
        return Status.USAGE
    place = "" if isinstance(error, SigwireError) else place_of(error)
    print_error(verb, f"{type(error).__name__}{place}: {text}")
    return Status.ABORTED


def _text_of(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, LMNotConfigured):
        return f"{text.partition('. Pass')[0]} (the arguments have none). Add --lm MODEL, such as --lm offline/lexical."
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"There is no file {error.filename!r} (opening it). Check its path."
    if isinstance(error, IsADirectoryError) and error.filename:
        return f"{error.filename!r} is a folder (opening it). Name a file."
    return text


def print_error(verb: str, text: str) -> None:
    """Print one line on stderr, with control characters made visible."""
    from sigwire.show.cleaning import visible

    name = f"sigwire {verb}".rstrip()
    print(f"{name}: {visible(' '.join(text.split()))}", file=sys.stderr)


def place_of(error: BaseException) -> str:
    """Return file and line of the user's code that raised, "" if there is none."""
    import traceback  # needed for errors only

    if isinstance(error, SyntaxError):
        return f" at {error.filename}:{error.lineno}"
    library = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(os.__file__), "<")
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(library)]
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def add_json(parser: ArgumentParser) -> None:
    """Add ``--json`` to a parser."""
    parser.add_argument("--json", action="store_true", help="print JSON on stdout instead of text")


def print_json(value: object) -> None:
    """Print a value as JSON. NaN and infinity are null."""
    import json

    print(json.dumps(_finite(value), indent=2, default=str))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the first row is the head. No line is wider than the terminal, and nothing is cut.

    A table that is too wide has broken cells. If a column would be narrower than 20 columns, each row is a list of its
    cells with their heads. A pipe gets one line a row.
    """
    from sigwire.show.cleaning import display_width, inline

    clean = [[inline(value, 200) for value in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*clean, strict=True)]
    width = _columns()
    least = [min(each, _LEAST) for each in widths]
    room = width - 2 * (len(widths) - 1)
    if sum(least) > room:
        print("\n".join(_as_lists(clean, width)))
        return
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda at: widths[at] if widths[at] > least[at] else 0)
        widths[widest] -= 1
    print("\n".join(line for row in clean for line in _broken(row, widths)))


_LEAST = 20
"""Columns that are not broken further."""


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def _broken(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row whose cells are broken at blanks."""
    from sigwire.show.layout import padded, wrapped

    cells = [list(wrapped(value, width)) for value, width in zip(row, widths, strict=True)]
    for line in zip_longest(*cells, fillvalue=""):
        yield "  ".join(padded(part, width) for part, width in zip(line, widths, strict=True)).rstrip()


def _as_lists(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield each row as its first cell, and a line for each other cell with its head."""
    from sigwire.show.layout import wrapped

    (_, *heads), *rest = rows
    for name, *cells in rest:
        yield from wrapped(name, width)
        for head, cell in zip(heads, cells, strict=True):
            yield from (f"  {line}" for line in wrapped(f"{head}: {cell}", width - 2))


def _finite(value: object) -> object:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in cast("Mapping[object, object]", value).items()}
    return [_finite(each) for each in cast("list[object]", value)] if isinstance(value, list | tuple) else value
