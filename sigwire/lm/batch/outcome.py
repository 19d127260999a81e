"""The outcome of each line of an ended batch: an answer, unsent for no money, or lost.

One line decides nothing about another one. A line that has several results gets its best one, the first of equal ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sigwire.lm.codecs.batches.shared import UNREADABLE, BatchStatus, LineResult, encode_body

__all__ = ["Outcome", "is_final", "outcome_of"]

_FINAL = frozenset({400, 404, 413, 422})  # statuses of a line that a repetition would have again


def is_final(status: int) -> bool:
    """Return True for an answer that a repetition of the request would have again."""
    return 200 <= status < 300 or status in _FINAL


class Outcome(NamedTuple):
    """``answers``: id, status and body. ``unsent``: lines that never ran. ``lost``: lines that were perhaps paid, and why."""

    answers: list[tuple[str, int, bytes]]
    unsent: list[str]
    lost: dict[str, str]

    @property
    def final(self) -> list[tuple[str, int, bytes]]:
        """The answers that are stored."""
        return [each for each in self.answers if is_final(each[1])]


def outcome_of(ids: Collection[str], status: BatchStatus, results: Sequence[LineResult]) -> Outcome:
    """Return what became of the lines ``ids``. Results of other lines are ignored.

    >>> from sigwire.lm.codecs.batches.shared import BatchCounts
    >>> results = [LineResult("a", 0, "a line that is not JSON"), LineResult("a", 200, {}), LineResult("x", 200, {})]
    >>> outcome_of(["a", "b"], BatchStatus("ended", BatchCounts(), {}), results)
    Outcome(answers=[('a', 200, b'{}')], unsent=[], lost={'b': 'no result'})
    """
    best: dict[str, LineResult] = {}
    for each in results:
        if each.id not in best or _rank(each) < _rank(best[each.id]):
            best[each.id] = each
    outcome = Outcome([], [], {})
    for id in ids:
        result = best.get(id) or LineResult(id, None if status.is_cut else UNREADABLE, "no result")
        if result.status is None:
            outcome.unsent.append(id)
        elif result.status == UNREADABLE:
            outcome.lost[id] = str(result.body)
        else:
            outcome.answers.append((id, result.status, encode_body(result.body)))
    return outcome


def _rank(result: LineResult) -> int:
    if result.status is None or result.status == UNREADABLE:
        return 3 if result.status is None else 2
    return 0 if is_final(result.status) else 1
