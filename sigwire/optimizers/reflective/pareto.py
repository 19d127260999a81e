"""Pareto fronts over a table of scores with holes, parents drawn from them, and merges of two candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from sigwire.optimizers.candidate import Candidate

__all__ = ["ancestors", "draw_parent", "leads", "merged", "undominated"]

Scores = Mapping[str, Mapping[str, float]]
"""Scores by candidate digest and row."""


def leads(scores: Scores, rows: Sequence[str]) -> dict[str, list[str]]:
    """Return the candidates with the best score of each row, of those that have the row.

    >>> leads({"a": {"r1": 1.0, "r2": 0.0}, "b": {"r1": 1.0}}, ["r1", "r2"])
    {'r1': ['a', 'b'], 'r2': ['a']}
    """
    fronts: dict[str, list[str]] = {}
    for row in rows:
        having = {digest: found[row] for digest, found in scores.items() if row in found}
        if having:
            best = max(having.values())
            fronts[row] = [digest for digest, score in having.items() if score == best]
    return fronts


def undominated(fronts: Mapping[str, Sequence[str]], means: Mapping[str, float]) -> list[str]:
    """Return the leading candidates without those that lead no row alone; the worst by mean are removed first.

    A candidate falls to others together, which lead all of its rows; ``evaluate.pareto`` compares entries one by one.

    >>> undominated({"r1": ["a", "b"], "r2": ["b"]}, {"a": 0.5, "b": 1.0})
    ['b']
    """
    leading = list(dict.fromkeys(each for front in fronts.values() for each in front))
    left = sorted(leading, key=lambda each: means[each])
    removed = True
    while removed:
        removed = False
        for each in left:
            others = frozenset(left) - {each}
            if all(others.intersection(front) for front in fronts.values() if each in front):
                left.remove(each)
                removed = True
                break
    return [each for each in leading if each in left]


def draw_parent(fronts: Mapping[str, Sequence[str]], means: Mapping[str, float], source: Random) -> str:
    """Return a candidate that is not dominated, drawn by the number of rows that it leads."""
    left = undominated(fronts, means)
    weights = [sum(each in front for front in fronts.values()) for each in left]
    return source.choices(left, weights)[0]


def ancestors(candidate: Candidate, pool: Mapping[str, Candidate]) -> list[str]:
    """Return the digests of the ancestors of a candidate in a pool, the nearest first."""
    found: list[str] = []
    left = list(candidate.parents)
    while left:
        digest = left.pop(0)
        if digest in pool and digest not in found:
            found.append(digest)
            left += pool[digest].parents
    return found


def merged(first: Candidate, second: Candidate, ancestor: Candidate, *, prefers_first: bool) -> Candidate | None:
    """Return a candidate with the texts that either changed since their ancestor; ``None`` if that is no new combination.

    A text that both changed is that of the preferred one.

    >>> base = Candidate({"a": "1", "b": "1"})
    >>> new = merged(base.with_text("a", "2"), base.with_text("b", "2"), base, prefers_first=True)
    >>> new.texts
    {'a': '2', 'b': '2'}
    """
    texts: dict[str, str] = dict(ancestor.texts)
    for slot in dict.fromkeys((*first.texts, *second.texts)):
        old, one, two = ancestor.texts.get(slot), first.texts.get(slot), second.texts.get(slot)
        new = two if one == old else one if two == old or prefers_first else two
        if new is not None:
            texts[slot] = new
    candidate = replace(first, texts=texts, parents=(first.digest, second.digest))
    return None if candidate in (first, second, ancestor) else candidate
