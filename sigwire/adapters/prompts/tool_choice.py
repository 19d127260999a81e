"""The ``tool_choice`` that callers give, read into a ``ToolChoice``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.narrow import is_mapping
from sigwire.core.request import ToolChoice
from sigwire.errors import InputError

__all__ = ["read_tool_choice"]

_MODES: Mapping[str, ToolChoice] = {
    "any": ToolChoice.REQUIRED,
    "auto": ToolChoice.AUTO,
    "none": ToolChoice.NONE,
    "required": ToolChoice.REQUIRED,
}


def read_tool_choice(value: object) -> ToolChoice | None:
    """Return a ``ToolChoice`` from a mode, a tool's name, OpenAI's object or ``None``. Raises ``InputError``.

    >>> read_tool_choice("required")
    ToolChoice(mode='required', allowed=())
    >>> read_tool_choice({"type": "function", "function": {"name": "search"}}).allowed
    ('search',)
    """
    if value is None or isinstance(value, ToolChoice):
        return value
    if isinstance(value, str):
        return _MODES.get(value) or ToolChoice.named(value)
    if is_mapping(value):
        return _read_object(value)
    raise InputError(f"tool_choice takes auto, required, none, a tool's name or a ToolChoice; got {value!r:.80}.")


def _read_object(value: Mapping[str, Any]) -> ToolChoice:
    function = value.get("function")
    name = function.get("name") if is_mapping(function) else value.get("name")
    if isinstance(name, str):
        return ToolChoice.named(name)
    kind = value.get("type") or value.get("mode")
    if isinstance(kind, str) and kind in _MODES:
        return ToolChoice(_MODES[kind].mode, tuple(value.get("allowed") or ()))
    raise InputError(f"tool_choice names no tool and no mode: {dict(value)!r:.120}.")
