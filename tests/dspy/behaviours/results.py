"""The tables: behaviours that do not hold on DSPy 3.4.1, and those that do not hold on the door, each with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__main__", "conftest", "results", "support"))
FAILS_ON_DSPY = frozenset(json.loads((FOLDER / "holds.json").read_text(encoding="utf-8"))["fails"])

WORDS = "exact wording"
PURPOSE = "on purpose"
MISSING = "not built"

LISTED: dict[str, str] = {}


def load_behaviours() -> tuple[list[str], Callable[[str], str]]:
    """Import the files on the library that ``dspy`` is; return the names and the function that runs one."""
    for name in FILES:
        import_module(f"tests.dspy.behaviours.{name}")
    support = import_module("tests.dspy.behaviours.support")
    return list(support.BEHAVIOURS), support.failure_of
