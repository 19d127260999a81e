"""Cards and reprs of records: examples, predictions with their calls and runs, completions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import cast

from sigwire.core.cards.messages import Rows, warning_rows
from sigwire.core.cards.reports import report_card
from sigwire.core.cards.runs import ShownRun, shown_run, turn_cards
from sigwire.core.cards.values import call_facts, value_line
from sigwire.core.evidence import Evidence
from sigwire.core.example import Completions, Prediction
from sigwire.core.foreign_names import HIDDEN
from sigwire.core.record import Meta, Record
from sigwire.core.report import CallReport
from sigwire.core.response import LMWarning
from sigwire.show.card import Card
from sigwire.show.cleaning import inline
from sigwire.show.lines import CardLine, CardTag, ValueLine
from sigwire.show.numbers import count
from sigwire.show.values import MOST_IN_REPR, call_line, fields_line, short_repr

__all__ = [
    "completions_card", "completions_line", "prediction_card", "prediction_line", "record_card", "record_line",
]  # fmt: skip


def record_line(record: Record) -> str:
    """Return a record as Python writes it: ``eval`` reads simple values back. A record that is longer has cut values."""
    end = _input_call(record)
    return f"{fields_line(type(record).__name__, _fields(record), MOST_IN_REPR - len(end))}{end}"


def record_card(record: Record) -> Card:
    """Return the card of an example: inputs before labels."""
    fields, inputs = _fields(record), _input_keys(record)
    ordered = sorted(fields, key=lambda name: name not in inputs) if inputs else list(fields)
    rows: Rows = [(inline(name, 60), [value_line(fields[name])]) for name in ordered]
    labels = [name for name in ordered if name not in inputs]
    subtitle = f"{_listed(ordered[: len(ordered) - len(labels)])} → {_listed(labels)}" if inputs else ""
    return Card(type(record).__name__, subtitle, rows)


def prediction_line(prediction: Prediction) -> str:
    """Return a prediction with its outputs, cut; the run of an agent as a summary."""
    fields, run = _shown_fields(prediction)
    parts = [f"{inline(name, 60)}={short_repr(value)}" for name, value in fields.items()]
    summary = [f"run=<{run.summary}>"] if run is not None else []
    end = _input_call(prediction)
    # The summary of a run is never cut off.
    name, kept = type(prediction).__name__, sum(map(len, summary)) + 2 * len(summary)
    line = call_line(name, parts, 500 - kept - len(end))
    return f"{line[:-1]}{', ' if parts and summary else ''}{''.join(summary)}){end}"


def prediction_card(prediction: Prediction) -> Card:
    """Return the card of a prediction: outputs, what is odd, the call; of an agent, a card for each turn."""
    fields, run = _shown_fields(prediction)
    rows: Rows = [(inline(name, 60), [value_line(value)]) for name, value in fields.items()]
    children = turn_cards(run.turns) if run is not None else []
    report, meta = CallReport.of(prediction), _meta(prediction)
    if report.evidence:
        shown: list[CardLine] = [ValueLine(evidence_line(path, each)) for path, each in report.evidence.items()]
        rows.append(("evidence", shown[:50]))
    if report.repairs:
        rows.append(("repairs", [ValueLine(each.what, "attention") for each in report.repairs[:20]]))
    rows += warning_rows(warnings := _own_warnings(report, run))
    if report.response is not None or report.attempts:
        rows.append(("call", [" · ".join(_call_facts(report))]))
    if report.inner:
        children.append(replace(report_card(report), title="calls inside", is_open=False))
    if meta.completions is not None:
        children.append(completions_card(Prediction._candidates(prediction)))  # pyright: ignore[reportPrivateUsage]
    if meta.choice is not None and meta.choice.text:
        children.append(Card("answer as text", rows=[("text", [ValueLine(meta.choice.text)])]))
    return Card(
        type(prediction).__name__,
        _listed(list(fields)),
        rows,
        children=children,
        tags=list(_tags(report, run, len(warnings))),
    )


def evidence_line(path: str, evidence: Evidence) -> str:
    """Return ``urgent  True 0.83 (logprob)``; an output that abstained has no value."""
    value = "unsure" if evidence.value is None and None not in evidence.values else short_repr(evidence.value, 40)
    return f"{inline(path, 60)}  {value} {evidence.confidence:.2f} ({evidence.source})"


def completions_line(completions: Completions) -> str:
    """Return ``Completions(3: answer)``."""
    return f"Completions({len(completions.rows)}: {_listed(completions.keys())})"


def completions_card(completions: Completions) -> Card:
    """Return a table with a row for each completion; equal rows are counted."""
    names = completions.keys()[:8]
    rows = [tuple(inline(row.get(name), 60) for name in names) for row in islice(completions.rows, 1_000)]
    counted = Counter(rows)
    table = [["#", *names], *([f"{number}×" if number > 1 else "1", *row] for row, number in counted.items())]
    return Card("Completions", f"{len(completions.rows)}: {_listed(names)}", table=table)


def _shown_fields(prediction: Prediction) -> tuple[dict[str, object], ShownRun | None]:
    """Return the outputs that the signature declares, then what the program added; and the run of an agent."""
    fields, declared = _fields(prediction), _declared(prediction)
    run = shown_run(fields, declared)
    hidden = {*run.names, "trajectory"} - declared if run is not None else frozenset[str]()
    ordered = sorted(fields, key=lambda name: name not in declared)
    return {name: fields[name] for name in ordered if name not in hidden}, run


def _fields(record: Record) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if not name.startswith(HIDDEN)}


def _meta(record: Record) -> Meta:
    return record._meta  # pyright: ignore[reportPrivateUsage]


def _input_keys(record: Record) -> frozenset[str]:
    return record._input_keys or frozenset()  # pyright: ignore[reportPrivateUsage]


def _input_call(record: Record) -> str:
    keys = record._input_keys  # pyright: ignore[reportPrivateUsage]
    return "" if keys is None else f".with_inputs({', '.join(map(repr, sorted(keys)))})"


def _declared(record: Record) -> frozenset[str]:
    signature = _meta(record).signature
    return frozenset() if signature is None else frozenset(cast("Mapping[str, object]", signature.spec.by_name))


def _listed(names: list[str]) -> str:
    shown = ", ".join(inline(name, 60) for name in names[:8])
    return f"{shown}, …" if len(names) > 8 else shown


def _own_warnings(report: CallReport, run: ShownRun | None) -> list[LMWarning]:
    """Return the warnings without those of the turns, whose cards show them."""
    shown = [warning for turn in run.turns for warning in turn.warnings] if run is not None else []
    return [warning for warning in report.warnings if warning not in shown]


def _tags(report: CallReport, run: ShownRun | None, warnings: int) -> Iterator[CardTag]:
    """Yield a tag for what is odd about a prediction."""
    yield from run.tags if run is not None else ()
    if report.repairs:
        yield CardTag(count(len(report.repairs), "repair"))
    if warnings:
        yield CardTag(count(warnings, "warning"))
    if report.response is not None and report.response.cache == "hit":
        yield CardTag("cache hit", "call")
    if any(warning.sent for warning in report.warnings) and report.mode:
        yield CardTag(f"→ {report.mode}")


def _call_facts(report: CallReport) -> Iterator[str]:
    if report.response is not None and report.response.model:
        yield inline(report.response.model, 80)
    yield from call_facts(report.attempts, report.usage)
    if report.mode:
        yield report.mode
    if report.response is not None and report.response.cache == "hit":
        yield "cache hit"
