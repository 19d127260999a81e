"""Progress of evaluations on a fake clock: terminal, log, notebook, function."""

from __future__ import annotations

import io
import itertools
import re
import sys
import types
from typing import Any
from unittest import mock

import pytest

from sigwire.errors import ConfigurationError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.progress import EvaluationProgress, progress_reporter
from sigwire.show.cleaning import display_width
from tests.evaluate.runs import failed_cell, make_result, scored_cell


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that each finished run moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIGWIRE_PROGRESS", "CI", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def follow(mode: object, cells: list[Cell], seconds: float, stream: io.StringIO, total: int | None = None) -> str:
    clock = Clock()
    reporter = progress_reporter(mode, total or len(cells), "exact", stream=stream, clock=clock)
    for cell in cells:
        clock.now += seconds
        reporter.update(cell)
    reporter.close("complete")
    return stream.getvalue()


@pytest.mark.parametrize("seconds", [0.01, 1.0, 60.0])
def test_log_of_200_examples_has_at_most_12_plain_lines(seconds: float) -> None:
    text = follow("auto", [scored_cell(i % 2) for i in range(200)], seconds, io.StringIO())
    lines = text.splitlines()
    assert 2 <= len(lines) <= 12
    assert "\r" not in text
    assert "\x1b" not in text
    assert lines[0].startswith("sigwire.evaluate 0/200 0%")
    assert lines[-1].startswith("sigwire.evaluate 200/200 100%  exact 0.500±0.069  failed 0")
    assert lines[-1].endswith("complete")


def test_log_shows_cost_failures_and_the_time_that_remains() -> None:
    cells = [scored_cell(1, cost=0.01), failed_cell("program", score=0.0)] * 20
    cells = [cell if cell.cost else scored_cell(0, cost=0.01, failure=cell.failure) for cell in cells]
    lines = follow("log", cells[:30], 4.0, io.StringIO(), total=40).splitlines()
    assert lines[2].split("  ")[1:] == [
        "exact 0.500±0.231", "failed 8", "$0.16 of ≈$0.40", "1:04 elapsed, ≈1:36 left",
    ]  # fmt: skip


@pytest.mark.parametrize(("score", "shown"), [(1.0, "exact 1.000±0.259"), (50.0, "exact 50.000±0.000")])
def test_equal_scores_of_few_runs_are_no_certainty_when_their_range_is_known(score: float, shown: str) -> None:
    lines = follow("log", [scored_cell(score)] * 5, 4.0, io.StringIO()).splitlines()
    assert lines[-1].split("  ")[1] == shown


