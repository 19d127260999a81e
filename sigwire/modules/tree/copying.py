"""Copies of modules: structure is copied, resources are shared, nothing is pickled.

Modules, lists, tuples, dicts and sets are rebuilt. Models, adapters, tools, functions and classes are shared. Any other
value is copied as Python copies it, and shared where it cannot be copied (a socket, a lock, an open client).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

from sigwire.core.tools.tool import Tool
from sigwire.modules.tree.walk import Walkable

__all__ = ["copy_value"]

_SHARED = (str, bytes, int, float, bool, type(None), type, Tool)


def copy_value(value: Any, memo: dict[int, Any]) -> Any:
    """A copy of an attribute's value; ``memo`` maps the ids of what was copied, so shared things stay shared.

    >>> inner = [1]
    >>> first, second = copy_value([inner, inner], {})
    >>> first is second, first is inner
    (True, False)
    """
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, _SHARED) or _is_resource(value):
        return value
    kind: type = value.__class__
    rebuild = _REBUILD.get(kind)
    made = rebuild(value, memo) if rebuild else _copy_object(value, memo)
    # The original is kept beside the copy: an id is only good as long as its object lives.
    memo[id(value)] = made
    memo.setdefault(id(memo), []).append(value)
    return made


def _is_resource(value: Any) -> bool:
    """Whether a value is a function, a model or an adapter. What a class offers counts: an attribute may have any name."""
    if isinstance(value, Walkable):
        return False
    kind: type = value.__class__
    return callable(value) or hasattr(kind, "respond") or hasattr(kind, "plan")


def _copy_list(value: list[Any], memo: dict[int, Any]) -> list[Any]:
    made: list[Any] = []
    memo[id(value)] = made
    made.extend(copy_value(item, memo) for item in value)
    return made


def _copy_dict(value: dict[Any, Any], memo: dict[int, Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    memo[id(value)] = made
    made.update((key, copy_value(item, memo)) for key, item in value.items())
    return made


def _copy_tuple(value: tuple[Any, ...], memo: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(copy_value(item, memo) for item in value)


_REBUILD: dict[type, Callable[[Any, dict[int, Any]], Any]] = {
    list: _copy_list,
    dict: _copy_dict,
    tuple: _copy_tuple,
    set: lambda value, memo: set(cast("set[Any]", value)),
}


def _copy_object(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # a user's object may fail in any way; sharing it is what remains
        return value
