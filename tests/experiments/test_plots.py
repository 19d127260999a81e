"""Plots of experiments: what they draw, in files and pages."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from sigwire.errors import ConfigurationError, InputError
from tests.evaluate.runs import failed_cell, scored_cell
from tests.experiments.grids import make_experiment

CELLS = {cost: [scored_cell(score, cost=cost, requests=1) for score in (1.0, 0.0, 0.5)] for cost in (0.1, 0.3)}
HOSTILE = '<script>alert(1)</script>"&\x1b\u202e'


@pytest.mark.parametrize("kind", ["score", "front", "seeds"])
def test_plot_is_an_svg_that_names_each_arm_and_has_no_live_label(kind: str, tmp_path: Path) -> None:
    found = make_experiment(
        {("mini", "none"): {0: CELLS[0.1], 1: CELLS[0.3]}, (HOSTILE, "gepa"): {0: CELLS[0.3], 1: CELLS[0.3]}},
        axes=("model", "optimizer"),
    )
    found.plot(kind).save(tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    shown = " ".join(root.itertext())
    assert "mini · none" in shown
    assert "<script>alert(1)</script>" in shown
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert 'font-size="12"' in text
    assert text.count("http") == 1  # the name space


def test_front_plot_is_by_cost_or_by_calls_if_a_price_is_unknown() -> None:
    priced = make_experiment({"a": {0: CELLS[0.1]}, "b": {0: CELLS[0.3]}}, axes=("model",))
    assert "0.90 $ for a seed" in priced.plot("front").text
    unknown = make_experiment({"a": {0: [1, 0, 1]}, "b": {0: [1, 0]}}, axes=("model",))
    assert "3 calls for a seed" in unknown.plot("front").text


def test_arms_at_one_place_share_a_dot_with_both_numbers() -> None:
    found = make_experiment({"a": {0: CELLS[0.1]}, "b": {0: CELLS[0.1]}, "c": {0: CELLS[0.3]}}, axes=("model",))
    text = found.plot("front").text
    assert text.count("<circle") == 2
    assert ">1, 2</text>" in text


def test_seeds_plot_has_a_dot_for_each_seed() -> None:
    found = make_experiment({"a": {seed: [1, 0, seed / 4] for seed in range(4)}, "b": {0: [1, 0, 1]}}, axes=("model",))
    assert found.plot("seeds").text.count("<circle") == 5


def test_unknown_plots_and_results_without_a_score_are_refused() -> None:
    found = make_experiment({"none": {0: [1, 0]}})
    with pytest.raises(InputError, match=r"no plot 'scores' .*Did you mean score\?"):
        found.plot("scores")
    nothing = make_experiment({"none": {0: [failed_cell("provider")]}})
    for kind in ("score", "front", "seeds"):
        with pytest.raises(ConfigurationError, match="No arm has a mean score"):
            nothing.plot(kind)
