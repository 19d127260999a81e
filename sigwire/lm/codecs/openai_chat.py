"""OpenAI chat completions wire, spoken by OpenAI and by the hosts in ``dialects``: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between hosts is a ``ChatDialect``; what differs between models
is in the target's facts. Reads top to bottom: tables, encode(), decode(), decode_error(), read_request().

Surprises of this wire:
    - Arguments travel as a JSON *string*, and the model writes it: it may be no JSON at all, and is kept.
    - Results are text only. Failures begin with ``ERROR: ``, media follow in a user turn.
    - api.openai.com never returns or takes reasoning here; compatible hosts do, under names of their own. It is kept
      as a ``ThinkingPart`` of the host's family and goes back only where the host wants it (``ChatDialect.replay``).
    - What we do not model is kept as ``OpaquePart``: in an assistant turn its data are fields of the message
      (``reasoning_details``), elsewhere a content part. Unknown fields of a call are its provider data
      (``extra_content``).
    - A host may answer status 200 with an error, and with a finish reason that contradicts the content.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Role,
    TextPart,
    ThinkingPart,
)
from sigwire.core.names import NameMap
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools import ToolCall, ToolResult, number_calls
from sigwire.errors import (
    ContextWindowExceededError,
    InputError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMUnexpectedError,
    LMUnsupportedModelError,
    UnsupportedFeature,
)
from sigwire.lm.codecs.base import (
    Encoded,
    Offer,
    OptionTable,
    Place,
    Reasoning,
    Skip,
    Target,
    asked_reasoning,
    can_force,
    drop_options,
    finish,
    fit_effort,
    headers_for,
    in_words,
    merge,
    name_map,
    needs_media,
    objects_of,
    offer,
    place_options,
    provider_data,
    put,
    repeat_warning,
    settle,
    split_data_url,
    string_of,
    supports,
    text_of_file,
    usage_of,
    wanted_choices,
)
from sigwire.lm.codecs.dialects import ChatDialect
from sigwire.lm.codecs.faults import CONTEXT_TEXTS, Rule, lm_error, read_fault
from sigwire.lm.codecs.repair import error_text, read_error_text, repair
from sigwire.lm.codecs.schema_rules import compile_schema

__all__ = [
    "ERRORS",
    "FINISH_REASONS",
    "OPTIONS",
    "USAGE",
    "decode",
    "decode_error",
    "encode",
    "read_request",
]


# --- tables ------------------------------------------------------------------------------------------------

_SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs")

OPTIONS: OptionTable = {
    "cache": Skip(),  # automatic; a key is encoded with the rest of the cache hints
    "frequency_penalty": Place("frequency_penalty"),
    "logprobs": Place("logprobs"),
    "max_tokens": Place("max_completion_tokens"),
    "metadata": Place("metadata"),
    "n": Place("n"),
    "presence_penalty": Place("presence_penalty"),
    "reasoning": Skip(),
    "seed": Place("seed"),
    "service_tier": Place("service_tier"),
    "stop": Place("stop"),
    "temperature": Place("temperature"),
    "top_logprobs": Place("top_logprobs"),
    "top_p": Place("top_p"),
    "user": Place("user"),
}

FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
    "insufficient_system_resource": "error",
}

USAGE: Mapping[str, str | tuple[str, ...]] = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": (
        "prompt_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "num_cached_tokens",
        "cached_tokens",
    ),
    "cache_write_tokens": "prompt_tokens_details.cache_write_tokens",
    "reasoning_tokens": "completion_tokens_details.reasoning_tokens",
    "cost": "cost",
}

_BILLING = frozenset({"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "402"})

ERRORS: tuple[Rule, ...] = (
    Rule(
        ContextWindowExceededError,
        codes=frozenset({"context_length_exceeded", "exceed_context_size_error"}),
        hint="Shorten the request or use a model with a larger context.",
    ),
    Rule(ContextWindowExceededError, frozenset({400, 413, 422, 500}), texts=CONTEXT_TEXTS),
    Rule(LMBillingError, codes=_BILLING, hint="Check the account's balance and limits; trying again does not help."),
    Rule(
        LMContentFilteredError,
        codes=frozenset({"content_filter", "content_policy_violation"}),
        hint="Change what is sent; trying again does not help.",
    ),
    Rule(
        LMUnsupportedModelError,
        codes=frozenset({"model_not_found"}),
        hint="Check the model's name: {provider} does not serve {model!r} to this key.",
    ),
    # The host's own check of a call failed. The model may write a better one when it is asked again.
    Rule(LMInvalidRequestError, codes=frozenset({"tool_use_failed"}), retry=True),
    Rule(LMRateLimitError, codes=frozenset({"rate_limit_exceeded", "rate_limit_error", "slow_down"})),
    Rule(LMServerError, codes=frozenset({"server_error", "server_is_overloaded", "insufficient_system_resource"})),
)


# --- encode ------------------------------------------------------------------------------------------------


def encode(request: Request, target: Target[ChatDialect], *, stream: bool = False) -> Encoded:
    """The request as this host takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> from sigwire.core.messages import Message
    >>> sent = encode(Request((Message.user("q"),)), Target("openai", "m", ChatDialect()))
    >>> sent.path, sent.body
    ('/chat/completions', {'model': 'm', 'messages': [{'role': 'user', 'content': 'q'}]})
    """
    dialect = target.dialect
    names = name_map(request, dialect.names)
    history = repair(request.messages, dialect.repair)
    tools = offer(request, names, target)
    supports(not tools.builtin, "built-in tools such as web search", target, _NO_BUILTIN)
    output, instruction, format_warnings = _encode_output(request.response_format, bool(tools.functions), target)
    thinking, thinks, thinking_warnings = _encode_reasoning(request, bool(tools.functions), target)
    options, option_warnings = place_options(request.options, _option_table(thinks, request, target), target)
    chosen, tool_warnings = _encode_tools(tools, request.parallel_tool_calls, thinks, target)
    messages = [wire for message in history.messages for wire in _encode_message(message, names, target)]
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
    lost = (history.warnings, tools.warnings, tool_warnings, format_warnings, thinking_warnings, option_warnings)
    return Encoded(
        dialect.path.format(model=target.model),
        finish(body, request),
        {},
        headers_for(request, dialect),
        (*itertools.chain(*lost), *(() if dialect.many else repeat_warning(request, target))),
        names,
        history.call_ids,
        1 if dialect.many else wanted_choices(request),
    )


def _stream_fields(dialect: ChatDialect) -> JsonObject:
    return {"stream": True, **({"stream_options": {"include_usage": True}} if dialect.usage_in_streams else {})}


_NO_BUILTIN = (
    "Use a model whose provider has it (OpenAI's Responses API, Anthropic, Gemini), or a function tool of your own."
)


# --- caching: automatic, but for a key and marks where they are taken


def _cache_fields(request: Request, target: Target[ChatDialect]) -> JsonObject:
    hints = request.options.get("cache")
    fields: JsonObject = {}
    if isinstance(hints, dict) and hints.get("key") is not None and target.dialect.cache_key:
        fields["prompt_cache_key"] = hints["key"]
    if hints and target.facts.cache_breakpoints and target.dialect.cache_mark in _CACHE_MODES:
        fields |= _CACHE_MODES[target.dialect.cache_mark]
    return fields


_CACHE_MARKS: Mapping[str, JsonObject] = {
    "prompt_cache_breakpoint": {"mode": "explicit"},
    "cache_control": {"type": "ephemeral"},
}
_CACHE_MODES: Mapping[str, JsonObject] = {
    "prompt_cache_breakpoint": {"prompt_cache_options": {"mode": "explicit"}},
}


def _with_cache_mark(messages: list[JsonObject], request: Request, target: Target[ChatDialect]) -> list[JsonObject]:
    """The first system turn, which with the tools before it is the part that stays, ends with a mark."""
    if not request.options.get("cache") or not target.facts.cache_breakpoints:
        return messages
    mark = target.dialect.cache_mark
    first = messages[0] if messages else {}
    if first.get("role") != "system":
        return messages
    content = first["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(objects_of(content))
    marked = [*parts[:-1], {**parts[-1], mark: _CACHE_MARKS[mark]}]
    return [{**first, "content": cast("JsonValue", marked)}, *messages[1:]]


# --- options and reasoning


def _option_table(thinks: bool, request: Request, target: Target[ChatDialect]) -> OptionTable:
    """The wire's table with the host's and the model's own rows over it."""
    facts, dialect = target.facts, target.dialect
    table = {**OPTIONS, **dialect.options}
    if facts.sampling == "never" or (facts.sampling == "unless_reasoning" and thinks):
        table |= drop_options(_SAMPLING, "a model that reasons takes no sampling options; it was left out.")
    if not facts.stop:
        table |= drop_options(["stop"], "a model that reasons takes no stop sequences; they were left out.")
    if not dialect.many:
        table["n"] = Skip() if wanted_choices(request) > 1 else Place("n")
    return {name: option for name, option in table.items() if option is not None}


