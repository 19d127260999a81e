"""``sigwire completion``: the words that each shell offers are those of the parser."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sigwire.cli import main
from sigwire.commands.completion import SHELLS, offers
from sigwire.commands.parser import parser

# Each asks for the words of many command lines, one a line of stdin: words in a row, the last one is being written.
BASH = """
while read -ra line; do
  COMP_WORDS=(sigwire "${line[@]%.}"); COMP_CWORD=${#line[@]}; COMPREPLY=()
  _sigwire; (IFS=' '; echo "${COMPREPLY[*]}")
done"""
# Outside of a widget zsh completes nothing: the functions that add matches print them.
ZSH = """
compdef() { :; }
_describe() { local each; for each in ${(P)2}; do print -rn -- "${each%%:*} "; done; }
_files() { print -rn -- *(N); }
source $0
while read -rA line; do
  words=(sigwire "${(@)line%.}"); CURRENT=$#words
  _sigwire; print
done"""
FISH = """
source $argv[1]
while read -l line
  echo (complete -C "sigwire "(string replace -r '\\.$' '' -- $line) | string replace -r '\\t.*' '')
end"""
COMMANDS = {
    "bash": lambda script: ["bash", "-c", Path(script).read_text(encoding="utf-8") + BASH],
    "zsh": lambda script: ["zsh", "-fc", ZSH, script],
    "fish": lambda script: ["fish", "--no-config", "-c", FISH, script],
}


def test_places_have_every_verb_option_and_choice_of_the_help() -> None:
    places = offers(parser())
    listed = {"": parser(), **verbs()}
    assert {place.partition(" ")[0] for place in places} == {*listed}
    for verb, made in listed.items():
        options = set(re.findall(r"^  (?:(-\w), )?(--[\w-]+)", made.format_help(), re.MULTILINE))
        assert {*places[f"{verb} -"].words} == {name for pair in options for name in pair if name}
    assert {*places[" "].words} == {*verbs()}
    assert {*places["completion "].words} == {"bash", "zsh", "fish", "powershell"}
    assert [*places["export --to"].words] == ["inspect", "csv", "markdown", "latex", "html"]
    assert [*places["eval --evidence"].words] == ["auto", "measured", "logprob", "sampled", "stated"]


def test_values_that_are_files_are_offered_as_files() -> None:
    files = {place for place, offer in offers(parser()).items() if offer.files}
    assert {"eval ", "eval --log", "eval --load", "view ", "view --out", "optimize --journal", "batch "} <= files
    assert files & {" ", "eval -", "eval --metric", "export --to", "models "} == set()


def verbs() -> dict[str, argparse.ArgumentParser]:
    (found,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found.choices)


@pytest.mark.skipif(os.name == "nt", reason="bash is that of another system there")
@pytest.mark.parametrize("shell", COMMANDS)
def test_shell_offers_the_words_of_each_place(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    (folder := tmp_path / "folder").mkdir()
    (folder / "records.jsonl").touch()
    places = offers(parser())
    # An option without a value in front, and a word that begins like some of the words.
    further = {"eval --json --lo": "--load --log", "co": "coordinator completion", "export --to i": "inspect"}
    lines = [line_of(place) for place in places] + [*further]
    command = COMMANDS[shell](str(script))
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    shown = [set(line.split()) for line in done.stdout.splitlines()]
    expected = [{*offer.words, *["records.jsonl"] * offer.files} for offer in places.values()]
    if shell == "zsh":  # the words that fit are chosen by zsh
        shown, expected = shown[: len(places)], expected
    else:
        expected += [set(words.split()) for words in further.values()]
    assert dict(zip(lines, shown, strict=False)) == dict(zip(lines, expected, strict=False))
    assert len(shown) == len(expected)


def line_of(place: str) -> str:
    """Return a command line that ends at a place. A full stop is an empty word."""
    verb, before = place.split(" ")
    return " ".join([*filter(None, [verb]), before if before == "-" else f"{before} .".strip()])


@pytest.mark.parametrize("shell", SHELLS)
def test_script_has_every_verb_and_long_option_and_names_its_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert f"made by: sigwire completion {shell}\n" in text
    assert {word for offer in offers(parser()).values() for word in offer.words if f"{word}" not in text} == set()
    assert "ROWS" not in text