def test_terminal_line_is_rewritten_at_most_ten_times_a_second() -> None:
    text = follow("auto", [scored_cell(1)] * 500, 0.01, Terminal())
    assert text.count("\r") <= 5 / 0.1 + 2
    assert text.endswith("\n")
    assert "\x1b" not in text
    assert text.split("\r")[-1].startswith("100% ████████████████████ 500/500  exact 1.00±0.00  cost unknown")


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
def test_terminal_line_fits_its_width(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = follow("line", [scored_cell(1, cost=0.001)] * 30, 1.0, Terminal())
    assert all(display_width(line.rstrip()) < columns for line in re.split("[\r\n]", text))
    assert ("█" in text) == (columns >= 80)
    assert ("$" in text) == (columns >= 60)


def test_shorter_line_covers_the_longer_one() -> None:
    stream = Terminal()
    cells = [scored_cell(1, cost=12345.0), *[failed_cell("provider")] * 3]
    lines = follow("line", cells, 1.0, stream).split("\r")[1:]
    assert all(len(after) >= len(before.rstrip()) for before, after in itertools.pairwise(lines))


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("TERM", "dumb")])
def test_terminal_gets_log_lines_in_ci(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert "\r" not in follow("auto", [scored_cell(1)], 1.0, Terminal())


@pytest.mark.parametrize(("variable", "found"), [("off", ""), ("log", "sigwire.evaluate"), ("line", "\r")])
@pytest.mark.parametrize("mode", ["auto", True, False, None, "log"])
def test_environment_variable_replaces_the_mode(
    monkeypatch: pytest.MonkeyPatch, variable: str, found: str, mode: object
) -> None:
    monkeypatch.setenv("SIGWIRE_PROGRESS", variable)
    text = follow(mode, [scored_cell(1)], 1.0, io.StringIO())
    assert found in text
    assert bool(text) == bool(found)


@pytest.mark.parametrize("mode", [False, None, "off"])
def test_progress_is_silent_when_it_is_off(mode: object) -> None:
    assert follow(mode, [scored_cell(1)], 1.0, Terminal()) == ""


def test_function_receives_each_run_and_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGWIRE_PROGRESS", "off")
    seen: list[EvaluationProgress] = []
    follow(seen.append, [scored_cell(1, cost=0.5), failed_cell("metric", "KeyError")], 2.0, io.StringIO(), total=4)
    assert [(each.done, each.failed, each.mean, each.status) for each in seen] == [
        (1, 0, 1.0, "running"),
        (2, 1, 1.0, "running"),
        (2, 1, 1.0, "complete"),
    ]
    assert (seen[0].cost, seen[0].whole_cost, seen[0].remaining) == (0.5, 2.0, 6.0)
    assert (seen[1].cost, seen[1].whole_cost) == (0.5, None)  # the price of the failed run is unknown


def test_rate_is_that_of_the_last_30_seconds() -> None:
    clock = Clock()
    seen: list[EvaluationProgress] = []
    reporter = progress_reporter(seen.append, 100, "exact", clock=clock)
    for number in range(50):
        clock.now += 100 if number < 10 else 1
        reporter.update(scored_cell(1))
    assert seen[-1].remaining == pytest.approx(50)


@pytest.mark.parametrize("mode", ["bar", 3, "notebok"])
def test_unknown_mode_is_refused(mode: object) -> None:
    with pytest.raises(ConfigurationError, match="progress="):
        progress_reporter(mode, 1, "exact")


def test_hostile_name_of_a_metric_is_escaped() -> None:
    stream = Terminal()
    reporter = progress_reporter("line", 1, "\x1b[31mname\n", stream=stream, clock=Clock())
    reporter.close("complete")
    assert "\x1b" not in stream.getvalue()
    assert r"\x1b[31mname" in stream.getvalue()


class Display:
    """A stand-in for the display of IPython: one output, whose content is replaced."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Display:
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Display:
    found = Display()
    package: Any = types.ModuleType("IPython")
    shell = types.SimpleNamespace(kernel=object(), display_formatter=mock.MagicMock(), events=mock.MagicMock())
    package.get_ipython = lambda: shell
    package.display = types.ModuleType("IPython.display")
    package.display.display = found.display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    return found


def test_notebook_has_one_output_that_becomes_the_card(notebook: Display) -> None:
    clock = Clock()
    reporter = progress_reporter("auto", 100, "<b>", clock=clock)
    for _ in range(100):
        clock.now += 0.05
        reporter.update(scored_cell(1))
    assert len(notebook.shown) <= 1 + 5 / 0.25 + 1
    assert '<progress value="' in notebook.shown[-1]["text/html"]
    assert "<b>" not in notebook.shown[-1]["text/html"]
    result = make_result([1, 0, 1])
    reporter.close("complete", result)
    assert notebook.shown[-1]["text/html"] == result._repr_html_()
    assert notebook.shown[-1]["text/plain"].startswith("EvaluationResult  Program")


def test_notebook_shows_the_end_when_there_is_no_result(notebook: Display) -> None:
    reporter = progress_reporter("notebook", 2, "exact", clock=Clock())
    reporter.update(scored_cell(1))
    reporter.close("cancelled")
    assert "cancelled" in notebook.shown[-1]["text/plain"]


@pytest.mark.parametrize(("mode", "before"), [("line", "\r"), ("log", "\n"), ("off", ""), (lambda progress: None, "")])
def test_note_starts_a_line(mode: object, before: str) -> None:
    stream = Terminal()
    reporter = progress_reporter(mode, 2, "exact", stream=stream, clock=Clock())
    reporter.update(scored_cell(1))
    reporter.note("Traceback\n")
    assert stream.getvalue().endswith(f"{before}Traceback\n")
    reporter.close("complete")
    assert stream.getvalue().split("Traceback\n")[1].count("complete") == (mode in ("line", "log"))
