"""Messages: encode the tools of a request, including tools of the provider, and the choice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.anthropic.thinking import ThinkingParameters, forces_call
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import require_feature, target_warning
from sigwire.lm.codecs.shared.tools import OfferedTools, encode_functions, in_order, search_settings

__all__ = ["encode_tools"]


def encode_tools(
    tools: OfferedTools,
    request: Request,
    thinking: ThinkingParameters,
    target: Target[MessagesProfile],
    warnings: list[LMWarning],
) -> JsonObject:
    """Return ``tools`` in the caller's order, which keeps the provider's cache valid, and ``tool_choice``."""
    if not tools.functions and not tools.builtin:
        return {}
    choice, narrowed = _encode_choice(tools, thinking, target, warnings)
    if request.parallel_tool_calls is False and tools.choice != "none":
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    builtin = (_encode_builtin(*tool, target) for tool in tools.builtin)
    wires = in_order(request, encode_functions(tools.functions, _encode_function), builtin)
    sent = [wire for wire in wires if not narrowed or wire.get("name") in tools.allowed]
    return {"tools": cast(JsonValue, sent), **({} if choice is None else {"tool_choice": choice})}


def _encode_function(name: str, description: str, parameters: JsonObject | None, fields: JsonObject) -> JsonObject:
    described: JsonObject = {"description": description} if description else {}
    return {"name": name, **described, "input_schema": parameters or {"type": "object", "properties": {}}, **fields}


# code_execution_20260120; a few have a name without a date
_TYPE = re.compile(r"\w+_\d{8}|mcp_toolset|tool_search_tool_(?:bm25|regex)")


def _encode_builtin(kind: str, settings: JsonObject, target: Target[MessagesProfile]) -> JsonObject:
    search = target.profile.web_search
    if kind == "web_search":
        require_feature(search is not None, "web search", target, "Use a function tool instead.")
        return _encode_web_search(cast(str, search), settings, target)
    instead = "It has web_search and dated types such as code_execution_20260120. Or use a function tool."
    require_feature(_TYPE.fullmatch(kind) is not None, f"the built-in tool {kind!r}", target, instead)
    return {"type": kind, **settings}


def _encode_web_search(kind: str, settings: JsonObject, target: Target[MessagesProfile]) -> JsonObject:
    given = search_settings(settings, _SEARCH, target)
    both = "allowed_domains" in given and "blocked_domains" in given
    require_feature(not both, "allowed_domains together with blocked_domains", target, "Give one of the two.")
    if isinstance(place := given.get("user_location"), dict):
        given["user_location"] = {"type": "approximate", **place}
    return {"type": kind, "name": "web_search", **given}


_SEARCH = frozenset(
    "allowed_callers allowed_domains blocked_domains cache_control defer_loading max_uses response_inclusion strict "
    "user_location".split()
)
_CHOICES: Mapping[str, str] = {"auto": "auto", "required": "any", "none": "none"}


def _encode_choice(
    tools: OfferedTools, thinking: ThinkingParameters, target: Target[MessagesProfile], warnings: list[LMWarning]
) -> tuple[JsonObject | None, bool]:
    """Return ``tool_choice``, and whether the tools must be limited to those that it allows."""
    if tools.choice is None:
        return None, False
    if tools.choice == "required" and not forces_call(thinking, target):
        warnings.append(
            target_warning("tool_choice", target, "cannot be made to call a tool; the choice was left to the model.")
        )
        return {"type": "auto"}, bool(tools.allowed)
    if tools.forced_name:
        return {"type": "tool", "name": tools.forced_name}, False
    return {"type": _CHOICES[tools.choice]}, bool(tools.allowed) and tools.choice != "none"
