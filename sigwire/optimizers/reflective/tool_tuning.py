"""Evidence of the use of tools, and proposals of their texts.

Runs show which tool was called, refused, failed or repeated; labels that hold tool calls show which was expected. All tools
that the failing runs blame are rewritten together: "use A when ...; not for ..., that is B". Texts of arguments are rewritten
only if calls got them wrong.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, cast

from sigwire.core.json import JsonObject, dumps
from sigwire.core.narrow import is_items, is_mapping
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate, Slot
from sigwire.optimizers.task import Task

__all__ = [
    "ToolEvidence",
    "ToolUse",
    "expected_calls",
    "proposed_texts",
    "tool_names",
    "tool_slots",
    "tool_uses",
    "transcript",
]

NONE = "none"
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool in a run. ``error``: why it was refused or failed; ``is_repeated``: an equal call was made before."""

    name: str
    arguments: JsonObject
    error: str = ""
    is_repeated: bool = False

    def __str__(self) -> str:
        given = ", ".join(f"{name}={dumps(value)}" for name, value in self.arguments.items())
        notes = [f"error: {self.error[:_MOST_CHARACTERS]}"] if self.error else []
        notes += ["the same call as before"] if self.is_repeated else []
        return f"{self.name}({given})" + (f" [{'; '.join(notes)}]" if notes else "")


def tool_uses(cell: Cell, predictor: str) -> list[ToolUse] | None:
    """Return the calls of a predictor in a run, ``None`` if it made none and has no output for calls."""
    steps: list[Any] = [step.demo["fields"] for step in cell.trace if step.path == predictor]
    values = [value for fields in steps for value in fields.values() if is_mapping(value) and "tool_calls" in value]
    if not values:
        return None
    results = _results(cell)
    uses: list[ToolUse] = []
    seen: set[str] = set()
    for call in [call for value in values for call in value["tool_calls"]]:
        name, arguments = str(call["name"]), cast(JsonObject, call.get("arguments") or {})
        key = dumps([name, arguments])
        error = _error_of(call) or results.get(str(call.get("id")), "")
        uses.append(ToolUse(name, arguments, error, key in seen))
        seen.add(key)
    return uses


def _error_of(call: Mapping[str, Any]) -> str:
    error = call.get("error")
    return "" if not error else str(error.get("message", error)) if is_mapping(error) else str(error)


def _results(cell: Cell) -> dict[str, str]:
    """Return the errors of tools in the run of an agent, by the id of the call."""
    steps: Any = (cell.outputs or {}).get("steps") or ()
    return {
        str(result.get("id")): str(result.get("content"))
        for step in steps
        if is_mapping(step)
        for result in cast(Any, step.get("results") or ())
        if result.get("is_error")
    }


def transcript(cell: Cell, predictor: str) -> str | None:
    """Return the calls of a predictor in a run as text; results of tools are not shown, but their errors are."""
    uses = tool_uses(cell, predictor)
    return None if uses is None else "; ".join(map(str, uses)) or "no call"


def expected_calls(task: Task, row: str, names: Iterable[str]) -> list[tuple[str, JsonObject]] | None:
    """Return the tool calls in the labels of a training row, ``None`` if it has none."""
    known = frozenset(names)
    labels = task.plain(task.example(row).labels())
    found = [call for value in labels.values() for call in _calls_in(value) if call[0] in known]
    return found or None


def _calls_in(value: object) -> Iterator[tuple[str, JsonObject]]:
    if is_mapping(value):
        name, arguments = value.get("name"), value.get("arguments", value.get("args"))
        if isinstance(name, str) and (arguments is None or is_mapping(arguments)):
            yield name, cast(JsonObject, arguments or {})
        else:
            for each in value.values():
                yield from _calls_in(each)
    elif is_items(value):
        for each in value:
            yield from _calls_in(each)


