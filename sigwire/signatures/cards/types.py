"""Types as Python writes them: ``'billing' | 'delivery'``, ``list[str]``, ``int | None``."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from sigwire.core.typed_dict import TypeExpression
from sigwire.show.cleaning import inline
from sigwire.show.values import safe_repr, short_repr

__all__ = ["python_type"]

_MOST = 200
_MOST_DEPTH = 6


def python_type(annotation: TypeExpression) -> str:
    """Return a type as Python writes it, without the names of modules.

    >>> python_type(Literal["billing", "delivery"]), python_type(Union[list[str], None])
    ("'billing' | 'delivery'", 'list[str] | None')
    """
    return inline(_text(annotation, 0), _MOST)


def _text(annotation: Any, depth: int) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if depth > _MOST_DEPTH:
        return "…"
    if origin is Literal:
        return " | ".join([*(short_repr(value, 40) for value in args[:20]), *("…" for _ in args[20:21])])
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{_listed(cast('list[object]', annotation), depth)}]"
    if origin is Annotated:
        return _text(args[0], depth + 1)
    if origin is Union or isinstance(annotation, types.UnionType):
        return _listed(args, depth, " | ")
    return f"{_name(origin)}[{_listed(args, depth)}]" if args else _name(annotation)


def _listed(args: Iterable[object], depth: int, separator: str = ", ") -> str:
    return separator.join(_text(arg, depth + 1) for arg in args)


def _name(annotation: Any) -> str:
    if (written := next((text for each, text in _WRITTEN if annotation is each), None)) is not None:
        return written
    name = getattr(annotation, "__name__", None)
    return name if isinstance(name, str) else safe_repr(annotation).removeprefix("typing.")


_WRITTEN: Sequence[tuple[object, str]] = ((None, "None"), (type(None), "None"), (..., "..."))
