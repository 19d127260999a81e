"""Ollama's own wire, ``/api/chat``: Request -> dict, dict -> Response.

Pure: no network, clock or environment. Reads top to bottom: dialect, tables, encode(), decode(), decode_error(),
read_request().

Surprises of this wire:
    - It streams unless told otherwise, so ``stream`` is always sent.
    - Arguments are an *object* both ways; text in their place is an error of the server. Arguments that are no object
      travel as ``{"invalid_arguments": text}``.
    - Call ids are optional. One that the server sent goes back, with the tool's name, which most templates use; one
      that sigwire made up is not sent.
    - There is no ``tool_choice``: calls are forbidden by sending no tools, and cannot be forced.
    - ``format`` constrains the text of calls too, so beside tools the output's shape is asked for in words.
    - A prompt that is too long is cut silently, oldest turns first, unless ``truncate`` and ``shift`` are false: they
      are, and the server answers with an error that says what to do (the option ``num_ctx``).
    - The server knows a few keywords of a tool's schema and discards the others, ``$ref`` among them, unseen.
    - A turn has one text and a list of images, as bare base64. Unknown fields of a turn are an ``OpaquePart``, those of
      a call its provider data.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

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
from sigwire.core.names import NameMap, NameRules
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, FinishReason, LMWarning, Response
from sigwire.core.tools import ToolCall, ToolResult, number_calls
from sigwire.errors import (
    ContextWindowExceededError,
    InputError,
    LMAuthenticationError,
    LMError,
    LMInvalidRequestError,
    LMServerError,
    LMTransportError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.base import (
    EFFORTS,
    Dialect,
    Encoded,
    Offer,
    OptionTable,
    Place,
    Skip,
    Target,
    asked_reasoning,
    finish,
    fit_effort,
    headers_for,
    in_words,
    is_invented,
    merge,
    name_map,
    objects_of,
    offer,
    place_options,
    provider_data,
    repeat_warning,
    settle,
    string_of,
    supports,
    text_of_file,
    usage_of,
    wanted_choices,
    without,
)
from sigwire.lm.codecs.faults import CONTEXT_TEXTS, Rule, lm_error, read_fault
from sigwire.lm.codecs.repair import RepairRules, error_text, read_error_text, repair
from sigwire.lm.codecs.schema_rules import SchemaRules, compile_schema, const_to_enum, merge_all_of, one_of_to_any_of

__all__ = [
    "ERRORS",
    "FINISH_REASONS",
    "OLLAMA",
    "OLLAMA_CLOUD",
    "OPTIONS",
    "TOOL_SCHEMA",
    "USAGE",
    "OllamaDialect",
    "decode",
    "decode_error",
    "encode",
    "read_request",
]


# --- dialect -----------------------------------------------------------------------------------------------

TOOL_SCHEMA = SchemaRules(
    keep=frozenset({"type", "properties", "required", "items", "enum", "anyOf", "description"}),
    rewrite=(const_to_enum, one_of_to_any_of, merge_all_of),
    inline_refs=True,
    recursion="open",
    root="object",
)
"""What the server passes on to a model's template; it discards everything else."""


@dataclass(frozen=True, kw_only=True)
class OllamaDialect(Dialect):
    """How one host speaks ``/api/chat``. The defaults are a server on one's own machine.

    ``names``: a template takes any name; these are the characters that all of them get right. ``defaults``: fields of
    every request, under the caller's options. ``enforces_format``: whether the answer is held to ``format``.
    ``efforts``: the words for thinking, weakest first.
    """

    family: str = "ollama"
    path: str = "/api/chat"
    names: NameRules = NameRules(allowed="a-zA-Z0-9_.-", max_length=128)
    repair: RepairRules = RepairRules(result_media="user", system="front")
    tool_schema: SchemaRules = TOOL_SCHEMA
    defaults: JsonObject = field(default_factory=lambda: {"truncate": False, "shift": False})
    enforces_format: bool = True
    efforts: tuple[str, ...] = ("off", "low", "medium", "high", "max")


OLLAMA = OllamaDialect()
OLLAMA_CLOUD = OllamaDialect(enforces_format=False)


# --- tables ------------------------------------------------------------------------------------------------


def _as_list(stop: JsonValue) -> JsonValue:
    return [stop] if isinstance(stop, str) else stop


