"""Attributes and items by a path: ``get``, ``set`` and ``delete`` of ``dspy.utils.magicattr``. No code of a path is run."""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from sigwire.core.record import FieldValue

__all__ = ["delete", "get", "set"]

_NOTHING: Final = object()


class _Place(NamedTuple):
    """An object, and the name or key of its last step."""

    owner: FieldValue
    key: str | int
    is_item: bool


def get(obj: object, attr: str, default: object = _NOTHING) -> FieldValue:
    """Return the value at a path such as ``a.b[0]["key"].c``; ``default`` for a last attribute that is missing.

    Raises ``AttributeError``, ``KeyError`` and ``IndexError`` of the objects, ``ValueError`` for a path with other code, and
    ``NotImplementedError`` for an index that is no constant.

    >>> from types import SimpleNamespace
    >>> get(SimpleNamespace(a=[{"k": 1}]), "a[-1]['k']"), get(object(), "size", default=3)
    (1, 3)
    """
    place = _place(obj, attr)
    if place.is_item:
        return place.owner[place.key]
    return getattr(place.owner, str(place.key), *(() if default is _NOTHING else (default,)))


def set(obj: object, attr: str, val: object) -> None:
    """Set the value at a path. Raises what ``get`` raises."""
    place = _place(obj, attr)
    if place.is_item:
        place.owner[place.key] = val
    else:
        setattr(place.owner, str(place.key), val)


def delete(obj: object, attr: str) -> None:
    """Delete the attribute or item at a path. Raises what ``get`` raises."""
    place = _place(obj, attr)
    if place.is_item:
        del place.owner[place.key]
    else:
        delattr(place.owner, str(place.key))


def _place(obj: object, path: str) -> _Place:
    if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"A path is a text, not {type(path).__name__} (reading a path). Write 'a.b[0]'.")
    if not path.strip():
        raise ValueError("The path is empty (reading a path). Write 'a.b[0]'.")
    body = ast.parse(path.strip()).body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise ValueError(f"{path!r} is no path (reading a path). Write attributes and constant indices only: 'a.b[0]'.")
    return _last(obj, body[0].value)


def _last(obj: object, node: ast.expr) -> _Place:
    if isinstance(node, ast.Name):
        return _Place(obj, node.id, False)
    if isinstance(node, ast.Attribute):
        return _Place(_value(obj, node.value), node.attr, False)
    if isinstance(node, ast.Subscript):
        return _Place(_value(obj, node.value), _index(node.slice), True)
    raise ValueError(f"{ast.unparse(node)} is no path (reading a path). Write attributes and constant indices only.")


def _value(obj: object, node: ast.expr) -> FieldValue:
    place = _last(obj, node)
    return place.owner[place.key] if place.is_item else getattr(place.owner, str(place.key))


def _index(node: ast.expr) -> str | int:
    try:
        return ast.literal_eval(node) if not isinstance(node, ast.BinOp) else _refuse(node)
    except ValueError:
        return _refuse(node)


def _refuse(node: ast.expr) -> str:
    raise NotImplementedError(
        f"The index {ast.unparse(node)} is no constant (reading a path). Write a number or a text."
    )
