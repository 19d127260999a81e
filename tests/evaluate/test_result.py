"""EvaluationResult: its figures, its parts, and its files."""

from __future__ import annotations

import copy
import csv
import json
import math
import pickle
import re
from pathlib import Path

import pytest

from sigwire.core.example import Example, Prediction
from sigwire.core.response import Usage
from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.records import ExampleRecord, RecordFile
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.statistics import mean_interval
from tests.evaluate.runs import failed_cell, make_result, scored_cell


def test_result_has_dspys_score_and_triples() -> None:
    result = make_result([1, 0, 1])
    assert result.score == 66.67
    assert [(example.question, prediction.answer, score) for example, prediction, score in result.results] == [
        ("q0", "a1", 1),
        ("q1", "a0", 0),
        ("q2", "a1", 1),
    ]
    assert isinstance(result, Prediction)
    assert result["score"] == result.score == float(result)


def test_unscored_examples_are_no_part_of_the_mean_and_bound_the_result() -> None:
    result = make_result([1, 1, 1, 0, failed_cell("metric", "KeyError")])
    assert (result.n, result.scored, result.unscored, result.mean) == (5, 4, 1, 0.75)
    assert result.failures == {"KeyError": 1}
    assert result.score == 60
    assert result.bounds == (0.6, 0.8)
    assert [record.index for record in result.not_scored] == [4]


def test_program_failures_count_with_their_score() -> None:
    cells = [1, 1, 1, failed_cell("program", score=0.0)]
    result = make_result(cells)
    assert (result.mean, result.score, len(result.failed), result.wrong) == (0.75, 75, 1, [])
    skipped = make_result(cells, errors="skip")
    assert (skipped.mean, skipped.score, skipped.unscored) == (1.0, 75, 1)


