"""The parts of a request: fields, instructions, examples and tools, in any layout of sections or JSON.

A request belongs to a task if an input field of its description is the input of the task. Every other request asks to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from benchmarks.landscape.tasks import TASKS, TOOLS, Row, Task, row_of

__all__ = ["Field", "Prompt", "Shown", "answer_in", "fields_of", "prompt_of", "refs_in", "sections_of"]

_REF = re.compile(r"\(ref ([KRTC]\d{4})\)")
_SECTION = re.compile(r"\[\[ ## (\w+) ## \]\]")
_FIELD = re.compile(r"^(?:\d+\.|-)\s+`?(\w+)`?\s*(?:\((.*?)\))?\s*(?::\s*(.*))?$")
_TYPE = re.compile(r"^type:\s*(.*)$")
_OUTPUTS = re.compile(r"output field", re.IGNORECASE)
_INPUTS = re.compile(r"input field", re.IGNORECASE)


@dataclass(frozen=True)
class Field:
    """A field of the description: name, type and description, as texts."""

    name: str
    type: str
    desc: str


@dataclass(frozen=True)
class Shown:
    """An example in the messages: its row and the answer that is shown."""

    row: Row
    right: bool


@dataclass(frozen=True)
class Prompt:
    """A request of a task: the row, what is shown, the guidance, and the texts of tools by name."""

    task: Task
    row: Row
    shown: tuple[Shown, ...]
    guidance: str
    tools: Mapping[str, str]
    is_json: bool
    native: bool
    outputs: tuple[Field, ...]


def text_of(message: Mapping[str, Any]) -> str:
    content: Any = message.get("content")
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        return "\n".join(str(part.get("text", "")) for part in parts)
    return content or ""


@lru_cache(maxsize=2048)
def fields_of(system: str) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the input and the output fields that a system message describes."""
    inputs, outputs = list[Field](), list[Field]()
    current: list[Field] | None = None
    for line in system.splitlines():
        found = _FIELD.match(line.strip())
        if found and current is not None:
            current.append(Field(found[1], found[2] or "", found[3] or ""))
        elif (found := _TYPE.match(line.strip())) and current:
            current[-1] = Field(current[-1].name, found[1], current[-1].desc)
        elif line.strip().endswith(":") and _OUTPUTS.search(line):
            current = outputs
        elif line.strip().endswith(":") and _INPUTS.search(line):
            current = inputs
        elif _SECTION.search(line) or line.startswith(("All interactions", "Each input", "Reply", "Task:")):
            current = None
    return tuple(inputs), tuple(outputs)


def sections_of(text: str) -> dict[str, str]:
    """Return the sections of a message by name."""
    parts = _SECTION.split(text)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def refs_in(text: str) -> list[tuple[int, Task, Row]]:
    """Return the rows that a text mentions, with their positions."""
    found = list[tuple[int, Task, Row]]()
    for match in _REF.finditer(text):
        if pair := row_of(match[1]):
            found.append((match.start(), *pair))
    return found


def prompt_of(body: Mapping[str, Any]) -> Prompt | None:
    """Return a request of a task, or None if the request asks to write."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    system = "\n".join(text_of(one) for one in messages if one["role"] in ("system", "developer"))
    inputs, outputs = fields_of(system)
    asked = _asked(messages)
    task = next((one for one in TASKS.values() if any(field.name == one.input for field in inputs)), None)
    refs = [(there, row) for _, there, row in refs_in(asked)]
    if task is None or not refs or refs[-1][0] is not task:
        return None
    tools = _tools_of(body, system, asked) if task.levers.tools else {}
    return Prompt(
        task=task,
        row=refs[-1][1],
        shown=tuple(_shown(messages)),
        guidance=_instructions_in(system),
        tools=tools,
        is_json="## completed ##" not in system + asked,
        native=bool(body.get("tools")),
        outputs=outputs,
    )


def _asked(messages: Sequence[Mapping[str, Any]]) -> str:
    return next((text_of(one) for one in reversed(messages) if one["role"] == "user"), "")


@lru_cache(maxsize=2048)
def _instructions_in(system: str) -> str:
    """Return the part of a system message that no layout explains: what follows its last known phrase."""
    for start in ("your objective is:", "\nTask:\n"):
        if start in system:
            return system.rpartition(start)[2].strip()
    return system


def _shown(messages: Sequence[Mapping[str, Any]]) -> Iterator[Shown]:
    row: Row | None = None
    for message in messages:
        if message["role"] == "user":
            refs = refs_in(text_of(message))
            row = refs[-1][2] if refs else None
        elif message["role"] == "assistant" and row is not None:
            if message.get("tool_calls") or any(answer_in(text_of(message)).values()):
                yield Shown(row, _matches(row, message))
            row = None


def _matches(row: Row, message: Mapping[str, Any]) -> bool:
    if isinstance(row.expected, str):
        return row.expected in answer_in(text_of(message)).values()
    calls = [_call(one["function"]) for one in message.get("tool_calls") or ()]
    calls += [_call(one) for one in _objects(answer_in(text_of(message)))]
    return row.expected in calls


def answer_in(text: str) -> dict[str, Any]:
    """Return the output fields of an answer, of sections or a JSON object."""
    if "[[ ##" in text:
        return {name: _json(body) if body[:1] in "{[" else body for name, body in sections_of(text).items()}
    value: Any = _json(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects with a name in a JSON value."""
    inner: list[Any] = []
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        inner = list(found.values())
        if "name" in found:
            yield found
    elif type(value) is list:
        inner = cast("Any", value)
    for one in inner:
        yield from _objects(one)


def _call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = call.get("args", call.get("arguments"))
    return {"name": call["name"], "args": _json(arguments) if isinstance(arguments, str) else arguments}


def _tools_of(body: Mapping[str, Any], system: str, asked: str) -> dict[str, str]:
    """Return the text of each tool in the request: its declaration, or the text from its name to the next tool's."""
    if body.get("tools"):
        return {one["function"]["name"]: json.dumps(one["function"], ensure_ascii=False) for one in body["tools"]}
    text = sections_of(asked).get("tools") or system
    starts = sorted((text.index(name), name) for name in TOOLS if name in text)
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {name: text[start:end] for (start, name), end in zip(starts, ends, strict=True)}
