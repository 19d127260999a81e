"""The result of an experiment: arms, rows, the best, the front, sensitivity, the card."""

from __future__ import annotations

import csv
import io
import math
import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest

from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.seeds import seeds_interval
from sigwire.evaluate.statistics import mean_interval
from sigwire.experiments.comparing import sensitivity_of
from sigwire.experiments.point import AXES, Point
from sigwire.experiments.result import ExperimentResult
from sigwire.show.text import text_card
from tests.evaluate.runs import failed_cell, scored_cell
from tests.experiments.grids import make_experiment, make_search

DRAW = random.Random(4)
ROWS = 40
BASE = [float(DRAW.random() < 0.5) for _ in range(ROWS)]
BETTER = [1.0 if DRAW.random() < 0.6 else score for score in BASE]


def shaken(scores: list[float], share: float = 0.06) -> list[float]:
    """Return scores of which some turned round: another sample of the answers."""
    return [1 - score if DRAW.random() < share else score for score in scores]


def grid(seeds: int = 5) -> ExperimentResult:
    """Return two models with and without a search; the search helps."""
    found = {
        (model, optimizer): {seed: shaken(scores) for seed in range(seeds)}
        for model in ("mini", "large")
        for optimizer, scores in (("none", BASE), ("gepa", BETTER))
    }
    return make_experiment(found, axes=("model", "optimizer"))


def test_arms_stand_in_the_order_of_their_labels_whatever_the_order_of_points() -> None:
    found = grid(2)
    turned = replace(found, measured=[*found.measured][::-1])
    assert list(turned.arms) == ["mini · none", "mini · gepa", "large · none", "large · gepa"]
    assert turned["mini · gepa"].seeds == (0, 1)
    assert turned.rows() == found.rows()
    assert turned["large · none"].labels["model"] == "large"


def test_arm_has_mean_interval_and_spread_over_its_seeds() -> None:
    tables = {seed: shaken(BASE) for seed in (3, 1, 2)}
    arm = make_experiment({"none": tables})["none"]
    rows = [list(row) for row in zip(*tables.values(), strict=True)]
    assert arm.mean == pytest.approx(fmean(map(fmean, rows)))
    assert arm.interval == seeds_interval(rows)
    assert arm.seed_means == pytest.approx({seed: fmean(scores) for seed, scores in tables.items()})
    assert arm.seed_sd == pytest.approx(stdev(map(fmean, tables.values())))
    assert {seed: each.mean for seed, each in arm.by_seed.items()} == pytest.approx(arm.seed_means)


def test_arm_with_one_seed_has_the_interval_of_its_rows_and_no_spread() -> None:
    arm = make_experiment({"none": {0: BASE}})["none"]
    assert arm.interval == mean_interval(BASE)
    assert arm.seed_sd is None


def test_rows_without_a_score_at_some_seed_are_left_out_and_counted() -> None:
    lost = failed_cell("provider")
    arm = make_experiment({"none": {0: [1, 0, 1, lost], 1: [1, lost, 0, 1]}})["none"]
    assert (arm.n, arm.omitted, arm.mean) == (2, 2, 0.75)
    found = make_experiment({"none": {0: [1, 0, 1, lost], 1: [1, lost, 0, 1]}})
    assert "rows without a score at some seed: none: 2" in text_card(found._card(), 120)


def test_arm_without_a_scored_row_has_no_mean_and_is_shown() -> None:
    found = make_experiment({"none": {0: [failed_cell("provider")] * 3}, "gepa": {0: [1, 0, 1]}})
    assert math.isnan(found["none"].mean)
    assert found.rows()[0]["score"] is None
    assert "unknown" in found.to_markdown()
    assert found.front("calls") == ("gepa",)


def test_failures_of_the_program_have_the_failure_score() -> None:
    wrong = failed_cell("program", "OutputTruncated", 0.0)
    arm = make_experiment({"none": {0: [1, wrong], 1: [wrong, wrong]}})["none"]
    assert (arm.failed, dict(arm.failures), arm.mean) == (3, {"OutputTruncated": 3}, 0.25)


def test_every_metric_has_a_mean_and_an_interval_of_its_own() -> None:
    cells = [scored_cell(float(n % 2), subscores={"exact": float(n % 2), "short": 0.25}) for n in range(20)]
    arm = make_experiment({"none": {0: cells, 1: cells}}, metrics=("exact", "short"))["none"]
    assert arm.metrics == {"exact": 0.5, "short": 0.25}
    assert arm.intervals["short"] == seeds_interval([[0.25, 0.25]] * 20)


