"""Cards of tools and their calls: the signature as Python writes it, the description, the schema folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from itertools import islice

from sigwire.core.cards.values import json_line, media_line
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.show.card import Card
from sigwire.show.cleaning import MOST_IN_VALUE, inline
from sigwire.show.lines import CallLine, CardLine, PictureLine, ValueLine
from sigwire.show.pictures import picture_text
from sigwire.show.values import MOST_IN_REPR, MOST_OF_VALUE, call_line, short_repr

__all__ = [
    "argument_text", "schema_type", "shown_call", "tool_calls_card", "tool_calls_line", "tool_card", "tool_line",
    "tool_spec_card",
]  # fmt: skip


def tool_line(tool: Tool) -> str:
    """Return ``Tool(add(a: int, b: int = 2))``."""
    return f"Tool({_signature(tool, 490)})"


def tool_card(tool: Tool) -> Card:
    """Return the card of a tool."""
    rows: list[tuple[str, list[CardLine]]] = [
        ("description", [ValueLine(tool.description)] if tool.description else []),
        ("arguments", [f"{name}: {text}" for name, text in _described_arguments(tool)]),
        ("limits", [", ".join(found)] if (found := list(_limits(tool))) else []),
    ]
    built_in = tool.config is not None
    schema = Card("settings" if built_in else "schema", rows=[("JSON", [json_line(tool.spec)])])
    return Card("Tool", _signature(tool, 160), [(label, lines) for label, lines in rows if lines], children=[schema])


def tool_spec_card(spec: Mapping[str, object]) -> Card:
    """Return the card of a tool in a request: name and description, the schema folded."""
    function = spec.get("function")
    found = function if is_mapping(function) else spec
    description = found.get("description")
    schema = Card("schema", rows=[("JSON", [json_line(found.get("parameters", spec))])])
    rows = [("description", [ValueLine(description)])] if isinstance(description, str) and description else []
    return Card(inline(found.get("name") or spec.get("type") or "tool"), rows=rows, children=[schema], is_open=True)


def tool_calls_line(calls: ToolCalls) -> str:
    """Return ``ToolCalls([ToolCall(...)])``, as Python writes it if it is short; otherwise with calls that are cut."""
    text = [f"text={short_repr(calls.text, MOST_IN_REPR)}"] if calls.text else []
    shown = [_call_repr(call, MOST_IN_REPR) for call in calls[:_MOST_CALLS]]
    whole = ", ".join([f"[{', '.join(shown)}]", *text])
    if len(calls) <= _MOST_CALLS and len(whole) <= MOST_IN_REPR:
        return f"ToolCalls({whole})"
    cut = call_line("", (_call_repr(call, MOST_OF_VALUE) for call in calls), MOST_IN_REPR - MOST_OF_VALUE)
    return call_line("ToolCalls", [f"[{cut[1:-1]}]", *(short_repr(calls.text, 40) for _ in text)])


_MOST_CALLS = 20


def _call_repr(call: ToolCall, most: int) -> str:
    """Return the ``repr`` of a call with each value cut: it costs what is shown."""
    return call_line(
        "ToolCall", (f"{each.name}={short_repr(getattr(call, each.name), most)}" for each in fields(call)), most
    )


def tool_calls_card(calls: ToolCalls) -> Card:
    """Return the card of the calls of a turn."""
    rows = [("text", [ValueLine(calls.text)])] if calls.text else []
    return Card("ToolCalls", f"{len(calls)}", rows, calls=[shown_call(call) for call in calls])


def shown_call(call: ToolCall, result: ToolResult | None = None) -> CallLine:
    """Return a call with its result."""
    if result is None:
        problem = f"{call.error.code}: {call.error.message[:1_000]}" if call.error is not None else None
        return _with_code(call, CallLine(call.name, argument_text(call), problem, is_error=problem is not None))
    content = result.content
    text = content if isinstance(content, str) else short_repr(content, MOST_IN_VALUE)
    media = [line for part in result.media if (line := media_line(part)) is not None]
    more = [picture_text(line) if isinstance(line, PictureLine) else inline(_text(line)) for line in media]
    shown = " · ".join([text, *more]) if more else text
    return _with_code(call, CallLine(call.name, argument_text(call), shown, result.is_error))


def _with_code(call: ToolCall, line: CallLine) -> CallLine:
    """Return a call whose only argument is code of several lines, with the code as lines."""
    code = call.arguments.get("code") if call.arguments is not None and len(call.arguments) == 1 else None
    return replace(line, arguments="", code=code) if isinstance(code, str) and "\n" in code else line


def argument_text(call: ToolCall) -> str:
    """Return the arguments of a call as keywords.

    >>> argument_text(ToolCall("call_0", "add", {"a": 2, "b": 3}))
    'a=2, b=3'
    """
    if call.arguments is None:
        return call.raw_arguments or ""
    return ", ".join(f"{name[:80]}={short_repr(value)}" for name, value in islice(call.arguments.items(), 20))


def schema_type(schema: object) -> str:
    """Return a JSON Schema as Python writes the type.

    >>> schema_type({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]})
    'list[int] | None'
    """
    if not is_mapping(schema):
        return "Any"
    if is_items(options := schema.get("enum")):
        return " | ".join(short_repr(option, 40) for option in islice(options, 8))
    if "const" in schema:
        return short_repr(schema["const"], 40)
    if is_items(kinds := schema.get("anyOf") or schema.get("oneOf")):
        return " | ".join(schema_type(kind) for kind in islice(kinds, 8))
    if isinstance(reference := schema.get("$ref"), str):
        return inline(reference.rpartition("/")[2], 40)
    return _named_type(schema)


_TYPES = {
    "integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None", "array": "list",
    "object": "dict",
}  # fmt: skip


def _named_type(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if is_items(kind):
        return " | ".join(_TYPES.get(str(each), "Any") for each in kind)
    name = _TYPES.get(str(kind), "Any")
    if name == "list" and is_mapping(items := schema.get("items")):
        return f"list[{schema_type(items)}]"
    return inline(schema["title"], 40) if name == "dict" and "title" in schema else name


def _signature(tool: Tool, most: int) -> str:
    properties, required = _properties(tool)
    return call_line(inline(tool.name, 80), (_argument(*each, required) for each in properties.items()), most)


def _argument(name: str, schema: object, required: frozenset[object]) -> str:
    kind, default = schema_type(schema), schema.get("default") if is_mapping(schema) else None
    has_default = is_mapping(schema) and "default" in schema
    end = f" = {short_repr(default, 40)}" if has_default else "" if name in required else " = …"
    return f"{inline(name, 80)}: {kind}{end}"


def _properties(tool: Tool) -> tuple[Mapping[str, object], frozenset[object]]:
    found, required = tool.parameters.get("properties"), tool.parameters.get("required")
    properties: Mapping[str, object] = found if is_mapping(found) else {}
    return properties, frozenset(map(str, required)) if is_items(required) else frozenset()


def _described_arguments(tool: Tool) -> Iterator[tuple[str, str]]:
    for name, schema in islice(_properties(tool)[0].items(), 20):
        if is_mapping(schema) and isinstance(text := schema.get("description"), str):
            yield name[:80], text[:1_000]


def _limits(tool: Tool) -> Iterator[str]:
    if tool.timeout is not None:
        yield f"{tool.timeout:g} s"
    if tool.max_output is not None:
        yield f"{tool.max_output:,} characters of output"
    if not tool.parallel:
        yield "not in parallel"
    if tool.on_crash != "ask":
        yield f"after a crash: {tool.on_crash}"
    if tool.on_error is not None:
        yield f"after an error: {tool.on_error if isinstance(tool.on_error, str) else 'a function'}"
    if not tool.tunable:
        yield "texts are fixed"


def _text(line: object) -> str:
    return line.text if isinstance(line, ValueLine) else ""
