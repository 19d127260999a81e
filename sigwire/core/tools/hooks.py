"""Who watches tools that a program calls itself. ``observe.callbacks`` puts itself here; core has never heard of listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

__all__ = ["Watch", "set_tool_call_hook", "tool_call_hook"]

Watch: TypeAlias = Callable[[Any, Mapping[str, Any]], AbstractContextManager[Callable[[Any], None]]]
"""A tool and its arguments in; out comes what surrounds the call, and takes its value."""


def _ignore(value: Any) -> None:
    return None


def _unwatched(tool: Any, arguments: Mapping[str, Any]) -> AbstractContextManager[Callable[[Any], None]]:
    return nullcontext(_ignore)


_watch: Watch = _unwatched


def set_tool_call_hook(watch: Watch) -> None:
    """Have calls watched from now on."""
    global _watch
    _watch = watch


def tool_call_hook(tool: Any, arguments: Mapping[str, Any]) -> AbstractContextManager[Callable[[Any], None]]:
    """What surrounds a call of a tool; hand it the value.

    >>> with watched("a tool", {"n": 1}) as end:
    ...     end(2)
    """
    return _watch(tool, arguments)