def _encode_reasoning(
    request: Request, tools: bool, target: Target[ChatDialect]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """What asks for thinking, whether the model will think, and what could not be asked for."""
    words, facts = target.dialect.reasoning, target.facts
    asked = asked_reasoning(request)
    efforts = words.efforts if facts.efforts is None else facts.efforts
    efforts = () if facts.thinking == "none" else efforts
    if not facts.tools_with_reasoning and tools:
        return _no_thinking_beside_tools(asked, efforts, target)
    if asked is None:
        return {}, facts.default_effort not in (None, "off"), ()
    if asked.off and not efforts:
        return {}, False, ()  # it does not reason anyway
    if asked.budget is not None and words.budget:
        body: JsonObject = {}
        put(body, words.budget, asked.budget)
        return merge(words.on, body), True, ()
    effort, warnings = fit_effort(asked, efforts, target)
    if effort == "off":
        return words.off, False, warnings
    body = {}
    put(body, words.effort, effort)
    return merge(words.on, body), True, warnings


def _no_thinking_beside_tools(
    asked: Reasoning | None, efforts: Sequence[str], target: Target[ChatDialect]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    by_itself = target.facts.default_effort not in (None, "off")
    if not by_itself and (asked is None or asked.off):
        return {}, False, ()
    supports(
        "off" in efforts, "tools together with reasoning on this wire", target, "OpenAI's Responses API takes both."
    )
    detail = f"{target.provider}/{target.model} takes tools here only without reasoning; it was switched off."
    off = target.dialect.reasoning.off if by_itself else {}
    return off, False, () if asked is not None and asked.off else (LMWarning("reasoning", detail),)


# --- structured output


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[ChatDialect]
) -> tuple[JsonObject, str, tuple[LMWarning, ...]]:
    """The output format for the body, or what has to be said in words instead."""
    if wanted is None:
        return {}, "", ()
    schema, warnings = wanted.schema, _NONE_LOST
    able = _output_modes(tools, target)
    if schema is not None and "json_schema" in able:
        schema, warnings = compile_schema(schema, target.dialect.output_schema, f"the output {wanted.name!r}")
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
    lost = f"{target.provider}/{target.model} has no structured output by schema here; it was asked for in words."
    return native, in_words(schema), (LMWarning("response_format", lost),)


_NONE_LOST: tuple[LMWarning, ...] = ()


def _output_modes(tools: bool, target: Target[ChatDialect]) -> tuple[str, ...]:
    able, dialect = target.capabilities, target.dialect
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
    tools: Offer, parallel: bool | None, thinks: bool, target: Target[ChatDialect]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """``tools``, ``tool_choice`` and ``parallel_tool_calls``; all three are left out where there is no tool to call."""
    dialect = target.dialect
    if not tools.functions or (tools.choice == "none" and dialect.none == "drop"):
        return {}, ()
    choice, narrowed, warnings = _encode_choice(tools, thinks, target)
    sent = tools.only_allowed() if narrowed else tools.functions
    body: JsonObject = {"tools": [_encode_tool(*tool) for tool in sent]}
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
    tools: Offer, thinks: bool, target: Target[ChatDialect]
) -> tuple[JsonValue, bool, tuple[LMWarning, ...]]:
    """The choice's spelling, and whether the tools have to be narrowed to those it allows."""
    dialect, mode = target.dialect, tools.choice
    if mode is None or mode == "none":
        return mode, False, ()
    if mode == "required" and not (target.dialect.forced_choice and can_force(thinks, target)):
        detail = f"{target.provider}/{target.model} cannot be made to call a tool; the choice was left to the model."
        return "auto", bool(tools.allowed), (LMWarning("tool_choice", detail),)
    if tools.named and len(tools.functions) > 0:
        return {"type": "function", "function": {"name": tools.named}}, False, ()
    word = dialect.required if mode == "required" else mode
    if not tools.allowed:
        return word, False, ()
    if not dialect.allowed_tools:
        return word, True, ()
    references: list[JsonValue] = [{"type": "function", "function": {"name": name}} for name in tools.allowed]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": references}}, False, ()


