"""Chat completions: Request -> body. Options, caching, reasoning, structured output, tools; turns are in ``messages``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.openai_chat.messages import encode_message
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.tables import OPTIONS, SAMPLING
from sigwire.lm.codecs.shared.history import normalize_history
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.options import (
    OptionTable,
    Place,
    Skip,
    drop_options,
    headers_for,
    merge_extra_body,
    merge_objects,
    place_options,
    repeat_warning,
    requested_choices,
    require_feature,
    sampling_options_while_reasoning,
    schema_instruction,
    set_path,
)
from sigwire.lm.codecs.shared.reasoning import ReasoningRequest, fit_effort, requested_reasoning
from sigwire.lm.codecs.shared.schema import compile_schema
from sigwire.lm.codecs.shared.tools import (
    OfferedTools,
    can_force,
    encode_functions,
    name_map,
    offered_tools,
    refuse_builtin_tools,
)
from sigwire.lm.codecs.shared.untrusted import objects_of

__all__ = ["encode"]


def encode(request: Request, target: Target[ChatProfile], *, stream: bool = False) -> EncodedRequest:
    """The request as this host takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> from sigwire.core.messages import Message
    >>> sent = encode(Request((Message.user("q"),)), Target("openai", "m", ChatProfile()))
    >>> sent.path, sent.body
    ('/chat/completions', {'model': 'm', 'messages': [{'role': 'user', 'content': 'q'}]})
    """
    dialect = target.profile
    history = normalize_history(request.messages, dialect.history_rules)
    names = name_map(request.tools, history.call_names, dialect.names)
    tools = offered_tools(request, names, target)
    refuse_builtin_tools(tools, target)
    output, instruction, format_warnings = _encode_output(request.response_format, bool(tools.functions), target)
    thinking, thinks, thinking_warnings = _encode_reasoning(request, bool(tools.functions), target)
    options, option_warnings = _encode_options(thinks, request, target)
    chosen, tool_warnings = _encode_tools(tools, request.parallel_tool_calls, thinks, target)
    messages = [wire for message in history.messages for wire in encode_message(message, names, target)]
    body: JsonObject = {
        "model": target.model,
        "messages": cast(JsonValue, _with_cache_mark(_with_instruction(messages, instruction), request, target)),
        **chosen,
        **output,
        **options,
        **_cache_fields(request, target),
        **thinking,
        **(_stream_fields(dialect) if stream else {}),
    }
    lost = history.warnings + tools.warnings + tool_warnings + format_warnings + thinking_warnings + option_warnings
    return EncodedRequest(
        dialect.path.format(model=target.model),
        merge_extra_body(body, request),
        {},
        headers_for(request, dialect),
        lost if dialect.many else lost + repeat_warning(request, target),
        names,
        history.call_ids,
        1 if dialect.many else requested_choices(request),
    )


def _stream_fields(dialect: ChatProfile) -> JsonObject:
    return {"stream": True, **({"stream_options": {"include_usage": True}} if dialect.usage_in_streams else {})}


# --- caching: automatic, but for a key and marks where they are taken


def _cache_fields(request: Request, target: Target[ChatProfile]) -> JsonObject:
    hints = request.options.get("cache")
    fields: JsonObject = {}
    if isinstance(hints, dict) and hints.get("key") is not None and target.profile.cache_key:
        fields["prompt_cache_key"] = hints["key"]
    if hints and target.facts.cache_breakpoints and target.profile.cache_mark in _CACHE_MODES:
        fields |= _CACHE_MODES[target.profile.cache_mark]
    return fields


_CACHE_MARKS: Mapping[str, JsonObject] = {
    "prompt_cache_breakpoint": {"mode": "explicit"},
    "cache_control": {"type": "ephemeral"},
}
_CACHE_MODES: Mapping[str, JsonObject] = {
    "prompt_cache_breakpoint": {"prompt_cache_options": {"mode": "explicit"}},
}


def _with_cache_mark(messages: list[JsonObject], request: Request, target: Target[ChatProfile]) -> list[JsonObject]:
    """The first system turn, which with the tools before it is the part that stays, ends with a mark."""
    if not request.options.get("cache") or not target.facts.cache_breakpoints:
        return messages
    mark = target.profile.cache_mark
    first = messages[0] if messages else {}
    if first.get("role") != "system":
        return messages
    content = first["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(objects_of(content))
    marked = [*parts[:-1], {**parts[-1], mark: _CACHE_MARKS[mark]}]
    return [{**first, "content": cast("JsonValue", marked)}, *messages[1:]]


# --- options and reasoning


def _encode_options(
    thinks: bool, request: Request, target: Target[ChatProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    if not request.options:
        return {}, ()
    return place_options(request.options, _option_table(thinks, request, target), target)


def _option_table(thinks: bool, request: Request, target: Target[ChatProfile]) -> OptionTable:
    """The wire's table with the host's and the model's own rows over it."""
    facts, dialect = target.facts, target.profile
    table = {**OPTIONS, **dialect.options}
    if facts.sampling == "never" or (facts.sampling == "unless_reasoning" and thinks):
        table |= sampling_options_while_reasoning(SAMPLING)
    if not facts.stop:
        table |= drop_options(["stop"], "a model that reasons takes no stop sequences; they were left out.")
    if not dialect.many:
        table["n"] = Skip() if requested_choices(request) > 1 else Place("n")
    return {name: option for name, option in table.items() if option is not None}


