"""OpenAI Responses wire: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between hosts is a ``ResponsesDialect``; what differs between
models is in the target's facts. Reads top to bottom: dialects, tables, encode(), decode(), decode_error(),
read_request().

A conversation is a flat list of *items*: a turn of the model is several of them (reasoning, a message, calls), and
each has an id of its own. Surprises of this wire:
    - A turn goes back item by item, in the order in which it came, or the provider refuses it. What a canonical part
      cannot hold stands in an ``OpaquePart``: a reasoning item or a built-in tool's trace whole (the ``ThinkingPart``
      before it is for reading and is not sent), a message without its text (``_split_message``).
    - A call has two ids. ``call_id`` pairs it with its result and is ours; ``id`` names the item, is provider data, and
      may only go back together with the reasoning item that led to it (``_encode_call``).
    - The provider stores answers unless it is told not to, so we tell it; then reasoning comes encrypted.
    - Tools are strict unless they say otherwise, so they do.
    - The first system turn is ``instructions``, which are no part of the input: JSON mode does not see them, and they
      cannot carry a cache mark. Then the turn is sent as an item like later ones.
    - There are no stop sequences: the text is cut when it has come. A failure may come with status 200.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import FilePart, ImagePart, Message, OpaquePart, Part, Role, TextPart, ThinkingPart
from sigwire.core.names import NameMap, NameRules
from sigwire.core.parts import MediaPart
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, FinishReason, LMWarning, Response
from sigwire.core.tools import CallError, ToolCall, ToolResult, number_calls
from sigwire.errors import (
    InputError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMServerError,
    LMTimeoutError,
    LMUnexpectedError,
    UnsupportedFeature,
)
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.base import (
    EFFORTS,
    Dialect,
    Drop,
    Encoded,
    Offer,
    Option,
    OptionTable,
    Place,
    Skip,
    Target,
    asked_reasoning,
    can_force,
    drop_options,
    finish,
    fit_effort,
    headers_for,
    in_words,
    name_map,
    needs_media,
    object_of,
    objects_of,
    offer,
    place_options,
    provider_data,
    repeat_warning,
    settle,
    split_data_url,
    string_of,
    supports,
    text_of_file,
    usage_of,
    wanted_choices,
)
from sigwire.lm.codecs.faults import Rule, lm_error, read_fault
from sigwire.lm.codecs.repair import error_text, read_error_text, repair
from sigwire.lm.codecs.schema_rules import SchemaRules, compile_schema

__all__ = [
    "AZURE",
    "COMPATIBLE",
    "DEEPSEEK",
    "DIALECTS",
    "ERRORS",
    "FINISH_REASONS",
    "OPENAI",
    "OPTIONS",
    "USAGE",
    "ResponsesDialect",
    "decode",
    "decode_error",
    "encode",
    "read_request",
]


# --- dialects ----------------------------------------------------------------------------------------------

_BUILTIN = frozenset({
    "apply_patch", "code_interpreter", "computer_use_preview", "custom", "file_search", "image_generation",
    "local_shell", "mcp", "shell", "tool_search", "web_search",
})  # fmt: skip
_OBJECT_ROOT = SchemaRules(root="union")
_NAMES = NameRules()


@dataclass(frozen=True, kw_only=True)
class ResponsesDialect(Dialect):
    """How one host speaks Responses. The defaults are api.openai.com.

    ``options``: over the wire's table, ``None`` for an option the host refuses. ``system_role``: of system turns that
    are items. ``store``: sent as it is, ``None`` leaves it out. ``encrypted_reasoning``: whether models that reason
    are asked for reasoning that can be sent back. ``efforts``: the words it takes, weakest first. ``builtin``: the
    tools the host runs itself. ``forced_choice``: whether a call can be forced. ``allowed_tools``: whether the choice
    can name several tools, else the others are not sent. ``structured``: the output formats the host has.
    ``media``: what a user turn may hold beside text. ``interleaved``: whether a turn may go on after a call, else its
    calls are sent last.
    """

    family: str = "openai-responses"
    path: str = "/responses"
    names: NameRules = _NAMES
    output_schema: SchemaRules = _OBJECT_ROOT
    options: Mapping[str, Option | None] = field(default_factory=dict[str, "Option | None"])
    system_role: Literal["developer", "system"] = "developer"
    store: bool | None = False
    encrypted_reasoning: bool = True
    efforts: tuple[str, ...] = EFFORTS
    builtin: frozenset[str] = _BUILTIN
    forced_choice: bool = True
    allowed_tools: bool = True
    structured: tuple[Literal["json_schema", "json_object"], ...] = ("json_schema", "json_object")
    media: frozenset[str] = frozenset({"image", "file"})
    interleaved: bool = True


OPENAI = ResponsesDialect()
AZURE = replace(OPENAI, family="azure-responses")
COMPATIBLE = replace(
    OPENAI,
    family="compatible-responses",
    system_role="system",
    store=None,
    encrypted_reasoning=False,
    efforts=("off", "low", "medium", "high"),
    builtin=frozenset[str](),
    allowed_tools=False,
)
DEEPSEEK = replace(COMPATIBLE, family="deepseek-responses", media=frozenset[str](), interleaved=False)

DIALECTS: Mapping[str, ResponsesDialect] = {
    "openai": OPENAI,
    "azure": AZURE,
    "compatible": COMPATIBLE,
    "deepseek": DEEPSEEK,
}
"""Every row by the name the provider table uses."""


# --- tables ------------------------------------------------------------------------------------------------

_SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")

OPTIONS: OptionTable = {
    "cache": Skip(),  # automatic; a key and marks are encoded below
    "logprobs": Skip(),  # a word in the list of what to include
    "max_tokens": Place("max_output_tokens"),
    "metadata": Place("metadata"),
    "n": Skip(),  # one choice at a time
    "reasoning": Skip(),
    "seed": Drop("there is no seed on this wire; it was left out."),
    "service_tier": Place("service_tier"),
    "stop": Drop("there are no stop sequences on this wire; the text is cut at them after it has come."),
    "temperature": Place("temperature"),
    "top_logprobs": Place("top_logprobs"),
    "top_p": Place("top_p"),
    "user": Place("user"),
}

FINISH_REASONS: Mapping[str, FinishReason] = {
    "completed": "stop",
    "incomplete": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "stop",
    "steered": "stop",
    "cancelled": "error",
    "queued": "error",
    "in_progress": "error",
}
"""By the reason why an answer is incomplete, else by its status."""

USAGE: Mapping[str, str | tuple[str, ...]] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "input_tokens_details.cached_tokens",
    "cache_write_tokens": "input_tokens_details.cache_write_tokens",
    "reasoning_tokens": "output_tokens_details.reasoning_tokens",
    "cost": "cost",
}

_BAD_INPUT = frozenset({
    "data_residency_mismatch", "empty_image_file", "failed_to_download_image", "image_file_not_found",
    "image_file_too_large", "image_parse_error", "image_too_large", "image_too_small", "invalid_base64_image",
    "invalid_image", "invalid_image_format", "invalid_image_mode", "invalid_image_url",
    "unsupported_image_media_type",
})  # fmt: skip

ERRORS: tuple[Rule, ...] = (
    Rule(
        LMContentFilteredError,
        codes=frozenset({"invalid_prompt", "policy"}),
        hint="Change what is sent; trying again does not help.",
    ),
    Rule(LMInvalidRequestError, codes=_BAD_INPUT),
    Rule(LMTimeoutError, codes=frozenset({"vector_store_timeout"})),
    *openai_chat.ERRORS,
)

_ENCRYPTED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
_MARK: JsonObject = {"mode": "explicit"}
_JSON_MODE: JsonObject = {"text": {"format": {"type": "json_object"}}}
_CALL_FIELDS = frozenset({"type", "call_id", "name", "arguments", "input"})


# --- encode ------------------------------------------------------------------------------------------------


def encode(request: Request, target: Target[ResponsesDialect], *, stream: bool = False) -> Encoded:
    """The request as this host takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> sent = encode(Request((Message.system("S"), Message.user("q"))), Target("openai", "m", ResponsesDialect()))
    >>> sent.path, sent.body
    ('/responses', {'model': 'm', 'instructions': 'S', 'input': [{'role': 'user', 'content': 'q'}], 'store': False})
    """
    dialect = target.dialect
    names = name_map(request, dialect.names)
    history = repair(_without_server_results(request, target), target.repair)
    tools = offer(request, names, target)
    output, instruction, format_warnings = _encode_output(request.response_format, bool(tools.functions), target)
    thinking, thinks, thinking_warnings = _encode_reasoning(request, target)
    table = _option_table(thinks, target)
    options, option_warnings = place_options(request.options, table, target)
    chosen, tool_warnings = _encode_tools(request, tools, thinks, target)
    body: JsonObject = {
        "model": target.model,
        **_encode_messages(_with_instruction(history.messages, instruction), output, request, names, target),
        **chosen,
        **output,
        **options,
        **_cache_fields(request, target),
        **thinking,
        **_encode_include(request, table, target),
        **({} if dialect.store is None else {"store": dialect.store}),
        **({"stream": True} if stream else {}),
    }
    lost = (history.warnings, tools.warnings, tool_warnings, format_warnings, thinking_warnings, option_warnings)
    return Encoded(
        dialect.path.format(model=target.model),
        finish(body, request),
        {},
        headers_for(request, dialect),
        (*itertools.chain(*lost), *repeat_warning(request, target)),
        names,
        history.call_ids,
        wanted_choices(request),
        _stop_texts(request),
    )


def _without_server_results(request: Request, target: Target[ResponsesDialect]) -> tuple[Message, ...]:
    """Where the provider keeps the conversation it may hold the calls too: results are items then, not orphans."""
    extra = request.options.get("extra_body")
    if not isinstance(extra, dict) or not (extra.get("previous_response_id") or extra.get("conversation")):
        return request.messages
    here = {call.id for message in request.messages for call in message.tool_calls}

    def kept(part: Part) -> Part:
        if isinstance(part, ToolResult) and part.id not in here:
            return OpaquePart(target.dialect.family, _encode_result(part, target))
        return part

    return tuple(Message(message.role, tuple(map(kept, message.parts))) for message in request.messages)


# --- options, caching, reasoning


def _option_table(thinks: bool, target: Target[ResponsesDialect]) -> OptionTable:
    """The wire's table with the host's and the model's own rows over it."""
    table = {**OPTIONS, **target.dialect.options}
    sampling = target.facts.sampling
    if sampling == "never" or (sampling == "unless_reasoning" and thinks):
        table |= drop_options(_SAMPLING, "a model that reasons takes no sampling options; it was left out.")
    return {name: option for name, option in table.items() if option is not None}


