"""Request reading: the question, demos, steps, tools, outputs and answer form of a prompt. Pure.

Only the request's messages, tools and response format are read, as a language model would read them. The
patterns list every text of a prompt that this file matches; a text without any of these marks is taken whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping
from sigwire.core.request import Request
from sigwire.core.schema import inline_refs
from sigwire.lm.offline.prompt_types import read_tool_line, read_type
from sigwire.lm.offline.slots import Schema, properties_of

__all__ = [
    "Form", "OfferedTool", "Output", "PromptContent", "PromptDemo", "Step", "as_text", "parse_json", "read_request",
]  # fmt: skip

Form: TypeAlias = Literal["sections", "json", "xml", "text"]
Arguments: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the request offers it."""

    name: str
    description: str
    parameters: Schema

    @classmethod
    def of(cls, spec: Schema) -> OfferedTool | None:
        """Return the tool of an OpenAI-like dict; None for a provider's built-in tool."""
        function = spec.get("function")
        if not is_mapping(function):
            return None
        parameters, description = function.get("parameters"), str(function.get("description") or "")
        return cls(str(function["name"]), description, parameters if is_mapping(parameters) else {})


@dataclass(frozen=True, slots=True)
class Step:
    """A call made since the question, and its result."""

    name: str
    arguments: Arguments
    result: JsonValue
    failed: bool = False


@dataclass(frozen=True, slots=True)
class PromptDemo:
    """An example: its inputs as text, and the calls or fields of its answer."""

    text: str
    calls: tuple[tuple[str, Arguments], ...] = ()
    fields: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())


