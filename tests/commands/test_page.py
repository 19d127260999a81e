"""The commands of ``docs/command-line.md`` run, in its order, with its files, and print what the page has."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from sigwire.cli import main
from sigwire.commands.parser import VERBS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Command(NamedTuple):
    """A command of the page: its arguments, its exit status, and the text on stdout; ``None`` for one that does not end."""

    arguments: list[str]
    status: int | None
    output: str


def commands() -> Iterator[Command]:
    for language, _, text in BLOCK.findall(PAGE):
        for each in re.findall(r"^\$ .*(?:\n(?!\$ ).*)*", text if language == "console" else "", re.MULTILINE):
            line, _, output = each.partition("\n")
            name, *arguments = shlex.split(line[2:], comments=True)
            assert name == "sigwire"
            status = re.search(r"# exit status (\d+)", line)
            ends = "# runs until" not in line
            yield Command(arguments, int(status[1]) if status else 0 if ends else None, output)


def test_every_verb_has_an_example_on_the_page() -> None:
    assert {command.arguments[0] for command in commands()} == {verb.replace("_", "-") for verb in VERBS}


@pytest.mark.long
def test_commands_of_the_page_print_its_outputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _, title, text in BLOCK.findall(PAGE):
        if title:
            (folder / title).write_text(text, encoding="utf-8")
    for arguments, status, output in commands():
        if status is None:
            continue
        assert main(arguments) == status, (arguments, capsys.readouterr())
        printed = capsys.readouterr().out
        assert doctest.OutputChecker().check_output(output, printed, OPTIONS), printed
