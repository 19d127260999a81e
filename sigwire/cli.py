"""The command line: ``sigwire VERB ...`` and ``python -m sigwire VERB ...``. ``sigwire.commands`` has one file a verb."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from sigwire.commands.parser import parse

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0 done, 1 below a bound, 2 usage, 3 aborted, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal or a pipe may lack characters: write them as escapes
            stream.reconfigure(errors="backslashreplace")
    options = parse(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        from sigwire.commands.output import report_error  # --help needs no errors

        return report_error(options, error)
    return int(status)