# --- messages


def _encode_message(message: Message, names: NameMap, target: Target[ChatDialect]) -> list[JsonObject]:
    if message.role == "assistant":
        wire = _encode_assistant(message, names, target)
        return [] if wire == _NOTHING_SAID else [wire]
    if message.role == "tool":
        return [_encode_result(result) for result in message.tool_results]
    return [{"role": message.role, "content": _encode_content(message.parts, target)}]


_NOTHING_SAID: JsonObject = {"role": "assistant", "content": ""}  # some hosts refuse such a turn


def _encode_result(result: ToolResult) -> JsonObject:
    return {"role": "tool", "tool_call_id": result.id, "content": error_text(result)}


def _encode_content(parts: tuple[Part, ...], target: Target[ChatDialect]) -> JsonValue:
    """Plain text where there is only text: weak servers refuse lists."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if len(texts) == len(parts) and (len(parts) == 1 or not target.dialect.text_lists):
        return "".join(texts)
    return [_encode_part(part, target) for part in parts]


def _encode_part(part: Part, target: Target[ChatDialect]) -> JsonObject:
    encoder = _PARTS.get(type(part))
    supports(encoder is not None, f"a {type(part).__name__} in this place", target, "Leave it out or send it as text.")
    return cast("_PartEncoder", encoder)(part, target)


def _encode_text(part: TextPart, target: Target[ChatDialect]) -> JsonObject:
    return {"type": "text", "text": part.text}


def _encode_image(part: ImagePart, target: Target[ChatDialect]) -> JsonObject:
    needs_media("image", target.dialect.media, target)
    if part.url is None and part.data is None:
        raise InputError("An image needs a url or data.")
    url = part.url or f"data:{part.media_type or 'image/png'};base64,{part.data or ''}"
    image: JsonObject = {"url": url}
    if part.detail is not None:
        image["detail"] = part.detail
    return {"type": "image_url", "image_url": image}


def _encode_audio(part: AudioPart, target: Target[ChatDialect]) -> JsonObject:
    needs_media("audio", target.dialect.media, target)
    supports(part.format in ("wav", "mp3"), f"audio as {part.format!r}", target, "Convert it to wav or mp3.")
    return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}


def _encode_file(part: FilePart, target: Target[ChatDialect]) -> JsonObject:
    if (text := text_of_file(part)) is not None:
        return {"type": "text", "text": text}
    needs_media("file", target.dialect.media, target)
    if part.file_id is not None:
        return {"type": "file", "file": {"file_id": part.file_id}}
    supports(part.data is not None, "a document by URL", target, "Download it and pass its data.")
    file: JsonObject = {"file_data": f"data:{part.media_type or 'application/pdf'};base64,{part.data}"}
    if part.filename is not None:
        file["filename"] = part.filename
    return {"type": "file", "file": file}


def _encode_opaque(part: OpaquePart, target: Target[ChatDialect]) -> JsonObject:
    return cast(JsonObject, part.data)


_PartEncoder: TypeAlias = Callable[[Any, Target[ChatDialect]], JsonObject]
_PARTS: Mapping[type, _PartEncoder] = {
    TextPart: _encode_text,
    ImagePart: _encode_image,
    AudioPart: _encode_audio,
    FilePart: _encode_file,
    OpaquePart: _encode_opaque,
}


def _encode_assistant(message: Message, names: NameMap, target: Target[ChatDialect]) -> JsonObject:
    """Text or ``null``, the calls, and what else the host left on the turn."""
    fields: JsonObject = {}
    for part in message.parts:
        if isinstance(part, OpaquePart) and isinstance(part.data, dict):
            fields |= part.data
    calls = [_encode_call(call, names, target) for call in message.tool_calls]
    wire: JsonObject = {"role": "assistant", "content": _assistant_content(message, fields, target)}
    if calls:
        wire["tool_calls"] = cast(JsonValue, calls)
    thinking = "".join(part.text for part in message.parts if isinstance(part, ThinkingPart))
    if thinking and target.dialect.replay in ("reasoning_content", "reasoning") and "reasoning_details" not in fields:
        wire[target.dialect.replay] = thinking
    return {**wire, **fields}


def _assistant_content(message: Message, fields: JsonObject, target: Target[ChatDialect]) -> JsonValue:
    for part in message.parts:
        media = isinstance(part, ImagePart | FilePart) or (isinstance(part, AudioPart) and "audio" not in fields)
        supports(not media, f"a {type(part).__name__} in an assistant turn", target, "Move it to a user turn.")
    chunks = [_thinking_chunk(part) for part in message.parts if isinstance(part, ThinkingPart)]
    if chunks and target.dialect.replay == "chunk":
        text: list[JsonObject] = [{"type": "text", "text": message.text}] if message.text else []
        return cast(JsonValue, chunks + text)
    if "audio" in fields:
        return None  # its text is the transcript of what goes back by id
    return message.text or (None if message.tool_calls else "")


def _thinking_chunk(part: ThinkingPart) -> JsonObject:
    signed: JsonObject = {"signature": part.signature} if part.signature is not None else {}
    return {"type": "thinking", "thinking": [{"type": "text", "text": part.text}], **signed, "closed": True}


def _encode_call(call: ToolCall, names: NameMap, target: Target[ChatDialect]) -> JsonObject:
    arguments = call.arguments_text
    if call.arguments is None and not target.dialect.broken_arguments:
        arguments = dumps({"invalid_arguments": arguments})  # its chat template would fail on text that is no JSON
    function: JsonObject = {"name": names.encode(call.name), "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function, **provider_data(call, target.dialect.family)}


# --- decode ------------------------------------------------------------------------------------------------


def decode(body: JsonValue, sent: Encoded, target: Target[ChatDialect]) -> Response:
    """The reply as a response. Raises an ``LMError`` for an error, or no answer at all, inside status 200."""
    choices = objects_of(body.get("choices")) if isinstance(body, dict) else ()
    if not isinstance(body, dict) or not choices or body.get("error"):
        raise _failed_inside(body, target)
    if choices[0].get("error") and not choices[1:]:
        raise _failed_inside(choices[0], target)
    ordered = sorted(choices, key=_index)
    decoded = [_decode_choice(choice, sent, target) for choice in ordered]
    return Response(
        tuple(choice for choice, _ in decoded),
        _decode_usage(body),
        string_of(body, "model"),
        string_of(body, "id"),
        (*sent.warnings, *(warning for _, warnings in decoded for warning in warnings)),
        raw=body,
    )


def _index(choice: JsonObject) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _failed_inside(body: JsonValue, target: Target[ChatDialect]) -> LMError:
    """An error that came with status 200: its own code stands in for the status; without one the server failed."""
    fault = read_fault(200, {}, body)
    if isinstance(body, dict) and body.get("error"):
        code = next((int(code) for code in fault.codes if code.isdigit() and len(code) == 3), 200)
        return lm_error(replace(fault, status=code), (*ERRORS, Rule(LMServerError, frozenset({200}))), target)
    said = f"The reply holds no choices: {fault.message or dumps(body)[:200]}"
    spoke = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    error = LMUnexpectedError if spoke else LMServerError
    return error(said, model=target.model, provider=target.provider, status=200)


def _decode_choice(
    choice: JsonObject, sent: Encoded, target: Target[ChatDialect]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    thinking, text = _decode_content(message, target.dialect)
    refusal = string_of(message, "refusal")
    found = number_calls(_decode_calls(message, sent, target), sent.call_ids)
    reason, calls, warnings = settle(
        choice.get("finish_reason"), FINISH_REASONS, text=text, calls=found, refusal=refusal
    )
    extras = _decode_extras(message, sent, target)
    if reason == "stop" and not text:
        warnings = (*warnings, LMWarning("content", "The model stopped without text and without calls."))
    parts: tuple[Part, ...] = (*thinking, *extras, *((TextPart(text),) if text else ()), *calls)
    rest: dict[str, Any] = {
        "refusal": refusal,
        "finish_reason": reason,
        "logprobs": choice.get("logprobs"),
        "citations": tuple(map(_decode_citation, objects_of(message.get("annotations")))),
        "raw": choice,
    }
    if thinking or extras:
        return Choice.from_parts(parts, **rest), warnings
    return Choice(text, calls, **rest), warnings


def _decode_content(message: JsonObject, dialect: ChatDialect) -> tuple[tuple[ThinkingPart, ...], str]:
    """Thinking, under whichever name it came, and the text."""
    content = message.get("content")
    chunks = objects_of(content)
    text = content if isinstance(content, str) else "".join(string_of(chunk, "text") or "" for chunk in chunks)
    thinking = [_decode_chunk(chunk, dialect.family) for chunk in chunks if chunk.get("type") == "thinking"]
    if not text and (spoken := string_of(message.get("audio"), "transcript")):
        text = spoken
    told = string_of(message, "reasoning_content") or string_of(message, "reasoning") or _details_text(message)
    if told and not thinking:
        thinking = [ThinkingPart(told, provider=dialect.family)]
    if dialect.think_tags and not thinking and (tagged := _THINK.match(text)):
        thinking = [ThinkingPart(tagged.group(1).strip(), provider=dialect.family)]
        text = text[tagged.end() :]
    return tuple(thinking), text


def _decode_citation(annotation: JsonObject) -> JsonObject:
    """Flat, as on the other wires: this one nests the facts under the citation's type."""
    kind = string_of(annotation, "type") or ""
    inner = annotation.get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else annotation