OPTIONS: OptionTable = {
    "cache": Skip(),  # the server reuses the prefix it has computed by itself
    "frequency_penalty": Place("options.frequency_penalty"),
    "keep_alive": Place("keep_alive"),
    "logprobs": Place("logprobs"),
    "max_tokens": Place("options.num_predict"),
    "min_p": Place("options.min_p"),
    "n": Skip(),  # one answer at a time; the client asks again
    "num_ctx": Place("options.num_ctx"),
    "presence_penalty": Place("options.presence_penalty"),
    "reasoning": Skip(),
    "repeat_penalty": Place("options.repeat_penalty"),
    "seed": Place("options.seed"),
    "shift": Place("shift"),
    "stop": Place("options.stop", _as_list),
    "temperature": Place("options.temperature"),
    "top_k": Place("options.top_k"),
    "top_logprobs": Place("top_logprobs"),
    "top_p": Place("options.top_p"),
    "truncate": Place("truncate"),
}

FINISH_REASONS: Mapping[str, FinishReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}

USAGE: Mapping[str, str | tuple[str, ...]] = {"input_tokens": "prompt_eval_count", "output_tokens": "eval_count"}
"""A count of zero is left out by the server, so what is missing is unknown. Cached tokens are never told."""

THINK: Mapping[str, JsonValue] = {**{effort: effort for effort in EFFORTS}, "off": False}

_CONTEXT_TEXTS = (*CONTEXT_TEXTS, "exceeds the context length", "exceeds maximum context length")

ERRORS: tuple[Rule, ...] = (
    Rule(
        ContextWindowExceededError,
        texts=_CONTEXT_TEXTS,
        hint="Raise the option num_ctx as far as the model and the memory allow, or shorten the request.",
    ),
    Rule(
        LMInvalidRequestError,
        texts=("does not support tools",),
        hint="Use a model that has tools: `ollama show {model}` lists what one can do.",
    ),
    Rule(
        LMInvalidRequestError,
        texts=("does not support thinking",),
        hint="Leave out the option reasoning, or use a model that thinks.",
    ),
    Rule(
        LMInvalidRequestError,
        frozenset({404}),
        texts=("page not found",),
        hint="Check the address: an Ollama server of today has /api/chat there, and its base URL does not end in /v1.",
    ),
    Rule(
        LMUnsupportedModelError,
        frozenset({404}),
        hint="Get it with `ollama pull {model}`, or use one that `ollama list` shows.",
    ),
    Rule(
        LMAuthenticationError,
        frozenset({401, 403}),
        hint="Sign in with `ollama signin`, or set OLLAMA_API_KEY to a key of ollama.com.",
    ),
    Rule(LMServerError, frozenset({200})),
)


# --- encode ------------------------------------------------------------------------------------------------


def encode(request: Request, target: Target[OllamaDialect], *, stream: bool = False) -> Encoded:
    """The request as this host takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> sent = encode(Request((Message.user("q"),)), Target("ollama", "m", OllamaDialect(defaults={})))
    >>> sent.path, sent.body
    ('/api/chat', {'model': 'm', 'messages': [{'role': 'user', 'content': 'q'}], 'stream': False})
    """
    dialect = target.dialect
    names = name_map(request, dialect.names)
    history = repair(request.messages, dialect.repair)
    tools = offer(request, names, target)
    supports(not tools.builtin, "built-in tools such as web search", target, _NO_BUILTIN)
    offered, tool_warnings = _encode_tools(tools, request.parallel_tool_calls, target)
    output, instruction, format_warnings = _encode_output(request.response_format, bool(offered), target)
    thinking, thinking_warnings = _encode_reasoning(request, target)
    options, option_warnings = place_options(request.options, OPTIONS, target)
    messages = [wire for message in history.messages for wire in _encode_message(message, names, target)]
    body: JsonObject = {
        "model": target.model,
        "messages": cast(JsonValue, _with_instruction(messages, instruction)),
        "stream": stream,
        **dialect.defaults,
        **offered,
        **output,
        **options,
        **thinking,
    }
    lost = (history.warnings, tools.warnings if offered else (), tool_warnings, format_warnings, thinking_warnings)
    return Encoded(
        dialect.path.format(model=target.model),
        finish(body, request),
        {},
        headers_for(request, dialect),
        (*itertools.chain(*lost, option_warnings), *repeat_warning(request, target)),
        names,
        history.call_ids,
        wanted_choices(request),
    )


_NO_BUILTIN = (
    "Use a model whose provider has it (OpenAI's Responses API, Anthropic, Gemini), or a function tool of your own."
)


