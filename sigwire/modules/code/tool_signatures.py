"""Tools as typed Python signatures, for the prompt of a model that writes code: fewer tokens than their JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.schema import schema_of
from sigwire.core.tools.module_tool import result_types
from sigwire.core.tools.tool import Tool

__all__ = ["python_type", "tool_signature"]

_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DEEPEST = 4


def tool_signature(name: str, tool: Tool) -> str:
    """Return a tool as the head of a function with its description.

    >>> def stock(item: str, days: list[int] | None = None) -> dict[str, int]:
    ...     '''Return the stock of an item.
    ...
    ...     Args:
    ...         days: days of the month
    ...     '''
    >>> print(tool_signature("stock", Tool(stock)))
    def stock(item: str, days: list[int] | None = None) -> dict[str, int]
        Return the stock of an item. days: days of the month
    """
    schema = tool.parameters
    properties = _objects(schema.get("properties"))
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    arguments = [_argument(each, part, each in names) for each, part in properties.items()]
    if schema.get("additionalProperties") not in (None, False):
        arguments.append("**more")
    returned = _result_type(tool)
    described = [f"{each}: {part['description']}" for each, part in properties.items() if "description" in part]
    text = " ".join(" ".join([tool.description, *described]).split())
    return f"def {name}({', '.join(arguments)}){f' -> {returned}' if returned else ''}" + (
        f"\n    {text}" if text else ""
    )


def _argument(name: str, schema: JsonObject, is_required: bool) -> str:
    return f"{name}: {python_type(schema)}" + ("" if is_required else f" = {schema.get('default')!r}")


def _result_type(tool: Tool) -> str:
    """Return the type of the results: from the handler's annotation, or from the output schema of an MCP server; else ""."""
    declared = tool.metadata.get("outputSchema")
    if isinstance(declared, dict):
        return python_type(declared)
    if tool.handler is None:
        return ""
    types = result_types(tool.handler)
    try:
        schemas = {name: schema_of(kind) for name, kind in types.items()}
    except (KeyError, TypeError, RuntimeError):  # a class without a schema
        return ""
    if not schemas:
        return ""
    return python_type(schemas.get("", {"type": "object", "properties": {**schemas}}))


def python_type(schema: JsonValue, depth: int = 0) -> str:
    """Return the Python type of the JSON values that a schema describes.

    >>> python_type({"type": "array", "items": {"enum": ["a", "b"]}})
    "list[Literal['a', 'b']]"
    >>> python_type({"type": "object", "properties": {"n": {"type": "integer"}}})
    "{'n': int}"
    """
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return "Any"
    if isinstance(options := schema.get("enum") or schema.get("const"), list) or "const" in schema:
        return f"Literal[{', '.join(map(repr, options if isinstance(options, list) else [options]))}]"
    members = schema.get("anyOf") or schema.get("oneOf") or schema.get("type")
    if isinstance(members, list):
        return _union_type(schema, members, depth)
    if members == "array":
        return f"list[{python_type(schema.get('items'), depth + 1)}]"
    if members == "object":
        return _object_type(schema, depth + 1)
    return _NAMES.get(str(members), "Any")


def _union_type(schema: JsonObject, members: list[JsonValue], depth: int) -> str:
    each = [member if isinstance(member, dict) else {**schema, "type": member} for member in members]
    return " | ".join(dict.fromkeys(python_type(member, depth) for member in each))


def _object_type(schema: JsonObject, depth: int) -> str:
    properties = _objects(schema.get("properties"))
    if properties:
        return "{" + ", ".join(f"{name!r}: {python_type(part, depth)}" for name, part in properties.items()) + "}"
    values = schema.get("additionalProperties")
    return f"dict[str, {python_type(values, depth)}]" if isinstance(values, dict) else "dict"


def _objects(value: JsonValue) -> Mapping[str, JsonObject]:
    found: Iterable[tuple[str, JsonValue]] = value.items() if isinstance(value, dict) else ()
    return {name: part for name, part in found if isinstance(part, dict)}
