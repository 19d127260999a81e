"""Walk a type expression: unwrap it, ask for ``None``, find nested types. Knows nothing of roles and fields."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from sigwire.core.typed_dict import TypeExpression

__all__ = ["allows_none", "contains", "describe_type", "is_untyped", "members_of", "nested_types", "strip_annotated"]


def strip_annotated(annotation: object) -> TypeExpression:
    """Return the type without ``Annotated``, aliases (``type X = ...``) and ``| None``.

    >>> strip_annotated(typing.Annotated[int | None, "meta"])
    <class 'int'>
    """
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif (alias := _alias_value(annotation)) is not None:
            annotation = alias
        elif origin in (typing.Union, types.UnionType):
            members = [member for member in typing.get_args(annotation) if member is not type(None)]
            if len(members) != 1:
                return annotation
            annotation = members[0]
        else:
            return annotation


def _alias_value(annotation: Any) -> TypeExpression:
    """Return the type that ``type X = ...`` names, with the arguments of a generic alias; ``None`` for other types."""
    if isinstance(annotation, _ALIAS_TYPES):
        return annotation.__value__
    origin = typing.get_origin(annotation)
    if isinstance(origin, _ALIAS_TYPES):
        value = origin.__value__
        return value[typing.get_args(annotation)] if getattr(value, "__parameters__", ()) else value
    return None


def _alias_types() -> tuple[TypeExpression, ...]:
    import typing_extensions

    kinds = [getattr(module, "TypeAliasType", None) for module in (typing, typing_extensions)]
    return tuple({kind for kind in kinds if isinstance(kind, type)})


_ALIAS_TYPES = _alias_types()


def allows_none(annotation: object) -> bool:
    """Return True if ``None`` is a value of the type.

    >>> allows_none(int | None), allows_none(int), allows_none(Any)
    (True, False, True)
    """
    if annotation is None or annotation is type(None) or annotation is Any:
        return True
    if (alias := _alias_value(annotation)) is not None:
        return allows_none(alias)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return allows_none(arguments[0])
    if origin is Literal:
        return None in arguments
    return origin in (typing.Union, types.UnionType) and any(map(allows_none, arguments))


def is_untyped(annotation: object) -> bool:
    """Return True if a type is, or has in its arguments, ``Any``, ``object`` or a container without arguments.

    >>> is_untyped(dict[str, Any]), is_untyped(list), is_untyped(list[int])
    (True, True, False)
    """
    kind: object = strip_annotated(annotation)
    if any(kind is each for each in _UNTYPED):
        return True
    return typing.get_origin(kind) is not Literal and any(map(is_untyped, typing.get_args(kind)))


_UNTYPED = (Any, object, dict, frozenset, list, set, tuple)


def contains(annotation: object, *wanted: type) -> bool:
    """Return True if a type contains a wanted type: in its arguments, or in the fields of its models, at any depth.

    >>> from sigwire.signatures.types import Image
    >>> contains(dict[str, list[Image]], Image)
    True
    """
    return any(isinstance(found, type) and issubclass(found, wanted) for found in nested_types(annotation))


def nested_types(annotation: TypeExpression, *, records: bool = True) -> Iterator[TypeExpression]:
    """Yield the type and its nested types, each once; with ``records`` also the types of records' fields."""
    seen: dict[int, TypeExpression] = {}  # keeps the types alive, so that ids are unique
    pending = [annotation]
    while pending:
        current = pending.pop()
        if id(current) in seen or current is None:
            continue
        seen[id(current)] = current
        yield current
        pending += members_of(current, records=records)


def members_of(annotation: object, *, records: bool = True) -> list[TypeExpression]:
    """Return the types directly inside a type: of an alias, of arguments, with ``records`` of the fields of a record."""
    if (alias := _alias_value(annotation)) is not None:
        return [alias]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return []
    if origin is not None:
        return [origin, *(arguments[:1] if origin is typing.Annotated else arguments)]
    if not records or not isinstance(annotation, type) or annotation.__module__ in ("builtins", "typing"):
        return []
    nothing: list[TypeExpression] = []
    return next((list(read(annotation)) for applies, read in _RECORDS if applies(annotation)), nothing)


def _hinted_types(record: TypeExpression) -> Iterator[TypeExpression]:
    try:
        return iter(typing.get_type_hints(record).values())
    except (NameError, TypeError):  # an unresolved forward reference: its types are unknown
        return iter(())


_HINTED = ("__dataclass_fields__", "__total__", "_fields")  # dataclasses, TypedDicts, NamedTuples


_RECORDS: tuple[tuple[Callable[[TypeExpression], bool], Callable[[TypeExpression], Iterator[TypeExpression]]], ...] = (
    (lambda kind: hasattr(kind, "model_fields"), lambda kind: (each.annotation for each in kind.model_fields.values())),
    (lambda kind: any(hasattr(kind, mark) for mark in _HINTED), _hinted_types),
)


def describe_type(annotation: TypeExpression) -> str:
    """Return the name of a class, the text of any other type expression."""
    return cast("str", getattr(annotation, "__name__", None)) if isinstance(annotation, type) else str(annotation)
