"""``typing.TypedDict`` on Python 3.11, which pydantic refuses: it needs data that only ``typing_extensions`` records.

``to_typing_extensions`` rewrites such types, at any depth of a type expression, to equal ``typing_extensions`` types. Other
type expressions are returned unchanged. Python 3.12 and later need no rewriting.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import typing_extensions

__all__ = ["TypeExpression", "to_typing_extensions", "typed_dict_members"]

TypeExpression: TypeAlias = Any
"""A type as an annotation gives it: a class, a generic, a union, ``Annotated``, a special form. No checker knows its type."""
_Made: TypeAlias = dict[TypeExpression, TypeExpression]


def to_typing_extensions(annotation: TypeExpression) -> TypeExpression:
    """Return the type expression in a form that pydantic can validate.

    >>> class Point(typing.TypedDict):
    ...     x: int
    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(to_typing_extensions(list[Point])).validate_python([{"x": "1"}])
    [{'x': 1}]
    """
    return annotation if sys.version_info >= (3, 12) else _rewrite(annotation, {})


def _rewrite(annotation: object, made: _Made) -> TypeExpression:
    if _is_old_typed_dict(annotation):
        return _rewritten_class(annotation, made)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None or origin is typing.Literal:
        return annotation
    if origin is typing.Annotated:
        inner = _rewrite(arguments[0], made)
        annotated: TypeExpression = typing.Annotated
        return annotation if inner is arguments[0] else annotated[(inner, *arguments[1:])]
    rewritten = tuple(_rewrite(argument, made) for argument in arguments)
    if all(new is old for new, old in zip(rewritten, arguments, strict=True)):
        return annotation
    generic: TypeExpression = typing.Union if origin is types.UnionType else origin
    return generic[rewritten]


def _is_old_typed_dict(kind: TypeExpression) -> bool:
    return type(kind).__name__ == "_TypedDictMeta" and type(kind).__module__ == "typing"


def typed_dict_members(record: TypeExpression) -> Iterator[tuple[str, TypeExpression, bool]]:
    """Yield each member of a TypedDict class: its name, its type, and whether it is required.

    ``__required_keys__`` is not enough: Python overlooks ``Required`` in annotations that are strings.
    """
    for name, hint in typing.get_type_hints(record, include_extras=True).items():
        required = _PRESENCE.get(typing.get_origin(hint))
        if required is None:
            yield name, hint, name in record.__required_keys__
        else:
            yield name, typing.get_args(hint)[0], required


_PRESENCE: Mapping[TypeExpression, bool] = {
    typing.Required: True,
    typing.NotRequired: False,
    typing_extensions.Required: True,
    typing_extensions.NotRequired: False,
}


def _rewritten_class(kind: TypeExpression, made: _Made) -> TypeExpression:
    """Return the class as one of ``typing_extensions``. Inside itself it stays unchanged, which pydantic reports."""
    from typing_extensions import TypedDict

    if kind in made:
        return made[kind]
    made[kind] = kind
    members: dict[str, TypeExpression] = {}
    for name, hint, required in typed_dict_members(kind):
        presence: TypeExpression = typing.Required if required else typing.NotRequired
        members[name] = presence[_rewrite(hint, made)]
    build: TypeExpression = TypedDict
    made[kind] = build(kind.__name__, members)
    made[kind].__doc__, made[kind].__module__ = kind.__doc__, kind.__module__
    return made[kind]
