"""Proposals of texts: ask the writing model to rewrite an instruction or tools, and check the answer before any run is paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_mapping
from sigwire.core.record import to_plain
from sigwire.optimizers.candidate import Candidate, Slot
from sigwire.optimizers.operators.proposing import fields_of
from sigwire.optimizers.reflective.reflection import RowCell, RunRecord, records_of, shown_runs, text_of
from sigwire.optimizers.reflective.tool_tuning import ToolEvidence, proposed_texts, tool_names, tool_slots, tool_texts
from sigwire.optimizers.reflective.writing import DescribeTools, WriteInstruction
from sigwire.optimizers.rule import RuleSteps, write
from sigwire.optimizers.task import Task

__all__ = ["rewrite_by", "rewrite_instruction", "rewrite_tools", "rewrite_tools_by"]


def rewrite_instruction(
    task: Task, parent: Candidate, predictor: str, runs: Sequence[RowCell], *, perfect: float = 1.0, sample: int = 0
) -> RuleSteps[dict[Slot, str]]:
    """Return a new instruction of a predictor by slot, from runs of the parent; empty if the answer cannot be used."""
    slot = f"{predictor}.instructions"
    records = records_of(task, predictor, runs, perfect=perfect)
    if not records:
        return {}
    inputs = {
        "program": task.outline,
        "step": fields_of(task, predictor),
        "current_instruction": text_of(task, parent, slot),
        "runs": shown_runs(records),
    }
    rows = [record.row for record in records]
    (answer,) = yield from write(WriteInstruction, inputs, rows=rows, sample=sample)
    return {slot: str(answer["instruction"]).strip()} if answer else {}


def rewrite_tools(
    task: Task, parent: Candidate, predictor: str, runs: Sequence[RowCell], *, perfect: float = 1.0, sample: int = 0
) -> RuleSteps[dict[Slot, str]]:
    """Return new texts of all tools that failing runs blame, by slot, from one request; empty if no tool is to blame."""
    evidence, tools, records = _blamed(task, predictor, runs, perfect)
    if not tools:
        return {}
    inputs: dict[str, Any] = {
        "step": fields_of(task, predictor),
        "tools": to_plain(tool_texts(task, parent, predictor, tools)),
        "problems": str(evidence),
        "runs": shown_runs(records),
    }
    (answer,) = yield from write(DescribeTools, inputs, rows=[record.row for record in records], sample=sample)
    given = answer["tool_descriptions"] if answer else None
    return proposed_texts(task, parent, predictor, tools, given, evidence.arguments)


def _blamed(
    task: Task, predictor: str, runs: Sequence[RowCell], perfect: float
) -> tuple[ToolEvidence, list[str], list[RunRecord]]:
    """Return the evidence of failing runs, the tools that it blames, and the records of these runs."""
    evidence = ToolEvidence.of(task, predictor, runs, perfect)
    blamed = frozenset[str]().union(*evidence.rows.values())
    about = [run for run in runs if run[0] in evidence.rows]
    records = [each for each in records_of(task, predictor, about, perfect=perfect) if each.is_failure]
    return evidence, [name for name in tool_names(task, predictor) if name in blamed], records


def rewrite_tools_by(
    task: Task,
    proposer: Callable[..., Any],
    parent: Candidate,
    predictor: str,
    runs: Sequence[RowCell],
    *,
    perfect: float = 1.0,
    sample: int = 0,
) -> RuleSteps[dict[Slot, str]]:
    """Return the texts of blamed tools that a function of the user writes; its components are the slots of these texts."""
    evidence, tools, records = _blamed(task, predictor, runs, perfect)
    slots = {
        slot: [record.to_json() for record in records]
        for slot, (tool, part) in tool_slots(task, predictor).items()
        if tool in tools and (part in ("desc", "alias") or (tool, part.removeprefix("args.")) in evidence.arguments)
    }
    if not slots:
        return {}
    inputs: JsonObject = {
        "candidate": {slot: text_of(task, parent, slot) for slot in slots},
        "reflective_dataset": cast(JsonObject, slots),
        "components_to_update": list(slots),
    }
    (answer,) = yield from write(proposer, inputs, rows=[record.row for record in records], sample=sample)
    given: Mapping[str, Any] = answer if is_mapping(answer) else {}
    return {slot: str(given[slot]).strip() for slot in slots if given.get(slot)}


def rewrite_by(
    task: Task,
    proposer: Callable[..., Any],
    parent: Candidate,
    predictors: Sequence[str],
    runs: Sequence[RowCell],
    *,
    perfect: float = 1.0,
    parse_failures: bool = True,
    sample: int = 0,
) -> RuleSteps[dict[Slot, str]]:
    """Return the instructions that a function of the user writes: ``proposer(candidate, reflective_dataset,
    components_to_update)`` returns texts by predictor."""
    records = {
        name: records_of(task, name, runs, perfect=perfect, parse_failures=parse_failures) for name in predictors
    }
    dataset: JsonObject = {name: [record.to_json() for record in found] for name, found in records.items() if found}
    inputs: JsonObject = {
        "candidate": {name: text_of(task, parent, f"{name}.instructions") for name in task.signatures},
        "reflective_dataset": dataset,
        "components_to_update": list(dataset),
    }
    rows = dict.fromkeys(record.row for found in records.values() for record in found)
    (answer,) = yield from write(proposer, inputs, rows=tuple(rows), sample=sample)
    given: Mapping[str, Any] = answer if is_mapping(answer) else {}
    return {f"{name}.instructions": str(given[name]).strip() for name in dataset if given.get(name)}
