"""Reports of searches as data: candidates, the estimate of the winner, the cost, and the reason of the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.evaluate.statistics import PairedDifference, paired_difference
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Dropped, Kept, Measured, Proposed, Refused, SearchEvent, Spent, Warned
from sigwire.optimizers.judge import Judge

__all__ = ["Estimate", "OptimizationReport", "StopReason", "Trial", "trials_of"]


class StopReason(StrEnum):
    """Why a search stopped."""

    FINISHED = "finished"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Estimate:
    """How good the found candidate is. Scores are means; ``rows`` is the number of validation rows.

    ``selection``: its mean on the rows on which it was chosen, too high. ``out_of_bag``: the same without the flattery of the
    choice. ``test``: its mean on the test rows, ``test_difference`` the paired difference to the student on them. ``sure``:
    how sure it is that it is better than the student, as the best of all candidates.
    """

    baseline: float | None = None
    selection: float | None = None
    out_of_bag: float | None = None
    sure: float | None = None
    rows: int = 0
    test_baseline: float | None = None
    test: float | None = None
    test_rows: int = 0
    test_difference: PairedDifference | None = None

    @classmethod
    def of(
        cls,
        judge: Judge,
        baseline: Candidate,
        found: Candidate,
        candidates: Sequence[Candidate],
        rows: Sequence[str],
        sure: float | None,
    ) -> Estimate:
        """Return the estimate from the runs on the validation rows."""
        both = [each for each in rows if each in judge.table.scores(found, rows)]
        if not both:
            return cls()
        return cls(
            baseline=_known(judge.mean(baseline, both)),
            selection=judge.mean(found, both),
            out_of_bag=judge.out_of_bag(candidates, rows),
            sure=sure,
            rows=len(both),
        )

    def with_test(self, judge: Judge, baseline: Candidate, found: Candidate, rows: Sequence[str]) -> Estimate:
        """Return the estimate with the runs on rows that the search did not see."""
        before, after = judge.table.scores(baseline, rows), judge.table.scores(found, rows)
        both = [row for row in rows if row in before and row in after]
        if not both:
            return self
        return replace(
            self,
            test_baseline=judge.mean(baseline, both),
            test=judge.mean(found, both),
            test_rows=len(both),
            test_difference=paired_difference([before[row] for row in both], [after[row] for row in both]),
        )

    @property
    def test_gain(self) -> float | None:
        """The mean difference to the student on the test rows."""
        return None if self.test is None or self.test_baseline is None else self.test - self.test_baseline


def _known(mean: float) -> float | None:
    return None if mean == float("-inf") else mean


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate in the order of proposal: how it was made, its mean and number of validation rows, and its fate."""

    number: int
    candidate: Candidate
    origin: str = ""
    changes: tuple[str, ...] = ()
    mean: float | None = None
    rows: int = 0
    fate: str = ""
    spent: Spent | None = None


def trials_of(events: Sequence[tuple[SearchEvent, Spent]]) -> tuple[Trial, ...]:
    """Return the trials of a search from its events, each with what was spent until then."""
    trials: dict[str, Trial] = {}
    for event, spent in events:
        if isinstance(event, (Spent, Refused, Warned)):
            continue
        digest = event.candidate.digest
        trial = trials.get(digest) or Trial(len(trials), event.candidate)
        if isinstance(event, Proposed):
            trial = replace(trial, origin=trial.origin or event.origin, changes=trial.changes or event.changes)
        elif isinstance(event, Measured):
            trial = replace(trial, mean=event.mean, rows=event.rows, spent=spent)
        elif isinstance(event, (Kept, Dropped)):
            trial = replace(trial, fate=event.why, spent=spent)
        trials[digest] = trial
    return tuple(trials.values())


@dataclass(frozen=True)
class OptimizationReport:
    """The report of ``compile``: ``program.optimization``.

    ``winner`` is what the program has, ``found`` what the rule found; they differ if the student was kept (``kept_student``:
    the reason). ``scores`` by candidate digest and validation row.
    """

    optimizer: str
    baseline: Candidate
    winner: Candidate
    found: Candidate
    estimate: Estimate
    reason: StopReason
    spent: Spent
    trials: tuple[Trial, ...] = ()
    refused: tuple[Refused, ...] = ()
    scores: Mapping[str, Mapping[str, float]] | None = None
    settings: JsonObject | None = None
    warnings: tuple[str, ...] = ()
    kept_student: str = ""
    resumed: int = 0

    def __deepcopy__(self, memo: Any) -> OptimizationReport:
        return self  # frozen
