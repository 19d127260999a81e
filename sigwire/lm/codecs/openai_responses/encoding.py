"""Responses: Request -> body. Options, cache hints, reasoning, output format and tools; see ``items`` for turns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import OpaquePart
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.codecs.openai_responses.items import encode_messages, encode_result, has_cache_mark, is_text
from sigwire.lm.codecs.openai_responses.profiles import ResponsesProfile
from sigwire.lm.codecs.openai_responses.tables import ENCRYPTED, JSON_MODE, LOGPROBS, MARK, OPTIONS, SAMPLING
from sigwire.lm.codecs.shared.assembly import assemble, prepare
from sigwire.lm.codecs.shared.cache_marks import with_marked_part
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.options import (
    Option,
    Skip,
    merge_objects,
    place_options,
    require_feature,
)
from sigwire.lm.codecs.shared.output import OutputForm, choose_output
from sigwire.lm.codecs.shared.paths import model_in_path
from sigwire.lm.codecs.shared.reasoning import fit_effort, requested_reasoning
from sigwire.lm.codecs.shared.tools import (
    OfferedTools,
    can_force,
    encode_functions,
    in_order,
)
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of

__all__ = ["encode"]


def encode(request: Request, target: Target[ResponsesProfile], *, stream: bool = False) -> EncodedRequest:
    """Encode a request for the target's host. Raises ``UnsupportedFeature`` or ``InputError``; nothing was sent then.

    >>> sent = encode(Request((Message.system("S"), Message.user("q"))), Target("openai", "m", ResponsesProfile()))
    >>> sent.path, sent.body
    ('/responses', {'model': 'm', 'instructions': 'S', 'input': [{'role': 'user', 'content': 'q'}], 'store': False})
    """
    profile = target.profile
    ready = prepare(_without_server_results(request, target), target)
    history, names, tools = ready.history, ready.names, ready.tools
    form = choose_output(request.response_format, profile.structured, bool(tools.functions), target)
    output = _encode_output(form)
    thinking, is_reasoning, thinking_warnings = _encode_reasoning(request, target)
    table = {**OPTIONS, **target.profile.options}
    options, option_warnings = place_options(request.options, table, target, sampling=SAMPLING, thinks=is_reasoning)
    chosen, tool_warnings = _encode_tools(request, tools, is_reasoning, target)
    body: JsonObject = {
        "model": target.model,
        **encode_messages(_with_instruction(history.messages, form.instruction), output, request, names, target),
        **chosen,
        **merge_objects(output, options),
        **_cache_fields(request, target),
        **thinking,
        **_encode_include(request, table, target),
        **({} if profile.store is None else {"store": profile.store}),
        **({"stream": True} if stream else {}),
    }
    if request.repeated_part is not None and target.facts.cache_breakpoints and profile.builtin:
        body = _with_marked_part(body, request)
    lost = (history.warnings, tools.warnings, tool_warnings, form.warnings, thinking_warnings, option_warnings)
    path = profile.path.format(model=model_in_path(target.model))
    return assemble(ready, path, body, itertools.chain(*lost), stop=_stop_texts(request))


def _without_server_results(request: Request, target: Target[ResponsesProfile]) -> Request:
    """If the provider stores the conversation, its calls may be there: encode results without a call as items."""
    extra = request.options.get("extra_body")
    if not isinstance(extra, dict) or not (extra.get("previous_response_id") or extra.get("conversation")):
        return request
    here = {call.id for message in request.messages for call in message.tool_calls}

    def as_item(part: Part) -> Part:
        if isinstance(part, ToolResult) and part.id not in here:
            return OpaquePart(target.profile.family, encode_result(part, target))
        return part

    turns = tuple(Message(message.role, tuple(map(as_item, message.parts))) for message in request.messages)
    return replace(request, messages=turns)


# --- options, caching, reasoning


def _stop_texts(request: Request) -> tuple[str, ...]:
    stop = request.options.get("stop")
    texts = stop if isinstance(stop, list) else [stop]
    return tuple(text for text in texts if isinstance(text, str) and text)


def _cache_fields(request: Request, target: Target[ResponsesProfile]) -> JsonObject:
    given = request.options.get("prompt_cache")
    fields: JsonObject = {"prompt_cache_key": given["key"]} if isinstance(given, dict) and "key" in given else {}
    if has_cache_mark(request, target):
        fields["prompt_cache_options"] = MARK
    return fields


def _with_marked_part(body: JsonObject, request: Request) -> JsonObject:
    """Mark the end of inputs that many calls repeat."""
    mark: JsonObject = {"prompt_cache_breakpoint": MARK}
    marked = with_marked_part(objects_of(body["input"]), request, lambda block: [{**block, **mark}], "input_text")
    return body if marked is None else {**body, "input": [*marked], "prompt_cache_options": MARK}


def _encode_include(
    request: Request, table: Mapping[str, Option | None], target: Target[ResponsesProfile]
) -> JsonObject:
    """Return the extra fields that the reply shall have. Models that do not reason reject a request for reasoning."""
    reasons = target.capabilities.reasoning and target.facts.thinking != "none"
    wanted: list[JsonValue] = [ENCRYPTED] if reasons and target.profile.encrypted_reasoning else []
    if request.options.get("logprobs") and isinstance(table.get("logprobs"), Skip):
        wanted.append(LOGPROBS)
    return {"include": wanted} if wanted else {}


def _encode_reasoning(
    request: Request, target: Target[ResponsesProfile]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """Return the fields of the body, whether the model will reason, and the warnings."""
    facts, asked = target.facts, requested_reasoning(request)
    efforts = facts.known_efforts(target.profile.efforts)
    if asked is None:
        return {}, facts.default_effort not in (None, "off"), ()
    if asked.is_off and not efforts:
        return {}, False, ()  # the model does not reason at all
    effort, warnings = fit_effort(asked, efforts, target)
    return {"reasoning": {"effort": "none" if effort == "off" else effort}}, effort != "off", warnings


# --- structured output


def _encode_output(form: OutputForm) -> JsonObject:
    if form.mode == "json_schema":
        strict: JsonObject = {"strict": True} if form.strict else {}
        return {"text": {"format": {"type": form.mode, "name": form.name, "schema": form.schema, **strict}}}
    return JSON_MODE if form.mode else {}


def _with_instruction(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    if not text:
        return messages
    if messages and messages[0].role == "system" and is_text(messages[0]):
        return (Message.system(f"{messages[0].text}\n\n{text}"), *messages[1:])
    return (Message.system(text), *messages)


# --- tools


def _encode_tools(
    request: Request, tools: OfferedTools, is_reasoning: bool, target: Target[ResponsesProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return ``tools`` in the order of the request, the choice and the limits; nothing without a tool to call."""
    if not tools.functions and not tools.builtin:
        return {}, ()
    choice, narrowed, warnings = _encode_choice(tools, is_reasoning, target)
    functions = encode_functions(tools.functions, _encode_tool)
    builtin = (_encode_builtin(*tool, target) for tool in tools.builtin)
    wires: list[JsonValue] = [
        wire
        for wire in in_order(request, functions, builtin)
        if not narrowed or wire["type"] != "function" or wire["name"] in tools.allowed
    ]
    body: JsonObject = {"tools": wires}
    if choice is not None:
        body["tool_choice"] = choice
    if request.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = request.parallel_tool_calls
    limit, limit_warnings = _encode_use_limit(tools, target)
    return {**body, **limit}, (*warnings, *limit_warnings)


