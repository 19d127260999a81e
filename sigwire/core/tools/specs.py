"""Tools given as dicts: the public forms of functions and of built-in tools, read into the form of ``Tool.spec``.

    {"type": "function", "function": {"name", "description", "parameters"}}    OpenAI's chat completions: the canonical form
    {"type": "function", "name", "description", "parameters"}                  OpenAI's Responses
    {"name", "description", "input_schema"}                                    Anthropic; ``type`` may be "custom"
    {"functionDeclarations": [{"name", "description", "parameters"}]}          Gemini; a single declaration needs a schema
    {"name", "description", "inputSchema"}                                     MCP
    {"type": kind, **settings}  {"googleSearch": settings}                     built-in tools: {"type": kind, kind: settings}

Other fields of a function (``strict``, ``cache_control``) are kept beside its name; each wire sends those that it has. An
object beside ``function`` (``"anthropic": {...}``) has fields for the wire of that family alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_mapping, is_object, is_sequence
from sigwire.errors import ToolDefinitionError

__all__ = ["GEMINI_TOOLS", "are_specs", "read_tools"]

GEMINI_TOOLS = frozenset(
    "codeExecution computerUse enterpriseWebSearch exaAiSearch fileSearch googleMaps googleSearch googleSearchRetrieval "
    "parallelAiSearch retrieval urlContext".split()
)
"""The keys of Gemini's built-in tools, which have no ``type``."""


def are_specs(tools: Iterable[object]) -> bool:
    """Return True if every tool has the form of ``Tool.spec``."""
    return all(map(_is_spec, tools))


def read_tools(tools: Iterable[object]) -> tuple[JsonObject, ...]:
    """Return the specs of tools: of dicts in any public form, and of objects with a ``spec``.

    Raises ``ToolDefinitionError`` for any other value.

    >>> read_tools([{"name": "f", "input_schema": {"type": "object"}, "strict": True}])
    ({'type': 'function', 'function': {'name': 'f', 'strict': True, 'parameters': {'type': 'object'}}},)
    >>> read_tools([{"type": "web_search", "search_context_size": "low"}])
    ({'type': 'web_search', 'web_search': {'search_context_size': 'low'}},)
    """
    return tuple(chain.from_iterable(map(_specs_of, map(_as_dict, tools))))


def _as_dict(tool: object) -> Mapping[str, Any]:
    given = tool if is_mapping(tool) else getattr(tool, "spec", None)
    if not is_mapping(given):
        raise ToolDefinitionError(f"A tool of a request is a dict or a Tool, not {type(tool).__name__}. {_ADVICE}")
    return given


def _is_spec(tool: object) -> bool:
    if not is_object(tool):
        return False
    kind = tool.get("type")
    if kind != "function":
        return isinstance(kind, str) and tool.keys() <= {"type", kind} and is_object(tool.get(kind, {}))
    return _is_function(tool.get(kind)) and (len(tool) == 2 or not _outer_fields(tool))


def _is_function(function: object) -> bool:
    if not is_object(function) or not is_object(function.get("parameters") or {}):
        return False
    name = function.get("name")
    return isinstance(name, str) and name != ""


def _outer_fields(tool: Mapping[str, Any]) -> JsonObject:
    """Return the fields that a caller wrote outside ``function``, without the objects for one family."""
    return {
        name: value
        for name, value in tool.items()
        if name not in ("type", "function") and (name == "cache_control" or not is_mapping(value))
    }


def _specs_of(tool: Mapping[str, Any]) -> Iterable[JsonObject]:
    return (cast("JsonObject", tool),) if _is_spec(tool) else _read_tool(tool)


def _read_tool(tool: Mapping[str, Any]) -> Iterator[JsonObject]:
    kind = tool.get("type")
    if kind is None and tool.keys().isdisjoint(_FUNCTION_KEYS):
        yield from _gemini_specs({_camel_case(str(name)): value for name, value in tool.items()})
    elif kind in (None, "function") or (kind == "custom" and not tool.keys().isdisjoint(_SCHEMAS)):
        yield _nested_spec(tool) if is_mapping(tool.get("function")) else _function_spec(tool)
    elif isinstance(kind, str) and kind:
        yield _builtin_spec(kind, tool)
    else:
        raise _unknown_form(tool)


