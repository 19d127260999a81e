"""The arguments of a verb by name, and texts of the library with arguments in place of options of Python."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Mapping

__all__ = ["in_arguments", "options_of"]


def options_of(made: ArgumentParser) -> dict[str, Action]:
    """Return the options of a parser by name, such as ``--log``."""
    actions: list[Action] = made._actions  # pyright: ignore[reportPrivateUsage]  # argparse has no public view
    return {name: action for action in actions for name in action.option_strings}


def in_arguments(text: str, options: Namespace) -> str:
    """Return an error text of the library with arguments of the verb in place of options of Python.

    >>> made = ArgumentParser()
    >>> _ = made.add_argument("--metric"), made.add_argument("--set", metavar="NAME=VALUE"), made.add_argument("--common")
    >>> in_arguments('Write GEPA(metric=app:exact, auto="light").', Namespace(arguments=made))
    'Write --metric app:exact --set auto=light.'
    """
    if "Write def " in text:  # Python of the user's file
        return text
    known = options_of(options.arguments)

    def argument(match: re.Match[str]) -> str:
        python, value = match[1], match[2].strip("\"'")
        name = f"--{_ARGUMENTS.get(python, python.replace('_', '-'))}"
        if name in known:
            action = known[name]
            if value in _PLACEHOLDERS and getattr(options, action.dest, None):
                return ""  # given
            shown = str(action.metavar or action.dest.upper()) if value in _PLACEHOLDERS else value
            return name if action.nargs == 0 else f"{name} {shown}"
        return f"--set {python}={value}" if "--set" in known else f"{python}={value}"

    for pattern, replacement in _SENTENCES:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"\b[A-Z]\w*\(((?:\w+=[^(),]+(?:, )?)+)\)", lambda call: call[1].replace(", ", " "), text)
    return re.sub(r"(?<![-\w])([a-z]\w*)=(\"[^\"]*\"|'[^']*'|\.\.\.|[\w:./]*\w)", argument, text)


_ARGUMENTS: Mapping[str, str] = {"num_threads": "threads", "prompt_model": "prompt-lm", "money": "budget"}
"""Options of Python whose arguments have another name."""
_PLACEHOLDERS = ("", "...", "my_metric")
_SENTENCES = (
    (r'Pass another log=, resume="append".*', "Name another file with --log."),
    (r"; error\.result has them\. Run again with the folder .* to go on\.", ". The same command goes on."),
    (r" With log=, the next evaluation goes on from there\.", ""),
)
"""Advice of the library that a command has no arguments for."""
