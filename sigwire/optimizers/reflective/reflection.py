"""Reflection on runs: the calls of a step with the feedback of the metric, and which step is to blame.

A predictor is found in a trace by its name, so two predictors with equal signatures are not confused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject, dumps
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.operators.texts import fenced
from sigwire.optimizers.reflective.tool_tuning import transcript
from sigwire.optimizers.task import Task

__all__ = ["RowCell", "RunRecord", "blame", "records_of", "shown_runs", "text_of"]

RowCell: TypeAlias = tuple[str, Cell]
"""The id of a training row and a traced run on it."""

_MOST_CHARACTERS = 2_000  # of one value


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of a step: its inputs and outputs, the feedback of the metric, and the score of the program.

    ``called_by``: the call of the tool in which the step ran, "" outside of tools.
    """

    row: str
    inputs: JsonObject
    outputs: JsonObject
    feedback: str
    score: float
    is_failure: bool
    called_by: str = ""

    def to_json(self) -> JsonObject:
        """Return the record in the form of GEPA's reflective datasets."""
        data: JsonObject = {"Inputs": self.inputs, "Generated Outputs": self.outputs, "Feedback": self.feedback}
        return {**data, "Called By": self.called_by} if self.called_by else data

    def __str__(self) -> str:
        parts = [("input", self.inputs), ("output", self.outputs)]
        lines = [f"called by the tool call: {_shown(self.called_by)}"] if self.called_by else []
        lines += [f"{kind} {name}: {_shown(value)}" for kind, fields in parts for name, value in fields.items()]
        return "\n".join([*lines, f"feedback: {_shown(self.feedback)}"])


def records_of(
    task: Task, predictor: str, runs: Sequence[RowCell], *, perfect: float = 1.0, parse_failures: bool = True
) -> list[RunRecord]:
    """Return the records of a step: failures first, in the order of ``runs``, then one success for contrast.

    Runs that did not reach the step have no record. ``parse_failures``: runs whose answer could not be read have one.
    """
    records = [
        record
        for row, cell in runs
        if cell.score is not None and (record := _record(task, predictor, row, cell, perfect, parse_failures))
    ]
    failures = [record for record in records if record.is_failure]
    return [*failures, *[record for record in records if not record.is_failure][:1]]


def _record(task: Task, predictor: str, row: str, cell: Cell, perfect: float, parse_failures: bool) -> RunRecord | None:
    steps = [step for step in cell.trace if step.path == predictor]
    failed_here = cell.failure is not None and (cell.failure.path == predictor or not steps)
    if not steps and not (failed_here and parse_failures):
        return None
    fields: Any = steps[-1].demo["fields"] if steps else {}
    inputs, outputs = _sides(task.signatures[predictor], fields)
    inputs = inputs or task.plain(task.example(row).inputs())
    if (calls := transcript(cell, predictor)) is not None:
        outputs.clear()
        outputs["calls"] = calls
    score = cell.score or 0.0
    feedback, called_by = feedback_of(task, row, cell, predictor, perfect), steps[-1].called_by if steps else ""
    return RunRecord(row, inputs, outputs, feedback, score, score < perfect, called_by)


def _sides(signature: Any, fields: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the inputs of a call, without tools and history, and its outputs."""
    spec = signature.spec
    hidden = [each.name for each in (spec.tools_field, spec.history_field) if each is not None]
    inputs = {name: fields[name] for name in signature.input_fields if name in fields and name not in hidden}
    return inputs, {name: fields[name] for name in signature.output_fields if name in fields}


def feedback_of(task: Task, row: str, cell: Cell, predictor: str, perfect: float = 1.0) -> str:
    """Return what is known about a run: the feedback of the metric for the step or the run, else score and labels."""
    known = cell.feedbacks.get(predictor) or cell.feedback
    if cell.failure is not None:
        known = f"The run failed: {cell.failure.type}: {cell.failure.message} {known}".strip()
    if known:
        return known
    score = cell.score or 0.0
    if score >= perfect:
        return f"Right: score {score:g}."
    labels = task.plain(task.example(row).labels())
    wanted = "; ".join(f"{name} = {_shown(value)}" for name, value in labels.items())
    return f"Wrong: score {score:g}." + (f" The outputs should have been: {wanted}." if wanted else "")


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else dumps(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} [...]"


def shown_runs(records: Sequence[RunRecord]) -> str:
    """Return records as fenced text."""
    return "\n\n".join(fenced("run", str(record)) for record in records)


def text_of(task: Task, candidate: Candidate, slot: str) -> str:
    """Return the text of a slot of the program with a candidate applied."""
    return candidate.texts.get(slot, task.slots[slot])


def blame(task: Task, runs: Sequence[RowCell], perfect: float = 1.0) -> Mapping[str, float]:
    """Return how much each reached predictor is to blame for the failures in ``runs``.

    A failing run counts for each predictor that it passed, and double for a predictor in which it failed or which its
    feedback names. Predictors that no run reached have no entry.
    """
    blamed: dict[str, float] = {}
    for _, cell in runs:
        passed = {step.path for step in cell.trace}
        failed_in = cell.failure.path if cell.failure is not None else ""
        is_failure = cell.score is not None and cell.score < perfect
        for name in task.signatures:
            if name in passed or name == failed_in:
                named = name == failed_in or (name != "self" and name in cell.feedback)
                blamed[name] = blamed.get(name, 0.0) + is_failure * (1.0 + named)
    return blamed
