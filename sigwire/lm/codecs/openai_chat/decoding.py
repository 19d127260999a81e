"""Chat completions: body -> Response, and error reply -> ``LMError``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import AudioPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.calls import ToolCall, number_calls
from sigwire.core.tools.names import NameMap
from sigwire.errors import LMError, LMServerError
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.tables import ERRORS, FINISH_REASONS, USAGE
from sigwire.lm.codecs.shared.choices import check_count, resolve_finish, response_of_body
from sigwire.lm.codecs.shared.errors import ErrorRule, empty_reply_error, lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.tools import read_call
from sigwire.lm.codecs.shared.untrusted import index_of, object_of, objects_of, remove_members, string_of, value_at
from sigwire.lm.codecs.shared.usage import MOST_TOKENS, UsageReading, UsageTable, read_usage

__all__ = [
    "decode", "decode_call", "decode_content", "decode_error", "decode_usage", "error_in_success", "thinking_text",
]  # fmt: skip


def decode(
    body: JsonValue, sent: EncodedRequest, target: Target[ChatProfile], usage_table: UsageTable = USAGE
) -> Response:
    """Return the response of a reply with status 200. Raises an ``LMError`` if the body is an error or has no choice."""
    choices = objects_of(body.get("choices")) if isinstance(body, dict) else ()
    if not isinstance(body, dict) or not choices or body.get("error"):
        raise error_in_success(body, target)
    if choices[0].get("error") and not choices[1:]:
        raise error_in_success(choices[0], target)
    check_count(len(choices), target)
    ordered = choices if len(choices) == 1 else sorted(choices, key=index_of)
    decoded = [_decode_choice(choice, sent, target) for choice in ordered]
    warnings = [warning for _, found in decoded for warning in found]
    return response_of_body(body, [choice for choice, _ in decoded], decode_usage(body, usage_table), sent, warnings)


def error_in_success(body: JsonValue, target: Target[ChatProfile]) -> LMError:
    """Return the error in a reply with status 200. Its code replaces the status; without a code it is a server error."""
    fault = read_error_body(200, {}, body)
    if isinstance(body, dict) and body.get("error"):
        code = next((int(code) for code in fault.codes if code.isdigit() and len(code) == 3), 200)
        return lm_error(replace(fault, status=code), (*ERRORS, ErrorRule(LMServerError, frozenset({200}))), target)
    return empty_reply_error("choices", body, target)


def _decode_choice(
    choice: JsonObject, sent: EncodedRequest, target: Target[ChatProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    message = object_of(choice.get("message"))
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


def decode_content(message: JsonObject, profile: ChatProfile) -> tuple[tuple[ThinkingPart, ...], str]:
    """Return the reasoning, whichever field has it, and the text."""
    content, family = message.get("content"), profile.family
    text = _text_of(message)
    if not profile.think_tags and message.keys().isdisjoint(_EXTRA_FIELDS) and not isinstance(content, list):
        return (), text
    chunks = [_decode_chunk(chunk, family) for chunk in objects_of(content) if chunk.get("type") == "thinking"]
    if chunks:
        return tuple(chunks), text
    if reasoning := _reasoning_text(message):
        return (ThinkingPart(reasoning, provider=family),), text
    tagged = _THINK.match(text) if profile.think_tags else None
    if tagged:
        return (ThinkingPart(tagged.group(1).strip(), provider=family),), text[tagged.end() :]
    return (), text


# Without any of these fields, the content of a message is all of its text, and there is no reasoning.
_EXTRA_FIELDS = frozenset({"audio", "extra_content", "reasoning", "reasoning_content", "reasoning_details"})

# A missing end tag: the answer was truncated inside the reasoning.
_THINK = re.compile(r"\s*<think>(.*?)(?:</think>\s*|\Z)", re.DOTALL)


def _text_of(message: JsonObject) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else _join_texts(objects_of(content), "text")
    return text or string_of(message.get("audio"), "transcript") or ""


def _reasoning_text(message: JsonObject) -> str:
    named = string_of(message, "reasoning_content") or string_of(message, "reasoning")
    return named or _join_texts(objects_of(message.get("reasoning_details")), "text", "summary")


def _join_texts(items: Iterable[JsonObject], *names: str) -> str:
    """Concatenate the texts of objects, each in the first of its fields ``names`` that has one."""
    return "".join(next(filter(None, (string_of(item, name) for name in names)), "") for item in items)


def _decode_chunk(chunk: JsonObject, family: str) -> ThinkingPart:
    return ThinkingPart(thinking_text(chunk), signature=string_of(chunk, "signature"), provider=family)


def thinking_text(chunk: JsonObject) -> str:
    """Return the text of a content part of type ``thinking``, which is a string or a list of text parts."""
    inner = chunk.get("thinking")
    return inner if isinstance(inner, str) else _join_texts(objects_of(inner), "text")


def _decode_citation(annotation: JsonObject) -> JsonObject:
    """Return a flat citation, like the other wires: this wire nests the fields below the citation's type."""
    kind = string_of(annotation, "type") or ""
    inner = annotation.get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else annotation


