"""Types as Python writes them: ``'billing' | 'delivery'``, ``list[str]``, ``int | None``."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from sigwire.core.typed_dict import TypeExpression
from sigwire.show.cleaning import inline
from sigwire.show.values import safe_repr, short_repr

__all__ = ["python_type"]

_MOST = 200


def python_type(annotation: TypeExpression) -> str:
    """Return a type as Python writes it, without the names of modules.

    >>> python_type(Literal["billing", "delivery"]), python_type(Union[list[str], None])
    ("'billing' | 'delivery'", 'list[str] | None')
    """
    return inline(_text(annotation, 0), _MOST)


def _text(annotation: Any, depth: int) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if depth > 6:
        return "…"
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is ...:
        return "..."
    if origin is Literal:
        return " | ".join(short_repr(value, 40) for value in args[:20]) + (" | …" if len(args) > 20 else "")
    if origin is Annotated:
        return _text(args[0], depth + 1)
    if origin is Union or isinstance(annotation, types.UnionType):
        return " | ".join(_text(arg, depth + 1) for arg in args)
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{', '.join(_text(arg, depth + 1) for arg in cast('list[object]', annotation))}]"
    if origin is not None and args:
        return f"{_name(origin)}[{', '.join(_text(arg, depth + 1) for arg in args)}]"
    return _name(annotation)


def _name(annotation: Any) -> str:
    name = getattr(annotation, "__name__", None)
    return name if isinstance(name, str) else safe_repr(annotation).removeprefix("typing.")
