"""The Pareto front, against its definition."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from sigwire.evaluate.pareto import pareto_front

VALUES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=7)


@given(VALUES)
def test_front_has_each_entry_that_no_other_beats_and_only_those(values: list[tuple[int, ...]]) -> None:
    entries = dict(enumerate(values))
    front = pareto_front(entries)

    def beats(one: int, other: int) -> bool:
        pairs = list(zip(entries[one], entries[other], strict=True))
        return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)

    beaten = {other for one, other in itertools.permutations(entries, 2) if beats(one, other)}
    assert front == [each for each in entries if each not in beaten]
    assert bool(front) == bool(entries)


def test_front_keeps_an_entry_with_a_number_that_is_none() -> None:
    assert pareto_front({"a": (1.0, 1.0), "b": (math.nan, 0.5), "c": (0.5, 0.5)}) == ["a", "b"]
