"""Responses: body -> Response, item by item, and the error of a reply that is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import OpaquePart, Part, TextPart, ThinkingPart
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.names import NameMap
from sigwire.core.tools.tool import CallError, ToolCall, number_calls
from sigwire.errors import (
    LMError,
    LMServerError,
)
from sigwire.lm.codecs.openai_responses.items import is_message, split_message
from sigwire.lm.codecs.openai_responses.profiles import ResponsesProfile
from sigwire.lm.codecs.openai_responses.stops import stop_at
from sigwire.lm.codecs.openai_responses.tables import CALL_FIELDS, ERRORS, FINISH_REASONS, USAGE
from sigwire.lm.codecs.shared.choices import resolve_finish, usage_of
from sigwire.lm.codecs.shared.errors import ErrorRule, empty_reply_error, lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of

__all__ = ["decode", "decode_error", "decode_item", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[ResponsesProfile]) -> Response:
    """The reply as a response. Raises an ``LMError`` for a failure, or no answer at all, inside status 200."""
    if not isinstance(body, dict) or "output" not in body or body.get("error") or body.get("status") == "failed":
        raise error_in_success(body, target)
    choice, warnings = _decode_choice(body, sent, target)
    return Response(
        (choice,),
        usage_of(body.get("usage"), USAGE),
        string_of(body, "model"),
        string_of(body, "id"),
        (*sent.warnings, *warnings),
        raw=body,
    )


def error_in_success(body: JsonValue, target: Target[ResponsesProfile]) -> LMError:
    """An error that came with status 200: its code tells which; without a known one the server failed."""
    if isinstance(body, dict) and (body.get("error") or body.get("status") == "failed"):
        return _error(200, {}, body, target)
    return empty_reply_error("output", body, target)


def _decode_choice(
    body: JsonObject, sent: EncodedRequest, target: Target[ResponsesProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    items = objects_of(body["output"])
    parts = _numbered(_decode_items(items, sent.names, target.profile.family), sent.call_ids)
    parts, cut = _cut_at(sent.stop, parts)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    refusals = [text for part in _contents(items) if (text := string_of(part, "refusal"))]
    refusal = "".join(refusals) if refusals and not cut else None
    native = "completed" if cut else _reason(body)
    reason, kept, warnings = resolve_finish(native, FINISH_REASONS, text="".join(texts), calls=calls, refusal=refusal)
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
        end = stop_at(part.text, stops)
        if end is not None:
            kept = part.text[:end]
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
        yield from decode_item(item, names, family, reasoning)


def decode_item(item: JsonObject, names: NameMap, family: str, after: str | None = None) -> Iterator[Part]:
    """The item's parts. ``after`` is the reasoning item without which its id may not go back."""
    if item.get("type") in ("function_call", "custom_tool_call"):
        yield _decode_call(item, names, family, after)
    elif is_message(item):
        shell, texts = split_message(item)
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
    extra: JsonObject = {name: value for name, value in item.items() if name not in CALL_FIELDS and value is not None}
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
        if is_message(item):
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
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[ResponsesProfile]
) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    >>> error = decode_error(401, {"x-request-id": "r1"}, body, Target("openai", "m", ResponsesProfile()))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMAuthenticationError', 'invalid_api_key', 'r1', False)
    """
    return _error(status, headers, body, target)


def _error(
    status: int, headers: Mapping[str, str], body: bytes | str | JsonValue, target: Target[ResponsesProfile]
) -> LMError:
    fault = read_error_body(status, headers, body)
    if any("_policy" in code for code in fault.codes):  # bio_policy, image_content_policy_violation, ...
        fault = replace(fault, codes=(*fault.codes, "policy"))
    return lm_error(fault, (*ERRORS, ErrorRule(LMServerError, frozenset({200}))), target)
