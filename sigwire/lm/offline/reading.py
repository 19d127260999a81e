"""Reading a request as a model would: what is asked, what examples show, what was done so far, how to answer. Pure.

Only the request's own texts and tools are read. Layouts are recognised by their marks (``[[ ## name ## ]]`` sections,
XML tags, a JSON Schema, ``~~~tool_call`` blocks); text without any mark is taken as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.lm.offline.choice import OfferedTool
from sigwire.lm.offline.schemas import Schema, is_list, is_mapping, properties_of
from sigwire.lm.offline.typetext import read_tool_line, read_type

__all__ = ["Demo", "Form", "Output", "Reading", "Step", "read_request"]

Form: TypeAlias = Literal["sections", "json", "xml", "text"]


@dataclass(frozen=True, slots=True)
class Step:
    """A call that was made since the question, and what came back."""

    name: str
    arguments: Mapping[str, Any]
    result: JsonValue
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Demo:
    """An example: its inputs as text, and the calls or the fields that answered it."""

    text: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    fields: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """A field that the prompt asks for."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a request says."""

    question: str
    inputs: Mapping[str, str]
    demos: tuple[Demo, ...] = ()
    steps: tuple[Step, ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    tools_as_text: bool = False
    form: Form = "text"
    outputs: tuple[Output, ...] = ()
    task: str = ""


def read_request(request: Request) -> Reading:
    """What a request says."""
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    messages = [message for message in request.messages if message.role != "system"]
    conversation = _examples_end(messages, system)
    start = _question_at(messages, conversation)
    asked = messages[start] if start >= 0 else Message("user")
    inputs, reminder = _inputs(asked.text)
    last = next((m for m in reversed(messages) if m.role == "user"), asked)
    if last is not asked:  # results as text, with the reminder of the format after them
        reminder = reminder or last.text[-600:]
    native = tuple(tool for tool in map(OfferedTool.of, request.tools) if tool is not None)
    taught = () if native else _taught_tools(system)
    form, outputs = _outputs(request, system, reminder)
    return Reading(
        question="\n".join(inputs.values()),
        inputs=inputs,
        demos=_demos(messages[: conversation or max(start, 0)], system),
        steps=tuple(_steps(messages[max(start + 1, conversation) :])),
        tools=native or taught,
        tools_as_text=bool(taught),
        form=form,
        outputs=outputs,
        task=system,
    )


# --- the question ------------------------------------------------------------------------------------

_RESULT_BLOCK = re.compile(r"^~~~tool_result[ \t]*\n(.*?)\n~~~[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*##[ \t]*(\w+)[ \t]*##[ \t]*\]\][ \t]*\n?", re.MULTILINE)
_REMINDER = re.compile(
    r"\n\n(?=(?:Answer|Respond|Reply|Write|Call|Use|Now|Remember|You must)\b[^\n]*(?:\n[^\n]+)*\s*\Z)"
)
_REMINDER_ONLY = re.compile(
    r"\A\s*(?:Answer|Respond|Reply|Go on|Continue|Call (?:the )?tools|You must call)"
    r"\b[^\n]*\s*\Z|\A\s*Your reply is invalid:"
)
_TAG = re.compile(r"<(\w[\w.-]*)>\n?(.*?)\n?</\1>", re.DOTALL)
_EXAMPLE = re.compile(r"\AExample \(some fields omitted\):\n+")
_EXAMPLES = re.compile(r"^The first (?:(\d+) exchanges are examples|exchange is an example) of the task", re.MULTILINE)


def _examples_end(messages: Sequence[Message], system: str) -> int:
    """The number of messages that are examples, by what the system message says."""
    found = _EXAMPLES.search(system)
    if found is None:
        return 0
    asked = [place for place in range(len(messages)) if _asks(messages[place])]
    return [*asked, len(messages)][min(int(found[1] or 1), len(asked))]


def _question_at(messages: Sequence[Message], first: int) -> int:
    """The last user message that asks something, from the message ``first``."""
    return next((place for place in range(len(messages) - 1, first - 1, -1) if _asks(messages[place])), -1)


def _asks(message: Message) -> bool:
    """Return True for a user message that is more than results or a reminder."""
    rest = _RESULT_BLOCK.sub("", message.text).strip() if message.role == "user" else ""
    return bool(rest) and not _REMINDER_ONLY.match(rest)


def _inputs(text: str) -> tuple[dict[str, str], str]:
    """The input values by name, and the reminder of the format that follows them."""
    body, *reminders = (
        _REMINDER.split(_EXAMPLE.sub("", text), maxsplit=1) if _is_laid_out(text) else [_EXAMPLE.sub("", text)]
    )
    pieces = _HEADER.split(body)
    if len(pieces) > 1:
        pairs = zip(pieces[1::2], pieces[2::2], strict=True)
        return {name: _plain(value) for name, value in pairs if name != "completed"}, "".join(reminders)
    tags = {name: value.strip() for name, value in _TAG.findall(body)}
    if tags and len("".join(tags.values())) * 2 > len(body) - 30 * len(tags):
        return tags, "".join(reminders)
    return {"text": body.strip()}, "".join(reminders)


def _is_laid_out(text: str) -> bool:
    return bool(_HEADER.search(text) or _TAG.search(text))


def _plain(value: str) -> str:
    return re.sub(r"^(\s*)\\(\\*)(?=\[\[|~~~|```)", r"\1\2", value.strip(), flags=re.MULTILINE)


# --- what was done -----------------------------------------------------------------------------------

_CALL_BLOCK = re.compile(r"^~~~tool_call[ \t]*\n(.*?)\n~~~[ \t]*$", re.MULTILINE | re.DOTALL)


def _steps(messages: Sequence[Message]) -> list[Step]:
    steps: list[Step] = []
    calls: list[tuple[str, str, Mapping[str, Any]]] = []
    for message in messages:
        if message.role == "assistant":
            calls = _calls(message)
        results = [(r.id, r.name, r.content, r.is_error) for r in message.tool_results]
        if message.role == "user":
            results = [("", *read) for block in _RESULT_BLOCK.findall(message.text) if (read := _result(block))]
        for place, (id, name, content, failed) in enumerate(results):
            by_id = next((call for call in calls if id and call[0] == id), None)
            made = by_id or (calls[place] if place < len(calls) else ("", name, {}))
            value = _as_json(content)
            steps.append(Step(made[1] or name, made[2], value, failed or _says_error(value)))
    return steps


def _calls(message: Message) -> list[tuple[str, str, Mapping[str, Any]]]:
    if message.tool_calls:
        return [(call.id, call.name, call.arguments or {}) for call in message.tool_calls]
    blocks = [_as_json(block) for block in _CALL_BLOCK.findall(message.text)]
    return [
        ("", str(block.get("name")), arguments if isinstance(arguments := block.get("arguments"), dict) else {})
        for block in blocks
        if isinstance(block, dict)
    ]


def _result(block: str) -> tuple[str, JsonValue, bool] | None:
    data = _as_json(block)
    if not isinstance(data, dict):
        return None
    return str(data.get("name", "")), data.get("error", data.get("result")), "error" in data


def _as_json(value: Any) -> JsonValue:
    if not isinstance(value, str):
        return cast(JsonValue, value)
    try:
        return cast(JsonValue, json.loads(value))
    except (ValueError, RecursionError):
        return value


def _says_error(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return bool(value.get("error"))
    return (
        isinstance(value, str)
        and re.match(r"\W*(?:error|execution error|exception|failed)\b", value, re.IGNORECASE) is not None
    )


# --- examples ----------------------------------------------------------------------------------------


def _demos(messages: Sequence[Message], system: str) -> tuple[Demo, ...]:
    """Earlier questions with their answers."""
    demos: list[Demo] = []
    for asked, answered in pairwise(messages):
        if (asked.role, answered.role) != ("user", "assistant"):
            continue
        demos.append(_demo(asked.text, answered.text, [(name, arguments) for _, name, arguments in _calls(answered)]))
    return tuple(demos) or _demos_in(system)


def _demo(asked: str, answer: str, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Demo:
    inputs, _ = _inputs(asked)
    return Demo("\n".join(inputs.values()), tuple(calls), _fields(answer), answer)


def _demos_in(system: str) -> tuple[Demo, ...]:
    """Examples that stand in the system message."""
    parts = re.split(r"^(Example(?: \(some fields omitted\))?:)\n\n(?=\[\[|<\w)", system, flags=re.MULTILINE)[2::2]
    halves = [part.split("--- assistant ---", 1) for part in parts]
    return tuple(_demo(half[0], half[1].strip(), ()) for half in halves if len(half) == 2)


def _fields(answer: str) -> dict[str, str]:
    """The fields of an answer by the marks it has."""
    pieces = _HEADER.split(answer)
    if len(pieces) > 1:
        return {n: _plain(v) for n, v in zip(pieces[1::2], pieces[2::2], strict=True) if n != "completed"}
    value = _as_json(re.sub(r"\A\s*```\w*\n|\n```\s*\Z", "", answer))
    if isinstance(value, dict):
        return {
            name: item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            for name, item in value.items()
        }
    return {name: text.strip() for name, text in _TAG.findall(answer)}


# --- tools and outputs as the prompt teaches them -----------------------------------------------------


def _taught_tools(system: str) -> tuple[OfferedTool, ...]:
    if "~~~tool_call" not in system:
        return ()
    listing = system.rpartition("\nTools:\n")[2]
    tools: list[OfferedTool] = []
    for line, described in _tool_lines(listing):
        data = _as_json(line) if line.startswith("{") else read_tool_line(line, described)
        if isinstance(data, dict) and (tool := OfferedTool.of({"function": data})) is not None:
            tools.append(tool)
    return tuple(tools)


def _tool_lines(listing: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    for line in listing.splitlines():
        if not line.strip():
            if found:
                break
        elif line.startswith("  ") and found:
            name, _, text = line.strip().partition(": ")
            found[-1][1][name] = text
        else:
            found.append((line, {}))
    return found


_FIELD = re.compile(r"^(?:- |\d+\. )`?(\w+)`?(?: \((.*?)\))?(?::|$)(.*)$")


def _outputs(request: Request, system: str, reminder: str) -> tuple[Form, tuple[Output, ...]]:
    wanted = request.response_format
    if wanted is not None and wanted.schema is not None:
        properties = properties_of(_inline(wanted.schema, wanted.schema, 0))
        return "json", tuple(Output(name, schema) for name, schema in properties.items())
    described = _described_outputs(system)
    form, names = _form(system, reminder, described)
    if wanted is not None:
        form = "json"
    return form, tuple(Output(name, described.get(name, {"type": "string"})) for name in names or described)


def _form(system: str, reminder: str, described: Mapping[str, JsonObject]) -> tuple[Form, list[str]]:
    sections = [n for n in dict.fromkeys(re.findall(r"\[\[ ## (\w+) ## \]\]", reminder)) if n != "completed"]
    if sections:
        return "sections", sections
    tags = list(dict.fromkeys(re.findall(r"<(\w+)>", reminder)))
    if tags:
        return "xml", tags
    if re.search(r"\bJSON\b", reminder) or (described and re.search(r"\bJSON object\b", system)):
        return "json", list(described)
    if described and "[[ ## completed ## ]]" in system:
        return "sections", list(described)
    if described and all(f"<{name}>" in system for name in described):
        return "xml", list(described)
    return "text", []


def _described_outputs(system: str) -> dict[str, JsonObject]:
    """The output fields that the system message lists, with their types."""
    match = re.search(r"^(?:Output fields:|Your output fields are:)[ \t]*\n", system, re.MULTILINE)
    if match is None:
        return {}
    found: dict[str, JsonObject] = {}
    block = re.split(r"\n[ \t]*\n(?!\s)", system[match.end() :], maxsplit=1)[0]
    for entry in re.split(r"\n(?=- |\d+\. )", block):
        head, *below = entry.split("\n")
        if (line := _FIELD.match(head)) is None:
            continue
        kind = line[2] or "\n".join(below).partition("type:")[2] or "string"
        schema = read_type(kind)
        found[line[1]] = {**schema, **({"description": line[3].strip()} if line[3].strip() else {})}
    return found


def _inline(schema: Any, root: Schema, depth: int) -> Any:
    """A schema with its references filled in, as deep as anybody nests."""
    if is_list(schema):
        return [_inline(item, root, depth) for item in schema]
    if not is_mapping(schema):
        return schema
    name = schema.get("$ref")
    if isinstance(name, str) and depth < 8:
        return _inline(_at(root, name), root, depth + 1)
    return {
        key: _inline(value, root, depth + 1) if depth < 24 else value for key, value in schema.items() if key != "$defs"
    }


def _at(root: Schema, reference: str) -> Any:
    """What a local reference such as ``#/$defs/Item`` points at."""
    target: Any = root
    for part in reference.removeprefix("#/").split("/"):
        target = target.get(part, {}) if is_mapping(target) else {}
    return target
