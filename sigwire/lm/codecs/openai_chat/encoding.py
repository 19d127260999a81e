"""Chat completions: Request -> body. Options, cache hints, reasoning, output format and tools; see ``messages`` for turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.openai_chat.cache_marks import with_cache_marks
from sigwire.lm.codecs.openai_chat.messages import encode_message
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile, ReasoningNames
from sigwire.lm.codecs.openai_chat.tables import OPTIONS, SAMPLING
from sigwire.lm.codecs.shared.assembly import assemble, prepare, requested_choices
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.options import (
    Option,
    Place,
    Skip,
    merge_objects,
    place_options,
    require_feature,
    set_path,
    target_warning,
)
from sigwire.lm.codecs.shared.output import OutputForm, add_instruction, choose_output
from sigwire.lm.codecs.shared.paths import model_in_path
from sigwire.lm.codecs.shared.reasoning import (
    ReasoningRequest,
    can_start_thinking,
    fit_effort,
    requested_reasoning,
)
from sigwire.lm.codecs.shared.tools import (
    OfferedTools,
    can_force,
    encode_functions,
    in_order,
    refuse_builtin_tools,
    search_settings,
)

__all__ = ["encode"]


def encode(request: Request, target: Target[ChatProfile], *, stream: bool = False) -> EncodedRequest:
    """Encode a request for the target's host. Raises ``UnsupportedFeature`` or ``InputError``; nothing was sent then.

    >>> from sigwire.core.messages import Message
    >>> sent = encode(Request((Message.user("q"),)), Target("openai", "m", ChatProfile()))
    >>> sent.path, sent.body
    ('/chat/completions', {'model': 'm', 'messages': [{'role': 'user', 'content': 'q'}]})
    """
    profile = target.profile
    ready = prepare(request, target)
    history, names, tools = ready.history, ready.names, ready.tools
    if tools.builtin and not profile.server_tools:
        refuse_builtin_tools(tools, target)
    has_tools = bool(tools.functions)
    modes = () if has_tools and not profile.structured_with_tools else profile.structured
    form = choose_output(request.response_format, modes, has_tools, target)
    thinking, is_reasoning, thinking_warnings = _encode_reasoning(
        request, history.messages, bool(tools.functions), target
    )
    options, option_warnings = _NO_OPTIONS
    if request.options:
        table = _option_table(request, target)
        options, option_warnings = place_options(request.options, table, target, sampling=SAMPLING, thinks=is_reasoning)
    if both := options.keys() & thinking.keys():  # an option may be an object that switches reasoning, too
        thinking = merge_objects({name: options[name] for name in both}, thinking)
    chosen, tool_warnings = _encode_tools(tools, request, is_reasoning, target)
    messages = [wire for message in history.messages for wire in encode_message(message, names, target)]
    if form.instruction:
        messages = add_instruction(messages, form.instruction)
    cache: JsonObject = {}
    if request.repeated or request.repeated_part or "prompt_cache" in request.options:
        marked = with_cache_marks(messages, chosen.get("tools"), request, target)
        cache, messages = _cache_fields(request, target, is_marked=marked is not messages), marked
    body: JsonObject = {
        "model": target.model,
        "messages": cast(JsonValue, messages),
        **chosen,
        **_encode_output(form),
        **options,
        **cache,
        **thinking,
        **(_stream_fields(profile) if stream else {}),
    }
    lost = history.warnings + tools.warnings + tool_warnings + form.warnings + thinking_warnings + option_warnings
    method = "streamRawPredict" if stream else "rawPredict"  # Vertex AI has two paths for partners' own wires
    path = profile.path.format(model=model_in_path(target.model), method=method)
    return assemble(ready, path, body, lost, repeats=not profile.many)


_NO_OPTIONS: tuple[JsonObject, tuple[LMWarning, ...]] = ({}, ())


def _stream_fields(profile: ChatProfile) -> JsonObject:
    return {"stream": True, **({"stream_options": {"include_usage": True}} if profile.usage_in_streams else {})}


# --- caching: hosts cache without a request; some take a key, some take marks


def _cache_fields(request: Request, target: Target[ChatProfile], *, is_marked: bool) -> JsonObject:
    given = request.options.get("prompt_cache")
    fields: JsonObject = {}
    if isinstance(given, dict) and "key" in given and target.profile.cache_key:
        fields["prompt_cache_key"] = given["key"]
    is_asked = is_marked or (isinstance(given, dict) and target.facts.cache_breakpoints)
    if is_asked and target.profile.cache_mark in _CACHE_MODES:
        fields |= _CACHE_MODES[target.profile.cache_mark]
    return fields


_CACHE_MODES: Mapping[str, JsonObject] = {
    "prompt_cache_breakpoint": {"prompt_cache_options": {"mode": "explicit"}},
}


# --- options and reasoning


def _option_table(request: Request, target: Target[ChatProfile]) -> Mapping[str, Option | None]:
    table = {**OPTIONS, **target.profile.options}
    if not target.profile.many:
        table["n"] = Skip() if requested_choices(request) > 1 else Place("n")
    return table


def _encode_reasoning(
    request: Request, messages: Sequence[Message], has_tools: bool, target: Target[ChatProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """Return the fields of the body, whether the model will reason, and the warnings."""
    names, facts = target.profile.reasoning, target.facts
    asked = requested_reasoning(request) if "reasoning" in request.options else None
    efforts = [effort for effort in facts.known_efforts(names.efforts) if effort in names.efforts]
    if has_tools and not facts.tools_with_reasoning:
        return _switch_off_for_tools(asked, efforts, target)
    if asked is None:
        return {}, facts.default_effort not in (None, "off"), ()
    if asked.is_off and not efforts:
        return {}, False, ()  # the model does not reason at all
    lost: list[LMWarning] = []
    if not asked.is_off and not can_start_thinking(messages, target, lost):
        return names.off if facts.default_effort not in (None, "off") else {}, False, tuple(lost)
    if asked.budget is not None and names.budget:
        return _reasoning_fields(names, names.budget, asked.budget), True, ()
    if names.on and not asked.is_off and not {*efforts} - {"off"}:
        return names.on, True, (target_warning("reasoning", target, "has no efforts; thinking was switched on."),)
    effort, warnings = fit_effort(asked, efforts, target)
    if effort == "off":
        return names.off, False, warnings
    return _reasoning_fields(names, names.effort, effort), True, warnings


def _reasoning_fields(names: ReasoningNames, path: str, value: JsonValue) -> JsonObject:
    body: JsonObject = {}
    set_path(body, path, value)
    return merge_objects(names.on, body)


def _switch_off_for_tools(
    asked: ReasoningRequest | None, efforts: Sequence[str], target: Target[ChatProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    by_default = target.facts.default_effort not in (None, "off")
    if not by_default and (asked is None or asked.is_off):
        return {}, False, ()
    require_feature(
        "off" in efforts, "tools together with reasoning on this wire", target, "OpenAI's Responses API takes both."
    )
    detail = f"{target.label} takes tools on this wire only without reasoning; reasoning was switched off."
    off = target.profile.reasoning.off if by_default else {}
    return off, False, () if asked is not None and asked.is_off else (LMWarning("reasoning", detail),)


# --- structured output


def _encode_output(form: OutputForm) -> JsonObject:
    if form.mode == "json_schema":
        described: JsonObject = {"name": form.name, "schema": form.schema, **({"strict": True} if form.strict else {})}
        return {"response_format": {"type": form.mode, "json_schema": described}}
    return {"response_format": {"type": form.mode}} if form.mode else {}


# --- tools


def _encode_tools(
    tools: OfferedTools, request: Request, is_reasoning: bool, target: Target[ChatProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return ``tools``, ``tool_choice`` and ``parallel_tool_calls``; none of the three without a tool to call."""
    profile, parallel = target.profile, request.parallel_tool_calls
    if not (tools.functions or tools.builtin) or (tools.choice == "none" and profile.none == "drop"):
        return {}, ()
    choice, narrowed, warnings = _encode_choice(tools, is_reasoning, target)
    sent = encode_functions(tools.allowed_functions() if narrowed else tools.functions, _encode_tool)
    server = [_encode_server_tool(*tool, target) for tool in tools.builtin]
    body: JsonObject = {"tools": [*((*sent, *server) if narrowed else in_order(request, sent, server))]}
    if choice is not None:
        body["tool_choice"] = choice
    if parallel is not None:
        body["parallel_tool_calls"] = parallel
    return body, warnings


