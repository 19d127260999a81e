"""The page of an experiment: its table, differences, front and seeds, a table of its points, and its record, folded.

The page of each point's measurement and search is written beside it, in a folder that has its name, and the table links there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sigwire.core.json import JsonObject, JsonValue
from sigwire.errors import ConfigurationError, DataError
from sigwire.evaluate.comparison import ProgramDifference
from sigwire.evaluate.reports import charts, summary
from sigwire.evaluate.reports.page import ReportPage, package_text, write_page
from sigwire.experiments.arm import ArmResult
from sigwire.experiments.point import AXES, MeasuredPoint
from sigwire.optimizers.reports.plots import Svg
from sigwire.show.card import Card
from sigwire.show.numbers import count

__all__ = ["ComparedArms", "PagedExperiment", "differences_page", "write_experiment_page"]

NOTE = "The table of points needs JavaScript. result.rows() has it."


class ComparedArms(Protocol):
    """An ``ArmComparison``, as pages read it."""

    @property
    def axis(self) -> str: ...
    @property
    def against(self) -> str: ...
    @property
    def differences(self) -> Sequence[ProgramDifference]: ...
    @property
    def all(self) -> Sequence[ProgramDifference]: ...
    @property
    def sentences(self) -> Sequence[str]: ...


class PagedExperiment(Protocol):
    """An ``ExperimentResult``, as its page reads it."""

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def metrics(self) -> tuple[str, ...]: ...
    @property
    def record(self) -> JsonObject | None: ...
    @property
    def ordered(self) -> Sequence[MeasuredPoint]: ...
    @property
    def arms(self) -> Mapping[str, ArmResult]: ...
    def table(self) -> list[list[str]]: ...
    def rows(self) -> list[dict[str, JsonValue]]: ...
    def compare(self, axis: str, baseline: str) -> ComparedArms: ...
    def plot(self, kind: str = ...) -> Svg: ...


def write_experiment_page(
    found: PagedExperiment, card: Card, path: str | os.PathLike[str], axis: str | None, baseline: str | None
) -> None:
    """Write the page of an experiment, and those of its points beside it. ``axis`` and ``baseline``: of the differences."""
    target = Path(path)
    folder = target.with_name(f"{target.stem}-points")
    links: list[JsonValue] = [_write_point(each, folder, target.parent, at) for at, each in enumerate(found.ordered)]
    write_page(experiment_page(found, card, links, axis, baseline), path)


def _write_point(found: MeasuredPoint, folder: Path, parent: Path, at: int) -> JsonObject:
    """Write the pages of a point; return their addresses, from the folder of the page."""
    slug = re.sub(r"[^a-zA-Z0-9]+", "-", f"{at + 1:04d} {found.point.arm}").strip("-")[:80]
    name = f"{slug}-s{found.point.seed}"
    pages: dict[str, JsonValue] = {}
    for kind, report in (("measurement", found.evaluation), ("search", found.search)):
        if report is not None:
            file = folder / f"{name}-{kind}.html"
            report.to_html(file)
            pages[kind] = file.relative_to(parent).as_posix()
    return pages


def experiment_page(
    found: PagedExperiment,
    card: Card,
    links: Sequence[JsonValue] = (),
    axis: str | None = None,
    baseline: str | None = None,
) -> ReportPage:
    """Return the page of an experiment. ``links``: for each point the addresses of its pages."""
    title = card.subtitle or card.title
    parts = [
        summary.header("experiment", title, [f"metric {found.metrics[0]}", count(len(found.ordered), "point")]),
        summary.card_table(found.table() if found.arms else ()),
        summary.card_rows(card),
        *_differences(found, axis, baseline),
        summary.figures(list(_plots(found)), is_broad=True) if found.arms else "",
        _record(found.record),
        "<section><h2>points</h2></section>",
    ]
    rows: list[JsonValue] = [dict(row) for row in found.rows()]
    several: list[JsonValue] = [name for name in AXES if len(found.axes.get(name, ())) > 1]
    data: JsonObject = {
        "kind": "experiment",
        "rows": rows,
        "axes": several,
        "links": [*links],
        "metrics": [*found.metrics],
    }
    return ReportPage(title, "".join(parts), data, package_text(__package__ or "", "experiment.js"), NOTE)


def _plots(found: PagedExperiment) -> Iterator[tuple[str, str]]:
    kinds = {
        "seeds": "mean test score at each seed, with the interval of the mean",
        "front": "mean test score over what the measurement of one seed costs; the front is joined",
        "score": "mean test score over the calls of the search; small dots are seeds",
    }
    for kind, caption in kinds.items():
        if kind != "score" or any(arm.reports for arm in found.arms.values()):
            try:
                yield caption, found.plot(kind).fluid
            except ConfigurationError:  # no arm has a mean
                return


def _differences(found: PagedExperiment, axis: str | None, baseline: str | None) -> Iterator[str]:
    """Yield the differences by an axis: that of optimizers if it has several labels, else the first that has."""
    several = [name for name in ("optimizer", *AXES) if name != "dataset" and len(found.axes.get(name, ())) > 1]
    if axis is None and not several:
        return
    axis = axis or several[0]
    try:
        yield from _comparison_parts(found.compare(axis, baseline or found.axes[axis][0]))
    except DataError as error:
        yield f'<p class="note">{summary.text(error, 400)}</p>'


def differences_page(comparison: ComparedArms, card: Card) -> ReportPage:
    """Return the page of a comparison of arms."""
    head = summary.header("comparison", card.subtitle, [])
    parts = [head, *_comparison_parts(comparison), summary.card_table(card.table)]
    return ReportPage(card.subtitle, "".join(parts), {"kind": "differences"}, "")


def _comparison_parts(comparison: ComparedArms) -> Iterator[str]:
    headline = comparison.differences[0].metric
    lines = [
        (
            each.name if each.metric == headline else f"{each.name} · {each.metric}",
            each.difference.mean,
            *charts.ends(each.difference.interval),
        )
        for each in comparison.all
    ]
    caption = (
        f"{headline} less that of the arm with {comparison.axis} {comparison.against}; intervals adjusted for "
        f"{count(len(lines), 'comparison')} (Holm)"
    )
    sentences = "".join(f"<li>{summary.text(each, 600)}</li>" for each in comparison.sentences)
    yield f"<section><h2>differences by {summary.text(comparison.axis)}</h2>"
    yield summary.figures([(caption, charts.interval_lines(lines, is_difference=True))], is_broad=True)
    yield f'<details class="card"><summary>in sentences</summary><ul>{sentences}</ul></details></section>'


def _record(record: JsonObject | None) -> str:
    if record is None:
        return ""
    shown = summary.block(json.dumps(record, indent=1, ensure_ascii=False), 200_000)
    return f'<details class="card"><summary>record</summary><pre>{shown}</pre></details>'
