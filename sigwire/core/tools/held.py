"""The modules that the function of a tool holds, and functions that hold copies of them.

    a module, or a method of one            the module
    ``functools.partial``                   its function, positions and keywords
    a function                              its closure and defaults; through ``functools.wraps`` those of the function inside
    a tool, a toolbox                       their functions, guards included
    list, tuple, dict                       their items; those of a container of more than 1,000 items are data

Everything else is shared by copies: global names, attributes of other objects, clients and connections. A function is
rebuilt only if it holds a module, and of its cells only those that hold one.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any, TypeAlias, cast

from sigwire.core.paths import AttributeStep, ItemStep, Path, Walkable

__all__ = ["FUNCTIONS", "HasHandler", "HasTools", "Memo", "held_parts", "held_values", "holds", "rebound", "rebuilt"]

Memo: TypeAlias = dict[int, object]
"""Copies by the id of their original, as in ``copy.deepcopy``."""
_Held: TypeAlias = Sequence[tuple[Path, object]]
FUNCTIONS: tuple[Any, ...] = (FunctionType, MethodType, partial)
_MOST_ITEMS = 1_000
_PLAIN = frozenset((str, bytes, int, float, bool, type(None), type))


class HasHandler:
    """Marker of tools."""

    __slots__ = ()
    handler: Any
    guards: tuple[Any, ...]


class HasTools:
    """Marker of toolboxes."""

    tools: dict[str, Any]


def held_parts(value: object) -> Iterator[tuple[Path, Walkable]]:
    """Yield the modules that a tool or function holds, with their paths in it. Modules are not entered.

    >>> class Part(Walkable): ...
    >>> one, other = Part(), Part()
    >>> def ask(question, parts={"k": other}):
    ...     return one, question
    >>> [path for path, _ in held_parts(partial(ask, question=one))]
    [(AttributeStep(name='parts'), ItemStep(key='k')), (AttributeStep(name='question'),)]
    """
    for path, held in held_values(value):
        if isinstance(held, Walkable):
            yield path, held


def held_values(value: object) -> Iterator[tuple[Path, object]]:
    """Yield a tool or function and all that it holds, with the paths: modules, functions, other objects."""
    seen: set[int] = set()
    stack: list[tuple[Path, object]] = [((), value)]
    while stack:
        path, value = stack.pop()
        yield path, value
        if not isinstance(value, Walkable) and id(value) not in seen and (inside := _inside(value)):
            seen.add(id(value))
            stack.extend(((*path, *steps), item) for steps, item in reversed(inside))


def holds(value: object) -> bool:
    """Return True if a tool or function holds a module."""
    if isinstance(value, HasHandler):
        if value.guards and any(map(holds, value.guards)):
            return True
        value = value.handler
    if isinstance(value, Walkable):
        return True
    if type(value) is FunctionType and (found := _is_holder(value)) is not None:  # of most; every copy asks
        return found
    return next(held_parts(value), None) is not None


def _is_holder(function: Any) -> bool | None:
    """Return whether a function holds a module, as far as its cells show it; ``None``: their contents decide."""
    cells = [_content(cell) for cell in function.__closure__ or ()]
    if any(isinstance(item, Walkable) for item in cells):
        return True
    is_plain = function.__defaults__ is None and function.__kwdefaults__ is None
    return False if is_plain and all(type(item) in _PLAIN for item in cells) else None


def _inside(value: object) -> _Held:
    """Return the values directly inside of one, with their steps; those of a function that ``wraps`` another have no step."""
    read = _INSIDE.get(type(value))
    if read is not None:
        return read(value)
    if isinstance(value, HasHandler):
        guards = enumerate(value.guards)
        return [((), value.handler), *(((AttributeStep("guards"), number), guard) for number, guard in guards)]
    if isinstance(value, HasTools):
        return [((AttributeStep("tools"), ItemStep(name)), tool) for name, tool in value.tools.items()]
    return next((read(value) for kind, read in _INSIDE.items() if isinstance(value, kind)), ())


def _in_function(function: Any) -> _Held:
    found: list[tuple[Path, object]]
    cells, code, wrapped = function.__closure__, function.__code__, function.__dict__.get("__wrapped__", function)
    found = [
        (() if item is wrapped else (AttributeStep(name),), item)
        for name, cell in zip(code.co_freevars, cells or (), strict=True)
        if (item := _content(cell)) is not None
    ]
    if defaults := function.__defaults__:
        names = code.co_varnames[: code.co_argcount][-len(defaults) :]
        found += [((AttributeStep(name),), item) for name, item in zip(names, defaults, strict=True)]
    keywords: dict[str, object] = function.__kwdefaults__ or {}
    found += [((AttributeStep(name),), item) for name, item in keywords.items()]
    return found


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that is not set yet
        return None


def _in_method(method: Any) -> _Held:
    of = method.__self__
    owner: _Held = [((), of)] if isinstance(of, (Walkable, HasHandler, HasTools)) else []
    return [*owner, ((), method.__func__)]


def _in_partial(given: Any) -> _Held:
    keywords = [((AttributeStep(name),), item) for name, item in given.keywords.items()]
    return [((), given.func), *(((number,), item) for number, item in enumerate(given.args)), *keywords]


def _in_list(items: Any) -> _Held:
    if len(items) > _MOST_ITEMS:
        return ()
    return [((number,), item) for number, item in enumerate(items) if type(item) not in _PLAIN]


def _in_dict(items: Any) -> _Held:
    if len(items) > _MOST_ITEMS:
        return ()
    return [((ItemStep(key),), item) for key, item in items.items() if type(item) not in _PLAIN]


_INSIDE: Mapping[type, Callable[[Any], _Held]] = {
    FunctionType: _in_function, MethodType: _in_method, partial: _in_partial, list: _in_list, tuple: _in_list,
    dict: _in_dict,
}  # fmt: skip


# --- copies ------------------------------------------------------------------------------------------


def rebound(value: Any, memo: Memo) -> Any:
    """Return a value that holds copies of its modules, found in ``memo``; the value itself if it holds none.

    >>> class Part(Walkable): ...
    >>> part = Part()
    >>> other = rebound((lambda held: lambda: held)(part), {})
    >>> other() is part, isinstance(other(), Part), rebound(len, {}) is len
    (False, True, True)
    """
    return rebuilt(value, memo) if id(value) in memo or holds(value) else value


def rebuilt(value: Any, memo: Memo) -> Any:
    """Return ``rebound`` of a value that holds a module."""
    if id(value) in memo:
        return memo[id(value)]
    rebuild: Callable[[Any, Memo], object] = _REBUILD.get(value.__class__, copy.deepcopy)
    return memo.setdefault(id(value), rebuild(value, memo))


def _rebound_function(function: Any, memo: Memo) -> object:
    """Return a function with the same code, whose cells and defaults hold copies. It may be in a cell of its own."""
    filled: list[tuple[CellType, object]] = []

    def new_cell(cell: CellType) -> CellType:
        if id(cell) not in memo and holds(item := _content(cell)):
            memo[id(cell)] = CellType()
            filled.append((cast("CellType", memo[id(cell)]), item))
        return cast("CellType", memo.get(id(cell), cell))

    cells = tuple(map(new_cell, function.__closure__)) if function.__closure__ else None
    made = FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
    memo[id(function)] = functools.update_wrapper(made, function)
    for cell, item in filled:
        cell.cell_contents = rebuilt(item, memo)
    if function.__defaults__:
        made.__defaults__ = _rebound_tuple(function.__defaults__, memo)
    if function.__kwdefaults__:
        made.__kwdefaults__ = _rebound_dict(function.__kwdefaults__, memo)
    made.__dict__ = {**function.__dict__}
    if "__wrapped__" in made.__dict__:
        made.__dict__["__wrapped__"] = rebound(function.__wrapped__, memo)
    return made


def _rebound_method(method: Any, memo: Memo) -> object:
    return MethodType(rebound(method.__func__, memo), rebound(method.__self__, memo))


def _rebound_partial(given: Any, memo: Memo) -> object:
    made = partial(rebound(given.func, memo), *_rebound_tuple(given.args, memo), **_rebound_dict(given.keywords, memo))
    made.__dict__.update(given.__dict__)
    return made


def _rebound_list(items: list[object], memo: Memo) -> object:
    made: list[object] = []
    memo[id(items)] = made
    made.extend(rebound(item, memo) for item in items)
    return made


def _rebound_tuple(items: tuple[object, ...], memo: Memo) -> tuple[object, ...]:
    return tuple(rebound(item, memo) for item in items)


def _rebound_dict(items: dict[Any, object], memo: Memo) -> dict[Any, object]:
    made: dict[Any, object] = {}
    memo[id(items)] = made
    made.update((key, rebound(item, memo)) for key, item in items.items())
    return made


_REBUILD: Mapping[type, Callable[[Any, Memo], object]] = {
    FunctionType: _rebound_function, MethodType: _rebound_method, partial: _rebound_partial, list: _rebound_list,
    tuple: _rebound_tuple, dict: _rebound_dict,
}  # fmt: skip
