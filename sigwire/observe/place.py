"""The place in a program from which a model is called: the asking module, the running program, the turn and the example.

``lm`` records the place of each call and knows no module; ``modules`` sets these variables and the function that finds paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TypeAlias

__all__ = ["RawPlace", "asking", "current_place", "enter", "example", "find_paths_with", "path_of", "program", "turn"]

asking: ContextVar[object] = ContextVar("sigwire_asking", default=None)
"""The module whose question is under way; ``None`` for a direct call of a model."""
program: ContextVar[object] = ContextVar("sigwire_program", default=None)
"""The outermost running module; ``None`` for a predictor alone."""
turn: ContextVar[int | None] = ContextVar("sigwire_turn", default=None)
"""The turn of the running agent, from 0."""
example: ContextVar[int | str | None] = ContextVar("sigwire_example", default=None)
"""The position in a batch, or the id in an evaluation."""

RawPlace: TypeAlias = tuple[object, object, int | None, int | str | None]
"""The values of the four variables."""


def current_place() -> RawPlace:
    """Return the place of the running code."""
    return asking.get(), program.get(), turn.get(), example.get()


def enter(module: object, number: int | str | None = None) -> bool:
    """Set the running program, unless a program runs already, and the ``number`` or id of its example.

    Return True if the program was set; the caller then resets it, or has a context of its own.
    """
    if number is not None:
        example.set(number)
    if program.get() is not None:
        return False
    program.set(module)
    return True


def path_of(place: RawPlace) -> str | None:
    """Return the path of the asking module in its program; the name of its class if it is not inside; ``None`` without one."""
    module, root = place[0], place[1]
    if module is None or isinstance(module, str):
        return module
    if root is None or root is module:
        return "self"
    return _find_paths(root).get(id(module)) or type(module).__name__


def _no_paths(root: object) -> Mapping[int, str]:
    return {}


_find_paths: Callable[..., Mapping[int, str]] = _no_paths


def find_paths_with(find: Callable[..., Mapping[int, str]]) -> None:
    """Set the function that returns the paths of the modules inside a module, by id."""
    global _find_paths
    _find_paths = find
