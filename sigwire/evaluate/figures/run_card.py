"""The card of a run: headline with interval, failures, what was not scored, cost, latency, and the wrong answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from sigwire.core.json import JsonValue
from sigwire.evaluate.costs import add_costs, cost_text, metric_cost
from sigwire.evaluate.figures.scored_run import ScoredRun, is_wrong
from sigwire.evaluate.figures.tool_counts import tool_lines, warning_line
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.segments import segment_rows
from sigwire.evaluate.statistics import Interval
from sigwire.show.card import Card
from sigwire.show.cleaning import inline, number
from sigwire.show.numbers import count, per_thousand, seconds_text

__all__ = ["fields_text", "run_card"]


def run_card(run: ScoredRun) -> Card:
    """Return the card of a run."""
    return Card("EvaluationResult", _subtitle(run), _card_rows(run), children=_card_children(run))


def _subtitle(run: ScoredRun) -> str:
    devset, lm = run.header.get("devset"), run.header.get("lm")
    parts = [
        run.program_name,
        devset.get("name") if isinstance(devset, dict) else None,
        f"{count(run.n, 'example')} × {run.repeat}",
        lm.get("model") if isinstance(lm, dict) else None,
        seconds_text(run.seconds) if run.seconds >= 1 else None,
    ]
    return " · ".join(str(part) for part in parts if part)


def _card_rows(run: ScoredRun) -> list[tuple[str, list[str]]]:
    """Return the rows; those without a line are left out."""
    rows = [
        ("status", _status(run)),
        (run.metric_name, _headline(run)),
        *((name, _headline(each)[:1]) for name, each in islice(run.by_metric.items(), 1, None)),
        ("failed", _failed(run)),
        ("not scored", [_counted(run.not_scored), *_bounds_line(run)] if run.not_scored else []),
        ("percent", _percent(run)),
        *((f"calibration {path}", [found.summary]) for path, found in run.calibrations.items()),
        ("coverage", _coverage(run)),
        ("tools", tool_lines(run.tools)),
        ("warnings", [warning_line(run.warnings)] if run.warnings else []),
        ("cost", [_cost_line(run), *_metric_cost(run)]),
        ("latency", _latency(run)),
        ("first wrong", _first_wrong(run)),
        *segment_rows(run.segments),
        ("records", [run.path] if run.path else []),
    ]
    return [(label, lines) for label, lines in rows if lines]


def _status(run: ScoredRun) -> list[str]:
    shown = f"{run.status}: {len(run.by_example)} of {count(run.n, 'example')} ran"
    return [] if run.status == "complete" else [shown]


def _headline(run: ScoredRun) -> list[str]:
    interval, scored = run.interval, len(run.scored_values)
    lines = [f"{number(run.mean)}   {run.interval_text}   {scored} of {len(run.by_example)} scored"]
    if interval and 0 <= interval.low <= interval.high <= 1:
        lines.append(_line_of(interval, run.mean))
    return lines


def _failed(run: ScoredRun) -> list[str]:
    effect = "left out of the mean" if run.errors == "skip" else f"scored {run.failure_score:g}"
    return [f"{_counted(run.failed)} ({effect})"] if run.failed else []


def _percent(run: ScoredRun) -> list[str]:
    differs = bool(run.scored_values) and round(100 * run.mean, 2) != run.percent
    return [f"{run.percent:g} of 100, every failure at {run.failure_score:g}"] if differs else []


def _coverage(run: ScoredRun) -> list[str]:
    if not run.coverage:
        return ["0% answered"]
    return [f"{run.coverage:.0%} answered, {run.answered.percent:g} of 100 on them"] if run.coverage < 1 else []


def _latency(run: ScoredRun) -> list[str]:
    median, slow = run.latency(0.5), run.latency(0.95)
    return [] if median is None or slow is None else [f"p50 {seconds_text(median)} · p95 {seconds_text(slow)}"]


def _first_wrong(run: ScoredRun) -> list[str]:
    wrong = dict.fromkeys(f"#{record.index}" for record in run.records if is_wrong(record))
    return [f"{' '.join(islice(wrong, 8))}      {IN_PYTHON}"] if wrong else []


IN_PYTHON = "result.wrong  .failed  .rows()"
"""Names that show the examples that are not right. The command line leaves them out."""


def _line_of(interval: Interval, mean: float, width: int = 24) -> str:
    r"""Draw an interval between 0 and 1.

    >>> _line_of(Interval(0.7, 0.82), 0.763)
    '0 ················━━●━···· 1'
    """
    low, middle, high = (min(int(value * width), width - 1) for value in (interval.low, mean, interval.high))
    marks = ["━" if low <= place <= high else "·" for place in range(width)]
    marks[middle] = "●"
    return f"0 {''.join(marks)} 1"


def _counted(records: Sequence[ExampleRecord]) -> str:
    """Return the records counted by the class of their failure; those of the metric are named as such."""
    names = Counter(
        f"{'metric ' if failure.kind == 'metric' else ''}{failure.type}"
        if (failure := each.cell.failure)
        else "no score"
        for each in records
    )
    return ", ".join(f"{count} {name}" for name, count in names.most_common())


def _bounds_line(run: ScoredRun) -> list[str]:
    missing = len(run.not_scored)
    noun = "this one" if missing == 1 else f"these {missing}"
    return [f"{b[0]:.3f} … {b[1]:.3f} whatever {noun} would have scored"] if (b := run.bounds) else []


def _cost_line(run: ScoredRun) -> str:
    usage, hits = run.total_usage, sum(record.cell.hits for record in run.records)
    parts = [run.cost_text]
    if run.cost and not run.is_cost_partial:
        parts.append(f"{per_thousand(run.cost / len(run.records))} {'runs' if run.repeat > 1 else 'examples'}")
    if usage.total_tokens is not None:
        parts.append(f"{usage.input_tokens or 0:,} in, {usage.output_tokens or 0:,} out")
    requests = count(sum(record.cell.requests for record in run.records), "request")
    return " · ".join([*parts, f"{requests}, {count(hits, 'cache hit')}" if hits else requests])


def _metric_cost(run: ScoredRun) -> list[str]:
    requests = sum(record.cell.metric_requests for record in run.records)
    known, is_partial = add_costs(metric_cost(record.cell) for record in run.records)
    return [f"metric: {cost_text(known, is_partial)} · {count(requests, 'request')}"] if requests else []


def _card_children(run: ScoredRun) -> list[Card]:
    children: list[Card] = []
    if failed := [record for record in run.records if record.cell.failure is not None]:
        table = [["#", "id", "kind", "error", "message"], *(_failure_row(record) for record in failed[:20])]
        children.append(Card(count(len(failed), "failure"), table=table))
    if wrong := [record for record in run.records if is_wrong(record)]:
        head = ["#", "id", "score", "inputs", "labels", "outputs", "feedback"]
        children.append(Card(f"{len(wrong)} wrong", table=[head, *(_wrong_row(record) for record in wrong[:20])]))
    return children


def _failure_row(record: ExampleRecord) -> list[str]:
    failure = record.cell.failure
    shown = [failure.kind, failure.type, failure.message] if failure is not None else ["", "", ""]
    return [str(record.index), record.id, *shown]


def _wrong_row(record: ExampleRecord) -> list[str]:
    cell = record.cell
    shown = [fields_text(fields) for fields in (record.inputs, record.labels, cell.outputs or {})]
    return [str(record.index), record.id, number(cell.score), *shown, cell.feedback]


def fields_text(fields: Mapping[str, JsonValue]) -> str:
    """Return fields for a cell of a table: the value alone if there is a single field."""
    if len(fields) == 1:
        return inline(next(iter(fields.values())), 60)
    return ", ".join(f"{name}={inline(value, 40)}" for name, value in islice(fields.items(), 6))
