"""``mark_rest``: of a test with many cases, ``make test`` runs a sample; the other cases are ``long``.

The sample is stable: it depends on the names of the cases only. It has every value of each argument that has at most
``MOST`` values (drivers, wires), so no path is left out; the values of longer tables are drawn by a hash of their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest

__all__ = ["MOST", "mark_rest", "sample"]

MOST = 4
"""The cases of one test in ``make test``; more if the values of its arguments need more."""


def mark_rest(items: Iterable[pytest.Item], root: str) -> None:
    """Mark the cases outside of the samples as ``long``, of tests in folders below ``root``.

    Tests in ``root`` itself are about pages and files of the repository, each of which counts.
    """
    tests: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        if str(item.path.parent).startswith(f"{root}/") and item.get_closest_marker("long") is None:
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        if len(cases) > MOST:
            kept = sample([(each.nodeid, each.callspec.indices) for each in cases])
            for place, each in enumerate(cases):
                if place not in kept:
                    each.add_marker(pytest.mark.long)


def sample(cases: Sequence[tuple[str, dict[str, int]]], most: int = MOST) -> set[int]:
    """Return the places of the sample of cases, each a name and the places of its values by argument.

    >>> len(sample([(f"{n}-{way}", {"n": n, "way": way}) for n in range(50) for way in range(2)], 8))
    8
    """
    values: defaultdict[str, set[int]] = defaultdict(set)
    for _, places in cases:
        for argument, place in places.items():
            values[argument].add(place)
    short = [argument for argument, found in values.items() if len(found) <= most]
    drawn = sorted(range(len(cases)), key=lambda place: crc32(cases[place][0].encode()))
    kept, seen = set[int](), set[tuple[str, int]]()
    for place in drawn:
        new = {(argument, cases[place][1][argument]) for argument in short} - seen
        if new:
            seen |= new
            kept.add(place)
    kept.update([place for place in drawn if place not in kept][: max(most - len(kept), 0)])
    return kept
