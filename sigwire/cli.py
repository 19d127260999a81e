"""The command line: ``sigwire VERB ...`` and ``python -m sigwire VERB ...``.

The parser, and the exit status of each kind of error. ``sigwire.commands`` has one file a verb. No verb is loaded to print
``--help`` but its own description, which is standard library only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sigwire.commands.status import report_error
from sigwire.core.lazy import version

__all__ = ["main", "parser"]

VERBS = (
    "eval", "view", "export", "preview", "optimize", "models", "doctor", "fake_provider", "completion",
)  # fmt: skip
"""The files of ``sigwire.commands``, in the order of ``--help``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0 done, 1 below a bound, 2 usage, 3 aborted, 130 interrupted."""
    options = parser().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return report_error(options.verb, error)
    return int(status)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs.

    >>> parser().parse_args(["view", "runs/a.jsonl"]).paths
    ['runs/a.jsonl']
    """
    made = argparse.ArgumentParser(
        prog="sigwire",
        description="Typed signatures for language models: evaluate, preview and optimize programs.",
        epilog="Exit status: 0 done, 1 below a bound, 2 usage, 3 aborted, 130 interrupted.",
    )
    made.add_argument("--version", action="version", version=f"sigwire {version()}")
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in VERBS:
        command: Any = import_module(f"sigwire.commands.{name}")
        verb = verbs.add_parser(name.replace("_", "-"), help=command.HELP, description=command.__doc__)
        command.add(verb)
        verb.set_defaults(run=command.run)
    return made
