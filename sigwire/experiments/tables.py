r"""The table of an experiment: a row for each arm, as cells of a card, as LaTeX, and as flat rows for data frames.

Bold are the arms of ``best``, never the highest number. LaTeX is that of booktabs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from sigwire.core.json import JsonValue
from sigwire.evaluate.statistics import Interval
from sigwire.experiments.arm import ArmResult, calls_of, interval_text, seconds_of
from sigwire.experiments.point import AXES, MeasuredPoint
from sigwire.show.cleaning import number, visible
from sigwire.show.layout import filled_columns
from sigwire.show.lines import Strong
from sigwire.show.numbers import count

__all__ = ["arm_card_table", "arm_table", "latex_table", "point_row"]


def arm_table(arms: Sequence[ArmResult], best: Collection[str], seeds: int) -> list[list[str]]:
    """Return the table of arms; the first row names the columns. ``seeds``: those of the experiment.

    Columns without content are left out: spread of one seed, searches where there are none, failures if there are none.
    """
    headline, *rest = arms[0].metric_names if arms else ("score",)
    columns = [["arm", *(each.name for each in arms)]]
    columns.append([headline, *(_bold(number(each.mean), each.name in best) for each in arms)])
    columns.append(["interval", *(interval_text(each.interval) for each in arms)])
    columns += [[name, *(number(each.mean_of(name)) for each in arms)] for name in rest]
    if seeds > 1:
        columns.append(["sd", *("" if each.seed_sd is None else number(each.seed_sd) for each in arms)])
        columns.append(["seeds", *(str(len(each.points)) for each in arms)])
    columns.append(["n", *(str(each.n) for each in arms)])
    if any(each.failed for each in arms):
        columns.append(["failed", *(str(each.failed) for each in arms)])
    columns.append(["calls", *(f"{each.calls:,}" for each in arms)])
    columns.append(["cost", *(each.cost_texts[0] for each in arms)])
    if any(each.reports for each in arms):
        columns.append(["search calls", *(f"{each.search_calls:,}" if each.reports else "" for each in arms)])
        columns.append(["search cost", *(each.cost_texts[1] if each.reports else "" for each in arms)])
    return [list(row) for row in zip(*columns, strict=True)]


def arm_card_table(arms: Sequence[ArmResult], best: Collection[str]) -> list[list[str]]:
    """Return the table of arms with the columns for which 80 have room. What has no price is shown in calls."""
    head = ["arm", *arms[0].metric_names[:1], "interval", *arms[0].metric_names[1:], "n", "measured", "searched"]
    table = [head]
    for arm in arms:
        means = [number(mean) for mean in arm.metrics.values()]
        n = str(arm.n) if len(arm.points) == 1 else f"{arm.n} × {len(arm.points)}"
        measured, searched = arm.cost_texts
        if arm.cost is None or arm.is_cost_partial:
            measured = count(arm.calls, "call")
        if arm.search_cost is None:
            searched = count(arm.search_calls, "call")
        shown = [_bold(means[0], arm.name in best), interval_text(arm.interval), *means[1:]]
        table.append([arm.name, *shown, n, measured, searched if arm.reports else ""])
    return filled_columns(table, 3)


def _bold(text: str, is_best: bool) -> str:
    return Strong(text) if is_best else text


def point_row(found: MeasuredPoint, metrics: Sequence[str]) -> dict[str, JsonValue]:
    """Return a point as a flat row. A metric that has the name of another column has the prefix ``metric.``."""
    measured, search = found.evaluation, found.search
    interval: Interval | None = measured.interval
    values = measured.metrics
    row: dict[str, JsonValue] = {axis: found.point.labels.get(axis) for axis in AXES}
    row |= {"seed": found.point.seed, "score": _known(measured.mean)}
    rest: dict[str, JsonValue] = {
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "n": measured.n,
        "scored": measured.scored,
        "failed": len(measured.failed),
        "calls": calls_of(measured),
        "search_calls": 0 if search is None else search.spent.calls,
        "cost": measured.cost,
        "search_cost": 0.0 if search is None else search.spent.money,
        "seconds": seconds_of(measured),
    }
    taken = {*row, *rest}
    by_metric = {f"metric.{name}" if name in taken else name: _known(values.get(name)) for name in metrics}
    return {**row, **by_metric, **rest}


def _known(value: float | None) -> float | None:
    return None if value is None or value != value else value


_LATEX: Mapping[str, str] = {
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "\\": "\\textbackslash{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "…": "\\ldots{}",
    "≥": "$\\geq$",
}


def latex_table(table: Sequence[Sequence[str]]) -> str:
    r"""Return a table as LaTeX with booktabs' rules: texts to the left, numbers to the right.

    >>> print(latex_table([["arm", "score"], ["a_b", Strong("0.900")]]))
    \begin{tabular}{lr}
    \toprule
    arm & score \\
    \midrule
    a\_b & \textbf{0.900} \\
    \bottomrule
    \end{tabular}
    """
    head, *rows = table
    lines = [f"{' & '.join(map(_latex, row))} \\\\" for row in table]
    kinds = "".join("r" if place and _is_number(name, rows, place) else "l" for place, name in enumerate(head))
    parts = ["\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule"]
    return "\n".join([f"\\begin{{tabular}}{{{kinds}}}", *parts, "\\end{tabular}"])


def _is_number(name: str, rows: Sequence[Sequence[str]], place: int) -> bool:
    return name != "interval" and all(re.fullmatch(r"(≥ )?\$?[\d.,]*|unknown", row[place]) for row in rows)


def _latex(cell: str) -> str:
    text = "".join(_LATEX.get(each, each) for each in visible(cell))
    text = f"{{}}{text}" if text.startswith("[") else text  # after \\ a bracket would be the space below the row
    return f"\\textbf{{{text}}}" if isinstance(cell, Strong) else text
