"""``CandidatePrograms``: the programs of a search's candidates with their scores.

A program is made when its entry is read; the list holds data and the student only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from sigwire.core.json import JsonObject
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.optimizers.reports.report import OptimizationReport

__all__ = ["CandidatePrograms", "percent", "scored_programs", "trial_logs"]


class CandidatePrograms(Sequence[Mapping[str, Any]]):
    """A sequence of dicts with what is known of a candidate, and its ``program``, made on access."""

    def __init__(self, student: Module, entries: Iterable[tuple[JsonObject, Candidate]]) -> None:
        self._student, self._entries = student, tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> CandidatePrograms: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | CandidatePrograms:
        if isinstance(index, slice):
            return CandidatePrograms(self._student, self._entries[index])
        known, candidate = self._entries[index]
        return {**known, "program": applied(self._student, candidate)}

    def __deepcopy__(self, memo: Any) -> CandidatePrograms:
        return self  # nothing in it changes

    def to_json(self) -> list[JsonObject]:
        """Return the entries as JSON, with the candidate in place of the program."""
        return [{**known, "candidate": candidate.to_json()} for known, candidate in self._entries]

    def __repr__(self) -> str:
        return f"<{len(self)} candidate programs>"


def percent(mean: float | None) -> float | None:
    """Return a mean score as a percentage.

    >>> percent(0.33333)
    33.33
    """
    return None if mean is None else round(100 * mean, 2)


def scored_programs(
    student: Module, report: OptimizationReport, known: Mapping[str, JsonObject] | None = None
) -> CandidatePrograms:
    """Return the candidates of a report that have scores, those with scores on more rows first, then by mean.

    ``known``: more of each candidate, by digest; candidates that it lacks are omitted.
    """
    scores = report.scores or {}
    candidates = {trial.candidate.digest: trial.candidate for trial in report.trials}
    candidates = {report.baseline.digest: report.baseline, **candidates}
    rows: list[tuple[int, float, JsonObject, Candidate]] = []
    for digest, candidate in candidates.items():
        found = scores.get(digest)
        if not found or (known is not None and digest not in known):
            continue
        mean = sum(found.values()) / len(found)
        entry: JsonObject = {"score": percent(mean), "subscores": list(found.values()), **(known or {}).get(digest, {})}
        rows.append((len(found), mean, entry, candidate))
    rows.sort(key=lambda each: (-each[0], -each[1]))
    return CandidatePrograms(student, [(entry, candidate) for _, _, entry, candidate in rows])


def trial_logs(report: OptimizationReport) -> dict[int, JsonObject]:
    """Return the trials that have scores by number from 1; the first is the student.

    The score, in percent, is ``full_eval_score``, or ``mb_score`` if the candidate ran on some of the validation rows.
    """
    spent = {trial.candidate.digest: trial.spent.runs for trial in report.trials if trial.spent is not None}
    scores = report.scores or {}
    tried = dict.fromkeys([report.baseline.digest, *(trial.candidate.digest for trial in report.trials)])
    scored = {digest: list(scores[digest].values()) for digest in tried if scores.get(digest)}
    most = max(map(len, scored.values()), default=0)
    return {
        number: {
            "full_eval_score" if len(found) == most else "mb_score": percent(sum(found) / len(found)),
            "total_eval_calls_so_far": spent.get(digest, most),
        }
        for number, (digest, found) in enumerate(scored.items(), 1)
    }