def _encode_tool(name: str, description: str, parameters: JsonObject | None, fields: JsonObject) -> JsonObject:
    described: JsonObject = {"description": description} if description else {}
    schema: JsonObject = {"type": "object", "properties": {}} if parameters is None else parameters
    return {"type": "function", "name": name, **described, "parameters": schema, "strict": False, **fields}


def _encode_builtin(kind: str, settings: JsonObject, target: Target[ResponsesProfile]) -> JsonObject:
    require_feature(kind in target.profile.builtin, f"the built-in tool {kind!r}", target, "Use a function tool.")
    return {"type": kind, **(_search_settings(settings, target) if kind == "web_search" else settings)}


def _search_settings(settings: JsonObject, target: Target[ResponsesProfile]) -> JsonObject:
    named = ("allowed_domains", "blocked_domains", "max_uses", "user_location")
    fields: JsonObject = {name: value for name, value in settings.items() if name not in named}
    has_blocked = bool(settings.get("blocked_domains"))
    require_feature(not has_blocked, "blocked domains in web search", target, "Give allowed_domains instead.")
    if domains := settings.get("allowed_domains"):
        domains = list(cast("Iterable[JsonValue]", domains))
        fields["filters"] = {**object_of(fields.get("filters")), "allowed_domains": domains}
    if isinstance(location := settings.get("user_location"), dict):
        fields["user_location"] = {"type": "approximate", **location}
    return fields


def _encode_use_limit(
    tools: OfferedTools, target: Target[ResponsesProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return the limit of calls. The wire counts all built-in tools together: the limit is exact for a single tool."""
    limits = [limit for _, settings in tools.builtin if (limit := settings.get("max_uses")) is not None]
    if not limits:
        return {}, ()
    if len(tools.builtin) == 1:
        return {"max_tool_calls": limits[0]}, ()
    detail = (
        f"{target.provider} limits the calls of all built-in tools together; the limit of a single tool was left out."
    )
    return {}, (LMWarning("max_uses", detail),)


def _encode_choice(
    tools: OfferedTools, is_reasoning: bool, target: Target[ResponsesProfile]
) -> tuple[JsonValue, bool, tuple[LMWarning, ...]]:
    """Return the choice, whether only the allowed tools are sent, and the warnings."""
    mode = tools.choice
    if mode in (None, "none"):
        return mode, False, ()
    if mode == "required" and not (target.profile.forced_choice and can_force(is_reasoning, target)):
        detail = f"{target.label} cannot be forced to call a tool; the model chooses."
        return "auto", bool(tools.allowed), (LMWarning("tool_choice", detail),)
    if tools.forced_name:
        return {"type": "function", "name": tools.forced_name}, False, ()
    if not tools.allowed or not target.profile.allowed_tools:
        return mode, bool(tools.allowed), ()
    references: list[JsonValue] = [{"type": "function", "name": name} for name in tools.allowed]
    return {"type": "allowed_tools", "mode": mode, "tools": references}, False, ()