def _encode_reasoning(
    request: Request, tools: bool, target: Target[ChatProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """What asks for thinking, whether the model will think, and what could not be asked for."""
    words, facts = target.profile.reasoning, target.facts
    asked = requested_reasoning(request)
    efforts = words.efforts if facts.efforts is None else facts.efforts
    efforts = () if facts.thinking == "none" else efforts
    if not facts.tools_with_reasoning and tools:
        return _no_thinking_beside_tools(asked, efforts, target)
    if asked is None:
        return {}, facts.default_effort not in (None, "off"), ()
    if asked.is_off and not efforts:
        return {}, False, ()  # it does not reason anyway
    if asked.budget is not None and words.budget:
        body: JsonObject = {}
        set_path(body, words.budget, asked.budget)
        return merge_objects(words.on, body), True, ()
    effort, warnings = fit_effort(asked, efforts, target)
    if effort == "off":
        return words.off, False, warnings
    body = {}
    set_path(body, words.effort, effort)
    return merge_objects(words.on, body), True, warnings


def _no_thinking_beside_tools(
    asked: ReasoningRequest | None, efforts: Sequence[str], target: Target[ChatProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    by_itself = target.facts.default_effort not in (None, "off")
    if not by_itself and (asked is None or asked.is_off):
        return {}, False, ()
    require_feature(
        "off" in efforts, "tools together with reasoning on this wire", target, "OpenAI's Responses API takes both."
    )
    detail = f"{target.label} takes tools here only without reasoning; it was switched off."
    off = target.profile.reasoning.off if by_itself else {}
    return off, False, () if asked is not None and asked.is_off else (LMWarning("reasoning", detail),)


# --- structured output


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[ChatProfile]
) -> tuple[JsonObject, str, tuple[LMWarning, ...]]:
    """The output format for the body, or what has to be said in words instead."""
    if wanted is None:
        return {}, "", ()
    schema, warnings = wanted.schema, _NONE_LOST
    able = _output_modes(tools, target)
    if schema is not None and "json_schema" in able:
        schema, warnings = compile_schema(
            schema, target.profile.output_schema, f"the output {wanted.name!r}", target.label
        )
        return (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": _output_name(wanted.name), "schema": schema},
                }
            },
            "",
            warnings,
        )
    native: JsonObject = {"response_format": {"type": "json_object"}} if "json_object" in able else {}
    if schema is None and native:
        return native, "", ()
    lost = f"{target.label} has no structured output by schema here; it was asked for in words."
    return native, schema_instruction(schema), (LMWarning("response_format", lost),)


_NONE_LOST: tuple[LMWarning, ...] = ()


def _output_modes(tools: bool, target: Target[ChatProfile]) -> tuple[str, ...]:
    able, dialect = target.capabilities, target.profile
    if tools and not (dialect.structured_with_tools and able.tools_with_json_schema):
        return ()
    return tuple(mode for mode in dialect.structured if getattr(able, mode))


def _output_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "response"


def _with_instruction(messages: list[JsonObject], text: str) -> list[JsonObject]:
    """The instruction at the end of the first system turn, or as one."""
    if not text:
        return messages
    if messages and messages[0]["role"] == "system" and isinstance(messages[0]["content"], str):
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


# --- tools


def _encode_tools(
    tools: OfferedTools, parallel: bool | None, thinks: bool, target: Target[ChatProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """``tools``, ``tool_choice`` and ``parallel_tool_calls``; all three are left out where there is no tool to call."""
    dialect = target.profile
    if not tools.functions or (tools.choice == "none" and dialect.none == "drop"):
        return {}, ()
    choice, narrowed, warnings = _encode_choice(tools, thinks, target)
    sent = tools.allowed_functions() if narrowed else tools.functions
    body: JsonObject = {"tools": [*encode_functions(sent, _encode_tool)]}
    if choice is not None:
        body["tool_choice"] = choice
    wanted = dialect.parallel if parallel is None else parallel
    if wanted is not None:
        body["parallel_tool_calls"] = wanted
    return body, warnings


def _encode_tool(name: str, description: str, parameters: JsonObject | None) -> JsonObject:
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    if parameters is not None:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


def _encode_choice(
    tools: OfferedTools, thinks: bool, target: Target[ChatProfile]
) -> tuple[JsonValue, bool, tuple[LMWarning, ...]]:
    """The choice's spelling, and whether the tools have to be narrowed to those it allows."""
    dialect, mode = target.profile, tools.choice
    if mode is None or mode == "none":
        return mode, False, ()
    if mode == "required" and not (target.profile.forced_choice and can_force(thinks, target)):
        detail = f"{target.label} cannot be made to call a tool; the choice was left to the model."
        return "auto", bool(tools.allowed), (LMWarning("tool_choice", detail),)
    if tools.forced_name and len(tools.functions) > 0:
        return {"type": "function", "function": {"name": tools.forced_name}}, False, ()
    word = dialect.required if mode == "required" else mode
    if not tools.allowed:
        return word, False, ()
    if not dialect.allowed_tools:
        return word, True, ()
    references: list[JsonValue] = [{"type": "function", "function": {"name": name}} for name in tools.allowed]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": references}}, False, ()