def _unknown_form(tool: Mapping[str, Any]) -> ToolDefinitionError:
    return ToolDefinitionError(f"A tool has none of the known forms; its keys are {[*tool]!r:.120}. {_ADVICE}")


def _nested_spec(tool: Mapping[str, Any]) -> JsonObject:
    outer = _outer_fields(tool)
    families = {name: tool[name] for name in tool if name not in ("type", "function", *outer)}
    return {**_function_spec({**tool["function"], **outer}), **families}


def _gemini_specs(tool: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield the specs of a tool in Gemini's form: declared functions, and built-in tools by their keys."""
    if not tool or not tool.keys() <= GEMINI_TOOLS | {_DECLARATIONS}:
        raise _unknown_form(tool)
    for name, value in tool.items():
        if name != _DECLARATIONS:
            yield _builtin_spec(name, {name: value})
        elif is_sequence(value) and all(map(is_mapping, value)):
            yield from (_function_spec({_camel_case(str(key)): each[key] for key in each}) for each in value)
        else:
            raise ToolDefinitionError(f"{name} is a list of dicts, not {type(value).__name__}. {_ADVICE}")


def _camel_case(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _builtin_spec(kind: str, tool: Mapping[str, Any]) -> JsonObject:
    own = tool.get(kind)
    rest = {name: value for name, value in tool.items() if name not in ("type", kind)}
    return {"type": kind, kind: {**(own if is_mapping(own) else {}), **rest}}


def _function_spec(function: Mapping[str, Any]) -> JsonObject:
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ToolDefinitionError(f"A tool needs a name; its keys are {[*function]!r:.120}. {_ADVICE}")
    ignored = {"type", *_SCHEMAS, *(_MCP_FIELDS if "inputSchema" in function else ())}
    fields = {key: value for key, value in function.items() if key not in ignored and value is not None}
    schema = next((function[key] for key in _SCHEMAS if function.get(key) is not None), None)
    return {
        "type": "function",
        "function": fields if schema is None else {**fields, "parameters": _json_schema(name, schema)},
    }


_DECLARATIONS = "functionDeclarations"
_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")
_FUNCTION_KEYS = frozenset({"function", *_SCHEMAS})
_MCP_FIELDS = ("_meta", "annotations", "execution", "icons", "outputSchema", "title")  # not for models
_ADVICE = (
    'Write {"type": "function", "function": {"name": ..., "description": ..., "parameters": {...}}}, the form of OpenAI\'s '
    "Responses, Anthropic, Gemini or MCP, or use Tool(function).spec."
)


def _json_schema(name: str, schema: object) -> JsonValue:
    """Return the JSON Schema of a tool. Gemini's ``parameters`` may have OpenAPI's types in capitals and ``nullable``."""
    if not is_mapping(schema):
        raise ToolDefinitionError(f"The parameters of the tool {name!r} are no JSON Schema, an object. {_ADVICE}")
    kind = schema.get("type")
    return _from_openapi(dict(schema)) if isinstance(kind, str) and kind.isupper() else cast("JsonValue", schema)


def _from_openapi(node: JsonValue) -> JsonValue:
    if isinstance(node, list):
        return [*map(_from_openapi, node)]
    if not is_object(node):
        return node
    schema: JsonObject = {_camel_case(name): value for name, value in node.items()}
    schema |= {
        name: _from_openapi(schema[name]) for name in ("additionalProperties", "anyOf", "items") if name in schema
    }
    if is_object(members := schema.get("properties")):
        schema["properties"] = {name: _from_openapi(member) for name, member in members.items()}
    if kind := str(schema.get("type", "")).lower():
        schema["type"] = [kind, "null"] if schema.pop("nullable", False) else kind
    return schema