def test_metric_of_which_no_row_has_a_score_counts_failures_as_the_headline_does() -> None:
    failed = [failed_cell("program", score=0.0)] * 6
    arm = make_experiment({"none": {0: failed}}, metrics=("exact", "short"))["none"]
    assert arm.metrics == {"exact": 0.0, "short": 0.0}


def test_calls_costs_and_tokens_of_an_arm_are_sums_over_its_seeds() -> None:
    cells = [
        scored_cell(1.0, requests=2, cost=0.25, seconds=1.5, usage={"m": {"input_tokens": 7, "output_tokens": 3}})
    ] * 4
    found = make_experiment({"none": {0: cells, 1: cells}, "gepa": {0: cells, 1: cells}})
    arm = found["gepa"]
    assert (arm.calls, arm.cost, arm.tokens, arm.seconds) == (16, 2.0, 80, 12.0)
    assert (arm.search_calls, arm.search_cost, len(arm.reports)) == (200, 1.0, 2)
    assert (found["none"].search_calls, found["none"].search_cost) == (0, 0.0)
    shared = [replace(each, shared=True) for each in found.measured]
    assert replace(found, measured=shared)["gepa"].calls == 16


def test_unknown_arm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"No arm 'mini · gep' was measured .*Did you mean mini · gepa\?"):
        grid(1)["mini · gep"]


def test_rows_have_the_axes_scores_and_what_each_point_took() -> None:
    found = grid(2)
    rows = found.rows()
    assert len(rows) == 8
    assert len({tuple(row) for row in rows}) == 1
    expected = [*AXES, "seed", "score", "exact", "low", "high", "n", "scored", "failed", "calls", "search_calls"]
    assert list(rows[0]) == [*expected, "cost", "search_cost", "seconds"]
    point = rows[3]
    measured = found["mini · gepa"].by_seed[1]
    assert (point["model"], point["optimizer"], point["seed"]) == ("mini", "gepa", 1)
    assert (point["score"], point["exact"], point["n"], point["search_calls"]) == (
        measured.mean,
        measured.mean,
        40,
        100,
    )
    assert measured.interval is not None
    assert (point["low"], point["high"]) == (measured.interval.low, measured.interval.high)


def test_metric_with_the_name_of_a_column_has_a_prefix_in_rows() -> None:
    cells = [scored_cell(1.0, subscores={"cost": 0.5}) for _ in range(6)]
    row = make_experiment({"none": {0: cells}}, metrics=("exact", "cost")).rows()[0]
    assert (row["metric.cost"], row["cost"]) == (0.5, None)


def test_rows_are_read_as_a_data_frame_and_as_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is of the dev extra")
    found = grid(2)
    frame = pandas.DataFrame(found.rows())
    assert frame.groupby("optimizer").score.mean()["gepa"] == pytest.approx(
        fmean(found[name].mean for name in ("mini · gepa", "large · gepa"))
    )
    found.to_csv(tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8")
    read = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["score"]) for row in read] == [row["score"] for row in found.rows()]
    assert pandas.read_csv(tmp_path / "rows.csv").optimizer.tolist() == frame.optimizer.tolist()


# --- the best


def test_best_are_the_arms_that_no_other_is_shown_to_beat_and_not_the_highest_number() -> None:
    found = grid()
    assert found.best == ("mini · gepa", "large · gepa")
    one = max(found.best, key=lambda name: found[name].mean)
    assert {found[name].mean for name in found.best} != {found[one].mean}


def test_best_of_equal_arms_are_all() -> None:
    found = make_experiment({name: {seed: shaken(BASE) for seed in range(3)} for name in ("a", "b", "c")})
    assert found.best == ("a", "b", "c")
    assert "no arm is shown to be better than another" in text_card(found._card())


def test_best_are_adjusted_for_all_pairs() -> None:
    base, better = [0.0] * 40, [1.0] * 8 + [0.0] * 32
    two = make_experiment({"a": {0: base}, "b": {0: better}})
    assert two.compare("optimizer", "a")["b"].p < 0.02
    assert two.best == ("b",)
    five = make_experiment({name: {0: better if name == "b" else base} for name in "abcde"})
    assert five.best == ("a", "b", "c", "d", "e")


def test_best_are_found_in_each_data_set() -> None:
    found = make_experiment(
        {
            ("easy", "none"): {0: [1.0] * 40},
            ("hard", "none"): {0: [0.0] * 40},
            ("hard", "gepa"): {0: [1.0] * 25 + [0.0] * 15},
        },
        axes=("dataset", "optimizer"),
    )
    assert found.best == ("easy · none", "hard · gepa")


# --- the front


