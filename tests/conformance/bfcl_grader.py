"""Grading of BFCL-style cases: is a set of tool calls one of the accepted ones? Pure; the rules are the dataset's README.

A case is right as a whole: as many calls as expected, paired one to one in any order, each with the same name and
with arguments among the accepted values.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Case", "fixtures", "grade", "read_cases"]

_IGNORED = re.compile(r"[ ,./\-_*^]")


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
    expected = case.ground_truth
    if expected is None:
        offered = {tool["function"]["name"] for tool in case.tools}
        return bool(calls) and all(name in offered for name, _ in calls)
    if len(calls) != len(expected):
        return False
    fits = [{i for i, call in enumerate(calls) if _call_fits(call, wanted)} for wanted in expected]
    return _can_pair(fits, frozenset())


def _can_pair(fits: Sequence[set[int]], used: frozenset[int]) -> bool:
    if not fits:
        return True
    return any(_can_pair(fits[1:], used | {i}) for i in fits[0] - used)


def _call_fits(call: tuple[str, Mapping[str, Any]], wanted: Mapping[str, Any]) -> bool:
    name, arguments = call
    return name == wanted["name"] and _object_fits(arguments, wanted["arguments"])


def _object_fits(given: Mapping[str, Any], accepted: Mapping[str, Sequence[Any]]) -> bool:
    if given.keys() - accepted.keys():
        return False
    return all(
        _among(given[key], values) if key in given else "" in values
        for key, values in accepted.items()
    )  # fmt: skip


def _among(value: Any, accepted: Iterable[Any]) -> bool:
    return any(_equal(value, candidate) for candidate in accepted)


def _equal(value: Any, accepted: Any) -> bool:
    if isinstance(value, bool) or isinstance(accepted, bool):
        return value is accepted
    if isinstance(value, str) or isinstance(accepted, str):
        return isinstance(value, str) and isinstance(accepted, str) and _plain(value) == _plain(accepted)
    if isinstance(accepted, Mapping):
        return isinstance(value, Mapping) and _object_fits(value, accepted)
    if isinstance(accepted, list):
        return (
            isinstance(value, list)
            and len(value) == len(accepted)
            and all(_equal(mine, theirs) for mine, theirs in zip(value, accepted, strict=True))
        )
    if isinstance(accepted, int) and isinstance(value, float):
        return False
    return value == accepted


def _plain(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')
