"""The hook around tool calls that a program makes itself, and the source of injected values. Higher rooms set both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

__all__ = ["ToolCallHook", "find_injected_with", "injected_values", "set_tool_call_hook", "tool_call_hook"]

CallContext: TypeAlias = AbstractContextManager[Callable[[object], None]]
ToolCallHook: TypeAlias = Callable[[object, Mapping[str, object]], CallContext]
"""Maps a tool and its arguments to the context manager of the call, whose value is called with the result."""


def _ignore(value: object) -> None:
    return None


def _no_hook(tool: object, arguments: Mapping[str, object]) -> CallContext:
    return nullcontext(_ignore)


_hook: ToolCallHook = _no_hook


def set_tool_call_hook(hook: ToolCallHook) -> None:
    """Set the hook of all later tool calls."""
    global _hook
    _hook = hook


def tool_call_hook(tool: object, arguments: Mapping[str, object]) -> CallContext:
    """Return the context manager of a tool call. Call its value with the result of the tool.

    >>> with tool_call_hook("a tool", {"n": 1}) as end:
    ...     end(2)
    """
    return _hook(tool, arguments)


_injected: Callable[[], Mapping[str, object] | None] = dict[str, object]


def find_injected_with(source: Callable[[], Mapping[str, object] | None]) -> None:
    """Set the function that returns the injected values of the running code (``settings``)."""
    global _injected
    _injected = source


def injected_values() -> Mapping[str, object]:
    """Return the injected values of the running code, by name of parameter."""
    return _injected() or {}
