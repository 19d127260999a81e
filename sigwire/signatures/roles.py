"""Roles: what a field's type means to the library beyond being a value.

``role_of`` reads an annotation and refuses combinations that cannot mean anything (tool calls as an input, a tool as an
output). ``check_roles`` looks at a whole signature. Both speak at definition, so that no call fails for it later.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from sigwire.core.tools.tool import Tool, ToolCall, ToolCalls, ToolResult
from sigwire.core.typed_dict import to_typing_extensions
from sigwire.errors import SignatureError
from sigwire.signatures.types import Audio, Code, File, History, Image, Reasoning
from sigwire.signatures.types.base import as_items, as_mapping

if TYPE_CHECKING:
    from sigwire.signatures.fields import Direction, FieldSpec

__all__ = [
    "Role",
    "allows_none",
    "check_roles",
    "contains",
    "nested_types",
    "role_of",
    "strip_annotated",
    "validated_as",
]

Role: TypeAlias = Literal["value", "tools", "tool_calls", "history", "media", "reasoning", "code"]

MEDIA = (Image, Audio, File)
_TOOL_CONTAINERS = (list, tuple, dict, Sequence, Mapping)
_WHOLE: Mapping[type, Role] = {ToolCalls: "tool_calls", History: "history", Reasoning: "reasoning", Code: "code"}


def role_of(annotation: Any, name: str, direction: Direction) -> Role:
    """The role of a field, by its type. Raises ``SignatureError`` where the type has no meaning in that direction.

    >>> role_of(list[Tool], "tools", "input"), role_of(History | None, "history", "input"), role_of(int, "n", "output")
    ('tools', 'history', 'value')
    """
    kind = strip_annotated(annotation)
    role: Role = _role(kind)
    # Inside a user's record they are that record's data; only the annotation itself is looked at.
    written = nested_types(kind, records=False) if role == "value" else ()
    types = [member for member in written if isinstance(member, type)]
    if stray := next((kind for kind in _TOOL_TYPES for member in types if issubclass(member, kind)), None):
        raise SignatureError(
            f"Field {name!r} has the type {_show(annotation)}, in which {stray.__name__} has no meaning. "
            f"{_TOOL_TYPES[stray]}"
        )
    if fault := _MISPLACED.get((role, direction)):
        raise SignatureError(f"Field {name!r} has the type {_show(annotation)} as an {direction}: {fault}")
    return role


_TOOL_TYPES: Mapping[type, str] = {
    Tool: "Offer tools with an input of type Tool, list[Tool] or dict[str, Tool].",
    ToolCall: "The model's calls are an output of type ToolCalls.",
    ToolCalls: "The model's calls are an output of type ToolCalls, not part of another type.",
    ToolResult: "Results of tools travel in a History.",
    History: "A history is an input of type History, not part of another type.",
}
_MISPLACED: Mapping[tuple[Role, Direction], str] = {
    ("tools", "output"): "tools are offered by the caller; make it an input, and ToolCalls the output.",
    ("tool_calls", "input"): "calls are made by the model; make it an output. Earlier calls are part of a History.",
    ("history", "output"): "a history is kept by the caller; make it an input.",
}


def _role(kind: Any) -> Role:
    if isinstance(kind, type):
        for whole, role in _WHOLE.items():
            if issubclass(kind, whole):
                return role
    if _is_tools(kind):
        return "tools"
    return "media" if contains(kind, *MEDIA) else "value"


def _is_tools(kind: Any) -> bool:
    if _is_tool(kind):
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin not in _TOOL_CONTAINERS:
        return False
    items = arguments[1:] if issubclass(origin, Mapping) else arguments
    return bool(items) and all(_is_tool(strip_annotated(item)) for item in items if item is not Ellipsis)


def _is_tool(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Tool)


def validated_as(annotation: Any, role: Role) -> Any:
    """The type whose pydantic validator fits the role. Tools are checked where they are offered, so anything passes."""
    if role == "tools":
        return Any
    return _calls_type() if role == "tool_calls" else to_typing_extensions(annotation)


def _calls_type() -> Any:
    from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

    return typing.Annotated[
        Any,
        PlainValidator(_read_calls),
        PlainSerializer(_write_calls, when_used="json"),
        WithJsonSchema(_CALLS_SCHEMA),
    ]


_CALLS_SCHEMA: dict[str, Any] = {
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


def _write_calls(calls: ToolCalls | None) -> Any:
    return None if calls is None else calls.to_json()


def _read_calls(value: Any) -> ToolCalls | None:
    """Calls from whatever stands for them: our JSON, DSPy's ``{"tool_calls": [...]}``, a list, one call."""
    if value is None or isinstance(value, ToolCalls):
        return value
    if (data := as_mapping(value)) is not None:
        whole = "tool_calls" in data
        return ToolCalls(data["tool_calls"], str(data.get("text") or "")) if whole else ToolCalls([data])
    if (calls := as_items(value)) is not None:
        return ToolCalls(calls)
    raise ValueError(f"Tool calls are a list of calls, not {type(value).__name__}.")


