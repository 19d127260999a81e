"""Grading of BFCL-style cases: is a set of tool calls one of the accepted ones? ``bfcl_match`` decides."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sigwire.core.example import Example, Prediction
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.evaluate.metrics.bfcl import bfcl_match

__all__ = ["Case", "fixtures", "grade", "read_cases"]


class Case(NamedTuple):
    """One question with the tools offered and the calls accepted (``None``: any call to an offered tool)."""

    id: str
    category: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    ground_truth: list[dict[str, Any]] | None


def fixtures() -> Path | None:
    """The folder of BFCL files under ``SIGWIRE_FIXTURES``, if it is there."""
    root = os.environ.get("SIGWIRE_FIXTURES")
    folder = Path(root) / "bfcl" if root else Path(__file__).parents[3] / "shared" / "fixtures" / "bfcl"
    return folder if folder.is_dir() else None


def read_cases(folder: Path, category: str) -> list[Case]:
    """All cases of a category, in file order."""
    lines = (folder / f"{category}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Case(**json.loads(line)) for line in lines if line]


def grade(calls: Sequence[tuple[str, Mapping[str, Any]]], case: Case) -> bool:
    """Whether the calls (name, arguments) answer the case."""
    tools = [Tool.from_schema(**tool["function"]) for tool in case.tools if case.ground_truth is None]
    made = ToolCalls([{"name": name, "args": arguments} for name, arguments in calls])
    return bfcl_match(Example(tools=tools, ground_truth=case.ground_truth), Prediction(tool_calls=made)).value == 1
