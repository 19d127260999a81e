"""The public interface is that of ``tests/release/api.txt``."""

from __future__ import annotations

import sys

import pytest

from tests.release import snapshot


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the text of parameters differs between versions of Python")
def test_public_interface_is_that_of_the_snapshot() -> None:
    recorded = snapshot.PATH.read_text(encoding="utf-8").splitlines()
    found = [*snapshot.lines()]
    changed = {"gone": [*set(recorded) - set(found)], "new": [*set(found) - set(recorded)]}
    advice = "CHANGELOG.md has a line for each, and python docs/tables.py writes the file"
    assert changed == {"gone": [], "new": []}, advice
