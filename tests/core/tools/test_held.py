"""The modules that functions of tools hold, and functions that hold copies of them."""

from __future__ import annotations

import functools
import inspect
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from sigwire.core.paths import Walkable, name_of
from sigwire.core.tools.held import held_parts, holds, rebound
from sigwire.core.tools.tool import Tool


class Part(Walkable):
    def method(self, n: int) -> Part:
        return self

    @classmethod
    def of_class(cls) -> None: ...


PART = Part()


def names(function: object) -> list[str]:
    return [name_of(path) for path, _ in held_parts(function)]


def over(part: Any) -> Callable[..., Any]:
    def ask(n: int = 0) -> Any:
        """Ask."""
        return part

    return ask


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def around(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return around


def with_defaults(first: int = 1, sub: Any = PART, *, other: Any = PART) -> Any:
    return sub, other


def recursive(part: Any) -> Callable[..., Any]:
    def ask(n: int) -> Any:
        return ask(n - 1) if n else part

    return ask


Pair = namedtuple("Pair", "one other")

HELD: dict[str, tuple[Any, list[str]]] = {
    "module": (PART, [""]),
    "method": (PART.method, [""]),
    "partial": (partial(over(PART), PART, style=PART), ["part", "[0]", "style"]),
    "partial of a method": (partial(PART.method, n=1), [""]),
    "closure": (over(PART), ["part"]),
    "closure over a list": (over([1, PART, [PART]]), ["part[1]", "part[2][0]"]),
    "closure over a dict": (over({"k": (PART,)}), ["part['k'][0]"]),
    "closure over a function": (over(over(PART)), ["part.part"]),
    "closure over a tool": (over(Tool(over(PART), name="inner")), ["part.part"]),
    "closure over a named tuple": (over(Pair(PART, 1)), ["part[0]"]),
    "defaults": (with_defaults, ["sub", "other"]),
    "wraps": (wrapped(wrapped(over(PART))), ["part"]),
    "recursion": (recursive(PART), ["part"]),
    "a tool": (Tool(over(PART)), ["part"]),
}
SHARED: dict[str, Any] = {
    "nothing": None,
    "a function": names,
    "a builtin": len,
    "a class": Part,
    "a method of a class": Part.of_class,
    "a global name": lambda: PART,
    "an attribute of an object": over(SimpleNamespace(part=PART)),
    "a method of an object": SimpleNamespace(part=PART).__eq__,
    "a large list": over([PART] * 1_001),
}


@pytest.mark.parametrize("kind", HELD)
def test_held_parts_have_paths(kind: str) -> None:
    function, expected = HELD[kind]
    assert names(function) == expected


@pytest.mark.parametrize("kind", HELD)
def test_rebound_function_holds_copies_and_the_given_one_is_unchanged(kind: str) -> None:
    function, _ = HELD[kind]
    memo: dict[int, object] = {}
    made = rebound(function, memo)
    assert {id(part) for _, part in held_parts(made)} == {id(memo[id(PART)])}
    assert {id(part) for _, part in held_parts(function)} == {id(PART)}
    assert rebound(function, memo) is made


@pytest.mark.parametrize("kind", SHARED)
def test_function_that_holds_no_module_is_shared(kind: str) -> None:
    assert not holds(SHARED[kind])
    assert rebound(SHARED[kind], {}) is SHARED[kind]


def test_rebound_function_is_the_same_function_otherwise() -> None:
    @wrapped
    def ask(n: int, *, k: int = 2) -> tuple[Any, int]:
        """Ask."""
        return part_of_closure, n + k

    part_of_closure = Part()
    ask.note = "kept"  # type: ignore[attr-defined]
    made = rebound(ask, {})
    assert made is not ask
    assert made(1)[1] == 3
    assert made(1)[0] is not part_of_closure
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "note"):
        assert getattr(made, name) == getattr(ask, name)
    assert inspect.signature(made) == inspect.signature(ask)
    assert made.__wrapped__ is inspect.getclosurevars(made).nonlocals["function"]


def test_cell_without_a_module_stays_shared_and_functions_share_the_copied_one() -> None:
    part, count, log = Part(), 0, list[int]()

    def add() -> Any:
        nonlocal count
        count += 1
        log.append(count)
        return part

    def replace(new: Any) -> None:
        nonlocal part
        part = new

    memo: dict[int, object] = {}
    added, replaced = rebound(add, memo), rebound(replace, memo)
    added()
    assert (count, log) == (1, [1])
    replaced("new")
    assert added() == "new"
    assert add() is part != "new"


def test_variable_that_is_not_set_yet_holds_nothing() -> None:
    def ask() -> Any:
        return later

    assert names(ask) == []
    later = PART
    assert names(ask) == ["later"]


def test_tool_is_copied_with_its_texts_only_if_it_holds_a_module() -> None:
    import copy

    plain, tool = Tool(over(1), name="plain"), Tool(over(PART), name="ask", timeout=3, max_calls=2)
    assert copy.deepcopy(plain) is plain
    made = copy.deepcopy(tool)
    assert made.handler is not tool.handler
    assert made.spec == tool.spec
    assert made.to_json() == tool.to_json()
    assert made() is not PART
    assert tool() is PART
