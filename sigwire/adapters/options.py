"""Adapter options as a plan sees them, and the checks of a call's tool options against the offered tools.

``Adapter`` is an ``AdapterOptions``; ``Plan`` and the writers of prompts know no more of it. Knows no layouts and no plans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sigwire.adapters.text_tools.render import ToolSchemas
from sigwire.core.json import JsonObject
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import InputError, UnsupportedFeature

__all__ = ["AdapterOptions", "DemoLayout", "ToolsMode", "check_functions_only", "check_tool_choice"]

DemoLayout: TypeAlias = Literal["turns", "system"]
ToolsMode: TypeAlias = Literal["native", "text"]


@dataclass(frozen=True, kw_only=True)
class AdapterOptions:
    """The options of an adapter that its plans need. ``Adapter`` describes each."""

    strict: bool = False
    tool_schemas: ToolSchemas = "full"
    text_tools: str = "fenced"
    calls_alone: bool | None = None
    demos: DemoLayout = "turns"
    parallel_tool_calls: bool | None = None
    max_reasks: int | None = None


def check_tool_choice(choice: ToolChoice, names: Collection[str]) -> None:
    """Raise ``InputError`` if ``tool_choice`` names a tool that is not offered."""
    if unknown := next((name for name in choice.allowed if name not in names), None):
        raise InputError(f"tool_choice names {unknown!r}, and the tools on offer are {', '.join(sorted(names))}.")


def check_functions_only(specs: Iterable[JsonObject]) -> None:
    """Raise ``UnsupportedFeature`` if a tool is run by the provider: tools offered as text are functions."""
    for spec in specs:
        if spec.get("type") != "function":
            raise UnsupportedFeature(
                f"The tool {spec.get('type')!r} is run by the provider, and this model is offered tools as text. "
                "Use a model with native tools, or a function of your own."
            )
