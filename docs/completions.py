"""The completions of the command line, made from its parser by shtab: ``sigwire/commands/completions/``.

    python docs/completions.py            writes them
    python docs/completions.py --check    prints the files that are stale; the exit code is then 1

The files are kept in the package, so that no program runs when a key is pressed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, cast

from sigwire.commands.completion import SHELLS
from sigwire.commands.parser import parser

__all__ = ["FOLDER", "main", "written"]

FOLDER = Path(__file__).resolve().parent.parent / "sigwire" / "commands" / "completions"
FILES = {"FILE", "RECORDS"}
"""Metavars of arguments that are files."""


def main(arguments: Sequence[str]) -> int:
    """Write or check the files; return the exit code."""
    stale = {path: text for path, text in written().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        if "--check" in arguments:
            print(f"{path.name} is not up to date: run python docs/completions.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
    return 1 if stale and "--check" in arguments else 0


def written() -> Mapping[Path, str]:
    """Return the text of each file."""
    shtab: Any = import_module("shtab")
    made = parser()
    for action in actions(made):
        if action.metavar in FILES or action.dest == "data":
            vars(action)["complete"] = shtab.FILE
    head = f"# Made by python docs/completions.py with shtab {metadata.version('shtab')}.\n"
    return {FOLDER / f"sigwire.{shell}": headed(shtab.complete(made, shell), head) for shell in SHELLS}


def headed(text: str, head: str) -> str:
    """Return a script with a line that names its maker. ``#compdef`` is the first line of a zsh script."""
    first, _, rest = text.partition("\n")
    text = f"{first}\n{head}{rest}" if first.startswith("#compdef") else head + text
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n"


def actions(made: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of its verbs."""
    for action in made._actions:  # pyright: ignore[reportPrivateUsage]
        yield action
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            verbs = cast("Mapping[str, argparse.ArgumentParser]", cast(Any, action).choices)
            for verb in verbs.values():
                yield from actions(verb)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