_THINK = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)


def _decode_chunk(chunk: JsonObject, family: str) -> ThinkingPart:
    inner = chunk.get("thinking")
    text = inner if isinstance(inner, str) else "".join(string_of(item, "text") or "" for item in objects_of(inner))
    return ThinkingPart(text, signature=string_of(chunk, "signature"), provider=family)


def _details_text(message: JsonObject) -> str:
    details = objects_of(message.get("reasoning_details"))
    return "".join(string_of(detail, "text") or string_of(detail, "summary") or "" for detail in details)


def _decode_extras(message: JsonObject, sent: Encoded, target: Target[ChatDialect]) -> tuple[Part, ...]:
    """What goes back as it came: reasoning details; and spoken output, which goes back by its id."""
    extras: list[Part] = []
    family = target.dialect.family
    if details := objects_of(message.get("reasoning_details")):
        extras.append(OpaquePart(family, {"reasoning_details": list(details)}))
    audio = message.get("audio")
    if isinstance(audio, dict) and (data := string_of(audio, "data")):
        asked = sent.body.get("audio")
        extras.append(AudioPart(data, string_of(asked, "format") or "wav"))
        extras.append(OpaquePart(family, {"audio": {"id": audio.get("id")}}))
    return tuple(extras)


def _decode_calls(message: JsonObject, sent: Encoded, target: Target[ChatDialect]) -> list[ToolCall]:
    wires = objects_of(message.get("tool_calls"))
    old = message.get("function_call")
    if not wires and isinstance(old, dict) and old.get("name"):  # the form before tool_calls
        former: JsonObject = {"function": old}
        wires = (former,)
    return [_decode_call(wire, sent.names, target.dialect.family) for wire in wires]


