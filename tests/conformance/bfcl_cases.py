"""The BFCL-style cases as they are: every case of every file, its tools, and its reference calls. Pure but for the reading.

Their README describes the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sigwire.core.tools.tool import Tool

__all__ = ["calls_of", "read_all", "tools_of"]


def read_all(fixtures: Path) -> list[dict[str, Any]]:
    """Every case of every file, multi-turn episodes included."""
    paths = sorted((fixtures / "bfcl").glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]


def tools_of(case: dict[str, Any]) -> dict[str, Tool]:
    """The tools that a case offers, by name."""
    return {spec["function"]["name"]: Tool.from_schema(**spec["function"]) for spec in case["tools"]}


def calls_of(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The reference calls, each argument with the first value that is accepted."""
    for call in case.get("ground_truth") or ():
        yield call["name"], _first_accepted(call["arguments"])
    for turn in case.get("turns", ()):
        for step in turn["steps"]:
            for call in step["calls"]:
                yield call["name"], call["arguments"]


def _first_accepted(accepted: dict[str, list[Any]]) -> dict[str, Any]:
    """The first accepted value of each; ``""`` in a list marks an optional argument."""
    real = {name: [value for value in values if value != ""] for name, values in accepted.items()}
    return {name: _plain(values[0]) for name, values in real.items() if values}


def _plain(value: Any) -> Any:
    """Objects inside accepted values hold lists of accepted values again."""
    if isinstance(value, dict):
        return _first_accepted(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value
