from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sigwire.experiments.point import AXES


@dataclass(frozen=True)
class ExperimentResult:
    axes: Any
    seeds: Any
    measured: Any
    _: Any = None
    metrics: Any = ()
    missing: Any = ()
    status: str = "complete"
    folder: Any = None
    record: Any = None
    confidence: float = 0.95

    def rows(self) -> list[dict[str, Any]]:
        found = []
        for each in self.measured:
            result = each.evaluation
            rest = {"seed": each.point.seed, "score": result.mean, **result.metrics, "n": result.n, "failed": len(result.failed)}
            rest["search_calls"] = 0 if each.search is None else each.search.spent.calls
            rest["calls"] = 0 if each.shared else sum(record.cell.requests for record in result.records)
            rest["seconds"] = result.seconds
            found.append({**{axis: each.point.labels[axis] for axis in AXES}, **rest})
        return found
