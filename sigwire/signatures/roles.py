"""Roles: the meaning of a field's type to the library, beyond a plain value.

``role_of`` raises for types without a meaning in their direction (tool calls as an input, a tool as an output), when the
signature is defined. ``validated_as`` is the type that pydantic validates.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, UnionType
from typing import Any, Literal, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.core.typed_dict import TypeExpression, to_typing_extensions
from sigwire.errors import FieldDefinitionError, SignatureError
from sigwire.signatures.annotations import contains, describe_type, members_of, nested_types, strip_annotated
from sigwire.signatures.types import Audio, Code, File, History, Image, Reasoning

__all__ = ["Direction", "Role", "check_fillable", "fillable_form", "role_of", "validated_as"]

Role: TypeAlias = Literal["value", "tools", "tool_calls", "history", "media", "reasoning", "code"]

MEDIA = (Image, Audio, File)
_TOOL_CONTAINERS = (list, tuple, dict, Sequence, Mapping)
_CLASS_ROLES: Mapping[type, Role] = {ToolCalls: "tool_calls", History: "history", Reasoning: "reasoning", Code: "code"}


def role_of(annotation: TypeExpression, name: str, direction: Direction, *, at_call: bool = False) -> Role:
    """Return the role of a field. Raises ``SignatureError`` if the type has no meaning in that direction.

    Raises ``FieldDefinitionError`` for an output that no text can fill; with ``at_call``, and for types of the door, the first
    call raises it (``check_fillable``).

    >>> role_of(list[Tool], "tools", "input"), role_of(History | None, "history", "input"), role_of(int, "n", "output")
    ('tools', 'history', 'value')
    """
    kind = strip_annotated(annotation)
    role: Role = _role_of_type(kind)
    if direction == "output" and role in ("value", "media", "tools"):
        found = _unfillable(annotation)
        if found is not None and not (at_call or getattr(found, "is_refused_at_call", False)):
            raise _unfillable_error(name, annotation, found)
        if found is not None or role != "value":
            return "value"
    # Types inside a user's record are data of the record; only the annotation itself is searched.
    written = nested_types(kind, records=False) if role == "value" else ()
    types = [member for member in written if isinstance(member, type)]
    if stray := next((kind for kind in _TOOL_TYPES for member in types if issubclass(member, kind)), None):
        raise SignatureError(
            f"Field {name!r} has the type {describe_type(annotation)}, in which {stray.__name__} has no meaning. "
            f"{_TOOL_TYPES[stray]}"
        )
    if advice := _MISPLACED.get((role, direction)):
        raise SignatureError(f"Field {name!r} has the type {describe_type(annotation)} as an {direction}: {advice}")
    return role


_TOOL_TYPES: Mapping[type, str] = {
    Tool: "Offer tools with an input of type Tool, list[Tool] or dict[str, Tool].",
    ToolCall: "The model's calls are an output of type ToolCalls.",
    ToolCalls: "The model's calls are an output of type ToolCalls, not part of another type.",
    ToolResult: "Results of tools travel in a History.",
    History: "A history is an input of type History, not part of another type.",
}
_MISPLACED: Mapping[tuple[Role, Direction], str] = {
    ("tool_calls", "input"): "calls are made by the model; make it an output. Earlier calls are part of a History.",
    ("history", "output"): "a history is kept by the caller; make it an input.",
}


def check_fillable(annotation: TypeExpression, name: str) -> None:
    """Raise ``FieldDefinitionError`` for an output that no text can fill."""
    if (found := _unfillable(annotation)) is not None:
        raise _unfillable_error(name, annotation, found)


def fillable_form(annotation: TypeExpression) -> TypeExpression:
    """Return the type of an output without the members of unions that no text can fill.

    >>> fillable_form(Image | str), fillable_form(list[Image | int]), fillable_form(Image)
    (<class 'str'>, list[int], <class 'sigwire.signatures.types.media.Image'>)
    """
    origin: Any = typing.get_origin(annotation)
    arguments: tuple[Any, ...] = typing.get_args(annotation)
    union: Any = typing.Union
    if origin in (typing.Union, UnionType):
        kept = [each for each in arguments if each is type(None) or _unfillable(each) is None]
        found = union[tuple(map(fillable_form, kept))] if any(each is not type(None) for each in kept) else annotation
        return annotation if found == annotation else found
    if origin in _FILLED and (made := tuple(map(fillable_form, arguments))) != arguments:
        return origin[made]
    return annotation


_FILLED: tuple[Any, ...] = (list, dict, set, frozenset, tuple)


def _unfillable(annotation: TypeExpression, seen: tuple[TypeExpression, ...] = ()) -> TypeExpression:
    """Return the type inside of a type that no text can fill, ``None`` if there is none."""
    kind = strip_annotated(annotation)
    origin: Any = typing.get_origin(kind)
    if origin is Callable or kind in (Callable, FunctionType):
        return kind
    if isinstance(kind, type) and origin is None and issubclass(kind, (*MEDIA, Tool)):
        return kind
    if any(kind is each for each in seen):
        return None
    found = [
        _unfillable(each, (*seen, kind)) for each in members_of(kind) if each not in (origin, Ellipsis, type(None))
    ]
    if origin in (typing.Union, UnionType) and None in found:
        return None
    return next((each for each in found if each is not None), None)


def _unfillable_error(name: str, annotation: TypeExpression, found: TypeExpression) -> FieldDefinitionError:
    is_class = isinstance(found, type)
    advice = next((text for cls, text in _UNFILLABLE.items() if is_class and issubclass(found, cls)), _FUNCTIONS)
    whole, part = describe_type(annotation), describe_type(found)
    inside = "" if part == whole else f" No text can fill {part} in it."
    return FieldDefinitionError(f"Field {name!r} has the type {whole} as an output: {advice}{inside}")


_FUNCTIONS = "a model writes no function; make it a str or Code, and make the function of that."
_ANSWERS = "answers are text; make it a str, such as a URL or a description, and make the file of that."
_UNFILLABLE: Mapping[type, str] = {
    Tool: "tools are offered by the caller; make it an input, and ToolCalls the output.",
    **dict.fromkeys(MEDIA, _ANSWERS),
}


def _role_of_type(kind: TypeExpression) -> Role:
    if isinstance(kind, type):
        for whole, role in _CLASS_ROLES.items():
            if issubclass(kind, whole):
                return role
    if _is_tools(kind):
        return "tools"
    return "media" if contains(kind, *MEDIA) else "value"


def _is_tools(kind: object) -> bool:
    if _is_tool(kind):
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin not in _TOOL_CONTAINERS:
        return False
    items = arguments[1:] if issubclass(origin, Mapping) else arguments
    return bool(items) and all(_is_tool(strip_annotated(item)) for item in items if item is not Ellipsis)


def _is_tool(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Tool)


def validated_as(annotation: TypeExpression, role: Role) -> TypeExpression:
    """Return the type that pydantic validates. Any value passes for tools: they are checked when offered."""
    if role == "tools":
        return Any
    return _tool_calls_type() if role == "tool_calls" else to_typing_extensions(annotation)


def _tool_calls_type() -> TypeExpression:
    from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

    return typing.Annotated[
        Any, PlainValidator(_read_calls), PlainSerializer(_write_calls, when_used="json"), WithJsonSchema(_CALLS_SCHEMA)
    ]


_CALLS_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "args": {"type": "object"}},
                "required": ["name", "args"],
            },
        }
    },
    "required": ["tool_calls"],
}


def _write_calls(calls: ToolCalls | None) -> Any:  # pydantic evaluates this annotation
    return None if calls is None else calls.to_json()


def _read_calls(value: object) -> ToolCalls | None:
    """Return calls from their JSON, ``{"tool_calls": [...]}``, a list of calls, or one call."""
    if value is None or isinstance(value, ToolCalls):
        return value
    if is_mapping(value):
        has_calls = "tool_calls" in value
        return ToolCalls(value["tool_calls"], str(value.get("text") or "")) if has_calls else ToolCalls([value])
    if is_items(value):
        return ToolCalls(value)
    raise ValueError(f"Tool calls are a list of calls, not {type(value).__name__}.")


Direction: TypeAlias = Literal["input", "output"]