@dataclass(frozen=True, slots=True)
class Output:
    """A field that the prompt asks for."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class PromptContent:
    """The content of a request."""

    question: str
    demos: tuple[PromptDemo, ...] = ()
    steps: tuple[Step, ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    tools_as_text: bool = False
    form: Form = "text"
    outputs: tuple[Output, ...] = ()


# The system message.
_TOOL_LIST = "\nTools:\n"
_OUTPUT_LIST = re.compile(r"^Output fields:\n", re.MULTILINE)
_OUTPUT_FIELD = re.compile(r"^- (\w+)(?: \((.*?)\))?(?::|$)(.*)$")
_EXAMPLE_COUNT = re.compile(
    r"^The first (?:(\d+) exchanges are examples|exchange is an example) of the task", re.MULTILINE
)
# Forms of values.
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*##[ \t]*(\w+)[ \t]*##[ \t]*\]\][ \t]*\n?", re.MULTILINE)
_SECTION_NAME = re.compile(r"\[\[ ## (?!completed )(\w+) ## \]\]")
_LAST_SECTION = "[[ ## completed ## ]]"
_TAG = re.compile(r"<(\w[\w.-]*)>\n?(.*?)\n?</\1>", re.DOTALL)
_TAG_NAME = re.compile(r"<(\w+)>")
_ESCAPE = re.compile(r"^(\s*)\\(\\*)(?=\[\[|~~~|```)", re.MULTILINE)
# Calls and results as text.
_CALL_BLOCK = re.compile(r"^~~~tool_call[ \t]*\n(.*?)\n~~~[ \t]*$", re.MULTILINE | re.DOTALL)
_RESULT_BLOCK = re.compile(r"^~~~tool_result[ \t]*\n(.*?)\n~~~[ \t]*$", re.MULTILINE | re.DOTALL)
_ERROR_TEXT = re.compile(r"\W*(?:error|execution error|exception|failed)\b", re.IGNORECASE)
# The user message: its first line in an example, its reminder of the answer's form, messages that are only a reminder.
_EXAMPLE_LINE = re.compile(r"\AExample \(some fields omitted\):\n+")
_REMINDER = re.compile(
    r"\n\n(?=(?:Answer|Respond|Reply|Write|Call|Use|Now|Remember|You must)\b[^\n]*(?:\n[^\n]+)*\s*\Z)"
)
_REMINDER_ONLY = re.compile(
    r"\A\s*(?:Answer|Respond|Reply|Go on|Continue|Call (?:the )?tools|You must call)\b[^\n]*\s*\Z"
    r"|\A\s*Your reply is invalid:"
)


def read_request(request: Request) -> PromptContent:
    """Return the content of a request."""
    system, messages = _split_system(request.messages)
    first = _example_messages(messages, system)
    start = next((place for place in reversed(range(first, len(messages))) if _asks(messages[place])), first - 1)
    inputs, reminder = _split_inputs(messages[start].text if start >= first else "")
    after = messages[start + 1 :]
    # The reminder of the answer's form follows the question, or else the results.
    form, outputs = _outputs(request, system, reminder or "".join(message.text[-600:] for message in after[-1:]))
    native = tuple(filter(None, map(OfferedTool.of, request.tools)))
    tools = native or _tools_in_text(system)
    demos = _demos(messages[: first or max(start, 0)])
    question = "\n".join(inputs.values())
    return PromptContent(question, demos, tuple(_steps(after)), tools, bool(tools) and not native, form, outputs)


def _split_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    system = "\n\n".join(message.text for message in messages if message.role == "system")
    return system, [message for message in messages if message.role != "system"]


def _example_messages(messages: Sequence[Message], system: str) -> int:
    """Return the number of messages that are examples according to the system message."""
    found = _EXAMPLE_COUNT.search(system)
    asked = [place for place, message in enumerate(messages) if _asks(message)] if found else []
    return [*asked, len(messages)][min(int(found[1] or 1), len(asked))] if found else 0


def _asks(message: Message) -> bool:
    """Return True for a user message that is more than results or a reminder."""
    rest = _RESULT_BLOCK.sub("", message.text).strip() if message.role == "user" else ""
    return bool(rest) and not _REMINDER_ONLY.match(rest)


def _split_inputs(text: str) -> tuple[dict[str, str], str]:
    """Return the input values by name, and the reminder of the form after them."""
    body, reminder = _EXAMPLE_LINE.sub("", text), ""
    if _HEADER.search(body) or _TAG.search(body):
        body, *rest = _REMINDER.split(body, maxsplit=1)
        reminder = "".join(rest)
    if sections := _sections(body):
        return sections, reminder
    tags = {name: value.strip() for name, value in _TAG.findall(body)}
    if tags and len("".join(tags.values())) * 2 > len(body) - 30 * len(tags):
        return tags, reminder
    return {"text": body.strip()}, reminder


def _sections(text: str) -> dict[str, str]:
    parts = _HEADER.split(text)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return {name: _ESCAPE.sub(r"\1\2", value.strip()) for name, value in pairs if name != "completed"}


def _steps(messages: Sequence[Message]) -> list[Step]:
    steps: list[Step] = []
    calls: list[tuple[str, str, Arguments]] = []
    for message in messages:
        if message.role == "assistant":
            calls = _calls(message)
        for place, (id, name, content, failed) in enumerate(_results(message)):
            by_place: tuple[str, str, Arguments] = calls[place] if place < len(calls) else ("", name, {})
            _, made, arguments = next((call for call in calls if id and call[0] == id), by_place)
            value = parse_json(content)
            steps.append(Step(made or name, arguments, value, failed or _is_error(value)))
    return steps


def _calls(message: Message) -> list[tuple[str, str, Arguments]]:
    if message.tool_calls:
        return [(call.id, call.name, call.arguments or {}) for call in message.tool_calls]
    blocks = _objects(_CALL_BLOCK, message.text)
    return [("", str(block.get("name")), a if is_mapping(a := block.get("arguments")) else {}) for block in blocks]


def _objects(pattern: re.Pattern[str], text: str) -> list[Schema]:
    return [block for found in pattern.findall(text) if is_mapping(block := parse_json(found))]


def _results(message: Message) -> list[tuple[str, str, object, bool]]:
    if message.role == "user":
        blocks = _objects(_RESULT_BLOCK, message.text)
        return [("", str(b.get("name", "")), b.get("error", b.get("result")), "error" in b) for b in blocks]
    return [(result.id, result.name, result.content, result.is_error) for result in message.tool_results]


def parse_json(value: object) -> JsonValue:
    """Return the JSON value of a text; other values and other texts are returned unchanged."""
    try:
        return cast(JsonValue, json.loads(value) if isinstance(value, str) else value)
    except (ValueError, RecursionError):
        return cast(JsonValue, value)


def as_text(value: JsonValue) -> str:
    """Return a text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_error(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return bool(value.get("error"))
    return isinstance(value, str) and _ERROR_TEXT.match(value) is not None


def _demos(messages: Sequence[Message]) -> tuple[PromptDemo, ...]:
    demos: list[PromptDemo] = []
    for asked, answer in pairwise(messages):
        if (asked.role, answer.role) == ("user", "assistant"):
            text = "\n".join(_split_inputs(asked.text)[0].values())
            calls = tuple((name, arguments) for _, name, arguments in _calls(answer))
            demos.append(PromptDemo(text, calls, _answer_fields(answer.text)))
    return tuple(demos)


def _answer_fields(answer: str) -> dict[str, str]:
    if sections := _sections(answer):
        return sections
    value = parse_json(answer)
    if isinstance(value, dict):
        return {name: as_text(item) for name, item in value.items()}
    return {name: text.strip() for name, text in _TAG.findall(answer)}


def _tools_in_text(system: str) -> tuple[OfferedTool, ...]:
    """Return the tools that the system message lists: one a line, as JSON or in type notation with indented notes."""
    listing = system.rpartition(_TOOL_LIST)[2] if _TOOL_LIST in system else ""
    entries: list[tuple[str, dict[str, str]]] = []
    for line in listing.strip("\n").partition("\n\n")[0].splitlines():
        if line.startswith("  ") and entries:
            name, _, note = line.strip().partition(": ")
            entries[-1][1][name] = note
        else:
            entries.append((line, {}))
    read = [parse_json(line) if line.startswith("{") else read_tool_line(line, notes) for line, notes in entries]
    return tuple(tool for data in read if is_mapping(data) and (tool := OfferedTool.of({"function": data})))


def _outputs(request: Request, system: str, reminder: str) -> tuple[Form, tuple[Output, ...]]:
    wanted = request.response_format
    if wanted is not None and wanted.schema is not None:
        members = properties_of(inline_refs(wanted.schema))
        return "json", tuple(Output(name, schema) for name, schema in members.items())
    described = _described_outputs(system)
    form, names = _form(system, reminder, list(described))
    outputs = tuple(Output(name, described.get(name, {"type": "string"})) for name in names or described)
    return "json" if wanted is not None else form, outputs


def _form(system: str, reminder: str, described: list[str]) -> tuple[Form, list[str]]:
    """Return the form of the answer and its fields, from the reminder or else from the system message."""
    if names := _SECTION_NAME.findall(reminder):
        return "sections", list(dict.fromkeys(names))
    if names := _TAG_NAME.findall(reminder):
        return "xml", list(dict.fromkeys(names))
    if "JSON" in reminder or (described and "JSON object" in system):
        return "json", described
    if described and _LAST_SECTION in system:
        return "sections", described
    return ("xml", described) if described and f"<{described[0]}>" in system else ("text", [])


def _described_outputs(system: str) -> dict[str, JsonObject]:
    match = _OUTPUT_LIST.search(system)
    found: dict[str, JsonObject] = {}
    block = re.split(r"\n[ \t]*\n(?!\s)", system[match.end() :], maxsplit=1)[0] if match else ""
    for entry in re.split(r"\n(?=- )", block):
        head, _, below = entry.partition("\n")
        if line := _OUTPUT_FIELD.match(head):
            kind = line[2] or below.partition("type:")[2] or "string"
            found[line[1]] = {**read_type(kind), **_levels(kind), "description": line[3].strip()}
    return found


def _levels(kind: str) -> JsonObject:
    """Return the levels of a number, which stand behind its type: ``float  // 0: none; 1: severe``."""
    texts = kind.partition("//")[2].split(";") if _LEVELS.match(kind) else []
    return {"x-levels": [{"label": text.partition(":")[2].strip()} for text in texts]} if texts else {}


_LEVELS = re.compile(r"\s*(?:float|int)\s*//\s*0: ")
