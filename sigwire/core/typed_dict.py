"""``typing.TypedDict`` on Python 3.11, which pydantic refuses there: it needs what ``typing_extensions`` records.

``portable`` rewrites such types, however deep in an annotation, into equal ``typing_extensions`` ones, and gives every
other annotation back untouched. From Python 3.12 on there is nothing to do.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import typing_extensions

__all__ = ["to_typing_extensions", "typed_dict_members"]


def to_typing_extensions(annotation: Any) -> Any:
    """The annotation in a form that pydantic can validate.

    >>> class Point(typing.TypedDict):
    ...     x: int
    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(portable(list[Point])).validate_python([{"x": "1"}])
    [{'x': 1}]
    """
    return annotation if sys.version_info >= (3, 12) else _rewrite(annotation, {})


def _rewrite(annotation: Any, made: dict[Any, Any]) -> Any:
    if _is_old_typed_dict(annotation):
        return _modern(annotation, made)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None or origin is typing.Literal:
        return annotation
    if origin is typing.Annotated:
        inner = _rewrite(arguments[0], made)
        annotated: Any = typing.Annotated
        return annotation if inner is arguments[0] else annotated[(inner, *arguments[1:])]
    rewritten = tuple(_rewrite(argument, made) for argument in arguments)
    if all(new is old for new, old in zip(rewritten, arguments, strict=True)):
        return annotation
    generic: Any = typing.Union if origin is types.UnionType else origin
    return generic[rewritten]


def _is_old_typed_dict(kind: Any) -> bool:
    return type(kind).__name__ == "_TypedDictMeta" and type(kind).__module__ == "typing"


def typed_dict_members(record: Any) -> Iterator[tuple[str, Any, bool]]:
    """Each member of a TypedDict class: its name, its type, and whether it must be there.

    ``__required_keys__`` alone does not tell: where annotations are texts, Python overlooks ``Required`` in them.
    """
    for name, hint in typing.get_type_hints(record, include_extras=True).items():
        said = _PRESENCE.get(typing.get_origin(hint))
        if said is None:
            yield name, hint, name in record.__required_keys__
        else:
            yield name, typing.get_args(hint)[0], said


_PRESENCE: Mapping[Any, bool] = {
    typing.Required: True,
    typing.NotRequired: False,
    typing_extensions.Required: True,
    typing_extensions.NotRequired: False,
}


def _modern(kind: Any, made: dict[Any, Any]) -> Any:
    """The same record by ``typing_extensions``. One that contains itself stays as it is: pydantic says what to do."""
    from typing_extensions import TypedDict

    if kind in made:
        return made[kind]
    made[kind] = kind
    members: dict[str, Any] = {}
    for name, hint, required in typed_dict_members(kind):
        presence: Any = typing.Required if required else typing.NotRequired
        members[name] = presence[_rewrite(hint, made)]
    build: Any = TypedDict
    made[kind] = build(kind.__name__, members)
    made[kind].__doc__, made[kind].__module__ = kind.__doc__, kind.__module__
    return made[kind]
