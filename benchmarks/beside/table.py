"""The stored outcomes as a table in markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["OUTCOMES", "stored", "table"]

OUTCOMES = Path(__file__).with_name("outcomes.json")


def stored() -> Mapping[str, Any]:
    """Return the outcomes of the last ``python -m benchmarks.beside --save``."""
    outcomes: Mapping[str, Any] = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    return outcomes


def table(outcomes: Mapping[str, Any]) -> str:
    """Return a row a situation, a column a library with its version."""
    names = list(outcomes["versions"])
    head = ["", *(f"{name} {outcomes['versions'][name]}" for name in names)]
    rows = ([situation, *(found[name] for name in names)] for situation, found in outcomes["rows"].items())
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
