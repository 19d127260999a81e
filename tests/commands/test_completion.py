"""``sigwire completion``: the files of the package are those of the parser."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from sigwire.cli import main
from sigwire.commands.completion import SHELLS
from sigwire.commands.parser import parser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("completions", ROOT / "docs" / "completions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_prints_every_verb_and_long_option(
    shell: str, capsys: pytest.CaptureFixture[str], maker: ModuleType
) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    names = {name.removeprefix("--") for action in maker.actions(parser()) for name in action.option_strings}
    verbs = {name for action in parser()._actions for name in _choices(action)}
    assert {name for name in names | verbs if len(name) > 2 and name not in text} == set()


def _choices(action: argparse.Action) -> list[str]:
    return list(action.choices) if isinstance(action, argparse._SubParsersAction) else []


def test_completion_files_are_made_from_the_parser(maker: ModuleType) -> None:
    pytest.importorskip("shtab")
    made_with = re.search(r"shtab (\S+)\.\n", (maker.FOLDER / "sigwire.bash").read_text(encoding="utf-8"))
    assert made_with is not None
    if metadata.version("shtab") != made_with[1]:
        pytest.skip(f"the files were made with shtab {made_with[1]}")
    assert maker.main(["--check"]) == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_completion_of_bash_is_a_valid_script_that_knows_the_verbs() -> None:
    script = (ROOT / "sigwire" / "commands" / "completions" / "sigwire.bash").read_text(encoding="utf-8")
    ask = '\nCOMP_WORDS=(sigwire d); COMP_CWORD=1; _shtab_sigwire; echo "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["doctor"]
    assert done.stderr == ""
