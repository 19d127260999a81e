"""The tools of a request: offered, named for the wire, chosen; and what a provider left on a call.

name_map(tools, called, rules)     every tool name, mapped for the wire and back
encode_functions(functions, encode)  each function in the wire's form
offer(request, names, target)      the tools compiled, and the choice checked against them
can_force(thinks, target)          whether the model can be made to call
functions_only(tools, target)      the refusal of built-in tools, on wires without them
provider_data(call, family)        what the provider wants to see again on a call
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.core.request import MemoTuple, Request, ToolChoice, memoized
from sigwire.core.response import LMWarning
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.core.tools.tool import ToolCall
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.options import require_feature
from sigwire.lm.codecs.shared.schema import AS_IS, SchemaRules, compile_schema
from sigwire.lm.codecs.shared.untrusted import object_of

__all__ = [
    "OfferedTools",
    "can_force",
    "encode_functions",
    "name_map",
    "offered_tools",
    "provider_data",
    "refuse_builtin_tools",
    "tool_name",
]


class OfferedTools(NamedTuple):
    """The tools of a request, checked against its choice.

    ``functions`` are (name on the wire, description, compiled parameters or ``None``); ``builtin`` are tools that the
    provider runs, as (kind, settings). ``choice`` is ``None`` where the caller left it open or there is nothing to
    choose; ``allowed`` are the names on the wire that the choice is limited to, empty for all. ``forced_name`` is the one
    that must be called.
    """

    functions: tuple[tuple[str, str, JsonObject | None], ...] = ()
    builtin: tuple[tuple[str, JsonObject], ...] = ()
    choice: Literal["auto", "required", "none"] | None = None
    allowed: tuple[str, ...] = ()
    warnings: tuple[LMWarning, ...] = ()

    @property
    def forced_name(self) -> str | None:
        """The one tool that must be called, by its name on the wire."""
        return self.allowed[0] if self.choice == "required" and len(self.allowed) == 1 else None

    def allowed_functions(self) -> tuple[tuple[str, str, JsonObject | None], ...]:
        """The functions without those that the choice leaves out, for wires that cannot say it otherwise."""
        return tuple(tool for tool in self.functions if tool[0] in self.allowed) if self.allowed else self.functions


def offered_tools(request: Request, names: NameMap, target: Target[WireProfile]) -> OfferedTools:
    """Read the tools and the choice. Raises ``InputError`` when the choice names a tool that is not offered."""
    if not request.tools and request.tool_choice is None:
        return _NOTHING
    functions, builtin, warnings = memoized(request.tools, _compile, names, target.profile.tool_schema, target.label)
    choice = request.tool_choice or ToolChoice.AUTO
    if choice.allowed:
        _check_allowed(choice, request)
    if not functions and not builtin:
        return _NOTHING
    mode = request.tool_choice.mode if request.tool_choice else None
    allowed = tuple([names.encode(name) for name in choice.allowed])
    return OfferedTools(functions, builtin, mode, allowed, warnings)


_NOTHING = OfferedTools()
_Function: TypeAlias = "tuple[str, str, JsonObject | None]"
_Builtin: TypeAlias = tuple[str, JsonObject]


def _compile(
    tools: Sequence[JsonObject], names: NameMap, rules: SchemaRules, shown: str
) -> tuple[MemoTuple[_Function], tuple[_Builtin, ...], tuple[LMWarning, ...]]:
    functions: list[_Function] = []
    builtin: list[_Builtin] = []
    warnings: list[LMWarning] = []
    for tool in tools:
        if tool.get("type", "function") != "function":
            kind = str(tool["type"])
            builtin.append((kind, object_of(tool.get(kind))))
            continue
        function = object_of(tool.get("function"))
        name, parameters = str(function.get("name")), function.get("parameters")
        if not isinstance(parameters, dict):
            parameters = None
        elif rules is not AS_IS:
            parameters, lost = compile_schema(parameters, rules, f"tool {name!r}", shown)
            warnings.extend(lost)
        functions.append((names.encode(name), str(function.get("description") or ""), parameters))
    return MemoTuple(functions), tuple(builtin), tuple(warnings)


def encode_functions(functions: tuple[_Function, ...], encode: Callable[..., JsonObject]) -> tuple[JsonObject, ...]:
    """Encode the offered functions, each by ``encode``. The functions of the same tools are encoded once."""
    return memoized(functions, _encode_functions, encode)


def _encode_functions(functions: tuple[_Function, ...], encode: Callable[..., JsonObject]) -> tuple[JsonObject, ...]:
    return tuple([encode(*function) for function in functions])


def _check_allowed(choice: ToolChoice, request: Request) -> None:
    offered = [name for tool in request.tools if (name := tool_name(tool))]
    for name in choice.allowed:
        if name not in offered:
            raise InputError(
                f"tool_choice allows {name!r}, which the request does not offer. "
                f"Offered: {', '.join(offered) or 'no tools'}."
            )


def tool_name(tool: JsonObject) -> str:
    """The name of an offered function, ``""`` for a built-in tool."""
    function = tool.get("function")
    return str(function.get("name") or "") if isinstance(function, dict) else ""


def name_map(tools: Sequence[JsonObject], called: frozenset[str], rules: NameRules) -> NameMap:
    """Every tool name of a request, of the offered tools and of old calls (``NormalizedHistory.called``), for the wire and back."""
    names, own = memoized(tools, _own_names, rules)
    return own if called <= names else _mapped(called.union(names) - _NAMELESS, rules)


def _own_names(tools: Sequence[JsonObject], rules: NameRules) -> tuple[frozenset[str], NameMap]:
    names = frozenset(map(tool_name, tools))
    return names, _mapped(names - _NAMELESS, rules)


_NAMELESS = frozenset({""})


@functools.lru_cache(maxsize=256)
def _mapped(names: frozenset[str], rules: NameRules) -> NameMap:
    """The turns of a conversation have the same names, again and again."""
    return NameMap(names, rules)


def provider_data(call: ToolCall, family: str) -> JsonObject:
    """What this family left on the call (``{family: {...}}``), ``{}`` for nothing or another's."""
    data = call.provider_data.get(family) if isinstance(call.provider_data, dict) else None
    return data if isinstance(data, dict) else {}


def can_force(thinks: bool, target: Target[WireProfile]) -> bool:
    """Whether the model takes a forced call; ``thinks``: whether it will reason."""
    facts = target.facts
    return facts.forced_choice and (facts.forced_choice_with_reasoning or not thinks)


def refuse_builtin_tools(tools: OfferedTools, target: Target[WireProfile]) -> None:
    """Refuse tools that the provider would run itself, on wires that have none."""
    instead = "Use a wire or a provider that has them (OpenAI's Responses API, Anthropic, Gemini), or a function tool."
    require_feature(not tools.builtin, "built-in tools such as web search", target, instead)
