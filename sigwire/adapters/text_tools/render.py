"""Instructions for a model without native tools: the form of a call, and the list of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from sigwire.adapters.text_tools.styles import TAUGHT, CallStyle, write_json
from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_mapping, is_sequence

__all__ = ["ToolSchemas", "instructions", "one_line", "schema_text", "tool_line"]

ToolSchemas: TypeAlias = Literal["full", "compact"]

_RULES = """\
You can call tools. {lead}

{form}

- {several}
- Match the arguments to the tool's parameters. {empty}
- Stop after your last {call}. The next message contains the results as {results}. Never write results yourself.
- If you need no tool, do not write a {call}.{alone}

Tools:
"""
_ALONE = "\n- In a message with tool calls, write no other text."


def instructions(
    specs: Sequence[JsonObject], schemas: ToolSchemas = "full", style: CallStyle = TAUGHT, *, alone: bool = False
) -> str:
    """Return the part of the system message that teaches a form of calling and lists the tools.

    ``schemas``: "full" shows each tool's JSON Schema, "compact" a line such as ``add(a: integer, b?: integer)``.
    ``alone``: calls count only in a message without other text, and the instructions state that.

    >>> spec = {"type": "function", "function": {"name": "ping", "description": "Say hello.", "parameters": {}}}
    >>> instructions([spec]).splitlines()[-1]
    '{"name": "ping", "description": "Say hello.", "parameters": {}}'
    """
    rules = _RULES.format(
        lead=style.lead,
        form=style.form(),
        several=style.several,
        empty=style.empty,
        results=style.results,
        call="block" if style is TAUGHT else "tool call",
        alone=_ALONE if alone else "",
    )
    functions = [_mapping_of(spec.get("function")) or spec for spec in specs]
    if schemas == "compact":
        return rules + "\n".join(map(tool_line, functions))
    shown = [{name: each[name] for name in ("name", "description", "parameters") if name in each} for each in functions]
    return rules + "\n".join(map(write_json, shown))


def tool_line(function: Mapping[str, Any]) -> str:
    """Return a tool as one line in the form of a signature, with a line for each described parameter.

    >>> print(tool_line({"name": "add", "description": "Add.", "parameters": {"type": "object", "required": ["a"],
    ...     "properties": {"a": {"type": "integer", "description": "the first"}, "b": {"type": "integer"}}}}))
    add(a: integer, b?: integer): Add.
      a: the first
    """
    parameters = _mapping_of(function.get("parameters"))
    definitions = _mapping_of(parameters.get("$defs") or parameters.get("definitions"))
    arguments = _members_of(parameters, definitions, defaults=True)
    if parameters.get("additionalProperties") not in (None, False):
        arguments.append("...")
    description = one_line(function.get("description") or "")
    head = f"{function['name']}({', '.join(arguments)}){': ' + description if description else ''}"
    for name, schema in _mapping_of(parameters.get("properties")).items():
        if is_mapping(schema) and schema.get("description"):
            head += f"\n  {name}: {one_line(schema['description'])}"
    return head


def _members_of(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int = 0, *, defaults: bool = False
) -> list[str]:
    """Return the properties of an object as ``name: type``, with a question mark if optional."""
    required: frozenset[str] = frozenset(schema.get("required") or ())
    return [
        f"{name}{'' if name in required else '?'}: {schema_text(member, definitions, depth)}"
        + (_default_text(member) if defaults else "")
        for name, member in _mapping_of(schema.get("properties")).items()
    ]


def _mapping_of(value: object) -> Mapping[str, Any]:
    return value if is_mapping(value) else {}


def _default_text(schema: object) -> str:
    return f" = {write_json(schema['default'])}" if is_mapping(schema) and "default" in schema else ""


def one_line(text: object) -> str:
    """Return a text with each run of white space as one blank."""
    return " ".join(str(text).split())


_MAX_DEPTH = 6


def schema_text(schema: object, definitions: Mapping[str, Any] | None = None, depth: int = 0) -> str:
    """Return a JSON Schema as a short type.

    >>> schema_text({"type": "array", "items": {"enum": ["a", "b"]}})
    '("a" | "b")[]'
    """
    definitions = definitions or {}
    if not is_mapping(schema) or depth > _MAX_DEPTH:
        return "any"
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return schema_text(definitions[name], definitions, depth + 1) if name in definitions else name
    if "const" in schema:
        return write_json(schema["const"])
    if is_sequence(schema.get("enum")):
        return _join_types(map(write_json, schema["enum"]))
    members = next((schema[key] for key in ("anyOf", "oneOf") if is_sequence(schema.get(key))), None)
    if members is not None:
        return _join_types(schema_text(member, definitions, depth + 1) for member in members)
    return _type_text(schema, definitions, depth)


def _type_text(schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> str:
    kind = schema.get("type")
    if is_sequence(kind):
        return _join_types([_type_text({**schema, "type": member}, definitions, depth) for member in kind])
    if kind == "array":
        items = schema_text(schema.get("items", {}), definitions, depth + 1)
        return f"({items})[]" if " | " in items else f"{items}[]"
    if kind == "object" or "properties" in schema:
        members = _members_of(schema, definitions, depth + 1)
        return f"{{ {', '.join(members)} }}" if members else "object"
    return str(kind or "any")


def _join_types(members: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(members))
