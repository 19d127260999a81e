"""The page of a comparison: a row a program, the differences, right against wrong, and the examples side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sigwire.core.json import JsonObject
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.reports import charts, summary
from sigwire.evaluate.reports.page import ReportPage
from sigwire.evaluate.reports.run_page import facts, note, run_data, script, settings_data
from sigwire.evaluate.statistics import PairedDifference
from sigwire.show.card import Card

__all__ = ["ReportedDifference", "comparison_page"]


class ReportedDifference(Protocol):
    """A program against the baseline, as the page reads it."""

    @property
    def name(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def difference(self) -> PairedDifference: ...


def comparison_page(runs: Mapping[str, ScoredRun], differences: Sequence[ReportedDifference], card: Card) -> ReportPage:
    """Return the page of runs by name, the baseline first. ``differences``: of all metrics, the headline first.

    ``card``: the card of the comparison.
    """
    baseline = next(iter(runs.values()))
    title, metrics = " · ".join(runs), [*dict.fromkeys(each.metric for each in differences)]
    parts = [
        summary.header("comparison", title, facts(baseline)),
        summary.card_table(card.table),
        summary.card_rows(card),
        summary.figures(list(_plots(runs, differences)), is_broad=True),
        summary.cards([_without_examples(child) for child in card.children]),
    ]
    data: JsonObject = {
        "kind": "comparison",
        **settings_data(baseline, metrics),
        "runs": [_run_data(run, name, metrics) for name, run in runs.items()],
    }
    return ReportPage(title, "".join(parts), data, script(), note(baseline))


def _without_examples(card: Card) -> Card:
    """Return the card of a difference without the examples: the table of the page has them."""
    return replace(card, rows=[row for row in card.rows if row[0] not in ("lost", "won")], children=())


def _plots(runs: Mapping[str, ScoredRun], differences: Sequence[ReportedDifference]) -> Iterator[tuple[str, str]]:
    means = [(name, run.mean, *charts.ends(run.interval)) for name, run in runs.items()]
    yield "mean and interval of each program", charts.interval_lines(means)
    baseline, headline = next(iter(runs)), differences[0].metric
    found = [
        (
            each.name if each.metric == headline else f"{each.name} · {each.metric}",
            each.difference.mean,
            *charts.ends(each.difference.interval),
        )
        for each in differences
    ]
    yield f"paired difference from {baseline}", charts.interval_lines(found, is_difference=True)


def _run_data(run: ScoredRun, name: str, metrics: Sequence[str]) -> JsonObject:
    """Return the data of a run with the reduced score of each example, by metric and id."""
    values: JsonObject = {
        metric: {run.by_example[index][0].id: value for index, value in run.with_metric(metric).values.items()}
        for metric in metrics
    }
    return {**run_data(run, name), "values": values}
