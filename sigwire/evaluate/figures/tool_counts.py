"""Calls of tools and warnings of a run, summed over its records.

A record has the counts of all agents of its program. Those of earlier versions have none: theirs are counted in the turns of
the agent that answered, or failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_items, is_object
from sigwire.evaluate.cell import Cell, tool_counts
from sigwire.evaluate.records import ExampleRecord
from sigwire.modules.agents.submit import SUBMIT_NAMES

__all__ = [
    "CallTotals", "ToolCounts", "add_tools", "sorted_tools", "tool_lines", "total_tools", "total_warnings", "warning_line",
]  # fmt: skip


class ToolCounts(NamedTuple):
    """The finished calls of a tool, and those whose result is an error.

    Errors: the tool raised, took too long or returned one, the arguments did not fit, the call was denied, or there is no such
    tool.
    """

    calls: int = 0
    errors: int = 0

    def __str__(self) -> str:
        return f"{self.calls:,} {'call' if self.calls == 1 else 'calls'}" + (
            f", {self.errors:,} {'error' if self.errors == 1 else 'errors'}" if self.errors else ""
        )


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The calls and errors of each tool, and the number of warnings by feature, of several runs.

    >>> totals = CallTotals()
    >>> totals.add(Cell(1.0, tools={"find": {"calls": 2, "errors": 1}}, warnings={"tool": 1}))
    >>> CallTotals.from_json(totals.to_json()) == totals, totals.errors
    (True, 1)
    """

    tools: dict[str, ToolCounts] = field(default_factory=dict[str, ToolCounts])
    warnings: Counter[str] = field(default_factory=Counter[str])

    def add(self, cell: Cell) -> None:
        """Add the counts of a run."""
        add_tools(self.tools, cell.tools)
        self.warnings.update(cell.warnings)

    @property
    def errors(self) -> int:
        """The calls of all tools whose result is an error."""
        return sum(found.errors for found in self.tools.values())

    def to_json(self) -> JsonObject:
        """Return the totals as JSON."""
        return {
            "tools": {name: {**found._asdict()} for name, found in self.tools.items()},
            "warnings": {**self.warnings},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Decode the result of ``to_json``."""
        tools = {name: ToolCounts(found["calls"], found["errors"]) for name, found in data["tools"].items()}
        return cls(tools, Counter(data["warnings"]))


def total_tools(records: Iterable[ExampleRecord]) -> Mapping[str, ToolCounts]:
    """Return the counts of each tool, the one with the most errors first."""
    totals: dict[str, ToolCounts] = {}
    for record in records:
        add_tools(totals, record.cell.tools or tool_counts([*_stored_calls(record)]))
    return sorted_tools(totals)


def add_tools(totals: dict[str, ToolCounts], found: Mapping[str, JsonObject]) -> None:
    """Add the counts of a record.

    >>> totals = {"find": ToolCounts(1)}
    >>> add_tools(totals, {"find": {"calls": 2, "errors": 1}})
    >>> totals["find"]
    ToolCounts(calls=3, errors=1)
    """
    for name, each in found.items():
        before = totals.get(name, ToolCounts())
        totals[name] = ToolCounts(before.calls + _count(each, "calls"), before.errors + _count(each, "errors"))


def sorted_tools(totals: Mapping[str, ToolCounts]) -> Mapping[str, ToolCounts]:
    """Return the counts, the tool with the most errors first."""
    return dict(sorted(totals.items(), key=lambda each: (-each[1].errors, -each[1].calls, each[0])))


def total_warnings(records: Iterable[ExampleRecord]) -> Counter[str]:
    """Return the number of warnings by feature."""
    totals: Counter[str] = Counter()
    for record in records:
        totals.update(record.cell.warnings or Counter(_stored_warnings(record)))
    return totals


def tool_lines(tools: Mapping[str, ToolCounts], most: int = 12) -> list[str]:
    """Return a line for each tool, at most ``most``.

    >>> tool_lines({"find": ToolCounts(30, 1), "add": ToolCounts(1)})
    ['find: 30 calls, 1 error', 'add: 1 call']
    """
    lines = [f"{name}: {found}" for name, found in tools.items()]
    return lines if len(lines) <= most else [*lines[:most], f"… {len(lines) - most} more tools"]


def warning_line(warnings: Mapping[str, int]) -> str:
    """Return the numbers of warnings by feature in a line, the most frequent first.

    >>> warning_line({"temperature": 2, "tool": 30})
    '30 tool, 2 temperature'
    """
    return ", ".join(f"{number:,} {feature}" for feature, number in Counter(warnings).most_common())


def _count(found: JsonObject, name: str) -> int:
    number = found.get(name)
    return number if isinstance(number, int) else 0


def _stored_calls(record: ExampleRecord) -> Iterator[tuple[str, bool]]:
    for result in _parts(record, "results"):
        if (name := str(result.get("name", ""))) not in SUBMIT_NAMES:
            yield name, result.get("is_error") is True


def _stored_warnings(record: ExampleRecord) -> Iterator[str]:
    if record.cell.tools:  # of this version: the counts are complete
        return
    for warning in _parts(record, "warnings"):
        yield str(warning.get("feature", ""))


def _parts(record: ExampleRecord, name: str) -> Iterator[JsonObject]:
    """Yield the results or warnings of the turns that a record has."""
    outputs = record.cell.outputs or {}
    answered = outputs.get("run_steps", outputs.get("steps"))
    turns: Sequence[object] = [
        *(answered if is_items(answered) else ()),
        *(each.to_json() for each in record.cell.steps),
    ]
    for turn in turns:
        parts = turn.get(name) if is_object(turn) else None
        yield from (part for part in parts if is_object(part)) if is_items(parts) else ()
