"""The page of an experiment: its parts, links, hostile labels, and how it looks in a browser on a desktop and a phone."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sigwire.experiments.result import ExperimentResult
from tests.evaluate.reports.browser import OUTSIDE, SMALLEST_TEXT, open_tab, resize
from tests.evaluate.reports.pages import HOSTILE, PageParts, data_of, outside_data
from tests.evaluate.runs import failed_cell, scored_cell
from tests.experiments.grids import make_experiment

DRAW = random.Random(2)


def grid(model: str = "large", seeds: int = 3, rows: int = 20) -> ExperimentResult:
    """Return two models with and without a search, of which one row fails."""
    found: dict[Any, Any] = {}
    for name, shift in (("mini", 0.0), (model, 0.3)):
        for optimizer, gain in (("none", 0.0), ("gepa", 0.3)):
            cells = [[float(DRAW.random() < 0.3 + shift + gain) for _ in range(rows)] for _ in range(seeds)]
            found[name, optimizer] = {
                seed: [
                    *(scored_cell(each, cost=0.01, requests=1) for each in scores),
                    failed_cell("program", score=0.0),
                ]
                for seed, scores in enumerate(cells)
            }
    return replace(
        make_experiment(found, axes=("model", "optimizer")), record={"source": "app:experiment", "label": model}
    )


def page_of(found: ExperimentResult, folder: Path, **options: Any) -> str:
    found.to_html(folder / "page.html", **options)
    return (folder / "page.html").read_text(encoding="utf-8")


def test_page_has_table_differences_plots_points_and_the_record_folded(tmp_path: Path) -> None:
    found = grid()
    page = page_of(found, tmp_path)
    text = outside_data(page)
    for name in found.arms:
        assert name in text
    assert "<b>" in text
    assert "differences by optimizer" in text
    assert found.compare("optimizer", "none").sentences[0] in text
    assert text.count("<svg") == 4
    assert re.search(r"<details[^>]*><summary>record</summary><pre>[^<]*app:experiment", text)
    data = data_of(page)
    assert data["rows"] == found.rows()
    assert data["axes"] == ["model", "optimizer"]


def test_page_compares_by_the_axis_that_is_asked_for(tmp_path: Path) -> None:
    text = outside_data(page_of(grid(), tmp_path, axis="model", baseline="large"))
    assert "differences by model" in text
    assert "mini · gepa is" in text
    assert "large · gepa is" not in text


def test_points_link_to_pages_beside_the_page(tmp_path: Path) -> None:
    found = grid(seeds=2)
    data = data_of(page_of(found, tmp_path))
    assert len(data["links"]) == len(found.measured) == 8
    assert set(data["links"][0]) == {"measurement"}
    assert set(data["links"][2]) == {"measurement", "search"}
    for links in data["links"]:
        for address in links.values():
            assert re.fullmatch(r"page-points/[a-zA-Z0-9-]+\.html", address)
            assert "sigwire" in (tmp_path / address).read_text(encoding="utf-8")


def test_hostile_labels_are_text_and_the_page_has_no_address(tmp_path: Path) -> None:
    page = page_of(grid(HOSTILE.replace("\n", " ")), tmp_path)
    assert "http" not in page.replace("http-equiv", "")
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in outside_data(page)
    parts = PageParts(page)
    assert (parts.tags.count("script"), parts.tags.count("img"), parts.tags.count("a")) == (2, 0, 0)
    assert "onerror" not in parts.attributes


def test_page_of_a_partial_result_without_pairs_states_why(tmp_path: Path) -> None:
    found = make_experiment({"none": {0: [1, 0]}, "gepa": {1: [1, 0]}})
    assert "no two of them have a seed and a scored row in common" in outside_data(page_of(found, tmp_path))
    nothing = page_of(make_experiment({}), tmp_path)
    assert "0 points" in nothing
    unscored = make_experiment({"none": {0: [failed_cell("provider")]}})
    assert "unknown" in outside_data(page_of(unscored, tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
async def test_page_is_read_on_a_desktop_and_on_a_phone(width: int, tmp_path: Path) -> None:
    page_of(grid(HOSTILE.replace("\n", " ")), tmp_path)
    address = (tmp_path / "page.html").as_uri()
    async with open_tab(f"{address}#open=3", tmp_path) as tab:
        await resize(tab, width)
        assert await tab.run("document.querySelectorAll('tr.row').length") == 12
        assert await tab.run("document.querySelectorAll('tr.detail').length") == 1
        assert await tab.run(SMALLEST_TEXT) >= 12
        assert await tab.run("document.documentElement.scrollWidth") <= width
        assert await tab.run(OUTSIDE) == []
        assert await tab.run("document.querySelectorAll('img, iframe, [onerror], main script').length") == 0
        links = (
            "[...document.querySelectorAll('a')].every(each => each.getAttribute('href').startsWith('page-points/'))"
        )
        assert await tab.run(links) is True
        assert await tab.run("document.querySelectorAll('a').length") == 18
        assert tab.problems == []
        await tab.open((tmp_path / str(await tab.run("document.querySelector('a').getAttribute('href')"))).as_uri())
        assert await tab.run("document.querySelectorAll('tr.row').length") == 21
