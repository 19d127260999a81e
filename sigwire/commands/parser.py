"""The parser of the command line. It loads every verb, and the verbs load nothing but the standard library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sigwire.core.lazy import version

__all__ = ["VERBS", "command_of", "parse", "parser"]

VERBS = (
    "eval", "view", "export", "preview", "check", "optimize", "models", "verify", "doctor", "coordinator", "batch",
    "fake_provider", "completion",
)  # fmt: skip
"""The files of the verbs, in the order of ``--help``."""
_FOLDERS = {"coordinator": "scale.", "batch": "scale."}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command. Exits with status 2 for an unknown argument.

    NAME=VALUE of a verb may stand behind its options, where argparse finds no positional argument any more.
    """
    made = parser()
    options, rest = made.parse_known_args(arguments)
    if rest and (not hasattr(options, "values") or any(each.startswith("-") for each in rest)):
        made.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.values += rest
    return options


def command_of(verb: str) -> Any:
    """Return the file of a verb."""
    return import_module(f"sigwire.commands.{_FOLDERS.get(verb, '')}{verb}")


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
        command = command_of(name)
        verb = verbs.add_parser(name.replace("_", "-"), help=command.HELP, description=command.__doc__)
        command.add(verb)
        verb.set_defaults(run=command.run, parser=made)
    return made
