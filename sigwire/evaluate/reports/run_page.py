"""The page of one run: headline with interval, outcomes, figures, plots, and its records with drill-down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sigwire.core.json import JsonObject, JsonValue
from sigwire.evaluate.figures.run_card import run_card
from sigwire.evaluate.figures.scored_run import ScoredRun, cost_of
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.reports import charts, summary
from sigwire.evaluate.reports.page import ReportPage, package_text
from sigwire.show.card import Card
from sigwire.show.cleaning import number
from sigwire.show.numbers import count, seconds_text

__all__ = ["facts", "note", "outcome", "run_data", "run_page", "script", "settings_data"]

_PROBABILITIES = ("confidence", "probability", "certainty")
"""Names of outputs and scores that state how likely the answer is right."""


def run_page(run: ScoredRun) -> ReportPage:
    """Return the page of a run."""
    card = run_card(run)
    rows = Card(card.title, rows=[row for row in card.rows if row[0] not in (run.metric_name, "first wrong")])
    name = run.program_name.rpartition(".")[2]  # files of records have the module as well
    top = summary.header("evaluation", name, facts(run))
    head = f'<div class="head">{_headline(run)}{summary.outcomes(_outcome_counts(run))}</div>'
    data: JsonObject = {"kind": "run", **settings_data(run, list(run.by_metric)), "runs": [run_data(run)]}
    plots = [plot for plot in _plots(run) if plot[1]]
    rest = f"{summary.card_rows(rows)}{summary.figures(plots)}"
    body = f'{top}{head}<div class="pair">{rest}</div>' if len(plots) == 1 else f"{top}{head}{rest}"
    return ReportPage(f"{name} · {number(run.mean)}", body, data, script(), note(run))


def facts(run: ScoredRun) -> list[str]:
    """Return the facts of a run that stand below its title."""
    header = run.header
    commits = dict.fromkeys(each.commit_text for each in run.segments if each.commit)
    parts: list[object] = [
        _member(header.get("lm"), "model"),
        count(run.n, "example") + (f" × {run.repeat}" if run.repeat > 1 else ""),
        _member(header.get("devset"), "name"),
        str(header.get("started", ""))[:16].replace("T", " "),
        seconds_text(run.seconds) if run.seconds >= 1 else None,
        ", then ".join(commits),
        f"sigwire {header['sigwire']}" if header.get("sigwire") else None,
    ]
    return [str(part) for part in parts if part]


def _member(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, dict) else None


def note(run: ScoredRun) -> str:
    """Return where the records are, for a page whose script does not run."""
    where = f"They are in {run.path}." if run.path else "result.to_jsonl(path) writes them."
    return f"The table of the {count(len(run.records), 'record')} needs JavaScript. {where}"


def script() -> str:
    """Return the script that draws records."""
    return package_text(__package__ or "", "records.js")


def settings_data(run: ScoredRun, metrics: Sequence[str]) -> JsonObject:
    """Return what the script needs of a run beside its records. ``metrics``: those to choose from, the headline first."""
    return {"metrics": [*metrics], "first_metric": run.first_metric, "repeat": run.repeat}


def run_data(run: ScoredRun, name: str | None = None) -> JsonObject:
    """Return the data of a run: its records, as in their file."""
    return {"name": name or run.program_name, "records": [record.to_json() for record in run.records]}


def _headline(run: ScoredRun) -> str:
    interval, scored = run.interval, len(run.scored_values)
    return (
        f'<div class="score"><p><span>{summary.text(run.metric_name)}</span> <strong>{number(run.mean)}</strong></p>'
        f"{charts.interval_line(run.mean, *charts.ends(interval))}"
        f"<p>{summary.text(run.interval_text)} · {scored:,} of {len(run.by_example):,} scored</p></div>"
    )


def outcome(record: ExampleRecord) -> str:
    """Return the outcome of a record: "right", "wrong", "failed" (the program) or "unscored".

    >>> outcome(ExampleRecord("a", 0, 1, {}, {}))
    'unscored'
    """
    cell = record.cell
    if cell.failure is not None:
        return "failed" if cell.failure.kind == "program" else "unscored"
    return "unscored" if cell.score is None else "right" if cell.score >= 1 else "wrong"


def _outcome_counts(run: ScoredRun) -> list[tuple[str, str, int]]:
    found = [outcome(record) for record in run.records]
    labels = {"right": "right", "wrong": "wrong", "failed": "failed", "unscored": "not scored"}
    return [(word, label, found.count(word)) for word, label in labels.items()]


# --- plots


def _plots(run: ScoredRun) -> Iterator[tuple[str, str]]:
    """Yield the captions and plots of a run; a plot without values is empty."""
    sent = [record for record in run.records if record.cell.requests]
    yield "seconds of an example", charts.histogram(_grouped(sent or run.records, _seconds), "s")
    if any(map(cost_of, run.records)):
        yield "US dollars for 1,000 such examples", charts.histogram(_grouped(run.records, _thousand), "$")
    if _has_scores_between(run):
        groups = _grouped(run.records, _score)
        yield f"{run.metric_name} of an example", charts.histogram(groups, "", marks=False, high=1.0, bins=20)
    for found in run.calibrations.values():
        bins = [(each.n, each.mean_p, each.share) for each in found.bins]
        yield str(found), charts.reliability(bins, found.ece, found.source)
    for name, pairs in _stated(run).items():
        yield f"{run.metric_name} over stated {name}", charts.calibration(pairs)
    if run.repeat > 1:
        repeats = [
            [score for each in found if (score := _score(each)) is not None] for found in run.by_example.values()
        ]
        yield "right repeats of an example", charts.agreement(repeats, run.repeat)


def _has_scores_between(run: ScoredRun) -> bool:
    """Return True if scores are from 0 to 1, and not all of them 0 or 1."""
    scores = {record.cell.score for record in run.records} - {None, 0, 1}
    return bool(scores) and all(score is not None and 0 < score < 1 for score in scores)


def _score(record: ExampleRecord) -> float | None:
    return record.cell.score


def _thousand(record: ExampleRecord) -> float | None:
    return None if (cost := cost_of(record)) is None else 1_000 * cost


def _seconds(record: ExampleRecord) -> float | None:
    return record.cell.seconds


def _grouped(records: Sequence[ExampleRecord], read: Callable[[ExampleRecord], float | None]) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {"right": [], "wrong": [], "failed": [], "unscored": []}
    for record in records:
        if (value := read(record)) is not None:
            groups[outcome(record)].append(value)
    return groups


def _stated(run: ScoredRun) -> Mapping[str, list[tuple[float, float]]]:
    """Return the pairs of stated probability and score, by the name of the output or score that states it."""
    found: dict[str, list[tuple[float, float]]] = {}
    for record in run.records:
        score = record.cell.score
        if record.cell.failure is not None or score is None or not 0 <= score <= 1:
            continue
        values: dict[str, JsonValue] = {**(record.cell.outputs or {}), **record.cell.subscores}
        for name in _PROBABILITIES:
            stated = values.get(name)
            if isinstance(stated, (int, float)) and not isinstance(stated, bool) and 0 <= stated <= 1:
                found.setdefault(name, []).append((float(stated), score))
    return found
