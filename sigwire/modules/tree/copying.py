"""Copy the parts of a module: structure is copied, resources are shared, nothing is pickled.

Modules, lists, tuples, dicts and sets are rebuilt, and tools whose functions hold modules (``core.tools.held``). Models,
adapters, callable objects and classes are shared. Any other value is copied by ``copy.deepcopy``, and shared if that fails (a
socket, a lock, an open client).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar, cast

from sigwire.core.paths import Walkable
from sigwire.core.tools.held import HasHandler, HasTools, Memo, rebound
from sigwire.modules.tree.walk import tools_in

__all__ = ["copy_attributes", "copy_value"]

T = TypeVar("T")

_SHARED = (str, bytes, int, float, bool, type(None), type)


def copy_attributes(owner: object, made: object, memo: Memo) -> None:
    """Set copies of the attributes of ``owner``. Functions are copied in an attribute ``tools`` only."""
    attributes = vars(owner)
    if "tools" in attributes:
        for _, tool in tools_in({"tools": attributes["tools"]}):
            rebound(tool, memo)  # the containers find it in the memo
    for name, value in attributes.items():
        made.__dict__[name] = copy_value(value, memo)


def copy_value(value: T, memo: Memo) -> T:
    """Return a copy of an attribute's value. Two references to one object refer to one copy, found in ``memo``.

    >>> inner = [1]
    >>> first, second = copy_value([inner, inner], {})
    >>> first is second, first is inner
    (True, False)
    """
    if id(value) in memo:
        return cast(T, memo[id(value)])
    if isinstance(value, _SHARED) or _is_resource(value):
        return value
    kind: type = value.__class__
    rebuild = _REBUILD.get(kind)
    made = rebuild(value, memo) if rebuild else _copy_object(value, memo)
    # Python reuses the id of a freed object: the memo keeps the original alive.
    memo[id(value)] = made
    cast("list[object]", memo.setdefault(id(memo), [])).append(value)
    return cast(T, made)


def _is_resource(value: object) -> bool:
    """Return True for callable objects, models and adapters. The class decides: an attribute may have any name."""
    if isinstance(value, (Walkable, HasHandler, HasTools)):
        return False
    kind: type = value.__class__
    return callable(value) or hasattr(kind, "respond") or hasattr(kind, "plan")


def _copy_list(value: object, memo: Memo) -> list[object]:
    made: list[object] = []
    memo[id(value)] = made
    made.extend(copy_value(item, memo) for item in cast("list[object]", value))
    return made


def _copy_dict(value: object, memo: Memo) -> dict[object, object]:
    made: dict[object, object] = {}
    memo[id(value)] = made
    made.update((key, copy_value(item, memo)) for key, item in cast("dict[object, object]", value).items())
    return made


_REBUILD: dict[type, Callable[[object, Memo], object]] = {
    list: _copy_list,
    dict: _copy_dict,
    tuple: lambda value, memo: tuple(copy_value(item, memo) for item in cast("tuple[object, ...]", value)),
    set: lambda value, memo: set(cast("set[object]", value)),
}


def _copy_object(value: T, memo: Memo) -> T:
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # the class of a user may raise anything from its copy methods
        return value
