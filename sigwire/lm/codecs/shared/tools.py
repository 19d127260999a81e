"""The tools of a request, checked: names on the wire, compiled parameters, the choice; and provider data of calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import MemoTuple, Request, memoized
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.options import require_feature
from sigwire.lm.codecs.shared.schema import AS_IS, SchemaRules, compile_schema
from sigwire.lm.codecs.shared.untrusted import object_of

__all__ = [
    "OfferedTools", "can_force", "encode_functions", "in_order", "name_map", "object_arguments", "offered_tools",
    "provider_data", "read_call", "refuse_builtin_tools", "search_settings", "tool_name",
]  # fmt: skip

_Function: TypeAlias = "tuple[str, str, JsonObject | None, JsonObject]"
_Builtin: TypeAlias = tuple[str, JsonObject]


class OfferedTools(NamedTuple):
    """The tools of a request, checked against its choice.

    ``functions``: (name on the wire, description, compiled parameters or ``None``, other fields of the wire). ``builtin``:
    tools that the provider runs, as (kind, settings). ``choice``: ``None`` if the caller gave none or no tools are
    offered. ``allowed``: the names on the wire to which the choice is limited, empty for all.
    """

    functions: tuple[_Function, ...] = ()
    builtin: tuple[_Builtin, ...] = ()
    choice: Literal["auto", "required", "none"] | None = None
    allowed: tuple[str, ...] = ()
    warnings: tuple[LMWarning, ...] = ()

    @property
    def forced_name(self) -> str | None:
        """The name on the wire of the one tool that must be called, else ``None``."""
        return self.allowed[0] if self.choice == "required" and len(self.allowed) == 1 else None

    def allowed_functions(self) -> tuple[_Function, ...]:
        """Return the functions that the choice allows, for wires without a list of allowed names."""
        return tuple(tool for tool in self.functions if tool[0] in self.allowed) if self.allowed else self.functions


def offered_tools(request: Request, names: NameMap, target: Target[WireProfile]) -> OfferedTools:
    """Return the tools and the choice. Raises ``InputError`` if the choice names a tool that is not offered."""
    choice = request.tool_choice
    if not request.tools and choice is None:
        return _NO_TOOLS
    profile = target.profile
    functions, builtin, warnings = memoized(
        request.tools, _compile, names, profile.tool_schema, profile.tool_fields, profile.family, target.label
    )
    if choice is None:
        return OfferedTools(functions, builtin, warnings=warnings)
    if choice.allowed:
        _check_allowed(choice, request)
    allowed = tuple([names.encode(name) for name in choice.allowed])
    return OfferedTools(functions, builtin, choice.mode, allowed, warnings) if request.tools else _NO_TOOLS


_NO_TOOLS = OfferedTools()


def _compile(
    tools: Sequence[JsonObject], names: NameMap, rules: SchemaRules, known: frozenset[str], family: str, to: str
) -> tuple[MemoTuple[_Function], tuple[_Builtin, ...], tuple[LMWarning, ...]]:
    functions: list[_Function] = []
    builtin: list[_Builtin] = []
    warnings: list[LMWarning] = []
    for tool in tools:
        kind = str(tool["type"])
        if kind != "function":
            builtin.append((kind, object_of(tool.get(kind))))
            continue
        function = object_of(tool[kind])
        name, parameters = str(function["name"]), _parameters_of(function)
        if parameters is not None and rules is not AS_IS:
            parameters, lost = compile_schema(parameters, rules, f"tool {name!r}", to)
            warnings.extend(lost)
        fields = {field: function[field] for field in function if field not in _FUNCTION}
        warnings += _without_unknown(fields, known, name, to)
        own = tool.get(family)
        fields = {**fields, **own} if isinstance(own, dict) else fields
        functions.append((names.encode(name), str(function.get("description") or ""), parameters, fields))
    return MemoTuple(functions), tuple(builtin), tuple(warnings)


def _without_unknown(fields: JsonObject, known: frozenset[str], name: str, to: str) -> list[LMWarning]:
    lost = [field for field in fields if field not in known]
    for field in lost:
        del fields[field]
    return [
        LMWarning("tools", f"{to} has no place for {field} of the tool {name!r}; it was left out.") for field in lost
    ]


_FUNCTION = frozenset({"name", "description", "parameters"})
_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


def _parameters_of(function: JsonObject) -> JsonObject | None:
    """Return the schema of the arguments. ``{}`` and an object without properties mean no arguments, ``None`` as well."""
    parameters = function.get("parameters")
    if not isinstance(parameters, dict):
        return None
    is_empty = parameters.get("type", "object") == "object" and parameters.keys() <= _NOTES
    return {**parameters, **_NO_PARAMETERS} if is_empty else parameters


_NOTES = frozenset({"type", "title", "description", "$schema", "$id"})


def encode_functions(functions: tuple[_Function, ...], encode: Callable[..., JsonObject]) -> tuple[JsonObject, ...]:
    """Encode the offered functions, each by ``encode``. The functions of the same tools are encoded once."""
    return memoized(functions, _encode_functions, encode)


def _encode_functions(functions: tuple[_Function, ...], encode: Callable[..., JsonObject]) -> tuple[JsonObject, ...]:
    return tuple([encode(*function) for function in functions])


def in_order(
    request: Request, functions: Iterable[JsonObject], builtin: Iterable[JsonObject]
) -> tuple[JsonObject, ...]:
    """Return encoded functions and built-in tools in the caller's order, which keeps the provider's cache valid."""
    functions, builtin = iter(functions), iter(builtin)
    return tuple([next(functions if tool["type"] == "function" else builtin) for tool in request.tools])


def _check_allowed(choice: ToolChoice, request: Request) -> None:
    offered = [name for tool in request.tools if (name := tool_name(tool))]
    for name in choice.allowed:
        if name not in offered:
            known = ", ".join(offered) or "no tools"
            raise InputError(f"tool_choice allows {name!r}, which the request does not offer. Offered: {known}.")


def tool_name(tool: JsonObject) -> str:
    """Return the name of a function, ``""`` for a built-in tool."""
    function = tool.get("function")
    return str(function.get("name") or "") if isinstance(function, dict) else ""


def name_map(tools: Sequence[JsonObject], called: frozenset[str], rules: NameRules) -> NameMap:
    """Map the names of offered tools and of past calls (``NormalizedHistory.call_names``) for the wire and back."""
    if not tools:
        return _cached_map(called - _NAMELESS, rules)
    names, offered = memoized(tools, _offered_names, rules)
    return offered if called <= names else _cached_map(called.union(names) - _NAMELESS, rules)


def _offered_names(tools: Sequence[JsonObject], rules: NameRules) -> tuple[frozenset[str], NameMap]:
    names = frozenset(map(tool_name, tools))
    return names, _cached_map(names - _NAMELESS, rules)


_NAMELESS = frozenset({""})


@functools.lru_cache(maxsize=256)
def _cached_map(names: frozenset[str], rules: NameRules) -> NameMap:  # each turn of a conversation has the same names
    return NameMap(names, rules)


def read_call(
    call_id: str | None, name: str | None, arguments: JsonValue, extra: JsonObject, names: NameMap, family: str
) -> ToolCall:
    """Return a call of an answer. ``extra``: the fields that only the provider knows."""
    data: JsonObject | None = {family: extra} if extra else None
    return ToolCall.read(call_id or "", names.decode(name or ""), arguments, provider_data=data)


def provider_data(call: ToolCall, family: str) -> JsonObject:
    """Return the data of this family on the call (``{family: {...}}``), else ``{}``."""
    data = call.provider_data.get(family) if isinstance(call.provider_data, dict) else None
    return data if isinstance(data, dict) else {}


def object_arguments(call: ToolCall) -> JsonObject:
    """Return the arguments as an object. Text that is none (a broken call) becomes a value in it."""
    return call.arguments if call.arguments is not None else {"invalid_arguments": call.arguments_text}


def can_force(thinks: bool, target: Target[WireProfile]) -> bool:
    """Return True if tool_choice can force a call of the model. ``thinks``: whether it will reason."""
    facts = target.facts
    return facts.forced_choice and (facts.forced_choice_with_reasoning or not thinks)


def refuse_builtin_tools(tools: OfferedTools, target: Target[WireProfile]) -> None:
    """Raise ``UnsupportedFeature`` for tools that the provider runs, on wires without them."""
    instead = "Use a wire or a provider that has them (OpenAI's Responses API, Anthropic, Gemini), or a function tool."
    require_feature(not tools.builtin, "built-in tools such as web search", target, instead)


def search_settings(settings: JsonObject, fields: Collection[str], target: Target[WireProfile]) -> JsonObject:
    """Return the settings of a web search that are set. Raises ``UnsupportedFeature`` for a field that the wire lacks."""
    flat = {**settings, **object_of(settings.get("filters"))}  # OpenAI nests the domains in filters
    given: JsonObject = {name: flat[name] for name in flat if flat[name] and name not in ("filters", "name")}
    for name in given:
        require_feature(name in fields, f"{name} of a web search", target, f"It has {', '.join(sorted(fields))}.")
    return given