def _decode_extras(message: JsonObject, sent: EncodedRequest, target: Target[ChatProfile]) -> tuple[Part, ...]:
    """Return what a later request repeats unchanged: reasoning details, Gemini's signature, and audio by its id."""
    if message.keys().isdisjoint(_EXTRA_FIELDS):
        return ()
    family = target.profile.family
    details, signed = list[JsonValue](objects_of(message.get("reasoning_details"))), message.get("extra_content")
    repeated: JsonObject = {"reasoning_details": details, "extra_content": object_of(signed)}
    extras: list[Part] = [OpaquePart(family, {name: value}) for name, value in repeated.items() if value]
    audio = message.get("audio")
    if isinstance(audio, dict) and (data := string_of(audio, "data")):
        extras.append(AudioPart(data, string_of(sent.body.get("audio"), "format") or "wav"))
        extras.append(OpaquePart(family, {"audio": {"id": audio.get("id")}}))
    return tuple(extras)


def _decode_calls(message: JsonObject, sent: EncodedRequest, target: Target[ChatProfile]) -> list[ToolCall]:
    wires = objects_of(message.get("tool_calls"))
    if not wires and message.get("function_call"):  # the format that tool_calls replaced
        former: JsonObject = {"function": message["function_call"]}
        wires = (former,) if value_at(former, "function.name") else ()
    return [decode_call(wire, sent.names, target.profile.family) for wire in wires]


_CALL_FIELDS = frozenset({"id", "type", "function", "index", "custom"})


def decode_call(wire: JsonObject, names: NameMap, family: str) -> ToolCall:
    """Return a call. Its unknown fields become its provider data."""
    function = _function_of(wire)
    call_id = None if wire.get("id") == "null" else string_of(wire, "id")
    extra: JsonObject = {} if wire.keys() <= _CALL_FIELDS else remove_members(wire, _CALL_FIELDS)
    return read_call(call_id, string_of(function, "name"), function.get("arguments"), extra, names, family)


def _function_of(wire: JsonObject) -> JsonObject:
    """Return name and arguments. The input of a custom tool is free text: it becomes the argument ``input``."""
    custom = wire.get("custom")
    if wire.get("type") == "custom" and isinstance(custom, dict):
        return {"name": custom.get("name"), "arguments": {"input": custom.get("input")}}
    return object_of(wire.get("function"))


def decode_usage(body: JsonObject, table: UsageTable = USAGE) -> UsageReading:
    """Return the token counts. Groq has those of a stream in ``x_groq``; Gemini and xAI count reasoning in the total alone."""
    given = body.get("usage")
    given = given if isinstance(given, dict) else object_of(value_at(body, "x_groq.usage"))
    reading = read_usage(given, table)
    known, total = reading.usage, given.get("total_tokens")
    if not isinstance(total, int) or not 0 < total <= MOST_TOKENS or known.input_tokens is None:
        return reading
    hidden = total - known.input_tokens - (known.output_tokens or 0)
    if hidden <= 0 or known.output_tokens is None or reading.warnings:
        return reading
    output, reasoning = known.output_tokens + hidden, known.reasoning_tokens or hidden
    return UsageReading(replace(known, output_tokens=output, reasoning_tokens=reasoning))


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str, target: Target[ChatProfile]) -> LMError:
    """Return the error of a reply with an error status.

    >>> body = '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    >>> error = decode_error(401, {"x-request-id": "r1"}, body, Target("openai", "m", ChatProfile()))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMAuthenticationError', 'invalid_api_key', 'r1', False)
    """
    return lm_error(read_error_body(status, headers, body), ERRORS, target)
