"""The command line: ``sigwire VERB ...`` and ``python -m sigwire VERB ...``. ``sigwire.commands`` has one file a verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sigwire.commands.output import prepare_streams, report_error
from sigwire.commands.parser import parse

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0 done, 1 below a bound, 2 usage, 3 aborted, 130 interrupted."""
    prepare_streams()
    options = parse(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return report_error(options.verb, error)
    return int(status)