def priced(means: dict[str, tuple[float, float]]) -> ExperimentResult:
    """Return arms with a mean and the cost of a row."""
    return make_experiment(
        {
            name: {0: [scored_cell(mean, cost=cost, requests=1 + int(10 * cost)) for _ in range(10)]}
            for name, (mean, cost) in means.items()
        },
        axes=("model",),
    )


def test_front_has_the_arms_that_none_beats_in_score_and_cost() -> None:
    found = priced(
        {"tiny": (0.4, 0.1), "waste": (0.4, 0.9), "mini": (0.6, 0.3), "large": (0.9, 0.9), "worse": (0.5, 0.5)}
    )
    assert found.front() == ("tiny", "mini", "large")
    assert found.front("calls") == ("tiny", "mini", "large")
    assert found.front("seconds") == ("large",)


def test_front_counts_what_a_seed_costs_and_not_how_many_are_measured() -> None:
    found = make_experiment({"a": {0: [1, 0]}, "b": {seed: [1, 0.5] for seed in range(3)}}, axes=("model",))
    assert found.front("calls") == ("b",)


def test_front_by_an_unknown_price_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigurationError, match=r'price of a call of \'mini · none\' is unknown .* front\("calls"\)'):
        grid(1).front()
    with pytest.raises(InputError, match="Did you mean calls"):
        grid(1).front("call")  # type: ignore[arg-type]


# --- sensitivity


def test_sensitivity_of_an_axis_is_the_range_of_its_labels_beside_that_of_noise() -> None:
    found = grid()
    models, optimizers = found.sensitivity("model"), found.sensitivity("optimizer")
    assert list(models) == ["none", "gepa"]
    assert list(optimizers) == ["mini", "large"]
    gain = optimizers["mini"]
    assert gain.values == {"none": found["mini · none"].mean, "gepa": found["mini · gepa"].mean}
    assert (gain.low, gain.high) == (min(gain.values.values()), max(gain.values.values()))
    assert gain.spread == gain.high - gain.low > 3 * gain.expected_spread
    assert models["none"].spread < 3 * models["none"].expected_spread


def test_expected_spread_is_the_mean_spread_of_labels_without_effect() -> None:
    spreads, expected = [], []
    for _ in range(60):
        labels = {(name,): {0: [float(DRAW.random() < 0.5) for _ in range(30)]} for name in "abcd"}
        found = sensitivity_of(make_experiment(labels, axes=("wording",)).arms, "exact", draws=200)
        assert found is not None
        spreads.append(found.spread)
        expected.append(found.expected_spread)
    # 60 spreads have a standard error of 6 % of their mean.
    assert fmean(expected) == pytest.approx(fmean(spreads), rel=0.2)


def test_sensitivity_of_equal_scores_is_nothing() -> None:
    found = make_experiment({"a": {0: [1, 0]}, "b": {0: [1, 0]}}, axes=("adapter",)).sensitivity("adapter")["default"]
    assert (found.spread, found.expected_spread) == (0.0, 0.0)


# --- the card


def test_card_fits_80_columns_and_marks_the_best() -> None:
    found = grid()
    text = text_card(found._card(), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "2 models · 2 optimizers · 5 seeds" in text
    assert f"mini · gepa   {found['mini · gepa'].mean:.3f}*" in text
    assert f"mini · none   {found['mini · none'].mean:.3f}  " in text
    assert "40 × 5" in text


def test_card_of_a_partial_result_counts_what_is_missing() -> None:
    missing = [Point({}, "gepa", 1)]
    found = replace(grid(1), status="partial", missing=missing)
    assert "partial: 1 point missing" in text_card(found._card())
    assert repr(found) == "ExperimentResult(4 arms, 1 seed, partial, 1 missing)"


def test_result_without_a_measured_point_is_shown_as_a_table_without_rows() -> None:
    found = make_experiment({})
    assert (found.rows(), found.best, dict(found.arms)) == ([], (), {})
    assert "Experiment" in found.to_markdown()


def test_scores_of_searches_are_in_no_table(tmp_path: Path) -> None:
    found = grid(1)
    shown = [
        found.to_markdown(),
        found.to_latex(),
        text_card(found._card()),
        str(found.rows()),
        found.plot("score").text,
    ]
    shown.append(text_card(found["mini · gepa"]._card()))
    assert not any("0.123" in each for each in shown)
    assert found["mini · gepa"].reports[0].estimate.selection == 0.123


def test_card_of_an_arm_counts_searches_that_kept_the_student() -> None:
    found = make_experiment({"gepa": {0: BASE, 1: BASE}})
    kept = [replace(each, search=make_search(kept=each.point.seed == 1)) for each in found.measured]
    text = text_card(replace(found, measured=kept)["gepa"]._card())
    assert "1 of 2 kept the student" in text
