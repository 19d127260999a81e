"""Messages: encode the tools of a request, including tools of the provider, and the choice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.anthropic.thinking import ThinkingParameters, forces_call
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import require_feature, target_warning
from sigwire.lm.codecs.shared.tools import OfferedTools, encode_functions

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
    wires = _encode_offered(tools, request, target)
    sent = [wire for wire in wires if not narrowed or wire.get("name") in tools.allowed]
    return {"tools": cast(JsonValue, sent), **({} if choice is None else {"tool_choice": choice})}


def _encode_offered(tools: OfferedTools, request: Request, target: Target[MessagesProfile]) -> Iterator[JsonObject]:
    functions, builtin = iter(encode_functions(tools.functions, _encode_function)), iter(tools.builtin)
    for tool in request.tools:
        if tool.get("type", "function") != "function":
            yield _encode_builtin(*next(builtin), target)
            continue
        function = next(functions)
        extra = tool.get(target.profile.family)
        yield {**function, **extra} if isinstance(extra, dict) else function


def _encode_function(name: str, description: str, parameters: JsonObject | None) -> JsonObject:
    described: JsonObject = {"description": description} if description else {}
    return {"name": name, **described, "input_schema": parameters or {"type": "object", "properties": {}}}


_DATED_TYPE = re.compile(r"\w+_\d{8}")  # code_execution_20260120


def _encode_builtin(kind: str, settings: JsonObject, target: Target[MessagesProfile]) -> JsonObject:
    search = target.profile.web_search
    if kind == "web_search":
        require_feature(search is not None, "web search", target, "Use a function tool instead.")
        return _encode_web_search(cast(str, search), settings, target)
    instead = "It has web_search and dated types such as code_execution_20260120. Or use a function tool."
    require_feature(_DATED_TYPE.fullmatch(kind) is not None, f"the built-in tool {kind!r}", target, instead)
    return {"type": kind, **settings}


def _encode_web_search(kind: str, settings: JsonObject, target: Target[MessagesProfile]) -> JsonObject:
    given: JsonObject = {name: value for name, value in settings.items() if value}
    both = "allowed_domains" in given and "blocked_domains" in given
    require_feature(not both, "allowed_domains together with blocked_domains", target, "Give one of the two.")
    if isinstance(place := given.get("user_location"), dict):
        given["user_location"] = {"type": "approximate", **place}
    return {"type": kind, "name": "web_search", **given}


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
