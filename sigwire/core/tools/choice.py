"""``ToolChoice``, which tools a model may or must call, and the forms of ``tool_choice`` that are read into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sigwire.core.json import Value
from sigwire.core.narrow import is_mapping
from sigwire.errors import InputError
from sigwire.keywords import ChecksKeywords

__all__ = ["ToolChoice", "read_tool_choice"]


@dataclass(frozen=True, slots=True)
class ToolChoice(Value, ChecksKeywords):
    """Whether the model must, may or must not call tools, and which of the offered tools.

    >>> ToolChoice.named("search")
    ToolChoice(mode='required', allowed=('search',))
    """

    mode: Literal["auto", "required", "none"] = "auto"
    allowed: tuple[str, ...] = ()

    AUTO: ClassVar[ToolChoice]
    REQUIRED: ClassVar[ToolChoice]
    NONE: ClassVar[ToolChoice]

    @classmethod
    def named(cls, name: str) -> ToolChoice:
        """Return the choice that forces a call of this tool."""
        return cls("required", (name,))


ToolChoice.AUTO = ToolChoice("auto")
ToolChoice.REQUIRED = ToolChoice("required")
ToolChoice.NONE = ToolChoice("none")


_MODES: Mapping[str, ToolChoice] = {
    "any": ToolChoice.REQUIRED,
    "auto": ToolChoice.AUTO,
    "none": ToolChoice.NONE,
    "required": ToolChoice.REQUIRED,
}


def read_tool_choice(value: object) -> ToolChoice | None:
    """Return a ``ToolChoice`` from a mode, a tool's name, an object of OpenAI or Anthropic, or ``None``.

    Raises ``InputError`` for any other value.

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
    if name := _name_of(value):
        return ToolChoice.named(name)
    listed = value.get("allowed_tools", value)
    kinds = [str(listed.get(key)) for key in ("mode", "type")] if is_mapping(listed) else ()
    if mode := next((_MODES[kind] for kind in kinds if kind in _MODES), None):
        allowed = listed.get("allowed") or map(_name_of, listed.get("tools") or ())
        return ToolChoice(mode.mode, tuple(allowed))
    raise InputError(f"tool_choice names no tool and no mode: {dict(value)!r:.120}.")


def _name_of(tool: Mapping[str, Any]) -> str:
    """Return the name of a function, which OpenAI's chat completions nest; ``""`` if there is none."""
    function = tool.get("function", tool)
    name = function.get("name") if is_mapping(function) else None
    return name if isinstance(name, str) else ""