def _stop_texts(request: Request) -> tuple[str, ...]:
    stop = request.options.get("stop")
    texts = stop if isinstance(stop, list) else [stop]
    return tuple(text for text in texts if isinstance(text, str) and text)


def _cache_fields(request: Request, target: Target[ResponsesDialect]) -> JsonObject:
    hints = request.options.get("cache")
    key = hints.get("key") if isinstance(hints, dict) else None
    fields: JsonObject = {} if key is None else {"prompt_cache_key": key}
    if _marks_cache(request, target):
        fields["prompt_cache_options"] = _MARK
    return fields


def _marks_cache(request: Request, target: Target[ResponsesDialect]) -> bool:
    return bool(request.options.get("cache")) and target.facts.cache_breakpoints


def _encode_include(request: Request, table: OptionTable, target: Target[ResponsesDialect]) -> JsonObject:
    """What the answer should hold beside the usual. A model that does not reason refuses to be asked for reasoning."""
    reasons = target.capabilities.reasoning and target.facts.thinking != "none"
    wanted: list[JsonValue] = [_ENCRYPTED] if reasons and target.dialect.encrypted_reasoning else []
    if request.options.get("logprobs") and isinstance(table.get("logprobs"), Skip):
        wanted.append(_LOGPROBS)
    return {"include": wanted} if wanted else {}