def check_roles(signature: str, fields: Iterable[FieldSpec]) -> None:
    """Refuse a signature whose fields contradict each other.

    >>> from sigwire.signatures.signature import Signature
    >>> Signature("question -> calls: ToolCalls")
    Traceback (most recent call last):
    sigwire.errors.SignatureError: StringSignature: the output 'calls' asks for tool calls, but no input offers tools. \
Add an input such as tools: list[Tool].
    """
    by_role: dict[Role, list[str]] = {}
    for spec in fields:
        by_role.setdefault(spec.role, []).append(spec.name)
    for role in ("tools", "tool_calls", "history"):
        if len(names := by_role.get(role, [])) > 1:
            raise SignatureError(
                f"{signature}: {', '.join(map(repr, names))} are all {role.replace('_', ' ')} fields. "
                f"A signature has at most one; remove {' and '.join(map(repr, names[1:]))}."
            )
    if "tool_calls" in by_role and "tools" not in by_role:
        raise SignatureError(
            f"{signature}: the output {by_role['tool_calls'][0]!r} asks for tool calls, but no input offers tools. "
            "Add an input such as tools: list[Tool]."
        )


# --- reading annotations -------------------------------------------------------------------------


def strip_annotated(annotation: Any) -> Any:
    """The type itself: without ``Annotated``, without aliases (``type X = ...``), without ``| None``.

    >>> strip(typing.Annotated[int | None, "meta"])
    <class 'int'>
    """
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif (alias := _alias(annotation)) is not None:
            annotation = alias
        elif origin in (typing.Union, types.UnionType):
            members = [member for member in typing.get_args(annotation) if member is not type(None)]
            if len(members) != 1:
                return annotation
            annotation = members[0]
        else:
            return annotation


def _alias(annotation: Any) -> Any:
    """What ``type X = ...`` stands for; parameters of a generic alias are filled in."""
    if isinstance(annotation, _ALIAS_TYPES):
        return annotation.__value__
    origin = typing.get_origin(annotation)
    if isinstance(origin, _ALIAS_TYPES):
        value = origin.__value__
        return value[typing.get_args(annotation)] if getattr(value, "__parameters__", ()) else value
    return None


def _alias_types() -> tuple[Any, ...]:
    import typing_extensions

    kinds = [getattr(module, "TypeAliasType", None) for module in (typing, typing_extensions)]
    return tuple({kind for kind in kinds if isinstance(kind, type)})


_ALIAS_TYPES = _alias_types()


def allows_none(annotation: Any) -> bool:
    """Whether ``None`` is a value of the type.

    >>> allows_none(int | None), allows_none(int), allows_none(Any)
    (True, False, True)
    """
    if annotation is None or annotation is type(None) or annotation is Any:
        return True
    if (alias := _alias(annotation)) is not None:
        return allows_none(alias)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return allows_none(arguments[0])
    if origin is Literal:
        return None in arguments
    return origin in (typing.Union, types.UnionType) and any(map(allows_none, arguments))


def contains(annotation: Any, *wanted: type) -> bool:
    """Whether a type mentions any of the others: in its arguments, in the fields of its models, through recursion.

    >>> contains(dict[str, list[Image]], Image)
    True
    """
    return any(isinstance(found, type) and issubclass(found, wanted) for found in nested_types(annotation))


def nested_types(annotation: Any, *, records: bool = True) -> Iterator[Any]:
    """The type and every type it is made of, each once; with ``records`` also the types of records' fields."""
    seen: dict[int, Any] = {}  # holds the types, so that no id is used twice
    pending = [annotation]
    while pending:
        current = pending.pop()
        if id(current) in seen or current is None:
            continue
        seen[id(current)] = current
        yield current
        pending += _parts_of(current, records)


def _parts_of(annotation: Any, records: bool) -> list[Any]:
    if (alias := _alias(annotation)) is not None:
        return [alias]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return []
    if origin is not None:
        return [origin, *(arguments[:1] if origin is typing.Annotated else arguments)]
    if not records or not isinstance(annotation, type) or annotation.__module__ in ("builtins", "typing"):
        return []
    nothing: list[Any] = []
    return next((list(read(annotation)) for applies, read in _RECORDS if applies(annotation)), nothing)


def _pydantic_types(model: Any) -> Iterator[Any]:
    return (info.annotation for info in model.model_fields.values())


def _hinted_types(record: Any) -> Iterator[Any]:
    try:
        return iter(typing.get_type_hints(record).values())
    except (NameError, TypeError):  # a forward reference that is not there yet: nothing to see in it
        return iter(())


_HINTED = ("__dataclass_fields__", "__total__", "_fields")  # dataclasses, TypedDicts, NamedTuples
_RECORDS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Iterator[Any]]], ...] = (
    (lambda kind: hasattr(kind, "model_fields"), _pydantic_types),
    (lambda kind: any(hasattr(kind, mark) for mark in _HINTED), _hinted_types),
)


def _show(annotation: Any) -> str:
    return cast("str", getattr(annotation, "__name__", None)) if isinstance(annotation, type) else str(annotation)
