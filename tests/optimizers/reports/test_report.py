"""Reports of searches: JSON, journal, card, plots and diffs."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sigwire.errors import InputError
from sigwire.evaluate.statistics import paired_difference
from sigwire.modules.predict import Predict
from sigwire.optimizers.reports.report import Estimate, OptimizationReport
from sigwire.optimizers.reports.text_diff import TextDiff
from sigwire.optimizers.rules.copro import COPRO
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
    found: OptimizationReport = program.optimization
    assert copy.deepcopy(program).optimization is found
    return found


def test_report_is_read_back_from_json_and_from_the_journal(report: OptimizationReport, journal: Path) -> None:
    again = OptimizationReport.from_json(json.loads(json.dumps(report.to_json())))
    loaded = OptimizationReport.load(journal)
    assert again.to_json() == loaded.to_json() == report.to_json()
    for kind in ("score", "cost", "rows"):
        assert loaded.plot(kind) == report.plot(kind)


def test_gain_on_few_rows_without_a_range_is_marked_as_too_few() -> None:
    before, after = [50.0 + 3 * row for row in range(10)], [60.0 + 2 * row for row in range(10)]
    found = Estimate(test_baseline=63.5, test=69.0, test_rows=10, test_difference=paired_difference(before, after))
    assert found.change.endswith("], too few to say")
    assert Estimate.from_json(json.loads(json.dumps(found.to_json()))) == found
    scaled = paired_difference([each / 100 for each in before], [each / 100 for each in after])
    assert "too few" not in replace(found, test_difference=scaled).change


def test_journal_without_an_end_has_no_report(tmp_path: Path) -> None:
    path = tmp_path / "begun.jsonl"
    path.write_text('{"type":"optimization","format":1}\n', encoding="utf-8")
    with pytest.raises(InputError, match="no finished search"):
        OptimizationReport.load(path)


def test_card_names_the_rows_behind_each_number(report: OptimizationReport, capsys: Any) -> None:
    report.show(width=80)
    shown = capsys.readouterr().out
    assert "32 test rows" in shown
    assert "(32 rows); the choice flatters this number" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert len(repr(report)) < 500
    assert "\n" not in repr(report)


def test_report_without_test_rows_states_that(report: OptimizationReport) -> None:
    program = COPRO(prompt_model=Writer(), metric=exact, breadth=3, depth=1).compile(
        Predict("question -> answer", lm=Stub()), trainset=rows(16), valset=rows(16, 100)
    )
    assert "no test set was given" in program.optimization._repr_html_()


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append((tag, [name for name, _ in attrs]))


def test_hostile_texts_are_shown_as_text(report: OptimizationReport) -> None:
    diffs = "".join(diff._repr_html_() for trial in report.trials for diff in report.diffs(trial.candidate).values())
    assert "onerror" in diffs
    parser = Elements()
    parser.feed(report._repr_html_() + diffs)
    assert not {tag for tag, _ in parser.seen} & {"img", "script", "a", "iframe"}
    assert not [name for _, names in parser.seen for name in names if name.startswith("on")]
    assert "\x1b" not in diffs
    assert "\u202e" not in diffs


@pytest.mark.parametrize("kind", ["score", "cost", "rows"])
def test_plot_is_a_drawing_without_colours_of_its_own_or_links(
    report: OptimizationReport, kind: str, tmp_path: Path
) -> None:
    svg = report.plot(kind)
    svg.save(tmp_path / "plot.svg")
    root = ElementTree.fromstring((tmp_path / "plot.svg").read_text(encoding="utf-8"))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "rect", "line", "circle", "text"}
    assert {"aria-label", "role"} <= root.attrib.keys()
    assert "currentColor" in svg.text
    assert len(svg.text) < 60_000


def test_unknown_plot_is_refused_with_the_known_ones(report: OptimizationReport) -> None:
    with pytest.raises(InputError, match="score, cost, rows"):
        report.plot("pie")


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("a b c", "a c", "a [-b -]c"),
        ("", "new", "{+new+}"),
        ("same", "same", "same"),
        ("a  b", "a b", "[-a  -]{+a +}b"),
    ],
)
def test_diff_marks_words(old: str, new: str, shown: str) -> None:
    diff = TextDiff(old, new)
    assert str(diff) == shown
    assert "".join(part for _, part, _ in diff.parts()) == old
    assert "".join(part for _, _, part in diff.parts()) == new