def _encode_reasoning(
    request: Request, target: Target[ResponsesDialect]
) -> tuple[JsonObject, bool, tuple[LMWarning, ...]]:
    """What asks for thinking, whether the model will think, and what could not be asked for."""
    facts, asked = target.facts, asked_reasoning(request)
    efforts = target.dialect.efforts if facts.efforts is None else facts.efforts
    efforts = () if facts.thinking == "none" else efforts
    if asked is None:
        return {}, facts.default_effort not in (None, "off"), ()
    if asked.off and not efforts:
        return {}, False, ()  # it does not reason anyway
    effort, warnings = fit_effort(asked, efforts, target)
    return {"reasoning": {"effort": "none" if effort == "off" else effort}}, effort != "off", warnings


# --- structured output


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[ResponsesDialect]
) -> tuple[JsonObject, str, tuple[LMWarning, ...]]:
    """The output format for the body, or what has to be said in words instead."""
    if wanted is None:
        return {}, "", ()
    able, schema = _output_modes(tools, target), wanted.schema
    if schema is not None and "json_schema" in able:
        schema, warnings = compile_schema(schema, target.dialect.output_schema, f"the output {wanted.name!r}")
        name = re.sub(r"[^A-Za-z0-9_-]", "_", wanted.name)[:64] or "response"
        return {"text": {"format": {"type": "json_schema", "name": name, "schema": schema}}}, "", warnings
    native = _JSON_MODE if "json_object" in able else {}
    if schema is None and native:
        return native, "", ()
    lost = f"{target.provider}/{target.model} has no structured output by schema here; it was asked for in words."
    return native, in_words(schema), (LMWarning("response_format", lost),)


def _output_modes(tools: bool, target: Target[ResponsesDialect]) -> tuple[str, ...]:
    able = target.capabilities
    if tools and not able.tools_with_json_schema:
        return ()
    return tuple(mode for mode in target.dialect.structured if getattr(able, mode))


