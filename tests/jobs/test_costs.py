"""The benchmark of rows on other processes runs. This test measures no time."""

from __future__ import annotations

import pytest

from benchmarks.scale import costs, table


@pytest.mark.long
def test_benchmark_runs_all_rows_each_way() -> None:
    lines = [*costs(60)]
    assert [line.worker > 0 for line in lines] == [False, True, True, True]
    assert table(lines).count("\n") == 5
