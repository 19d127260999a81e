"""The place in a program from which a model is called: the asking module, the running program, the turn and the example.

``lm`` records the place of each call and knows no module; ``modules`` sets the variables and the function that finds paths,
``settings`` the function that finds how many calls are kept.
A bare predictor sets no context variable: setting one costs more than the rest of the record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from sigwire.core.request import Request

__all__ = [
    "OpenQuestion",
    "Running",
    "asked",
    "enter",
    "find_history_size_with",
    "find_paths_with",
    "kept_calls",
    "path_in",
    "path_of",
    "prefix_moved",
    "running",
]  # fmt: skip


class Running(NamedTuple):
    """The outermost running module; the turn of the running agent, from 0; position in a batch or id in an evaluation."""

    program: object = None
    turn: int | None = None
    example: int | str | None = None


running: ContextVar[Running] = ContextVar("sigwire_running", default=Running())  # noqa: B039  (immutable)


prefix_moved: ContextVar[str] = ContextVar("sigwire_prefix_moved", default="")
"""Why an agent sends another start of its conversation than before: "fold", "on_turn"; "" if it does not."""


class OpenQuestion(Protocol):
    """A question to a model (``Ask``)."""

    @property
    def request(self) -> Request: ...

    @property
    def asker(self) -> object: ...


class _Asked(threading.local):
    """The question that this thread passes to a model. Tasks overwrite it; its request identifies the call."""

    question: OpenQuestion | None = None


asked = _Asked()


def enter(module: object, example: int | str | None = None) -> bool:
    """Set the running program, unless a program runs already, and its example.

    Return True if the program was set; the caller then resets it, or has a context of its own.
    """
    before = running.get()
    if before.program is None:
        running.set(Running(module, None, example))
        return True
    if example is not None:
        running.set(before._replace(example=example))
    return False


def path_of(asker: object, program: object) -> str:
    """Return the path of the asking module in its program; the name of its class if it is not inside."""
    if program is None or program is asker:
        return "self"
    if not hasattr(program, "named_sub_modules"):  # a function, as the program of an evaluation
        return type(asker).__name__
    return _find_paths(program).get(id(asker)) or type(asker).__name__


def _no_paths(root: object) -> Mapping[int, str]:
    return {}


_find_paths: Callable[..., Mapping[int, str]] = _no_paths


def path_in(program: object, part: object) -> str | None:
    """Return the path of a module inside another; ``None`` if it is not inside. Cheap for a module near the root."""
    return _find_path(program, part)


def _no_path(program: object, part: object) -> str | None:
    return None


_find_path: Callable[..., str | None] = _no_path


def find_paths_with(find: Callable[..., Mapping[int, str]], find_one: Callable[..., str | None]) -> None:
    """Set the functions that return the paths of the modules inside a module, by id, and of one of them."""
    global _find_paths, _find_path
    _find_paths, _find_path = find, find_one


_history_size: Callable[[], int] = int


def find_history_size_with(find: Callable[[], int]) -> None:
    """Set the function that returns the setting ``max_history_size``."""
    global _history_size
    _history_size = find


def kept_calls() -> int:
    """Return how many calls histories keep by the settings of the current context; 0 if these set none."""
    return _history_size()
