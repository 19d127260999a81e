"""Names that arrive in other libraries are read by a person, and those of DSPy have a counterpart or advice."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from sigwire.dspy.missing import INSTEAD
from tests.release import peers


@pytest.mark.long
@pytest.mark.parametrize("peer", peers.PEERS)
def test_names_of_an_installed_peer_are_reviewed(peer: str) -> None:
    if importlib.util.find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed")
    names = peers.unread(peer)
    assert names == [], f"New in {peer}: read them, then run `python {Path(peers.__file__).name} --write`"


def is_in_the_door(name: str) -> bool:
    package, _, last = f"sigwire.dspy.{name}".rpartition(".")
    return hasattr(importlib.import_module(package), last)


def test_names_of_dspy_are_in_the_door_or_have_advice() -> None:
    names = peers.reviewed("dspy")
    assert len(names) > 200
    assert [name for name in sorted(names - INSTEAD.keys()) if not is_in_the_door(name)] == []


def test_command_lists_and_adds_the_names_of_a_new_release(tmp_path: Path) -> None:
    (tmp_path / "dspy").mkdir()
    parts = "".join(f"from dspy import {part}\n" for part in peers.PARTS_OF_DSPY)
    (tmp_path / "dspy" / "__init__.py").write_text(f"{parts}__all__ = ['Predict', 'Brand']\nPredict = Brand = 1\n")
    for part in peers.PARTS_OF_DSPY:
        (tmp_path / "dspy" / f"{part}.py").write_text("")
    (tmp_path / "peers.py").write_text(Path(peers.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "peers.txt").write_text("dspy Predict\n")
    for options, found in (((), "dspy Brand"), (("--write",), "dspy Brand"), ((), "")):
        command = [sys.executable, "-S", str(tmp_path / "peers.py"), *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == found
    assert (tmp_path / "peers.txt").read_text() == "dspy Brand\ndspy Predict\n"
