"""Chat completions: body -> Response, and the error of a reply that is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import (
    AudioPart,
    OpaquePart,
    Part,
    TextPart,
    ThinkingPart,
)
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.names import NameMap
from sigwire.core.tools.tool import ToolCall, number_calls
from sigwire.errors import (
    LMError,
    LMServerError,
)
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.tables import ERRORS, FINISH_REASONS, USAGE
from sigwire.lm.codecs.shared.choices import resolve_finish, usage_of
from sigwire.lm.codecs.shared.errors import ErrorRule, empty_reply_error, lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, without

__all__ = [
    "choice_index",
    "decode",
    "decode_call",
    "decode_content",
    "decode_error",
    "decode_usage",
    "error_in_success",
]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[ChatProfile]) -> Response:
    """The reply as a response. Raises an ``LMError`` for an error, or no answer at all, inside status 200."""
    choices = objects_of(body.get("choices")) if isinstance(body, dict) else ()
    if not isinstance(body, dict) or not choices or body.get("error"):
        raise error_in_success(body, target)
    if choices[0].get("error") and not choices[1:]:
        raise error_in_success(choices[0], target)
    ordered = sorted(choices, key=choice_index) if len(choices) > 1 else choices
    decoded = [_decode_choice(choice, sent, target) for choice in ordered]
    warnings = sent.warnings
    for _, found in decoded:
        warnings += found
    return Response(
        tuple([choice for choice, _ in decoded]),
        decode_usage(body),
        string_of(body, "model"),
        string_of(body, "id"),
        warnings,
        raw=body,
    )


def choice_index(choice: JsonObject) -> int:
    """The number of a choice; the first where it has none."""
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def error_in_success(body: JsonValue, target: Target[ChatProfile]) -> LMError:
    """An error that came with status 200: its own code stands in for the status; without one the server failed."""
    fault = read_error_body(200, {}, body)
    if isinstance(body, dict) and body.get("error"):
        code = next((int(code) for code in fault.codes if code.isdigit() and len(code) == 3), 200)
        return lm_error(replace(fault, status=code), (*ERRORS, ErrorRule(LMServerError, frozenset({200}))), target)
    return empty_reply_error("choices", body, target)


def _decode_choice(
    choice: JsonObject, sent: EncodedRequest, target: Target[ChatProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    thinking, text = decode_content(message, target.profile)
    refusal = string_of(message, "refusal")
    found = number_calls(_decode_calls(message, sent, target), sent.call_ids)
    reason, calls, warnings = resolve_finish(
        choice.get("finish_reason"), FINISH_REASONS, text=text, calls=found, refusal=refusal
    )
    extras = _decode_extras(message, sent, target)
    if reason == "stop" and not text:
        warnings = (*warnings, LMWarning("content", "The model stopped without text and without calls."))
    logprobs = choice.get("logprobs")
    citations = tuple(map(_decode_citation, objects_of(message.get("annotations"))))
    if not (thinking or extras):
        return Choice(text, calls, None, refusal, reason, logprobs, citations, (), choice), warnings
    parts: tuple[Part, ...] = (*thinking, *extras, *((TextPart(text),) if text else ()), *calls)
    rest: dict[str, Any] = {"refusal": refusal, "finish_reason": reason, "logprobs": logprobs, "citations": citations}
    return Choice.from_parts(parts, **rest, raw=choice), warnings


def decode_content(message: JsonObject, dialect: ChatProfile) -> tuple[tuple[ThinkingPart, ...], str]:
    """Thinking, under whichever name it came, and the text."""
    content = message.get("content")
    if not dialect.think_tags and message.keys().isdisjoint(_BESIDE_TEXT) and not isinstance(content, list):
        return (), content if isinstance(content, str) else ""
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


# Where a message has none of these, its content is all that was said.
_BESIDE_TEXT = frozenset({"audio", "reasoning", "reasoning_content", "reasoning_details"})


def _decode_citation(annotation: JsonObject) -> JsonObject:
    """Flat, as on the other wires: this one nests the facts under the citation's type."""
    kind = string_of(annotation, "type") or ""
    inner = annotation.get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else annotation


# Without the end of it the answer was cut off while the model was thinking.
_THINK = re.compile(r"\s*<think>(.*?)(?:</think>\s*|\Z)", re.DOTALL)


def _decode_chunk(chunk: JsonObject, family: str) -> ThinkingPart:
    inner = chunk.get("thinking")
    text = inner if isinstance(inner, str) else "".join(string_of(item, "text") or "" for item in objects_of(inner))
    return ThinkingPart(text, signature=string_of(chunk, "signature"), provider=family)


def _details_text(message: JsonObject) -> str:
    details = objects_of(message.get("reasoning_details"))
    return "".join(string_of(detail, "text") or string_of(detail, "summary") or "" for detail in details)


def _decode_extras(message: JsonObject, sent: EncodedRequest, target: Target[ChatProfile]) -> tuple[Part, ...]:
    """What goes back as it came: reasoning details; and spoken output, which goes back by its id."""
    if message.keys().isdisjoint(_BESIDE_TEXT):
        return ()
    extras: list[Part] = []
    family = target.profile.family
    if details := objects_of(message.get("reasoning_details")):
        extras.append(OpaquePart(family, {"reasoning_details": list(details)}))
    audio = message.get("audio")
    if isinstance(audio, dict) and (data := string_of(audio, "data")):
        asked = sent.body.get("audio")
        extras.append(AudioPart(data, string_of(asked, "format") or "wav"))
        extras.append(OpaquePart(family, {"audio": {"id": audio.get("id")}}))
    return tuple(extras)


def _decode_calls(message: JsonObject, sent: EncodedRequest, target: Target[ChatProfile]) -> list[ToolCall]:
    wires = objects_of(message.get("tool_calls"))
    if not wires:
        old = message.get("function_call")
        if not (isinstance(old, dict) and old.get("name")):  # the form before tool_calls
            return []
        former: JsonObject = {"function": old}
        wires = (former,)
    return [decode_call(wire, sent.names, target.profile.family) for wire in wires]


_CALL_FIELDS = frozenset({"id", "type", "function", "index", "custom"})


def decode_call(wire: JsonObject, names: NameMap, family: str) -> ToolCall:
    """A call, with what else the host left on it as its provider data."""
    function = _called(wire)
    call_id = string_of(wire, "id") or ""
    extra: JsonObject = {} if wire.keys() <= _CALL_FIELDS else without(wire, _CALL_FIELDS)
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


def decode_usage(body: JsonObject) -> Usage:
    """The counts, wherever the host puts them."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        x_groq = body.get("x_groq")
        usage = x_groq.get("usage") if isinstance(x_groq, dict) else None
    return usage_of(usage, USAGE)


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str, target: Target[ChatProfile]) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    >>> error = decode_error(401, {"x-request-id": "r1"}, body, Target("openai", "m", ChatProfile()))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMAuthenticationError', 'invalid_api_key', 'r1', False)
    """
    return lm_error(read_error_body(status, headers, body), ERRORS, target)
