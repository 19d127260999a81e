"""``MapResult``: the totals of ``map_rows``, as an object and a card."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from sigwire.core.cards.values import usage_parts
from sigwire.core.response import Usage
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.costs import add_cost, cost_text, program_cost
from sigwire.evaluate.figures.tool_counts import ToolCounts, add_tools, sorted_tools, tool_lines, warning_line
from sigwire.jobs.driver import DriverStatus
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import inline
from sigwire.show.numbers import count, seconds_text

__all__ = ["MapResult"]


@dataclass(slots=True, repr=False)
class MapResult(HasCard):
    """The totals of ``map_rows``; ``load_records(result.path)`` has the records. In ``show()`` and in notebooks it is a card.

    ``status``: "complete", "budget", "stalled" (no row ended in time) or "engine-lost"; ``detail``: why. ``rows``: the
    records in the file, ``kept`` of which an earlier run wrote. ``lost``: chunks whose worker was lost;
    ``duplicates``: records that came twice and were dropped. Of this run are ``failures`` by class, ``tools`` (calls and errors
    of each tool), ``warnings`` by feature, ``served`` (answers by the name that a model reports), ``usage`` of the program by
    model, and its ``cost`` in US dollars: what is known of it, at least that if ``is_cost_partial``, ``None`` if nothing is.

    >>> MapResult("out.jsonl", status="stalled").status
    'stalled'
    """

    path: str
    status: DriverStatus = "complete"
    detail: str = ""
    rows: int = 0
    kept: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    lost: int = 0
    duplicates: int = 0
    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])
    cost: float | None = 0.0
    seconds: float = 0.0
    is_cost_partial: bool = False
    tools: dict[str, ToolCounts] = field(default_factory=dict[str, ToolCounts])
    warnings: Counter[str] = field(default_factory=Counter[str])
    served: Counter[str] = field(default_factory=Counter[str])

    def add(self, cell: Cell, *, is_stored: bool = False) -> None:
        """Count a record. ``is_stored``: its outputs are those of an earlier run, and were scored again."""
        self.rows += 1
        if cell.failure is not None:
            self.failures[cell.failure.type] += 1
        if is_stored:
            return
        for model, counts in cell.usage.items():
            self.usage[model] = self.usage.get(model, Usage()) + Usage.from_json(counts)
        add_tools(self.tools, cell.tools)
        self.warnings.update(cell.warnings)
        self.served.update(cell.served)
        self.cost, self.is_cost_partial = add_cost(self.cost, self.is_cost_partial, program_cost(cell))

    def __repr__(self) -> str:
        errors = sum(found.errors for found in self.tools.values())
        counts = {"rows": self.rows, "kept": self.kept, "failed": self.failures.total(), "tool_errors": errors}
        shown = "".join(f", {name}={number}" for name, number in counts.items() if number or name == "rows")
        return f"MapResult({inline(self.status, 20)}{shown})"

    def _card(self) -> Card:
        tokens = [f"{name}: {' · '.join(usage_parts(replace(each, cost=None)))}" for name, each in self.usage.items()]
        rows: list[tuple[str, list[str]]] = [
            ("status", [f"{self.status}: {self.detail}" if self.detail else self.status]),
            ("records", [f"{count(self.rows, 'row')}, {self.kept:,} of an earlier run", self.path]),
            ("failed", [", ".join(f"{number:,} {name}" for name, number in self.failures.most_common())]),
            ("tools", tool_lines(sorted_tools(self.tools))),
            ("warnings", [warning_line(self.warnings)]),
            ("cost", [cost_text(self.cost, self.is_cost_partial), *tokens]),
            ("served by", [", ".join(f"{name}: {count(number, 'answer')}" for name, number in self.served.items())]),
            ("lost", [f"{count(self.lost, 'chunk')} whose worker ended" if self.lost else ""]),
        ]
        shown = [(label, [line for line in lines if line]) for label, lines in rows]
        return Card(
            "MapResult", seconds_text(self.seconds) if self.seconds >= 1 else "", [each for each in shown if each[1]]
        )
