"""Results made of scores, without programs or models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigwire.core.example import Example, Prediction
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.failures import Failure, FailureKind
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.result import EvaluationResult

__all__ = ["failed_cell", "make_result", "scored_cell"]


def scored_cell(score: float, **rest: Any) -> Cell:
    """Return a cell with a score, an output and one request."""
    return Cell(score, **{"outputs": {"answer": f"a{score:g}"}, "requests": 1, "seconds": 0.5, **rest})


def failed_cell(kind: FailureKind, name: str = "OutputTruncated", score: float | None = None) -> Cell:
    """Return the cell of a failed run."""
    return Cell(score, failure=Failure(kind, name, f"{name} happened"), requests=1, seconds=0.5)


def make_result(
    cells: Sequence[float | Cell | Sequence[float | Cell]],
    *,
    name: str = "Program",
    fields: Sequence[dict[str, Any]] | None = None,
    **options: Any,
) -> EvaluationResult:
    """Return the result of one cell, or several repeats, for each example. ``fields``: those of the examples."""
    records: list[ExampleRecord] = []
    examples: list[Example] = []
    for index, repeats in enumerate(cells):
        given = fields[index] if fields else {"question": f"q{index}", "answer": "a1"}
        for repeat, cell in enumerate([repeats] if isinstance(repeats, (int, float, Cell)) else repeats, 1):
            made = cell if isinstance(cell, Cell) else scored_cell(cell)
            inputs, labels = {"question": given["question"]}, {k: v for k, v in given.items() if k != "question"}
            records.append(ExampleRecord(f"id{index}", index, repeat, inputs, labels, made))
            examples.append(Example(given).with_inputs("question"))
    predictions = [Prediction(**(record.cell.outputs or {})) for record in records]
    defaults: dict[str, Any] = {
        "header": {"devset": {"n": len(cells)}, "lm": {"model": "offline/lexical"}},
        "metric_names": ["exact"],
        "repeat": max((record.repeat for record in records), default=1),
    }
    return EvaluationResult.make(name, records, examples, predictions, **{**defaults, **options})