def test_interval_is_by_example_or_by_cluster_with_a_field() -> None:
    scores = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1]
    assert make_result(scores).interval == mean_interval(scores)
    fields = [{"question": f"q{i}", "answer": "a", "document": i // 2} for i in range(10)]
    clustered = make_result(scores, fields=fields, cluster="document").interval
    assert clustered is not None
    assert clustered.method == "adjusted t by cluster"
    narrow = make_result(scores, interval=0.5).interval
    assert narrow == mean_interval(scores, confidence=0.5)


@pytest.mark.parametrize(
    ("reduce", "mean"), [("mean", 0.5), ("max", 1), ("median", 0.5), ("pass@2", 5 / 6), ("all@2", 1 / 6)]
)
def test_repeats_are_reduced_for_each_example_first(reduce: str, mean: float) -> None:
    result = make_result([[1, 0, 1, 0], [0, 1, 0, 1]], reduce=reduce)
    assert (result.n, result.scored, len(result.records), len(result.results)) == (2, 2, 8, 8)
    assert result.mean == pytest.approx(mean)


def test_repeat_without_score_keeps_the_other_repeats() -> None:
    result = make_result([[1, failed_cell("provider", "LMServerError")], [1, 0]])
    assert (result.mean, result.scored, result.unscored, result.bounds) == (0.75, 2, 0, (0.5, 0.75))
    assert result.score == 50


def test_result_without_scores_has_no_numbers() -> None:
    result = make_result([failed_cell("provider", "LMRateLimitError")] * 3)
    assert math.isnan(result.mean)
    assert result.interval is None
    assert result.bounds == (0, 1)
    assert "unknown" in repr(result)


def test_metrics_are_the_means_of_all_scores_by_name() -> None:
    cells = [scored_cell(1, subscores={"exact": 1.0, "f1": 0.5}), scored_cell(0, subscores={"exact": 0.0, "f1": 1.0})]
    assert make_result(cells).metrics == {"exact": 0.5, "f1": 0.75}
    cells.append(failed_cell("program", score=0.0))
    assert make_result(cells).metrics == {"exact": pytest.approx(1 / 3), "f1": 0.5}


def test_usage_and_cost_are_sums_by_model() -> None:
    counts = Usage(input_tokens=10, output_tokens=2).counts()
    result = make_result(
        [scored_cell(1, usage={"m": counts}, cost=0.25), scored_cell(1, usage={"m": counts}, cost=0.5)]
    )
    assert result.usage == {"m": Usage(input_tokens=20, output_tokens=4)}
    assert result.cost == 0.75


def test_unknown_cost_is_none_and_a_partial_sum_is_a_lower_bound() -> None:
    assert make_result([1, 1]).cost is None
    partial = make_result([scored_cell(1, cost=0.5), scored_cell(1)])
    assert (partial.cost, partial.is_cost_partial) == (0.5, True)
    assert "≥ $0.50" in _text(partial)
    assert "unknown" in _text(make_result([1, 1]))
    hits = make_result([scored_cell(1, requests=0, hits=1), *[scored_cell(1)] * 5])
    assert (hits.cost, hits.run.cost_text) == (None, "unknown")  # five requests are paid, at an unknown price
    judged = make_result([scored_cell(1, metric_requests=1, metric_cost=0.25), scored_cell(1, metric_requests=1)])
    assert "metric: ≥ $0.25 · 2 requests" in _text(judged)
    assert make_result([scored_cell(1, requests=0, hits=1)]).cost == 0


def test_by_groups_the_records_of_a_field() -> None:
    fields = [{"question": f"q{i}", "topic": ["billing", "delivery"][i % 2]} for i in range(6)]
    parts = make_result([1, 0, 1, 0, 1, 1], fields=fields).by("topic")
    assert {topic: (part.n, part.mean) for topic, part in parts.items()} == {
        "billing": (3, 1.0),
        "delivery": (3, pytest.approx(1 / 3)),
    }
    assert [record.index for record in parts["delivery"].wrong] == [1, 3]
    with pytest.raises(InputError, match="Did you mean topic"):
        make_result([1], fields=fields).by("topc")


def test_partial_result_states_how_much_ran() -> None:
    result = make_result([1, 0], header={"devset": {"n": 200}}, status="cancelled")
    assert (result.n, result.scored, result.status) == (200, 2, "cancelled")
    assert "cancelled: 2 of 200 examples ran" in _text(result)
    assert "status='cancelled'" in repr(result)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_keep_the_records(copied: object) -> None:
    result = make_result([1, 0, 1])
    made = copied(result)  # type: ignore[operator]
    assert (made.mean, made.score, made.records) == (result.mean, result.score, result.records)


def test_result_that_evaluate_did_not_make_is_refused_when_it_is_read() -> None:
    with pytest.raises(ConfigurationError, match="has no records"):
        _ = EvaluationResult(score=50).mean


def test_repr_is_one_line() -> None:
    cells = [1, 0, failed_cell("program", score=0.0), failed_cell("provider")]
    assert repr(make_result(cells)) == "EvaluationResult(exact=0.333, n=4, failed=1, unscored=1)"
    assert len(repr(make_result([1], metric_names=["x\n" * 400]))) < 500


# --- rows and files


def test_rows_have_all_columns() -> None:
    rows = make_result(
        [scored_cell(1, outputs={"answer": "a", "extra": [1]}), failed_cell("provider", "LMServerError")]
    ).rows()
    assert [list(row) for row in rows] == [list(rows[0])] * 2
    assert rows[0]["outputs.extra"] == "[1]"
    assert rows[1]["outputs.extra"] is None
    assert (rows[0]["score.exact"], rows[1]["score.exact"], rows[1]["error.kind"]) == (1, None, "provider")


@pytest.mark.parametrize("text", ['=HYPERLINK("http://x")', "+1", "-1", "@x", "\tx", "\rx"])
def test_csv_guards_formulas_and_keeps_numbers(tmp_path: Path, text: str) -> None:
    result = make_result([scored_cell(-1.5, outputs={"answer": text, "count": -3})])
    for write in (result.to_csv, result.save_as_csv):
        write(tmp_path / "rows.csv")
        with open(tmp_path / "rows.csv", encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(file)
        assert [value for value in row.values() if value.endswith(text)] == [f"'{text}"]
        assert {"-1.5", "-3"} <= set(row.values())


def test_dspys_files_have_the_columns_of_all_rows_and_prefixes_for_clashes(tmp_path: Path) -> None:
    result = make_result([scored_cell(1), scored_cell(0, outputs={"answer": "b", "why": "é"}), failed_cell("metric")])
    result.save_as_json(tmp_path / "rows.json")
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert rows[1] == {
        "question": "q1",
        "example_answer": "a1",
        "pred_answer": "b",
        "exact": 0,
        "why": "é",
        "answer": None,
    }
    result.save_as_csv(tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", encoding="utf-8", newline="") as file:
        assert [row["why"] for row in csv.DictReader(file)] == ["", "é", ""]


def test_lone_surrogate_does_not_lose_the_file(tmp_path: Path) -> None:
    result = make_result([scored_cell(1, outputs={"answer": "\ud800"})])
    result.to_csv(tmp_path / "new" / "rows.csv")
    result.save_as_json(tmp_path / "rows.json")
    assert "\\ud800" in (tmp_path / "new" / "rows.csv").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_json_lines_are_those_of_the_log(tmp_path: Path) -> None:
    result = make_result([1, failed_cell("program", score=0.0)], seconds=2.0)
    result.to_jsonl(tmp_path / "run.jsonl")
    rows = RecordFile.read(tmp_path / "run.jsonl")
    assert [row["type"] for row in rows] == ["run", "record", "record", "end"]
    assert [ExampleRecord.from_json(row, kept=False) for row in rows[1:3]] == list(result.records)
    assert rows[-1] == {"type": "end", "status": "complete", "records": 2, "seconds": 2.0}


def _text(result: EvaluationResult) -> str:
    lines: list[str] = []
    result._repr_pretty_(type("Printer", (), {"text": staticmethod(lines.append)})(), False)
    return "\n".join(lines)


def test_latency_omits_answers_of_the_cache() -> None:
    cells = [Cell(1.0, requests=1, seconds=2.0), Cell(1.0, hits=1, seconds=0.0)]
    assert make_result(cells).run.latency(0.5) == 2.0


def test_rescore_scores_the_stored_predictions_again() -> None:
    result = make_result([1, 0, failed_cell("program", score=0.0), failed_cell("provider", "LMServerError")])

    def longer(example: object, prediction: Prediction) -> dict[str, object]:
        return {"score": len(prediction.answer), "feedback": "long"}

    again = result.rescore(longer)
    assert [record.id for record in again.records] == [record.id for record in result.records]
    assert [record.cell.score for record in again.records] == [2, 2, 0, None]
    assert again.run.metric_name == "longer"
    assert again.records[0].cell.feedback == "long"
    assert again.path is None


def test_rescore_keeps_the_failure_of_a_metric_with_its_record() -> None:
    def failing(example: object, prediction: Prediction) -> float:
        return {"a1": 1.0}[prediction.answer]

    again = make_result([1, 0]).rescore(failing)
    assert (again.scored, again.unscored, again.failures) == (1, 1, {"KeyError": 1})
    assert again.rescore(lambda example, prediction: 1).mean == 1


def test_one_example_is_no_plural() -> None:
    result, evaluate = (
        make_result([1]),
        Evaluate(devset=[Example(q="1").with_inputs("q")], metric=lambda example, prediction: 1.0),
    )
    shown = f"{result.to_markdown()}{evaluate!r}"
    assert "1 example ×" in shown
    assert "Evaluate(1 example," in shown
    assert not re.search(r"\b1 (examples|requests)", shown)


def test_repr_and_card_state_that_examples_are_too_few() -> None:
    few, many = make_result([62.0, 80.0, 71.0, 90.0, 55.0]), make_result([62.0, 80.0, 71.0, 90.0, 55.0] * 8)
    assert repr(few) == "EvaluationResult(exact=71.600, n=5, too few to say)"
    assert "too few to say" not in repr(many)
    assert "(t; too few to say)" in few.to_markdown()
    assert "(t)" in many.to_markdown()
    assert "no interval: too few to say" in make_result([62.0, 80.0]).to_markdown()


def test_every_metric_has_its_interval() -> None:
    cells = [
        scored_cell(score, subscores={"exact": score, "topic": topic}) for score, topic in [(1, 0.5), (0, 1), (1, 1)]
    ]
    result = make_result(cells, metric_names=["exact", "topic"])
    assert result.intervals == {"exact": mean_interval([1, 0, 1]), "topic": mean_interval([0.5, 1, 1])}
    found = result.intervals["topic"]
    assert found is not None
    assert (
        f"| topic | 0.833   95 % {found.low:.3f} … {found.high:.3f} (adjusted t)   3 of 3 scored |"
        in result.to_markdown()
    )
