"""Comparisons of programs on the same examples."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.example import Example, Prediction
from sigwire.errors import ConfigurationError, DataError
from sigwire.evaluate import statistics
from sigwire.evaluate.comparison import compare
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.result import EvaluationResult
from tests.evaluate.runs import failed_cell, make_result, scored_cell

DRAW = random.Random(3)
BASE = [float(DRAW.random() < 0.5) for _ in range(60)]
BETTER = [1.0 if DRAW.random() < 0.5 else score for score in BASE]
SIMILAR = [1 - score if DRAW.random() < 0.2 else score for score in BASE]


def test_better_is_written_if_the_interval_excludes_zero() -> None:
    comparison = compare({"baseline": make_result(BASE), "optimized": make_result(BETTER)})
    found = comparison["optimized"]
    assert found.verdict == "better"
    assert found.difference == statistics.paired_difference(BASE, BETTER)
    assert found.sentence.startswith("optimized is better than baseline: +")
    assert "Bonett-Price" in found.sentence


def test_reverse_of_better_is_worse() -> None:
    comparison = compare({"baseline": make_result(BETTER), "other": make_result(BASE)})
    assert comparison["other"].verdict == "worse"


def test_not_shown_to_be_better_is_written_with_the_smallest_difference_if_the_interval_holds_zero() -> None:
    found = compare({"baseline": make_result(BASE), "other": make_result(SIMILAR)})["other"]
    assert found.difference.interval is not None
    assert 0 in found.difference.interval
    assert "other is not shown to be better than baseline" in found.sentence
    assert f"So many examples show differences of {found.difference.smallest:.3f} or more." in found.sentence


def test_equal_programs_are_not_shown_to_be_better() -> None:
    graded = [0.3, 0.5, 0.7, 0.9, 0.1, 0.2]
    found = compare({"a": make_result(graded), "b": make_result(graded)})["b"]
    assert found.verdict == "not shown to be better"
    assert "no score differs" in found.sentence


def test_regressions_and_wins_are_examples_with_both_records() -> None:
    comparison = make_result([1, 0, 0.2, 1, 1]).compare(make_result([0, 1, 0.5, 1, 0.9]))
    assert [(e.question, a.cell.score, b.cell.score) for e, a, b in comparison.regressions] == [
        ("q0", 1, 0),
        ("q4", 1, 0.9),
    ]
    assert [(e.question, a.cell.score, b.cell.score) for e, a, b in comparison.wins] == [("q1", 0, 1), ("q2", 0.2, 0.5)]


def test_examples_without_a_score_are_omitted_and_counted() -> None:
    first = make_result([*BASE, failed_cell("provider"), 1, 1])
    second = make_result([*BETTER, 1, failed_cell("metric"), failed_cell("program", score=0.0)])
    found = first.compare(second)["second"]
    assert (found.omitted, found.difference.n) == (2, 61)
    assert found.difference.losses == 1


def test_three_programs_are_adjusted_by_holm_in_any_order() -> None:
    results = {"base": make_result(BASE), "better": make_result(BETTER), "similar": make_result(SIMILAR)}
    results["worse"] = make_result([0.0] * 60)
    raw = [statistics.paired_difference(BASE, [r for _, _, r in each.results]).p for each in list(results.values())[1:]]
    adjusted = dict(zip(list(results)[1:], statistics.holm(raw), strict=True))
    expected = compare(results)
    assert {each.name: each.p for each in expected.differences} == adjusted
    assert {each.name: each.verdict for each in expected.differences} == {
        "better": "better",
        "similar": "not shown to be better",
        "worse": "worse",
    }
    assert max(each.confidence for each in expected.differences) == pytest.approx(1 - 0.05 / 3)
    for order in itertools.permutations(list(results)[1:]):
        changed = compare({"base": results["base"], **{name: results[name] for name in order}})
        assert {each.name: each for each in changed.differences} == {each.name: each for each in expected.differences}
    with pytest.raises(ConfigurationError, match="Name one"):
        _ = expected.wins


def test_clusters_widen_the_interval_of_the_difference() -> None:
    fields = [{"question": f"q{i}", "document": i // 6} for i in range(60)]
    second = [1.0 if i // 6 in (1, 2, 5, 8) else score for i, score in enumerate(BASE)]
    with_clusters, without = (
        make_result(BASE, fields=fields, cluster=cluster).compare(make_result(second, fields=fields, cluster=cluster))
        for cluster in ("document", None)
    )
    narrow, wide = without.differences[0].difference.interval, with_clusters.differences[0].difference.interval
    assert narrow is not None
    assert wide is not None
    assert wide.method == "adjusted paired t by cluster"
    assert wide.high - wide.low > narrow.high - narrow.low


REFUSED = {
    "metric is 'exact' and 'f1'": make_result([1, 0, 1], metric_names=["f1"]),
    "repeat is 1 and 2": make_result([[1, 1], [0, 0], [1, 1]]),
    "reduce is 'mean' and 'max'": make_result([1, 0, 1], reduce="max"),
    "the devsets share 3 examples, and 1 are in one of them only": make_result([1, 0, 1, 1]),
    "3 examples have other fields, such as 'id0'": make_result([1, 0, 1], fields=[{"question": "?"}] * 3),
}


@pytest.mark.parametrize("message", REFUSED)
def test_different_evaluations_are_refused_with_the_difference(message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_result([1, 0, 1]).compare(REFUSED[message])


def test_common_compares_the_shared_examples() -> None:
    comparison = make_result([1, 0, 1]).compare(make_result([1, 1, 1, 0]), common=True)
    assert comparison.differences[0].difference.n == 3


def test_a_single_result_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="two results"):
        compare({"a": make_result([1])})


def test_comparison_of_equal_names_is_first_and_second() -> None:
    assert [*make_result([1, 0]).compare(make_result([0, 1])).runs] == ["first", "second"]
    assert [*make_result([1], name="A").compare(make_result([0], name="B")).runs] == ["A", "B"]


def test_repr_of_a_comparison_is_one_line() -> None:
    comparison = make_result(BASE, name="A").compare(make_result(BETTER, name="B"))
    assert repr(comparison) == "Comparison('B': better than 'A')"


@pytest.mark.parametrize("results", [(["runs/a.jsonl", "runs/b.jsonl"],), ({"a": 1, "b": 2},), (1, 2)])
def test_comparison_of_other_arguments_is_refused_with_what_to_write(results: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"two results or more by name.*Write compare\(\{'baseline': a"):
        compare(*results)


def test_comparison_of_paths_is_that_of_their_results(tmp_path: Path) -> None:
    devset = [Example(number=number, even=number % 2 == 0).with_inputs("number") for number in range(40)]

    def even(example: Example, prediction: Prediction) -> bool:
        return bool(example.even == prediction.even)

    programs = {"always": lambda number: Prediction(even=True), "last": lambda number: Prediction(even=number % 2 == 0)}
    evaluate = Evaluate(devset=devset, metric=even, progress=False)
    results = {name: evaluate(program, log=tmp_path / f"{name}.jsonl") for name, program in programs.items()}
    paths: dict[str, Path | str] = {"always": tmp_path / "always.jsonl", "last": str(tmp_path / "last.jsonl")}
    assert compare(paths).sentences == compare(results).sentences
    assert compare(paths)["last"].verdict == "better"


# --- several metrics


def several(*scores: tuple[float, float]) -> EvaluationResult:
    cells = [scored_cell(quality, subscores={"quality": quality, "topic": topic}) for quality, topic in scores]
    return make_result(cells, metric_names=("quality", "topic"))


def test_every_metric_is_compared_and_adjusted_for_their_number() -> None:
    before, after = several(*[(1.0, 1.0)] * 20), several(*[(1.0, 0.0)] * 20)
    found = compare({"before": before, "after": after})
    assert found["after"].verdict == "not shown to be better"
    (topic,) = found.others["topic"]
    assert (topic.verdict, topic.difference.mean, len(topic.regressions)) == ("worse", -1.0, 20)
    assert [each.metric for each in found.worse] == ["topic"]
    assert found.sentences[1].startswith("topic: after is worse than before: -1.000")
    alone = compare({"before": before, "after": after}, metric="topic")["after"]
    assert (alone.verdict, alone.metric) == ("worse", "topic")
    assert f"| topic | after | worse | -1.000 | {topic.interval_text} | " in found.to_markdown()


def test_metric_with_the_values_of_the_headline_is_shown_and_adjusted_for_once() -> None:
    cells = [
        [scored_cell(score, subscores={"exact": score, "right": score}) for score in found] for found in (BASE, BETTER)
    ]
    before, after = (make_result(found, metric_names=["exact", "right"]) for found in cells)
    found = compare({"before": before, "after": after})
    (right,) = found.others["right"]
    alone = compare({"before": make_result(BASE), "after": make_result(BETTER)})["after"]
    assert (found["after"].p, right.p, right.metric) == (alone.p, alone.p, "right")
    assert found["after"].difference == right.difference == alone.difference
    assert found.sentences == [alone.sentence, f"right: {alone.sentence}"]


def test_metric_of_one_program_only_is_named_as_omitted(tmp_path: Path) -> None:
    cells = [scored_cell(score, subscores={"exact": score, "style": score}) for score in BASE]
    found = compare({"before": make_result(BASE), "after": make_result(cells)})
    assert (found.omitted_metrics, found.others) == (["style"], {})
    assert "| not compared | style: not all programs have scores of it |" in found.to_markdown()
    found.to_html(tmp_path / "page.html")
    assert "style: not all programs" in (tmp_path / "page.html").read_text(encoding="utf-8").partition("<script")[0]
    assert compare({"a": make_result(BASE), "b": make_result(BETTER)}).omitted_metrics == []


def test_unknown_metric_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ConfigurationError, match=r"No record has a score 'topik'.*Did you mean topic"):
        compare({"a": several((1, 1)), "b": several((1, 0))}, metric="topik")


def test_failed_run_counts_in_every_metric_as_in_the_headline() -> None:
    before = several(*[(1.0, 1.0)] * 12)
    cells = [failed_cell("program", score=0.0)] * 6 + [scored_cell(1.0, subscores={"quality": 1.0, "topic": 1.0})] * 6
    after = make_result(cells, metric_names=("quality", "topic"))
    found = compare({"before": before, "after": after}, metric="topic")["after"]
    assert found.difference.mean == -0.5


def test_fall_by_the_same_amount_in_every_example_is_worse() -> None:
    before, after = several(*[(1.0, 0.9)] * 20), several(*[(1.0, 0.2)] * 20)
    (topic,) = compare({"before": before, "after": after}).others["topic"]
    assert (topic.verdict, topic.difference.mean) == ("worse", pytest.approx(-0.7))
    assert topic.difference.interval is not None
    assert topic.difference.interval.high < 0


def test_score_without_a_range_that_rises_everywhere_by_one_amount_is_not_shown_to_be_better() -> None:
    found = compare({"before": make_result([80.0] * 40), "after": make_result([90.0] * 40)})
    assert found["after"].verdict == "not shown to be better"
    assert "+10.000, too few to say, or no spread (n = 40)" in found.sentences[0]
    assert repr(found) == "Comparison('after': not shown to be better (too few to say) than 'before')"


def test_score_without_a_range_is_better_when_many_examples_rise() -> None:
    before, gains = [100 * DRAW.random() for _ in range(40)], [10 * DRAW.random() for _ in range(40)]
    few, many = (
        compare(
            {"a": make_result(before[:n]), "b": make_result([a + b for a, b in zip(before, gains, strict=True)][:n])}
        )["b"]
        for n in (12, 40)
    )
    assert (few.verdict, few.difference.is_few, few.p < 0.01) == ("not shown to be better", True, True)
    assert "(paired t; too few to say; p = " in few.sentence
    assert (many.verdict, many.difference.is_few) == ("better", False)


@pytest.mark.parametrize("seed", range(40))
def test_interval_and_verdict_agree_for_several_metrics(seed: int) -> None:
    source = random.Random(seed)
    runs = [several(*[(source.random(), min(1.0, source.random() + shift)) for _ in range(12)]) for shift in (0.0, 0.3)]
    found = compare({"a": runs[0], "b": runs[1]})
    for each in (found["b"], *found.others["topic"]):
        assert each.difference.interval is not None
        assert (0 not in each.difference.interval) == each.is_shown
