"""The parser of the command line. It loads the file of the verb that is given, and for the page of all verbs no file.

An error is one line on stderr, with the nearest verb or option, and exit status 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from sigwire.commands.arguments import options_of
from sigwire.core.lazy import version

__all__ = ["VERBS", "CommandParser", "command_of", "parse", "parser"]

VERBS: Mapping[str, str] = {
    "eval": "run a program on examples and score it",
    "view": "write the HTML report of an evaluation or a search",
    "export": "write records in another format",
    "preview": "print the request of a call, without the call",
    "check": "list what a model does not take of a program",
    "optimize": "search for a better program",
    "cache": "what the provider's prompt cache read of recorded calls",
    "models": "list providers, keys and prices",
    "verify": "ask a model what it really does",
    "doctor": "print facts for a bug report",
    "coordinator": "the limits of a run over all its workers",
    "batch": "poll the provider's batches of a store",
    "fake_provider": "a provider on the loopback interface for every wire",
    "completion": "print completions of a shell",
}
"""The files of the verbs with a phrase each, in the order of ``--help``."""
_FOLDERS = {"coordinator": "scale.", "batch": "scale."}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command. Exits with status 2 for an unknown argument, and for none at all.

    NAME=VALUE of a verb may stand behind its options, where argparse finds no positional argument any more.
    ``sigwire help VERB`` is ``sigwire VERB --help``.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    position = next((at for at, each in enumerate(given) if not each.startswith("-")), len(given))
    verb = "".join(given[position : position + 1])
    made = parser(verb)
    if not given:
        made.print_help(sys.stderr)
        raise SystemExit(2)
    _check_options(made, given[:position])
    if verb and verb not in _shown_verbs():
        made.error(f"There is no verb {verb!r} (reading the arguments). {_suggested(verb, _shown_verbs(), made)}")
    if verb:
        _check_options(_verbs(made)[verb], given[position + 1 :])
    options, rest = made.parse_known_args(given)
    if rest and not hasattr(options, "values"):
        _verbs(made)[verb].error(f"{rest[0]!r} is one argument too many (reading the arguments).")
    if rest:
        options.values += rest
    return options


def command_of(verb: str) -> Any:
    """Return the file of a verb."""
    return import_module(f"sigwire.commands.{_FOLDERS.get(verb, '')}{verb}")


def parser(*only: str) -> argparse.ArgumentParser:
    """Return the parser of all verbs. ``only``: the verbs with their arguments, such as ``"view"``; by default all.

    >>> parser().parse_args(["view", "runs/a.jsonl"]).paths
    ['runs/a.jsonl']
    """
    made = CommandParser(
        prog="sigwire",
        description="Typed signatures for language models: evaluate, preview and optimize programs.",
        epilog="Exit status: 0 done, 1 below a bound, 2 usage, 3 aborted, 130 interrupted. "
        "sigwire VERB --help has the arguments of a verb.",
    )
    made.add_argument("--version", action="version", version=f"sigwire {version()}")
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, phrase in VERBS.items():
        verb = verbs.add_parser(shown := name.replace("_", "-"), help=phrase)
        if not only or shown in only:
            command = command_of(name)
            verb.description = command.__doc__
            command.add(verb)
            verb.usage = _usage(verb)
            verb.set_defaults(run=command.run, arguments=verb)
    return made


def _usage(made: argparse.ArgumentParser) -> str:
    """Return the usage of a verb: what must be given. Options are in the list below; a terminal may be narrow."""
    from shutil import get_terminal_size
    from textwrap import wrap

    actions: list[argparse.Action] = made._actions  # pyright: ignore[reportPrivateUsage]
    words = [made.prog, "[options]"]
    for action in actions:
        value = str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest)
        if action.option_strings and action.required:
            words.append(f"{action.option_strings[0]} {value if action.metavar or action.choices else value.upper()}")
        elif not action.option_strings:
            words.append(
                {"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} ..."}.get(str(action.nargs), str(value))
            )
    return "\n".join(wrap(" ".join(words), get_terminal_size().columns - len("usage: "), subsequent_indent=" " * 4))


class CommandParser(argparse.ArgumentParser):
    """Reports an error as one line."""

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr, and exit with status 2."""
        from sigwire.commands.output import Status, print_error  # needed for errors only

        text = message if "(reading " in message else f"{message} (reading the arguments)."
        text = text[:1].upper() + text[1:]
        print_error(self.prog.partition(" ")[2], f"{text.rstrip()} {self.prog} --help lists what there is.")
        raise SystemExit(int(Status.USAGE))


def _shown_verbs() -> list[str]:
    return [name.replace("_", "-") for name in VERBS]


def _verbs(made: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of the verbs."""
    actions: list[Any] = made._actions  # pyright: ignore[reportPrivateUsage]
    return next(action.choices for action in actions if action.dest == "verb")


def _check_options(made: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """End with the nearest option if one is unknown. argparse would first name what is missing because of it."""
    known = options_of(made)
    for word in given:
        if word == "--":
            return
        name = word.partition("=")[0]
        is_option = name[:1] == "-" and not name[1:2].isdigit() and name[1:2] not in ("", ".") and " " not in word
        if is_option and not any(each == name or (name[:2] == "--" and each.startswith(name)) for each in known):
            made.error(f"There is no option {name} (reading the arguments). {_suggested(name, known, made)}")


def _suggested(name: str, known: Sequence[str] | Mapping[str, object], made: argparse.ArgumentParser) -> str:
    from sigwire.errors import suggest  # needed for errors only

    return suggest(name, [*known, *options_of(made)])