def _note(feature: str, target: Target[OllamaDialect], detail: str) -> LMWarning:
    return LMWarning(feature, f"{target.provider}/{target.model} {detail}")


def _encode_reasoning(request: Request, target: Target[OllamaDialect]) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Nothing where nothing was asked: models that think do so by themselves."""
    asked = asked_reasoning(request)
    if asked is None:
        return {}, ()
    facts = target.facts
    efforts = target.dialect.efforts if facts.efforts is None else facts.efforts
    efforts = () if facts.thinking == "none" else efforts
    if asked.off and not efforts:
        return {}, ()  # it does not think anyway
    effort, warnings = fit_effort(asked, efforts, target)
    return {"think": THINK[effort]}, warnings


# --- tools


def _encode_tools(
    tools: Offer, parallel: bool | None, target: Target[OllamaDialect]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """The tools that may be called; which of them is all that a choice can say here."""
    if not tools.functions or tools.choice == "none":
        return {}, ()
    warnings: list[LMWarning] = []
    if tools.choice == "required":
        warnings.append(
            _note("tool_choice", target, "cannot be made to call a tool; the choice was left to the model.")
        )
    if parallel is False:
        warnings.append(_note("parallel_tool_calls", target, "cannot be kept to one call at a time."))
    return {"tools": [_encode_tool(*tool) for tool in tools.only_allowed()]}, tuple(warnings)


def _encode_tool(name: str, description: str, parameters: JsonObject | None) -> JsonObject:
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    # Templates walk through the properties, so an object without any says so.
    function["parameters"] = {"type": "object", "properties": {}, **(parameters or {})}
    return {"type": "function", "function": function}


# --- structured output


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[OllamaDialect]
) -> tuple[JsonObject, str, tuple[LMWarning, ...]]:
    """``format``, or what has to be said in words instead."""
    if wanted is None:
        return {}, "", ()
    able = target.capabilities
    if tools or not (able.json_schema if wanted.schema is not None else able.json_object):
        lost = "has no structured output beside tools here" if tools else "has no structured output by schema here"
        native: JsonObject = {"format": "json"} if able.json_object and not tools else {}
        words = (_note("response_format", target, f"{lost}; it was asked for in words."),)
        return native, in_words(wanted.schema), words
    if wanted.schema is None:
        return {"format": "json"}, "", ()
    schema, warnings = compile_schema(wanted.schema, target.dialect.output_schema, f"the output {wanted.name!r}")
    if not target.dialect.enforces_format:
        warnings = (*warnings, _note("response_format", target, "takes the schema but does not hold the model to it."))
    return {"format": schema}, "", warnings


def _with_instruction(messages: list[JsonObject], text: str) -> list[JsonObject]:
    """The instruction at the end of the system turn, or as one."""
    if not text:
        return messages
    if messages and messages[0]["role"] == "system":
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{text}".lstrip("\n")}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


# --- messages


def _encode_message(message: Message, names: NameMap, target: Target[OllamaDialect]) -> list[JsonObject]:
    if message.role == "tool":
        return [_encode_result(result, names) for result in message.tool_results]
    wire: JsonObject = {"role": message.role, "content": _encode_text(message.parts, target)}
    if thinking := "".join(part.text for part in message.parts if isinstance(part, ThinkingPart)):
        wire["thinking"] = thinking
    if images := [_encode_image(part, target) for part in message.parts if isinstance(part, ImagePart)]:
        wire["images"] = cast(JsonValue, images)
    if calls := [_encode_call(call, names, target.dialect.family) for call in message.tool_calls]:
        wire["tool_calls"] = cast(JsonValue, calls)
    for part in message.parts:
        if isinstance(part, OpaquePart):
            supports(isinstance(part.data, dict), "an opaque item that is no object", target, "Leave it out.")
            wire |= cast(JsonObject, part.data)
    return [wire] if wire["content"] or len(wire) > 2 else []  # a turn in which nothing is said is not sent


def _encode_text(parts: Iterable[Part], target: Target[OllamaDialect]) -> str:
    """The one text of a turn; what a picture parts stays apart, and a document is a paragraph of its own."""
    paragraphs = [""]
    for part in parts:
        if isinstance(part, TextPart):
            paragraphs[-1] += part.text
        elif isinstance(part, ImagePart):
            paragraphs.append("")
        elif isinstance(part, AudioPart | FilePart):
            paragraphs += [_encode_document(part, target), ""]
    return "\n\n".join(filter(None, paragraphs))


def _encode_document(part: AudioPart | FilePart, target: Target[OllamaDialect]) -> str:
    supports(isinstance(part, FilePart), "audio input", target, _ELSEWHERE)
    text = text_of_file(cast(FilePart, part))
    supports(text is not None, "documents that are not text", target, _ELSEWHERE)
    return cast(str, text)


_ELSEWHERE = "Send it as text, or use a provider that takes it."


def _encode_image(part: ImagePart, target: Target[OllamaDialect]) -> str:
    if part.url is None and part.data is None:
        raise InputError("An image needs a url or data.")
    data = part.data if part.data is not None else _data_of(part.url or "")
    supports(data is not None, "an image by URL", target, "Download it and pass its data.")
    return cast(str, data)


def _data_of(url: str) -> str | None:
    matched = re.fullmatch(r"data:[^,]*;base64,(.*)", url, re.DOTALL)
    return matched.group(1) if matched else None


def _encode_call(call: ToolCall, names: NameMap, family: str) -> JsonObject:
    arguments: JsonObject = {"invalid_arguments": call.arguments_text} if call.arguments is None else call.arguments
    function: JsonObject = {"name": names.encode(call.name), "arguments": arguments}
    return merge({**_id("id", call.id), "function": function}, provider_data(call, family))


def _encode_result(result: ToolResult, names: NameMap) -> JsonObject:
    text = error_text(result)
    return {"role": "tool", "tool_name": names.encode(result.name), **_id("tool_call_id", result.id), "content": text}


def _id(name: str, call_id: str) -> JsonObject:
    """The id under this name, unless sigwire made it up: the server never saw it."""
    # The server's own ids have eight characters after "call_", and all eight may happen to be digits.
    made_up = is_invented(call_id) and len(call_id) < len("call_12345678")
    return {} if made_up else {name: call_id}


# --- decode ------------------------------------------------------------------------------------------------


def decode(body: JsonValue, sent: Encoded, target: Target[OllamaDialect]) -> Response:
    """The reply as a response. Raises an ``LMError`` for an error, half an answer or none inside status 200."""
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(message, dict) or body.get("error"):
        raise _failed_inside(body, target)
    if body.get("done") is False:
        raise LMTransportError(
            "The reply was cut off before its end.", model=target.model, provider=target.provider, status=200
        )
    choice, warnings = _decode_choice(body, message, sent, target)
    return Response(
        (choice,), usage_of(body, USAGE), string_of(body, "model"), None, (*sent.warnings, *warnings), raw=body
    )


def _failed_inside(body: JsonValue, target: Target[OllamaDialect]) -> LMError:
    fault = read_fault(200, {}, body)
    if isinstance(body, dict) and body.get("error"):
        return lm_error(fault, ERRORS, target)
    return lm_error(replace(fault, message=f"The reply holds no message: {dumps(body)[:200]}"), ERRORS, target)


def _decode_choice(
    body: JsonObject, message: JsonObject, sent: Encoded, target: Target[OllamaDialect]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    family = target.dialect.family
    before = _decode_before_calls(message, family)
    text = "".join(part.text for part in before if isinstance(part, TextPart))
    found = number_calls(_decode_calls(message, sent.names, family), sent.call_ids)
    reason, calls, warnings = settle(body.get("done_reason"), FINISH_REASONS, text=text, calls=found)
    logprobs = body.get("logprobs")
    rest: dict[str, Any] = {
        "finish_reason": reason,
        "logprobs": {"content": logprobs} if logprobs else None,
        "raw": body,
    }
    if all(isinstance(part, TextPart) for part in before):
        return Choice(text, calls, **rest), warnings
    return Choice.from_parts((*before, *calls), **rest), warnings


_TURN_FIELDS = frozenset({"role", "content", "thinking", "images", "tool_calls"})


def _decode_before_calls(message: JsonObject, family: str) -> tuple[Part, ...]:
    """Thinking, what we have no word for, pictures and text. An empty field says nothing."""
    thinking, text = string_of(message, "thinking"), string_of(message, "content")
    images = message.get("images")
    extra: JsonObject = {name: value for name, value in message.items() if name not in _TURN_FIELDS and value}
    return (
        *((ThinkingPart(thinking, provider=family),) if thinking else ()),
        *((OpaquePart(family, extra),) if extra else ()),
        *((TextPart(text),) if text else ()),
        *(ImagePart(data=data) for data in (images if isinstance(images, list) else ()) if isinstance(data, str)),
    )


def _decode_calls(message: JsonObject, names: NameMap, family: str) -> list[ToolCall]:
    return [_decode_call(wire, names, family) for wire in objects_of(message.get("tool_calls"))]


def _decode_call(wire: JsonObject, names: NameMap, family: str) -> ToolCall:
    function = wire.get("function")
    function = function if isinstance(function, dict) else {}
    extra = without(wire, {"id", "type", "function"})
    if inner := without(function, {"name", "arguments", "index"}):  # the index is the call's place
        extra["function"] = inner
    return ToolCall.read(
        string_of(wire, "id") or "",
        names.decode(string_of(function, "name") or ""),
        function.get("arguments"),
        provider_data={family: extra} if extra else None,
    )


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str, target: Target[OllamaDialect]) -> LMError:
    """The error of a reply that is no success.

    >>> error = decode_error(404, {}, b'{"error": "model not found"}', Target("ollama", "m", OLLAMA))
    >>> type(error).__name__, error.message
    ('LMUnsupportedModelError', 'model not found. Get it with `ollama pull m`, or use one that `ollama list` shows.')
    """
    return lm_error(read_fault(status, headers, body), ERRORS, target)


# --- read_request ------------------------------------------------------------------------------------------


def read_request(body: JsonObject, dialect: OllamaDialect = OLLAMA) -> Request:
    """The request that this body is the encoding of. What is not modelled stays in opaque parts and ``extra_body``."""
    known = {"model", "messages", "stream", "tools", "format"}
    rest: JsonObject = {
        name: value
        for name, value in body.items()
        if name not in known and dialect.defaults.get(name, _ABSENT) != value
    }
    return Request(
        tuple(_read_messages(objects_of(body.get("messages")), dialect)),
        objects_of(body.get("tools")),
        None,
        None,
        _read_format(body.get("format")),
        _read_options(rest, dialect),
    )


_ABSENT = object()


def _read_format(wire: JsonValue) -> ResponseFormat | None:
    if isinstance(wire, dict):
        return ResponseFormat(wire)
    return ResponseFormat() if wire == "json" else None


def _read_options(rest: JsonObject, dialect: OllamaDialect) -> JsonObject:
    places = {option.path: name for name, option in OPTIONS.items() if isinstance(option, Place)}
    inner = rest.get("options")
    inner = inner if isinstance(inner, dict) else {}
    given = {**rest, **{f"options.{name}": value for name, value in inner.items()}}
    options: JsonObject = {places[path]: value for path, value in given.items() if path in places}
    efforts = [effort for effort in dialect.efforts if THINK[effort] == rest.get("think", _ABSENT)]
    if efforts:
        options["reasoning"] = efforts[0]
    extra = without(rest, {*places, "options", *(["think"] if efforts else [])})
    if unknown := {name: value for name, value in inner.items() if f"options.{name}" not in places}:
        extra["options"] = unknown
    return {**options, "extra_body": extra} if extra else options


_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def _read_messages(wires: Iterable[JsonObject], dialect: OllamaDialect) -> list[Message]:
    messages: list[Message] = []
    waiting: list[ToolCall] = []
    for wire in wires:
        role = string_of(wire, "role") or "user"
        if role == "tool":
            result = _read_result(wire, waiting)
            together = messages[-1].tool_results if messages and messages[-1].role == "tool" else ()
            messages[len(messages) - bool(together) :] = [Message.tool(*together, result)]
            continue
        taken = [call.id for message in messages for call in message.tool_calls]
        calls = number_calls(_decode_calls(wire, NameMap((), dialect.names), dialect.family), taken)
        waiting = list(calls) or waiting
        messages.append(Message(_ROLES.get(role, "user"), (*_decode_before_calls(wire, dialect.family), *calls)))
    return messages


def _read_result(wire: JsonObject, waiting: list[ToolCall]) -> ToolResult:
    """A result belongs to the call with its id, else to the first open one of its tool, else to the first open one."""
    call_id, name = string_of(wire, "tool_call_id"), string_of(wire, "tool_name")
    fitting = ([c for c in waiting if c.id == call_id], [c for c in waiting if c.name == name], waiting)
    call = next((calls[0] for calls in fitting if calls), None)
    if call is not None:
        waiting.remove(call)
    value, failed = read_error_text(string_of(wire, "content") or "")
    return ToolResult(call_id or (call.id if call else ""), name or (call.name if call else ""), value, failed)
