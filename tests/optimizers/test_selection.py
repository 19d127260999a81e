"""The statistics of choosing the best of many candidates."""

from __future__ import annotations

import random

from sigwire.optimizers.selection import optimism


def world(seed: int, *skills: float) -> list[dict[str, float]]:
    source = random.Random(seed)
    return [{str(row): float(source.random() < skill) for row in range(40)} for skill in skills]


def test_optimism_is_never_below_zero_when_one_candidate_is_far_ahead() -> None:
    found = [optimism(world(seed, 0.3, 0.5, 0.85), seed=seed) for seed in range(20)]
    assert min(found) >= 0


def test_optimism_is_larger_with_more_equal_candidates() -> None:
    few, many = (
        sum(optimism(world(seed, *[0.5] * count), draws=20, seed=seed) for seed in range(20)) / 20 for count in (2, 8)
    )
    assert 0 < few < many
