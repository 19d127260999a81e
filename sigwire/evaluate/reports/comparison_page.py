"""The page of a comparison: a row a program, the differences, right against wrong, and the examples side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sigwire.core.json import JsonObject
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.reports import charts, summary
from sigwire.evaluate.reports.page import ReportPage
from sigwire.evaluate.reports.run_page import facts, note, run_data, script
from sigwire.evaluate.statistics import PairedDifference
from sigwire.show.card import Card

__all__ = ["ReportedDifference", "comparison_page"]


class ReportedDifference(Protocol):
    """A program against the baseline, as the page reads it."""

    @property
    def name(self) -> str: ...
    @property
    def difference(self) -> PairedDifference: ...


def comparison_page(runs: Mapping[str, ScoredRun], differences: Sequence[ReportedDifference], card: Card) -> ReportPage:
    """Return the page of runs by name, the baseline first. ``card``: the card of the comparison."""
    baseline = next(iter(runs.values()))
    title = " · ".join(runs)
    parts = [
        summary.header("comparison", title, facts(baseline)),
        summary.card_table(card.table),
        summary.figures(list(_plots(runs, differences)), is_broad=True),
        summary.cards([_without_examples(child) for child in card.children]),
    ]
    data: JsonObject = {
        "kind": "comparison",
        "metric": baseline.metric_name,
        "repeat": baseline.repeat,
        "runs": [_run_data(run, name) for name, run in runs.items()],
    }
    return ReportPage(title, "".join(parts), data, script(), note(baseline))


def _without_examples(card: Card) -> Card:
    """Return the card of a difference without the examples: the table of the page has them."""
    return replace(card, rows=[row for row in card.rows if row[0] not in ("lost", "won")], children=())


def _plots(runs: Mapping[str, ScoredRun], differences: Sequence[ReportedDifference]) -> Iterator[tuple[str, str]]:
    means = [(name, run.mean, *charts.ends(run.interval)) for name, run in runs.items()]
    yield "mean and interval of each program", charts.interval_lines(means)
    found = [(each.name, each.difference.mean, *charts.ends(each.difference.interval)) for each in differences]
    baseline = next(iter(runs))
    yield f"paired difference from {baseline}", charts.interval_lines(found, is_difference=True)


def _run_data(run: ScoredRun, name: str) -> JsonObject:
    """Return the data of a run with the reduced score of each example, by its id."""
    values: JsonObject = {run.by_example[index][0].id: value for index, value in run.values.items()}
    return {**run_data(run, name), "values": values}
