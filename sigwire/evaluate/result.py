"""The result of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigwire.core.example import Example
from sigwire.evaluate.records import ExampleRecord

__all__ = ["EvaluationResult"]


class EvaluationResult:
    """The result of an evaluation."""

    records: Any
    results: Any
    score: float
    mean: Any
    status: str
    path: Any
    failures: Any
    header: Any

    @classmethod
    def make(
        cls,
        program_name: str,
        records: Sequence[ExampleRecord],
        examples: Sequence[Example],
        predictions: Sequence[Any],
        **rest: Any,
    ) -> EvaluationResult:
        """Return a result."""
        self = cls()
        vars(self).update(rest, program_name=program_name, records=records)
        scores = [rest["failure_score"] if r.cell.score is None else r.cell.score for r in records]
        self.results = list(zip(examples, predictions, scores, strict=True))
        self.score = round(100 * sum(scores) / len(scores), 2) if scores else 0.0
        good = [r.cell.score for r in records if r.cell.score is not None]
        self.mean = sum(good) / len(good) if good else None
        return self

    def __repr__(self) -> str:
        return f"EvaluationResult({self.score}, {len(self.records)})"
