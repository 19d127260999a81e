"""Proposals of texts: ask the writing model to rewrite an instruction or tools, and check the answer before any run is paid."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sigwire.optimizers.candidate import Candidate, Slot, check_text
from sigwire.optimizers.events import Proposed, Refused
from sigwire.optimizers.reflection import RowCell, records_of, shown_runs, step_outline, text_of
from sigwire.optimizers.rule import RuleSteps, report, write
from sigwire.optimizers.task import Task
from sigwire.optimizers.tool_tuning import ToolEvidence, proposed_texts, tool_names, tool_texts
from sigwire.optimizers.writing import DescribeTools, WriteInstruction

__all__ = ["MOST_CHARACTERS", "checked", "rewrite_instruction", "rewrite_tools"]

MOST_CHARACTERS = 20_000
"""The most characters of an instruction."""


def rewrite_instruction(
    task: Task, parent: Candidate, predictor: str, runs: Sequence[RowCell], *, perfect: float = 1.0, sample: int = 0
) -> RuleSteps[dict[Slot, str]]:
    """Return a new instruction of a predictor by slot, from runs of the parent; empty if the answer cannot be used."""
    slot = f"{predictor}.instructions"
    records = records_of(task, predictor, runs, perfect=perfect)
    if not any(record.is_failure for record in records):
        return {}
    inputs = {
        "program": task.outline,
        "step": step_outline(task, predictor),
        "current_instruction": text_of(task, parent, slot),
        "runs": shown_runs(records),
    }
    rows = [record.row for record in records]
    (answer,) = yield from write(WriteInstruction, inputs, rows=rows, sample=sample)
    return {slot: str(answer["instruction"]).strip()} if answer else {}


def rewrite_tools(
    task: Task, parent: Candidate, predictor: str, runs: Sequence[RowCell], *, perfect: float = 1.0, sample: int = 0
) -> RuleSteps[dict[Slot, str]]:
    """Return new texts of the tools that failing runs confuse, by slot; empty if no tool is to blame."""
    evidence = ToolEvidence.of(task, predictor, runs, perfect)
    tools = evidence.draw(task.rng("tools", predictor, sample), tool_names(task, predictor))
    if not tools:
        return {}
    about = [run for run in runs if evidence.rows.get(run[0], frozenset()).intersection(tools)]
    records = [record for record in records_of(task, predictor, about, perfect=perfect) if record.is_failure]
    inputs = {
        "step": step_outline(task, predictor),
        "tools": tool_texts(task, parent, predictor, tools),
        "problems": str(evidence),
        "runs": shown_runs(records),
    }
    (answer,) = yield from write(DescribeTools, inputs, rows=[record.row for record in records], sample=sample)
    given = answer["tool_descriptions"] if answer else None
    return proposed_texts(task, parent, predictor, tools, given, evidence.arguments)


def checked(
    parent: Candidate, texts: Mapping[Slot, str], known: Collection[str], origin: str, *, most: int = MOST_CHARACTERS
) -> RuleSteps[Candidate | None]:
    """Return the parent with new texts; ``None``, with an event, if a text cannot be used or the candidate is known."""
    candidate = parent
    for slot, text in texts.items():
        why = check_text(slot, text) or (f"the text has more than {most} characters" if len(text) > most else None)
        if why is None:
            candidate = candidate.with_text(slot, text, parent.digest)
        else:
            yield from report(Refused(slot, text, why))
    if candidate.digest in known:
        if texts:
            yield from report(Refused(", ".join(texts), "", "the candidate is known"))
        return None
    yield from report(Proposed(candidate, origin, tuple(texts)))
    return candidate
