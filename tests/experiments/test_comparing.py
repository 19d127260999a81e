"""Arms compared by an axis: pairs, seeds, every metric, Holm over all, the sentences, and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sigwire.errors import ConfigurationError, DataError, InputError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.comparison import Comparison
from sigwire.evaluate.seeds import seeds_difference
from sigwire.evaluate.statistics import holm, paired_difference
from sigwire.experiments.comparing import ONE_SEED, ArmPair
from sigwire.experiments.point import AXES
from sigwire.show.text import text_card
from tests.evaluate.reports.pages import outside_data
from tests.evaluate.runs import failed_cell, scored_cell
from tests.experiments.grids import Scores, make_experiment

DRAW = random.Random(9)


def scores(rate: float, rows: int = 40) -> list[float]:
    return [float(DRAW.random() < rate) for _ in range(rows)]


def column(tables: dict[int, list[float]]) -> list[list[float]]:
    return [list(row) for row in zip(*tables.values(), strict=True)]


GRID: dict[Any, dict[int, Scores]] = {
    (model, optimizer): {seed: scores(rate) for seed in range(3)}
    for model, shift in (("mini", 0.0), ("large", 0.2))
    for optimizer, rate in (("none", 0.2 + shift), ("gepa", 0.8 + shift), ("copro", 0.25 + shift))
}


def test_each_arm_is_compared_with_the_one_that_differs_in_the_axis_only() -> None:
    found = make_experiment(GRID, axes=("model", "optimizer")).compare("optimizer", "none")
    assert isinstance(found, Comparison)
    assert [(each.name, each.baseline) for each in found.differences] == [
        ("mini · gepa", "mini · none"),
        ("mini · copro", "mini · none"),
        ("large · gepa", "large · none"),
        ("large · copro", "large · none"),
    ]
    by_model = make_experiment(GRID, axes=("model", "optimizer")).compare("model", "large")
    assert [(each.name, each.baseline) for each in by_model.differences] == [
        (f"mini · {name}", f"large · {name}") for name in ("none", "gepa", "copro")
    ]
    assert found["mini · gepa"].verdict == "better"
    assert found["mini · gepa"].difference.mean > 0.3


@pytest.mark.parametrize("axis", [axis for axis in AXES if axis != "dataset"])
def test_only_axis_is_compared_and_has_a_sensitivity(axis: str) -> None:
    result = make_experiment({("none",): GRID["mini", "none"], ("b",): GRID["mini", "gepa"]}, axes=(axis,))
    found = result.compare(axis, "none")
    assert [(each.name, each.baseline, each.verdict) for each in found.differences] == [("b", "none", "better")]
    assert [list(each.values) for each in result.sensitivity(axis).values()] == [["none", "b"]]


def test_difference_is_that_of_rows_and_seeds_adjusted_by_holm() -> None:
    result = make_experiment(GRID, axes=("model", "optimizer"))
    found = result.compare("optimizer", "none")
    plain = [
        seeds_difference(column(GRID[model, "none"]), column(GRID[model, other]))  # type: ignore[arg-type]
        for model in ("mini", "large")
        for other in ("gepa", "copro")
    ]
    assert [each.p for each in found.differences] == holm([each.p for each in plain])
    for each, level in zip(found.differences, plain, strict=True):
        assert each.seeds == 3
        assert each.difference.mean == level.mean
        if each.is_shown:
            assert each.difference.interval is not None
            assert 0 not in each.difference.interval
            assert each.p <= 0.05
    assert found.sentences[0].endswith("n = 40 × 3 seeds).")


def test_every_metric_is_compared_and_counts_for_holm_and_one_alone_does_not() -> None:
    def cells(exact: float, short: float) -> list[Cell]:
        return [
            scored_cell(a, subscores={"exact": a, "short": b})
            for a, b in zip(scores(exact), scores(short), strict=True)
        ]

    result = make_experiment(
        {"none": {0: cells(0.4, 0.9)}, "gepa": {0: cells(0.6, 0.2)}, "copro": {0: cells(0.5, 0.8)}},
        metrics=("exact", "short"),
    )
    found = result.compare("optimizer", "none")
    assert [(each.name, each.metric) for each in found.all] == [
        ("gepa", "exact"),
        ("copro", "exact"),
        ("gepa", "short"),
        ("copro", "short"),
    ]
    values = {
        (name, metric): list(result[name].values(metric, 0).values())
        for name in result.arms
        for metric in result.metrics
    }
    plain = [
        paired_difference(values["none", each.metric], values[each.name, each.metric]).p  # type: ignore[arg-type]
        for each in found.all
    ]
    assert [each.p for each in found.all] == holm(plain)
    assert [each.name for each in found.worse] == ["gepa"]
    assert found.sentences[-1].startswith("short: gepa is worse than none")
    alone = result.compare("optimizer", "none", metric="short")
    assert (len(alone.all), alone.differences[0].metric) == (2, "short")
    assert alone["gepa"].p == holm(plain[2:])[0]


@pytest.mark.parametrize("better", [0.2, 0.9])
def test_each_sentence_about_one_seed_ends_with_what_it_cannot_show(better: float) -> None:
    found = make_experiment({"none": {0: scores(0.2)}, "gepa": {0: scores(better)}})
    comparison = found.compare("optimizer", "none")
    assert all(sentence.endswith(f"; {ONE_SEED}.") for sentence in comparison.sentences)
    assert ONE_SEED == "one seed says nothing about the optimizer"
    assert ONE_SEED in text_card(found._card())
    assert comparison["gepa"].difference == paired_difference(
        *(list(found[name].values("exact", 0).values()) for name in ("none", "gepa"))  # type: ignore[arg-type]
    )


def test_sentence_about_one_seed_is_left_out_where_nothing_was_searched_and_with_two_seeds() -> None:
    models = make_experiment({"mini": {0: scores(0.2)}, "large": {0: scores(0.9)}}, axes=("model",))
    assert ONE_SEED not in models.compare("model", "mini").sentences[0]
    two = {seed: scores(0.5) for seed in (0, 1)}
    assert ONE_SEED not in make_experiment({"none": two, "gepa": two}).compare("optimizer", "none").sentences[0]


def test_kept_student_differs_by_nothing() -> None:
    same: dict[int, Scores] = {seed: scores(0.5) for seed in range(3)}
    found = make_experiment({"none": same, "gepa": same}).compare("optimizer", "none")["gepa"]
    assert (found.difference.mean, found.p, found.difference.interval) == (0.0, 1.0, None)
    assert "no score differs" in found.sentence


def test_seeds_and_rows_that_only_one_arm_has_are_left_out() -> None:
    lost = failed_cell("provider")
    first = {0: [1.0, 0.0, 0.5, 1.0], 1: [1.0, 1.0, 0.5, 1.0]}
    found = make_experiment({"none": first, "gepa": {1: [0.0, 1.0, lost, 1.0], 2: [1.0, 1.0, 1.0, 1.0]}})
    difference = found.compare("optimizer", "none")["gepa"]
    assert (difference.seeds, difference.difference.n, difference.omitted) == (1, 3, 1)
    assert difference.difference.mean == pytest.approx(-1 / 3)
    assert [record.id for _, record, _ in difference.regressions] == ["id0"]
    assert ONE_SEED in difference.sentence


def test_arm_whose_baseline_was_not_measured_is_named() -> None:
    given = {key: value for key, value in GRID.items() if key != ("large", "none")}
    found = make_experiment(given, axes=("model", "optimizer")).compare("optimizer", "none")
    assert found.alone == ("large · gepa", "large · copro")
    assert "not compared" in text_card(found._card(), 100)


def test_clusters_of_rows_widen_the_difference() -> None:
    groups = [{"question": f"q{row}", "topic": row // 8} for row in range(40)]
    tables = {
        name: {seed: [float((row // 8) % 2 == side) for row in range(40)] for seed in (0, 1)}
        for name, side in (("none", 0), ("gepa", 1))
    }
    narrow = make_experiment(tables, fields=groups).compare("optimizer", "none")["gepa"].difference.interval
    wide = make_experiment(tables, fields=groups, options={"cluster": "topic"}).compare("optimizer", "none")
    found = wide["gepa"].difference.interval
    assert narrow is not None
    assert found is not None
    assert found.high - found.low > 1.5 * (narrow.high - narrow.low)


@pytest.mark.parametrize(
    ("axis", "baseline", "metric", "message"),
    [
        ("optimiser", "none", None, "is unknown .*Did you mean optimizer"),
        ("model", "mini", None, "has no two labels .*several labels: optimizer"),
        ("dataset", "default", None, "has rows of its own"),
        ("optimizer", "nine", None, "no label 'nine' .*Did you mean none"),
        ("optimizer", "none", "exakt", "no metric 'exakt' .*Did you mean exact"),
    ],
)
def test_unknown_axes_labels_and_metrics_are_refused(
    axis: str, baseline: str, metric: str | None, message: str
) -> None:
    found = make_experiment({"none": {0: [1, 0]}, "gepa": {0: [1, 0]}})
    with pytest.raises(InputError, match=message):
        found.compare(axis, baseline, metric)


def test_arms_without_a_common_seed_or_row_are_refused() -> None:
    for other in ({1: [1.0, 0.0]}, {0: [failed_cell("provider")] * 2}):
        with pytest.raises(
            DataError, match=r"no two of them have a seed and a scored row in common\. Run what is missing"
        ):
            make_experiment({"none": {0: [1, 0]}, "gepa": other}).compare("optimizer", "none")


def test_pair_without_a_common_seed_has_no_difference() -> None:
    arms = make_experiment({"none": {0: [1.0, 0.0]}, "gepa": {1: [1.0, 1.0]}}).arms
    pair = ArmPair(arms["none"], arms["gepa"], "exact")
    assert (pair.difference(0.95).n, pair.difference(0.95).p, pair.omitted, pair.changed(1)) == (0, 1.0, 0, [])


def test_several_differences_have_no_wins_of_the_whole() -> None:
    found = make_experiment(GRID, axes=("model", "optimizer"))
    assert found.compare("model", "mini").omitted_metrics == []
    with pytest.raises(ConfigurationError, match="Name one"):
        _ = found.compare("model", "mini").wins


def test_page_and_markdown_of_a_comparison_have_its_sentences(tmp_path: Path) -> None:
    comparison = make_experiment(GRID, axes=("model", "optimizer")).compare("optimizer", "none")
    comparison.to_html(tmp_path / "differences.html")
    page = outside_data((tmp_path / "differences.html").read_text(encoding="utf-8"))
    for each in comparison.differences:
        assert each.sentence.replace("'", "&#x27;") in page
        assert each.name in comparison.to_markdown()
    assert page.count("<circle") == 4


def test_confidence_of_the_experiment_is_that_of_its_comparisons() -> None:
    found = make_experiment({"none": {0: scores(0.3)}, "gepa": {0: scores(0.6)}})
    wide, narrow = found.compare("optimizer", "none"), replace(found, confidence=0.5).compare("optimizer", "none")
    assert wide["gepa"].confidence == pytest.approx(0.95)
    assert narrow["gepa"].confidence == pytest.approx(0.5)