def _with_instruction(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """The instruction at the end of the first system turn, or as one."""
    if not text:
        return messages
    if messages and messages[0].role == "system" and _is_text(messages[0]):
        return (Message.system(f"{messages[0].text}\n\n{text}"), *messages[1:])
    return (Message.system(text), *messages)


def _is_text(message: Message) -> bool:
    return all(isinstance(part, TextPart) for part in message.parts)


# --- tools


def _encode_tools(
    request: Request, tools: Offer, thinks: bool, target: Target[ResponsesDialect]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """``tools``, in their own order, and how they may be called; nothing of it where there is no tool to call."""
    if not tools.functions and not tools.builtin:
        return {}, ()
    choice, narrowed, warnings = _encode_choice(tools, thinks, target)
    sent = tools.only_allowed() if narrowed else tools.functions
    functions, builtin = iter(tools.functions), iter(tools.builtin)
    wires: list[JsonValue] = []
    for tool in request.tools:
        if tool.get("type", "function") != "function":
            wires.append(_encode_builtin(*next(builtin), target))
        elif (function := next(functions)) in sent:
            wires.append(_encode_tool(*function))
    body: JsonObject = {"tools": wires}
    if choice is not None:
        body["tool_choice"] = choice
    if request.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = request.parallel_tool_calls
    limit, limit_warnings = _encode_use_limit(tools, target)
    return {**body, **limit}, (*warnings, *limit_warnings)


def _encode_tool(name: str, description: str, parameters: JsonObject | None) -> JsonObject:
    described: JsonObject = {"description": description} if description else {}
    schema: JsonObject = {"type": "object", "properties": {}} if parameters is None else parameters
    return {"type": "function", "name": name, **described, "parameters": schema, "strict": False}


def _encode_builtin(kind: str, settings: JsonObject, target: Target[ResponsesDialect]) -> JsonObject:
    """A tool that the host runs: its settings stand flat beside its type."""
    supports(kind in target.dialect.builtin, f"the built-in tool {kind!r}", target, "Use a function tool of your own.")
    return {"type": kind, **(_search_settings(settings, target) if kind == "web_search" else settings)}


def _search_settings(settings: JsonObject, target: Target[ResponsesDialect]) -> JsonObject:
    named = ("allowed_domains", "blocked_domains", "max_uses", "user_location")
    fields: JsonObject = {name: value for name, value in settings.items() if name not in named}
    supports(
        not settings.get("blocked_domains"), "blocked domains in web search", target, "Name the allowed ones instead."
    )
    if domains := settings.get("allowed_domains"):
        fields["filters"] = {"allowed_domains": list(cast("Iterable[JsonValue]", domains))}
    if isinstance(location := settings.get("user_location"), dict):
        fields["user_location"] = {"type": "approximate", **location}
    return fields


def _encode_use_limit(tools: Offer, target: Target[ResponsesDialect]) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """The wire's limit counts the calls of all built-in tools together: it is exact where there is one of them."""
    limits = [limit for _, settings in tools.builtin if (limit := settings.get("max_uses")) is not None]
    if not limits:
        return {}, ()
    if len(tools.builtin) == 1:
        return {"max_tool_calls": limits[0]}, ()
    detail = f"{target.provider} limits built-in tools only together; the limit of one of them was left out."
    return {}, (LMWarning("max_uses", detail),)


def _encode_choice(
    tools: Offer, thinks: bool, target: Target[ResponsesDialect]
) -> tuple[JsonValue, bool, tuple[LMWarning, ...]]:
    """The choice's spelling, and whether the tools have to be narrowed to those it allows."""
    mode = tools.choice
    if mode is None or mode == "none":
        return mode, False, ()
    if mode == "required" and not (target.dialect.forced_choice and can_force(thinks, target)):
        detail = f"{target.provider}/{target.model} cannot be made to call a tool; the choice was left to the model."
        return "auto", bool(tools.allowed), (LMWarning("tool_choice", detail),)
    if tools.named:
        return {"type": "function", "name": tools.named}, False, ()
    if not tools.allowed or not target.dialect.allowed_tools:
        return mode, bool(tools.allowed), ()
    references: list[JsonValue] = [{"type": "function", "name": name} for name in tools.allowed]
    return {"type": "allowed_tools", "mode": mode, "tools": references}, False, ()


# --- messages


def _encode_messages(
    messages: tuple[Message, ...],
    output: JsonObject,
    request: Request,
    names: NameMap,
    target: Target[ResponsesDialect],
) -> JsonObject:
    """``input``, and ``instructions`` where the first system turn can be that and is not all there is."""
    first, rest = messages[:1], messages[1:]
    system = bool(first) and first[0].role == "system" and _is_text(first[0])
    marked = system and _marks_cache(request, target)
    if system and rest and not marked and output != _JSON_MODE:
        return {"instructions": first[0].text, "input": _encode_items(rest, names, target)}
    items = _encode_items(messages, names, target)
    if marked:
        text: JsonObject = {"type": "input_text", "text": first[0].text, "prompt_cache_breakpoint": _MARK}
        items[0] = {"role": target.dialect.system_role, "content": [text]}
    return {"input": items}


def _encode_items(messages: Iterable[Message], names: NameMap, target: Target[ResponsesDialect]) -> list[JsonValue]:
    items: list[JsonValue] = []
    custom: set[str] = set()  # results of custom calls have a type of their own
    for message in messages:
        if message.role == "assistant":
            items.extend(_encode_turn(message, names, target))
            custom |= {call.id for call in message.tool_calls if _is_custom(call, target)}
        else:
            items.extend(_encode_parts(message, custom, target))
    return items


def _is_custom(call: ToolCall, target: Target[ResponsesDialect]) -> bool:
    return _call_item(call, target).get("type") == "custom_tool_call"


def _encode_parts(message: Message, custom: set[str], target: Target[ResponsesDialect]) -> Iterator[JsonObject]:
    """A turn that is not the model's: results and opaque items stand alone, what is between them is one message."""
    role = target.dialect.system_role if message.role == "system" else "user"
    for alone, parts in itertools.groupby(message.parts, _is_item):
        if alone:
            yield from (_encode_item(part, custom, target) for part in parts)
        else:
            yield {"role": role, "content": _encode_content(tuple(parts), target)}


def _is_item(part: Part) -> bool:
    if isinstance(part, OpaquePart):
        return not (string_of(part.data, "type") or "").startswith("input_")
    return isinstance(part, ToolResult)


def _encode_item(part: Part, custom: set[str], target: Target[ResponsesDialect]) -> JsonObject:
    if not isinstance(part, ToolResult):
        return _encode_part(part, target)
    wire = _encode_result(part, target)
    return {**wire, "type": "custom_tool_call_output"} if part.id in custom else wire


def _encode_result(result: ToolResult, target: Target[ResponsesDialect]) -> JsonObject:
    text = error_text(result)
    parts = (*((TextPart(text),) if text else ()), *result.media)
    output: JsonValue = [_encode_part(part, target) for part in parts] if result.media else text
    return {"type": "function_call_output", "call_id": result.id, "output": output}


def _encode_content(parts: Sequence[Part], target: Target[ResponsesDialect]) -> JsonValue:
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return [_encode_part(part, target) for part in parts]


def _encode_part(part: Part, target: Target[ResponsesDialect]) -> JsonObject:
    encoder = _PARTS.get(type(part))
    supports(encoder is not None, f"a {type(part).__name__} in this place", target, "Leave it out or send it as text.")
    return cast("_PartEncoder", encoder)(part, target)


def _encode_text(part: TextPart, target: Target[ResponsesDialect]) -> JsonObject:
    return {"type": "input_text", "text": part.text}


def _encode_image(part: ImagePart, target: Target[ResponsesDialect]) -> JsonObject:
    needs_media("image", target.dialect.media, target)
    image: JsonObject = {"type": "input_image", "detail": part.detail or "auto"}
    if part.file_id is not None:
        return {**image, "file_id": part.file_id}
    if part.url is None and part.data is None:
        raise InputError("An image needs a url, data or a file_id.")
    return {**image, "image_url": part.url or f"data:{part.media_type or 'image/png'};base64,{part.data or ''}"}


def _encode_file(part: FilePart, target: Target[ResponsesDialect]) -> JsonObject:
    if (text := text_of_file(part)) is not None:
        return {"type": "input_text", "text": text}
    needs_media("file", target.dialect.media, target)
    if part.file_id is not None:
        return {"type": "input_file", "file_id": part.file_id}
    if part.url is not None:
        return {"type": "input_file", "file_url": part.url}
    if part.data is None:
        raise InputError("A document needs a url, data or a file_id.")
    media_type = part.media_type or "application/pdf"
    name = part.filename or f"document.{media_type.rpartition('/')[2]}"  # data without a name are refused
    return {"type": "input_file", "file_data": f"data:{media_type};base64,{part.data}", "filename": name}


def _encode_opaque(part: OpaquePart, target: Target[ResponsesDialect]) -> JsonObject:
    return cast(JsonObject, part.data)


_PartEncoder: TypeAlias = Callable[[Any, Target[ResponsesDialect]], JsonObject]
_PARTS: Mapping[type, _PartEncoder] = {
    TextPart: _encode_text,
    ImagePart: _encode_image,
    FilePart: _encode_file,
    OpaquePart: _encode_opaque,
}


# --- the model's turns: a part may be an item, belong to one, or be for reading only


def _encode_turn(message: Message, names: NameMap, target: Target[ResponsesDialect]) -> list[JsonObject]:
    reasoning = {string_of(part.data, "id") for part in message.parts if isinstance(part, OpaquePart)}
    items: list[JsonObject] = []
    places: list[_Place] = []  # in the last message, for the texts that follow
    for part in message.parts:
        match part:
            case TextPart(text):
                if not places:  # a plain message, which takes all texts until the next item
                    plain: JsonObject = {"role": "assistant", "content": ""}
                    items.append(plain)
                    places = [(plain, "content")] * len(message.parts)
                place, name = places.pop(0)
                place[name] = f"{place.get(name, '')}{text}"
            case ThinkingPart():
                pass
            case ToolCall():
                items.append(_encode_call(part, reasoning, names, target))
                places = []
            case OpaquePart(data=dict() as data):
                item, places = _open_message(data) if _is_message(data) else (data, [])
                items.append(item)
            case _:
                supports(False, f"a {type(part).__name__} in an assistant turn", target, "Move it to a user turn.")
    return _finished(items, target)


_Place: TypeAlias = tuple[JsonObject, str]
"""Where a text goes: an object of ours, and the name of its member."""


def _is_message(item: JsonObject) -> bool:
    """A message of the model; a request may leave out its type, and a weak host its role."""
    kind, role = item.get("type"), item.get("role")
    return (kind, role) in (("message", "assistant"), (None, "assistant"), ("message", None))


def _split_message(item: JsonObject) -> tuple[JsonObject, list[str]]:
    """A message without its texts, and the texts. Empty ones stay where they are: they are no parts of a turn.

    >>> _split_message({"role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "Hi"}]})
    ({'role': 'assistant', 'id': 'msg_1', 'content': [{'type': 'output_text'}]}, ['Hi'])
    """
    content = item.get("content")
    if isinstance(content, str):
        return {name: value for name, value in item.items() if name != "content"}, [content]
    # Log probabilities are on the choice; the provider knows its own.
    bare = [{name: value for name, value in part.items() if name != "logprobs"} for part in objects_of(content)]
    texts = [str(part.pop("text")) for part in bare if part.get("type") == "output_text" and part.get("text")]
    return {**item, "content": cast(JsonValue, bare)}, texts


def _open_message(item: JsonObject) -> tuple[JsonObject, list[_Place]]:
    """A copy of such a message, and the places its texts go to."""
    if "content" not in item:
        opened = dict(item)
        return opened, [(opened, "content")]
    content = [dict(part) for part in objects_of(item["content"])]
    return {**item, "content": cast(JsonValue, content)}, [(part, "text") for part in content if _lacks_text(part)]


def _lacks_text(part: JsonObject) -> bool:
    return part.get("type") == "output_text" and "text" not in part


def _finished(items: list[JsonObject], target: Target[ResponsesDialect]) -> list[JsonObject]:
    """Without what the provider would refuse: a message whose text is gone, reasoning that led to nothing."""
    whole = [item for item in map(_with_whole_content, items) if item.get("content") or not _is_message(item)]
    while whole and whole[-1].get("type") == "reasoning":
        whole.pop()
    if target.dialect.interleaved:
        return whole
    return sorted(whole, key=lambda item: item.get("type") in ("function_call", "custom_tool_call"))


def _with_whole_content(item: JsonObject) -> JsonObject:
    if not _is_message(item) or isinstance(item.get("content"), str):
        return item
    return {**item, "content": [part for part in objects_of(item.get("content")) if not _lacks_text(part)]}


def _encode_call(
    call: ToolCall, reasoning: set[str | None], names: NameMap, target: Target[ResponsesDialect]
) -> JsonObject:
    """The call, with its item's id only where the reasoning that led to it goes back too."""
    extra = _call_item(call, target)
    after = provider_data(call, target.dialect.family).get("after")
    if after is not None and after not in reasoning:
        extra = {name: value for name, value in extra.items() if name != "id"}
    wire: JsonObject = {"type": "function_call", "call_id": call.id, "name": names.encode(call.name)}
    if _is_custom(call, target):
        given = (call.arguments or {}).get("input")
        return {**wire, **extra, "input": given if isinstance(given, str) else call.arguments_text}
    return {**wire, "arguments": call.arguments_text, **extra}


def _call_item(call: ToolCall, target: Target[ResponsesDialect]) -> JsonObject:
    """What the call's item held beside the call."""
    item = provider_data(call, target.dialect.family).get("item")
    return item if isinstance(item, dict) else {}


# --- decode ------------------------------------------------------------------------------------------------


def decode(body: JsonValue, sent: Encoded, target: Target[ResponsesDialect]) -> Response:
    """The reply as a response. Raises an ``LMError`` for a failure, or no answer at all, inside status 200."""
    if not isinstance(body, dict) or "output" not in body or body.get("error") or body.get("status") == "failed":
        raise _failed_inside(body, target)
    choice, warnings = _decode_choice(body, sent, target)
    return Response(
        (choice,),
        usage_of(body.get("usage"), USAGE),
        string_of(body, "model"),
        string_of(body, "id"),
        (*sent.warnings, *warnings),
        raw=body,
    )


def _failed_inside(body: JsonValue, target: Target[ResponsesDialect]) -> LMError:
    """An error that came with status 200: its code tells which; without a known one the server failed."""
    if isinstance(body, dict) and (body.get("error") or body.get("status") == "failed"):
        return _error(200, {}, body, target)
    said = f"The reply holds no output: {read_fault(200, {}, body).message or dumps(body)[:200]}"
    spoke = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    error = LMUnexpectedError if spoke else LMServerError
    return error(said, model=target.model, provider=target.provider, status=200)


def _decode_choice(
    body: JsonObject, sent: Encoded, target: Target[ResponsesDialect]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    items = objects_of(body["output"])
    parts = _numbered(_decode_items(items, sent.names, target.dialect.family), sent.call_ids)
    parts, cut = _cut_at(sent.stop, parts)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    refusals = [text for part in _contents(items) if (text := string_of(part, "refusal"))]
    refusal = "".join(refusals) if refusals and not cut else None
    native = "completed" if cut else _reason(body)
    reason, kept, warnings = settle(native, FINISH_REASONS, text="".join(texts), calls=calls, refusal=refusal)
    parts = [part for part in parts if not isinstance(part, ToolCall) or part in kept]
    choice = Choice.from_parts(
        parts,
        refusal=refusal,
        finish_reason=reason,
        logprobs=_decode_logprobs(items),
        citations=tuple(_decode_citations(items)),
        raw=body["output"],
    )
    return choice, (*warnings, *_decode_warnings(native, choice))


def _reason(body: JsonObject) -> JsonValue:
    details = body.get("incomplete_details")
    return (string_of(details, "reason") if body.get("status") == "incomplete" else None) or body.get("status")


def _decode_warnings(native: JsonValue, choice: Choice) -> tuple[LMWarning, ...]:
    if native in ("queued", "in_progress"):
        return (LMWarning("background", f"The answer is not there yet ({native}); ask for it later by its id."),)
    if choice.finish_reason == "stop" and not choice.text:
        return (LMWarning("content", "The model stopped without text and without calls."),)
    return ()


def _cut_at(stops: Sequence[str], parts: list[Part]) -> tuple[list[Part], bool]:
    """What a wire with stop sequences would have sent: nothing from the first of them on."""
    for number, part in enumerate(parts):
        if not isinstance(part, TextPart):
            continue
        ends = [part.text.index(stop) for stop in stops if stop in part.text]
        if ends:
            kept = part.text[: min(ends)]
            return [*parts[:number], *([TextPart(kept)] if kept else [])], True
    return parts, False


def _numbered(parts: Iterable[Part], taken: Iterable[str]) -> list[Part]:
    parts = list(parts)
    calls = iter(number_calls((part for part in parts if isinstance(part, ToolCall)), taken))
    return [next(calls) if isinstance(part, ToolCall) else part for part in parts]


# --- items, as they come in answers and stand in requests


def _decode_items(items: Iterable[JsonObject], names: NameMap, family: str) -> Iterator[Part]:
    reasoning: str | None = None
    for item in items:
        if item.get("type") == "reasoning":
            reasoning = string_of(item, "id")
        yield from _decode_item(item, names, family, reasoning)


def _decode_item(item: JsonObject, names: NameMap, family: str, after: str | None = None) -> Iterator[Part]:
    """The item's parts. ``after`` is the reasoning item without which its id may not go back."""
    if item.get("type") in ("function_call", "custom_tool_call"):
        yield _decode_call(item, names, family, after)
    elif _is_message(item):
        shell, texts = _split_message(item)
        if shell != {"role": "assistant"}:
            yield OpaquePart(family, shell)
        yield from map(TextPart, texts)
    else:
        if thought := _decode_thought(item):
            yield ThinkingPart(thought, provider=family)
        yield OpaquePart(family, item)


def _decode_thought(item: JsonObject) -> str:
    """The summary where there is one, else the reasoning itself, which open models show."""
    if item.get("type") != "reasoning":
        return ""
    parts = objects_of(item.get("summary")) or objects_of(item.get("content"))
    return "\n\n".join(string_of(part, "text") or "" for part in parts)


def _decode_call(item: JsonObject, names: NameMap, family: str, after: str | None) -> ToolCall:
    """A custom tool's input is free text; it becomes the one argument ``input``."""
    custom = item.get("type") == "custom_tool_call"
    extra: JsonObject = {name: value for name, value in item.items() if name not in _CALL_FIELDS and value is not None}
    data: JsonObject = {"item": {**extra, "type": "custom_tool_call"} if custom else extra} if extra or custom else {}
    if after is not None:
        data["after"] = after
    call = ToolCall.read(
        string_of(item, "call_id") or "",
        names.decode(string_of(item, "name") or ""),
        {"input": item.get("input")} if custom else item.get("arguments"),
        provider_data={family: data} if data else None,
    )
    # A call that was cut off may read like a whole one: "" would be a call without arguments.
    return replace(call, arguments=None, raw_arguments=_raw(item), error=_CUT) if _is_cut(item) else call


_CUT = CallError("malformed_json", "The call was cut off before its arguments were complete.")


def _is_cut(item: JsonObject) -> bool:
    return item.get("status") == "incomplete"


def _raw(item: JsonObject) -> str:
    return string_of(item, "arguments") or string_of(item, "input") or ""


def _contents(items: Iterable[JsonObject]) -> Iterator[JsonObject]:
    for item in items:
        if _is_message(item):
            yield from objects_of(item.get("content"))


def _decode_logprobs(items: Iterable[JsonObject]) -> JsonValue:
    tokens = [token for part in _contents(items) for token in objects_of(part.get("logprobs"))]
    return {"content": cast(JsonValue, tokens)} if tokens else None


def _decode_citations(items: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """With places in the choice's text; the wire counts from the start of each of its pieces."""
    start = 0
    for part in _contents(items):
        for annotation in objects_of(part.get("annotations")):
            places = {
                name: start + place
                for name in ("start_index", "end_index")
                if isinstance(place := annotation.get(name), int)
            }
            yield {**annotation, **places}
        start += len(string_of(part, "text") or "")


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[ResponsesDialect]
) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    >>> error = decode_error(401, {"x-request-id": "r1"}, body, Target("openai", "m", ResponsesDialect()))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMAuthenticationError', 'invalid_api_key', 'r1', False)
    """
    return _error(status, headers, body, target)


def _error(
    status: int, headers: Mapping[str, str], body: bytes | str | JsonValue, target: Target[ResponsesDialect]
) -> LMError:
    fault = read_fault(status, headers, body)
    if any("_policy" in code for code in fault.codes):  # bio_policy, image_content_policy_violation, ...
        fault = replace(fault, codes=(*fault.codes, "policy"))
    return lm_error(fault, (*ERRORS, Rule(LMServerError, frozenset({200}))), target)


# --- read_request ------------------------------------------------------------------------------------------


_MODELLED = frozenset({
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "include",
    "store", "stream",
})  # fmt: skip


def read_request(body: JsonObject, dialect: ResponsesDialect | None = None) -> Request:
    """The request that this body is the encoding of. What is not modelled stays in opaque parts and ``extra_body``."""
    dialect = dialect or OPENAI
    rest: JsonObject = {name: value for name, value in body.items() if name not in _MODELLED and value is not None}
    options, extra = _read_options(rest, dialect)
    for reader in (_read_store, _read_reasoning, _read_include):
        modelled, left = reader(body, dialect)
        options, extra = {**options, **modelled}, {**extra, **left}
    tools, wires_left = _read_tools(body)
    choice, choice_left = _read_choice(body.get("tool_choice"))
    wanted, text_left = _read_format(body.get("text"))
    extra |= {**wires_left, **choice_left, **text_left}
    parallel = body.get("parallel_tool_calls")
    return Request(
        tuple(_read_messages(body, dialect)),
        tools,
        choice,
        parallel if isinstance(parallel, bool) else None,
        wanted,
        {**options, "extra_body": extra} if extra else options,
    )


_Read: TypeAlias = tuple[JsonObject, JsonObject]
"""Options, and what is left for ``extra_body``."""


def _read_options(rest: JsonObject, dialect: ResponsesDialect) -> _Read:
    places = {**OPTIONS, **dialect.options}
    names = {option.path: name for name, option in places.items() if isinstance(option, Place)}
    options: JsonObject = {names[key]: value for key, value in rest.items() if key in names}
    return options, {key: value for key, value in rest.items() if key not in names}


def _read_store(body: JsonObject, dialect: ResponsesDialect) -> _Read:
    store = body.get("store")
    if store is None and dialect.store is not None:
        store = True  # the provider's default
    return {}, {} if store == dialect.store else {"store": store}


def _read_reasoning(body: JsonObject, dialect: ResponsesDialect) -> _Read:
    wire = body.get("reasoning")
    given: JsonObject = {name: value for name, value in object_of(wire).items() if value is not None}
    effort = given.get("effort")
    word = "off" if effort == "none" else effort
    options: JsonObject = {}
    if isinstance(word, str) and word in dialect.efforts:
        options["reasoning"] = word
        del given["effort"]
    return options, {"reasoning": given} if given else {}


def _read_include(body: JsonObject, dialect: ResponsesDialect) -> _Read:
    include = body.get("include")
    words = [word for word in include if isinstance(word, str)] if isinstance(include, list) else []
    if set(words) - {_ENCRYPTED, _LOGPROBS}:
        return {}, {"include": include}
    return {"logprobs": True} if _LOGPROBS in words else {}, {}


def _read_tools(body: JsonObject) -> tuple[tuple[JsonObject, ...], JsonObject]:
    """The tools; where one of them says more than we model, the whole list is kept too."""
    wires = objects_of(body.get("tools"))
    more = any(wire.get("type") == "function" and wire.keys() - _TOOL_FIELDS for wire in wires)
    return tuple(map(_read_tool, wires)), {"tools": body["tools"]} if more else {}


_TOOL_FIELDS = frozenset({"type", "name", "description", "parameters", "strict"})


def _read_tool(wire: JsonObject) -> JsonObject:
    kind = string_of(wire, "type") or "function"
    fields = ("name", "description", "parameters")
    if kind == "function":
        return {"type": kind, kind: {name: wire[name] for name in fields if wire.get(name) is not None}}
    settings: JsonObject = {name: value for name, value in wire.items() if name != "type" and value is not None}
    if kind == "web_search":
        settings = _read_search(settings)
    return {"type": kind, kind: settings}


def _read_search(settings: JsonObject) -> JsonObject:
    filters, location = object_of(settings.get("filters")), object_of(settings.get("user_location"))
    read: JsonObject = {name: value for name, value in settings.items() if name not in ("filters", "user_location")}
    if filters.get("allowed_domains"):
        read["allowed_domains"] = filters["allowed_domains"]
    if location:
        read["user_location"] = {name: value for name, value in location.items() if name != "type"}
    return read


_CHOICES: Mapping[str, ToolChoice] = {
    "auto": ToolChoice.AUTO, "none": ToolChoice.NONE, "required": ToolChoice.REQUIRED,
}  # fmt: skip


def _read_choice(choice: JsonValue) -> tuple[ToolChoice | None, JsonObject]:
    if choice is None:
        return None, {}
    if isinstance(choice, str) and choice in _CHOICES:
        return _CHOICES[choice], {}
    if (name := string_of(choice, "name")) and string_of(choice, "type") == "function":
        return ToolChoice.named(name), {}
    tools = objects_of(object_of(choice).get("tools"))
    names = tuple(name for tool in tools if (name := string_of(tool, "name")))
    if not names or len(names) < len(tools):
        return None, {"tool_choice": choice}
    return ToolChoice("required" if string_of(choice, "mode") == "required" else "auto", names), {}


def _read_format(text: JsonValue) -> tuple[ResponseFormat | None, JsonObject]:
    rest = {name: value for name, value in object_of(text).items() if name != "format"}
    wanted, left = _read_schema(object_of(object_of(text).get("format")))
    if left:
        rest["format"] = left
    return wanted, {"text": rest} if rest else {}


def _read_schema(wire: JsonObject) -> tuple[ResponseFormat | None, JsonObject]:
    kind, schema = wire.get("type"), wire.get("schema")
    if kind == "json_object":
        return ResponseFormat(), {}
    if kind != "json_schema" or not isinstance(schema, dict):
        return None, wire
    left: JsonObject = {name: value for name, value in wire.items() if name not in ("type", "name", "schema")}
    return ResponseFormat(schema, string_of(wire, "name") or "response"), left


# --- the conversation


_ROLES: Mapping[str, Role] = {"system": "system", "developer": "system"}


def _read_messages(body: JsonObject, dialect: ResponsesDialect) -> list[Message]:
    """Items of the model become one turn until somebody else has the word, results next to each other too."""
    told = body.get("instructions")
    messages: list[Message] = [Message.system(told)] if isinstance(told, str) and told else []
    given = body.get("input")
    if isinstance(given, str):
        return [*messages, Message.user(given)]
    names: dict[str, str] = {}
    for item in objects_of(given):
        role, parts = _read_item(item, names, dialect)
        names |= {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        if messages and messages[-1].role == role and role in ("assistant", "tool") and not _new_turn(messages, parts):
            parts = (*messages.pop().parts, *parts)
        messages.append(Message(role, parts))
    return messages


def _new_turn(messages: Sequence[Message], parts: tuple[Part, ...]) -> bool:
    """Two plain texts of the model in a row were two turns: in one they would be one text."""
    return isinstance(parts[0], TextPart) and isinstance(messages[-1].parts[-1], TextPart)


def _read_item(item: JsonObject, names: Mapping[str, str], dialect: ResponsesDialect) -> tuple[Role, tuple[Part, ...]]:
    if (string_of(item, "type") or "") in ("function_call_output", "custom_tool_call_output"):
        return "tool", (_read_result(item, names, dialect),)
    role = string_of(item, "role")
    if role in (None, "assistant"):
        parts = tuple(_decode_item(item, NameMap((), dialect.names), dialect.family))
        return "assistant", parts or (TextPart(""),)
    if item.get("type", "message") != "message":  # tools that a developer adds in between
        return _ROLES.get(role, "user"), (OpaquePart(dialect.family, item),)
    return _ROLES.get(role, "user"), _read_parts(item.get("content"), dialect)


def _read_result(item: JsonObject, names: Mapping[str, str], dialect: ResponsesDialect) -> ToolResult:
    call_id, output = string_of(item, "call_id") or "", item.get("output")
    wires = objects_of(output)
    media = tuple(_read_media(wire) for wire in wires)
    text = output if isinstance(output, str) else ""
    if media and isinstance(first := media[0], TextPart):
        text, media = first.text, media[1:]
    content, failed = read_error_text(text)
    return ToolResult(call_id, names.get(call_id, ""), content, failed, media)


def _read_media(wire: JsonObject) -> MediaPart:
    reader = _READERS.get(string_of(wire, "type") or "")
    return reader(wire) if reader else TextPart(dumps(wire))


def _read_parts(content: JsonValue, dialect: ResponsesDialect) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),)
    return tuple(_read_part(wire, dialect) for wire in objects_of(content))


def _read_part(wire: JsonObject, dialect: ResponsesDialect) -> Part:
    """A content part; whatever would not be written the same again is kept as it is."""
    bare: JsonObject = {name: value for name, value in wire.items() if value is not None}
    reader = _READERS.get(string_of(bare, "type") or "")
    part = reader(bare) if reader else None
    try:
        same = part is not None and _encode_part(part, Target("", "", dialect)) == bare
    except (InputError, UnsupportedFeature):
        same = False
    return part if part is not None and same else OpaquePart(dialect.family, wire)


def _read_image(wire: JsonObject) -> ImagePart:
    url, detail = string_of(wire, "image_url"), string_of(wire, "detail")
    media_type, data = split_data_url(url or "")
    detail = None if detail == "auto" else detail
    return ImagePart(None if data is not None else url, data, media_type, detail, string_of(wire, "file_id"))


def _read_file(wire: JsonObject) -> FilePart:
    media_type, data = split_data_url(string_of(wire, "file_data") or "")
    url, file_id, filename = (string_of(wire, name) for name in ("file_url", "file_id", "filename"))
    return FilePart(data, url, file_id, filename, media_type)


_READERS: Mapping[str, Callable[[JsonObject], MediaPart]] = {
    "input_text": lambda wire: TextPart(string_of(wire, "text") or ""),
    "input_image": _read_image,
    "input_file": _read_file,
}
