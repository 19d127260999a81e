"""Reports of searches as pages: held-out line, plots, changed texts, demos, trials; safe with hostile texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sigwire.modules.predict import Predict
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from tests.evaluate.reports.browser import open_tab
from tests.evaluate.reports.pages import PageParts, data_of, outside_data
from tests.optimizers.stub import Stub, exact, rows
from tests.optimizers.writer import Writer

HOSTILE = '<img src=x onerror=alert(1)></script>\x1b[31m\u202e"Divide by four."'


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search") / "copro.jsonl"


@pytest.fixture(scope="module")
def report(journal: Path) -> OptimizationReport:
    writer = Writer((HOSTILE, "Be brief.", "Divide by four."))
    optimizer = COPRO(prompt_model=writer, metric=exact, breadth=5, depth=1, journal=journal)
    student = Predict("question -> answer", lm=Stub())
    program = optimizer.compile(student, trainset=rows(16), valset=rows(32, 100), testset=rows(32, 500))
    return OptimizationReport.of(program)


def page_of(report: Any, path: Path) -> str:
    report.to_html(path / "search.html")
    return (path / "search.html").read_text(encoding="utf-8")


def test_page_of_a_search_has_n_beside_each_score_and_the_held_out_interval(
    report: OptimizationReport, tmp_path: Path
) -> None:
    page = outside_data(page_of(report, tmp_path))
    assert report.headline in page
    assert re.search(r"on 32 test rows, \+0\.\d+ \[[+-]\d\.\d+, [+-]\d\.\d+\]", report.headline)
    assert "on 32 held-out rows" in page
    assert "(32 rows); the choice flatters this number" in page


def test_page_of_a_search_without_test_rows_states_that(tmp_path: Path) -> None:
    optimizer = COPRO(prompt_model=Writer(), metric=exact, breadth=3, depth=1)
    program = optimizer.compile(Predict("question -> answer", lm=Stub()), trainset=rows(16), valset=rows(16, 100))
    page = outside_data(page_of(program.optimization, tmp_path))
    assert "no test set was given" in page
    assert "held-out rows" not in page


def test_page_of_a_reloaded_journal_is_the_page_of_the_search(
    report: OptimizationReport, journal: Path, tmp_path: Path
) -> None:
    assert page_of(OptimizationReport.load(journal), tmp_path) == page_of(report, tmp_path)
    assert data_of(page_of(report, tmp_path))["report"] == report.to_json()


def test_page_of_a_search_has_three_plots_the_changes_and_the_final_texts(
    report: OptimizationReport, tmp_path: Path
) -> None:
    page = outside_data(page_of(report, tmp_path))
    assert page.count("<svg") == 4
    assert "<ins>" in page
    assert "all texts of the winner" in page


def test_hostile_texts_make_no_element_in_the_page_of_a_search(report: OptimizationReport, tmp_path: Path) -> None:
    page = page_of(report, tmp_path)
    parts = PageParts(page)
    assert set(parts.tags) & {"img", "a", "iframe", "object", "link", "base", "form"} == set()
    assert parts.tags.count("script") == 2
    assert [name for name in parts.attributes if name.startswith("on")] == []
    rest = outside_data(page).replace("http-equiv", "", 1)
    assert [
        each for each in ("http", "src=", "href=", "url(", "\x1b", "\u202e") if each in rest.replace("src=x", "")
    ] == []


def test_demos_of_the_winner_are_a_table_with_their_rows(tmp_path: Path) -> None:
    program = LabeledFewShot(k=3).compile(Predict("question -> answer", lm=Stub()), trainset=rows(8))
    page = outside_data(page_of(program.optimization, tmp_path))
    assert "3 demos" in page
    assert "question=colour of" in page
    assert "<td>labels</td>" in page


def test_candidates_that_ran_on_fewer_rows_are_faint_and_not_on_the_front(report: OptimizationReport) -> None:
    most = max(map(len, report.scores.values()))
    fewer = sum(len(report.scores[digest]) < most for digest in report.costs if digest in report.scores)
    assert report.plot("cost").text.count('opacity="0.35"') == fewer > 0
    assert "on 32 rows" in report.plot("cost").text


@pytest.mark.long
async def test_trials_of_a_search_open_with_their_changes_in_the_browser(
    report: OptimizationReport, tmp_path: Path
) -> None:
    report.to_html(tmp_path / "search.html")
    state = "#" + "&".join(f"open={trial.number + 1}" for trial in report.trials)
    async with open_tab((tmp_path / "search.html").as_uri() + state, tmp_path) as tab:
        assert await tab.run("document.querySelectorAll('tr.row').length") == len(report.trials)
        assert await tab.run("document.querySelectorAll('tr.detail ins').length") > 0
        assert await tab.run("document.querySelectorAll('img, iframe, a').length") == 0
        assert r"\x1b[31m\u202e" in await tab.run("document.querySelector('.main').textContent")
        assert "✓ winner" in await tab.run("document.querySelector('.main').textContent")
        assert tab.problems == []