_CALL_FIELDS = frozenset({"id", "type", "function", "index", "custom"})


def _decode_call(wire: JsonObject, names: NameMap, family: str) -> ToolCall:
    function = _called(wire)
    call_id = string_of(wire, "id") or ""
    extra: JsonObject = {name: value for name, value in wire.items() if name not in _CALL_FIELDS and value is not None}
    return ToolCall.read(
        "" if call_id == "null" else call_id,
        names.decode(string_of(function, "name") or ""),
        function.get("arguments"),
        provider_data={family: extra} if extra else None,
    )


def _called(wire: JsonObject) -> JsonObject:
    """Name and arguments. A custom tool's input is free text; it becomes the one argument ``input``."""
    function, custom = wire.get("function"), wire.get("custom")
    if wire.get("type") == "custom" and isinstance(custom, dict):
        return {"name": custom.get("name"), "arguments": {"input": custom.get("input")}}
    return function if isinstance(function, dict) else {}


def _decode_usage(body: JsonObject) -> Usage:
    usage = body.get("usage")
    if not isinstance(usage, dict):
        x_groq = body.get("x_groq")
        usage = x_groq.get("usage") if isinstance(x_groq, dict) else None
    return usage_of(usage, USAGE)


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str, target: Target[ChatDialect]) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    >>> error = decode_error(401, {"x-request-id": "r1"}, body, Target("openai", "m", ChatDialect()))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMAuthenticationError', 'invalid_api_key', 'r1', False)
    """
    return lm_error(read_fault(status, headers, body), ERRORS, target)


# --- read_request ------------------------------------------------------------------------------------------


def read_request(body: JsonObject, dialect: ChatDialect | None = None) -> Request:
    """The request that this body is the encoding of. What is not modelled stays in opaque parts and ``extra_body``."""
    dialect = dialect or ChatDialect()
    known = {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "stream",
        "stream_options",
    }
    rest = {name: value for name, value in body.items() if name not in known}
    options = _read_options(rest, dialect)
    wanted = _read_format(body.get("response_format"))
    if wanted is None and body.get("response_format") is not None:
        options.setdefault("extra_body", {})
        cast(JsonObject, options["extra_body"])["response_format"] = body["response_format"]
    return Request(
        tuple(_read_messages(objects_of(body.get("messages")), dialect)),
        tuple(_read_tool(tool) for tool in objects_of(body.get("tools"))),
        _read_choice(body.get("tool_choice"), dialect),
        cast("bool | None", body.get("parallel_tool_calls")),
        wanted,
        options,
    )


def _read_options(rest: JsonObject, dialect: ChatDialect) -> JsonObject:
    places = {**OPTIONS, **dialect.options}
    names = {option.path: name for name, option in places.items() if isinstance(option, Place)}
    options: JsonObject = {names[key]: value for key, value in rest.items() if key in names and value is not None}
    extra = {key: value for key, value in rest.items() if key not in names}
    words = dialect.reasoning
    effort = extra.get(words.effort)
    if extra and words.off and all(extra.get(key) == value for key, value in words.off.items()):
        options["reasoning"] = "off"
        extra = {key: value for key, value in extra.items() if key not in words.off}
    elif isinstance(effort, str) and effort in words.efforts and not words.on:
        options["reasoning"] = effort
        del extra[words.effort]
    return {**options, "extra_body": extra} if extra else options


def _read_tool(tool: JsonObject) -> JsonObject:
    return tool if "type" in tool else {"type": "function", **tool}


def _read_choice(choice: JsonValue, dialect: ChatDialect) -> ToolChoice | None:
    if isinstance(choice, str):
        words: Mapping[str, ToolChoice] = {
            "auto": ToolChoice.AUTO, "none": ToolChoice.NONE, "required": ToolChoice.REQUIRED,
            dialect.required: ToolChoice.REQUIRED,
        }  # fmt: skip
        return words.get(choice)
    if not isinstance(choice, dict):
        return None
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict):
        names = tuple(string_of(tool.get("function"), "name") or "" for tool in objects_of(allowed.get("tools")))
        return ToolChoice("required" if allowed.get("mode") == "required" else "auto", names)
    name = string_of(choice.get("function"), "name")
    return ToolChoice.named(name) if name else None


def _read_format(wire: JsonValue) -> ResponseFormat | None:
    if not isinstance(wire, dict):
        return None
    if wire.get("type") == "json_object":
        return ResponseFormat()
    inner = wire.get("json_schema")
    if isinstance(inner, dict) and isinstance(inner.get("schema"), dict) and not inner.keys() - {"name", "schema"}:
        return ResponseFormat(cast(JsonObject, inner["schema"]), string_of(inner, "name") or "response")
    return None


_ROLES: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def _read_messages(wires: Iterable[JsonObject], dialect: ChatDialect) -> list[Message]:
    messages: list[Message] = []
    names: dict[str, str] = {}
    for wire in wires:
        role = string_of(wire, "role") or "user"
        if role == "tool":
            result = _read_result(wire, names)
            together = messages[-1].tool_results if messages and messages[-1].role == "tool" else ()
            messages[len(messages) - bool(together) :] = [Message.tool(*together, result)]
        elif role == "assistant":
            message = _read_assistant(wire, dialect)
            names |= {call.id: call.name for call in message.tool_calls}
            messages.append(message)
        else:
            messages.append(Message(_ROLES.get(role, "user"), _read_parts(wire.get("content"), dialect)))
    return messages


def _read_result(wire: JsonObject, names: Mapping[str, str]) -> ToolResult:
    content = wire.get("content")
    text = (
        content if isinstance(content, str) else "".join(string_of(part, "text") or "" for part in objects_of(content))
    )
    call_id = string_of(wire, "tool_call_id") or ""
    value, failed = read_error_text(text)
    return ToolResult(call_id, names.get(call_id, ""), value, failed)


def _read_assistant(wire: JsonObject, dialect: ChatDialect) -> Message:
    thinking, text = _decode_content({**wire, "reasoning": wire.get("reasoning") or ""}, dialect)
    calls = [
        _decode_call(call, NameMap((), dialect.names), dialect.family) for call in objects_of(wire.get("tool_calls"))
    ]
    modelled = {"role", "content", "tool_calls", "reasoning", "reasoning_content"}
    rest: JsonObject = {name: value for name, value in wire.items() if name not in modelled and value is not None}
    opaque: tuple[Part, ...] = (OpaquePart(dialect.family, rest),) if rest else ()
    return Message("assistant", (*thinking, *opaque, *((TextPart(text),) if text else ()), *number_calls(calls)))


def _read_parts(content: JsonValue, dialect: ChatDialect) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),)
    return tuple(_read_part(wire, dialect) for wire in objects_of(content))


def _read_part(wire: JsonObject, dialect: ChatDialect) -> Part:
    """A content part; whatever would not be written the same again is kept as it is."""
    bare: JsonObject = {name: value for name, value in wire.items() if value is not None}
    reader = _READERS.get(string_of(bare, "type") or "")
    part = reader(bare) if reader else None
    target = Target("", "", dialect)
    try:
        same = part is not None and _encode_part(part, target) == bare
    except UnsupportedFeature:
        same = False
    return part if part is not None and same else OpaquePart(dialect.family, wire)


def _read_image(wire: JsonObject) -> Part:
    image = wire.get("image_url")
    url, detail = string_of(image, "url") or "", string_of(image, "detail")
    media_type, data = split_data_url(url)
    return ImagePart(None if data is not None else url, data, media_type, detail)


def _read_audio(wire: JsonObject) -> Part:
    audio = wire.get("input_audio")
    return AudioPart(string_of(audio, "data") or "", string_of(audio, "format") or "wav")


def _read_file(wire: JsonObject) -> Part:
    file = wire.get("file")
    media_type, data = split_data_url(string_of(file, "file_data") or "")
    return FilePart(data, None, string_of(file, "file_id"), string_of(file, "filename"), media_type)


_READERS: Mapping[str, Callable[[JsonObject], Part]] = {
    "text": lambda wire: TextPart(string_of(wire, "text") or ""),
    "image_url": _read_image,
    "input_audio": _read_audio,
    "file": _read_file,
}