def _encode_server_tool(kind: str, settings: JsonObject, target: Target[ChatProfile]) -> JsonObject:
    """Return a tool that the host runs: of one of its own types, or the web search of every wire."""
    start = target.profile.server_tools
    if kind != "web_search":
        instead = f"It has tools whose type starts with {start!r}, and web_search."
        require_feature(kind.startswith(start), f"the built-in tool {kind!r}", target, instead)
        return {"type": kind, **settings}
    given = search_settings(settings, _SEARCH, target)
    named: JsonObject = {_SEARCH[name]: value for name, value in given.items()}
    return {"type": f"{start}web_search", **({"parameters": named} if named else {})}


# https://openrouter.ai/docs/guides/features/server-tools/web-search
_SEARCH: Mapping[str, str] = {
    "allowed_domains": "allowed_domains",
    "blocked_domains": "excluded_domains",
    "engine": "engine",
    "excluded_domains": "excluded_domains",
    "max_results": "max_results",
    "max_total_results": "max_total_results",
    "max_uses": "max_uses",
    "search_context_size": "search_context_size",
    "user_location": "user_location",
}


def _encode_tool(name: str, description: str, parameters: JsonObject | None, fields: JsonObject) -> JsonObject:
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    if parameters is not None:
        function["parameters"] = parameters
    if not fields:
        return {"type": "function", "function": function}
    outer: JsonObject = {name: fields[name] for name in fields if name == "cache_control"}
    inner: JsonObject = {name: fields[name] for name in fields if name not in outer}
    return {"type": "function", "function": {**function, **inner}, **outer}


def _encode_choice(
    tools: OfferedTools, is_reasoning: bool, target: Target[ChatProfile]
) -> tuple[JsonValue, bool, tuple[LMWarning, ...]]:
    """Return the choice, whether only the allowed tools are sent, and the warnings."""
    profile, mode = target.profile, tools.choice
    if mode in (None, "none"):
        return mode, False, ()
    if mode == "required" and not (profile.forced_choice and can_force(is_reasoning, target)):
        detail = f"{target.label} cannot be forced to call a tool; the model chooses."
        return "auto", bool(tools.allowed), (LMWarning("tool_choice", detail),)
    if tools.forced_name and profile.named_choice:
        return _encode_name(tools.forced_name), False, ()
    if not tools.allowed or not profile.allowed_tools:
        return profile.required if mode == "required" else mode, bool(tools.allowed), ()
    references: list[JsonValue] = list(map(_encode_name, tools.allowed))
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": references}}, False, ()


def _encode_name(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name}}
