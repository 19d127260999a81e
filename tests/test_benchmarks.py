"""The benchmarks still do what they time: every contestant gives the right answer. Nothing is timed here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from benchmarks import growth, imports, parsing, predict, tools
from benchmarks.timing import FLOOR, OURS, Job, Line, measure, table

SOURCES = (imports.jobs, predict.jobs, growth.jobs, tools.jobs, parsing.jobs)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__module__)
def test_every_job_runs_on_both_sides(source: Callable[[], Iterator[Job]]) -> None:
    for job in source():  # making a job checks its answers
        for contestant in job.contestants.values():
            contestant()
        assert list(job.contestants)[:2] == [FLOOR, OURS]


def test_contestants_take_turns_and_a_line_has_every_sample() -> None:
    turns: list[str] = []
    job = Job(
        "x1",
        "a job",
        "≤ 2x",
        {FLOOR: lambda: turns.append("a"), OURS: lambda: turns.append("b")},
        unit="ms",
        sample=lambda contestant: 0.001 if contestant() is None else 0.0,
    )
    line = measure(job, rounds=2)
    assert turns == ["a", "b", "a", "b", "b", "a"]  # one round to warm up, then in turn, then the other way round
    assert line.samples == {FLOOR: [1.0, 1.0], OURS: [1.0, 1.0]}


def test_the_table_shows_medians_spread_and_the_ratio_to_the_floor() -> None:
    line = Line("x1", "a job", "µs", "≤ 3x", {FLOOR: [1.0, 2.0, 3.0], OURS: [4.0, 4.0, 10.0], "peer": [20.0]})
    *_, row = table([line]).splitlines()
    assert row == (
        "| x1 | a job | µs | 2.00 (1.00 to 3.00) | 4.00 (4.00 to 10.0) | 2.00x | ≤ 3x | 20.0 (20.0 to 20.0) 10x |"
    )