@dataclass(slots=True)
class ToolEvidence:
    """The mistakes of failing runs. ``confused``: (expected, called) with its number; ``arguments``: (tool, argument) likewise;
    ``faults``: calls of a tool that were refused, failed or repeated."""

    confused: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    arguments: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    faults: dict[str, int] = field(default_factory=dict[str, int])
    rows: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    @classmethod
    def of(cls, task: Task, predictor: str, runs: Sequence[tuple[str, Cell]], perfect: float = 1.0) -> ToolEvidence:
        """Return the evidence of the failing ones of some traced runs on training rows."""
        evidence, names = cls(), tool_names(task, predictor)
        arguments: dict[str, list[str]] = defaultdict(list)
        for tool, part in tool_slots(task, predictor).values():
            arguments[tool] += [part.removeprefix("args.")] * part.startswith("args.")
        for row, cell in runs:
            uses = tool_uses(cell, predictor)
            if uses is None or cell.score is None or cell.score >= perfect:
                continue
            made = [use for use in uses if use.name in names or use.error]
            touched = {use.name for use in made if evidence._add_fault(use, arguments[use.name])}
            if (expected := expected_calls(task, row, names)) is not None:
                for wanted, use in zip_longest(expected, made):
                    touched |= evidence._add_difference(wanted, use)
            if touched:
                evidence.rows[row] = frozenset(touched)
        return evidence

    def _add_fault(self, use: ToolUse, arguments: Iterable[str]) -> bool:
        """Count a call that was refused, failed or repeated, and the arguments that its error names."""
        if not (use.error or use.is_repeated):
            return False
        _increment(self.faults, use.name)
        for name in arguments:
            if re.search(rf"\b{re.escape(name)}\b", use.error):
                _increment(self.arguments, (use.name, name))
        return True

    def _add_difference(self, wanted: tuple[str, JsonObject] | None, use: ToolUse | None) -> set[str]:
        """Count the difference between an expected call and the call in its place; return the tools."""
        name, expected = wanted or (NONE, {})
        called, given = (use.name, use.arguments) if use else (NONE, {})
        if name != called:
            _increment(self.confused, (name, called))
            return {name, called} - {NONE}
        wrong = [each for each in dict.fromkeys((*expected, *given)) if expected.get(each) != given.get(each)]
        for argument in wrong:
            _increment(self.arguments, (name, argument))
        return {name} if wrong else set()

    def __str__(self) -> str:
        lines = [f"{wanted} was needed, {called} was called: {n}" for (wanted, called), n in self.confused.items()]
        lines += [f"{tool}: the argument {name} was given wrongly: {n}" for (tool, name), n in self.arguments.items()]
        lines += [f"{tool}: refused, failed or repeated: {n}" for tool, n in self.faults.items()]
        return "\n".join(lines)


def _increment(counts: dict[Any, int], key: object) -> None:
    counts[key] = counts.get(key, 0) + 1


# --- texts ----------------------------------------------------------------------------------------------


def tool_slots(task: Task, predictor: str) -> dict[Slot, tuple[str, str]]:
    """Return the slots of a predictor's tools, each with the tool and "desc", "alias" or the name of an argument."""
    found: dict[Slot, tuple[str, str]] = {}
    prefix = f"{predictor}.tools."
    for slot in task.slots:
        if slot.startswith(prefix):
            rest = slot.removeprefix(prefix)
            tool, has_argument, argument = rest.partition(".args.")
            tool, kind = (tool, argument) if has_argument else rest.rsplit(".", 1)
            found[slot] = (tool, f"args.{kind}" if has_argument else kind)
    return found


def tool_names(task: Task, predictor: str) -> list[str]:
    """Return the names of a predictor's tools that may be tuned."""
    return list(dict.fromkeys(tool for tool, _ in tool_slots(task, predictor).values()))


def tool_texts(task: Task, candidate: Candidate, predictor: str, tools: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the current texts of tools as objects, as they are shown to the writing model."""
    shown: dict[str, dict[str, Any]] = {tool: {} for tool in tools}
    for slot, (tool, part) in tool_slots(task, predictor).items():
        if tool in shown:
            text = candidate.texts.get(slot, task.slots[slot])
            if part.startswith("args."):
                shown[tool].setdefault("args", {})[part.removeprefix("args.")] = text
            else:
                shown[tool]["description" if part == "desc" else part] = text
    return shown


def proposed_texts(
    task: Task,
    candidate: Candidate,
    predictor: str,
    tools: Sequence[str],
    answer: object,
    wrong: Iterable[tuple[str, str]],
) -> dict[Slot, str]:
    """Return the new texts by slot in an answer of the writing model.

    Other tools than those asked for, arguments that no call got wrong, and texts that are as before are left out; a text equal
    to that of the student is no proposal.
    """
    given: dict[str, Any] = dict(answer) if is_mapping(answer) else {}
    wrong = frozenset(wrong)
    texts: dict[Slot, str] = {}
    for slot, (tool, part) in tool_slots(task, predictor).items():
        proposal: object = given.get(tool)
        if tool not in tools or not is_mapping(proposal):
            continue
        if part.startswith("args."):
            name = part.removeprefix("args.")
            arguments = proposal.get("args")
            text = arguments.get(name) if is_mapping(arguments) and (tool, name) in wrong else None
        else:
            text = proposal.get("description" if part == "desc" else part)
        if isinstance(text, str) and text not in (task.slots[slot], candidate.texts.get(slot)):
            texts[slot] = text.strip()
    return _without_clashes(task, candidate, predictor, texts)


def _without_clashes(task: Task, candidate: Candidate, predictor: str, texts: Mapping[Slot, str]) -> dict[Slot, str]:
    """Return the texts without an alias that is the name or alias of another tool: a request with it would fail."""
    taken = {slot: {tool.casefold()} for slot, (tool, part) in tool_slots(task, predictor).items() if part == "alias"}
    kept: dict[Slot, str] = {}
    for slot, text in texts.items():
        others = {name for other, names in taken.items() if other != slot for name in names}
        others |= {candidate.texts.get(other, task.slots[other]).casefold() for other in taken if other != slot}
        if slot in taken and text.casefold() in others:
            continue
        if slot in taken:
            taken[slot].add(text.casefold())
        kept[slot] = text
    return kept
