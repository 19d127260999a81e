"""Reports of searches as pages: held-out line, plots, changed texts, demos, trials; safe with hostile texts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sigwire.modules.predict import Predict
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch
from tests.evaluate.reports.browser import OUTSIDE, SMALLEST_TEXT, open_tab, resize
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


def test_page_of_a_search_has_the_demos_of_the_winner_as_they_are_sent(tmp_path: Path) -> None:
    program = LabeledFewShot(k=3).compile(Predict("question -> answer", lm=Stub()), trainset=rows(8))
    page = outside_data(page_of(program.optimization, tmp_path))
    assert "3 demos: 0 from runs, 3 from labels" in page
    first = program.demos[0]
    assert f"[[ ## question ## ]]\n{first.question}</pre>" in page
    assert f"[[ ## answer ## ]]\n{first.answer}\n" in page


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


@pytest.fixture(scope="module")
def raced() -> OptimizationReport:
    """The report of a search that raced twelve sets of demos."""
    optimizer = BootstrapFewShotWithRandomSearch(
        metric=exact, max_bootstrapped_demos=3, max_labeled_demos=4, num_candidate_programs=10
    )
    program = optimizer.compile(Predict("question -> answer", lm=Stub()), trainset=rows(24), valset=rows(48, 100))
    return OptimizationReport.of(program)


def test_race_is_drawn_as_steps_over_calls_with_the_number_of_survivors(raced: OptimizationReport) -> None:
    drawn = raced.plot("score").text
    strip = drawn.partition("candidates still running")[2]
    assert [int(number) for number in re.findall(r">(\d+)</text>", strip)] == [12, 6, 3, 2, 1]
    circles = re.findall(r'<circle class="dot" cx="([\d.]+)%"', drawn)
    assert len(circles) == 12
    assert len(set(circles)) == 5


def test_search_without_a_race_has_no_strip_of_survivors(report: OptimizationReport) -> None:
    one = replace(report, trials=report.trials[:1])
    assert "candidates still running" not in one.plot("score").text


def test_axis_of_one_measured_trial_begins_at_no_calls(report: OptimizationReport) -> None:
    measured = next(each for each in report.trials if each.spent and report.measured(each)[0] is not None)
    assert measured.spent is not None
    labels = re.findall(r">([^<>]+)</text>", replace(report, trials=(measured,)).plot("score").text)
    assert "0" in labels
    assert f"{measured.spent.calls:,} calls" in labels


def test_candidates_are_named_by_what_they_are(raced: OptimizationReport, tmp_path: Path) -> None:
    names = [each["name"] for each in data_of(page_of(raced, tmp_path))["known"]]
    assert names[:2] == ["labeled only, 4", "bootstrapped 3, labeled 1"]
    assert not [name for name in names if "seed" in name]
    known = data_of(page_of(raced, tmp_path))["known"]
    assert all(each["mean"] is not None and each["rows"] for each in known)


def test_prompts_of_the_winner_are_kept_in_the_report_and_in_its_json(raced: OptimizationReport) -> None:
    messages = raced.prompts["self"]
    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 4]
    assert OptimizationReport.from_json(raced.to_json()) == raced
    before = {name: value for name, value in raced.to_json().items() if name != "prompts"}
    assert OptimizationReport.from_json(before).prompts == {}


def test_page_of_a_report_without_prompts_shows_the_fields_of_the_demos(
    raced: OptimizationReport, tmp_path: Path
) -> None:
    page = outside_data(page_of(replace(raced, prompts={}), tmp_path))
    assert "question=colour of" in page
    assert "<td>labels</td>" in page


def test_card_of_a_search_marks_changed_words_as_elements(report: OptimizationReport) -> None:
    html = report._repr_html_()
    assert "<ins>" in html
    assert "{+" not in html


@pytest.mark.long
@pytest.mark.parametrize("width", [1200, 390])
async def test_drawings_of_a_search_fill_their_cards_with_text_of_twelve_pixels(
    raced: OptimizationReport, tmp_path: Path, width: int
) -> None:
    raced.to_html(tmp_path / "search.html")
    async with open_tab((tmp_path / "search.html").as_uri() + "#open=1", tmp_path) as tab:
        await resize(tab, width)
        shares = """[...document.querySelectorAll('figure svg')].map(each => {
            const style = getComputedStyle(each.parentNode);
            const room = each.parentNode.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
            return each.getBoundingClientRect().width / room;
        })"""
        assert all(share > 0.99 for share in await tab.run(shares))
        assert await tab.run(SMALLEST_TEXT) >= 12
        assert await tab.run(OUTSIDE) == []
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        labels = await tab.run("[...document.querySelectorAll('.main th')].map(each => each.textContent)")
        assert labels == ["trial", "score", "rows", "candidate", "calls until then", "fate"]
        assert tab.problems == []
