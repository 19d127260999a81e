"""Responses: body -> Response, item by item, and error reply -> ``LMError``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.calls import CallError, ToolCall
from sigwire.core.tools.names import NameMap
from sigwire.errors import LMError, LMServerError
from sigwire.lm.codecs.openai_responses.items import is_message, split_message
from sigwire.lm.codecs.openai_responses.profiles import ResponsesProfile
from sigwire.lm.codecs.openai_responses.stops import stop_at
from sigwire.lm.codecs.openai_responses.tables import CALL_FIELDS, ERRORS, FINISH_REASONS, USAGE
from sigwire.lm.codecs.shared.choices import keep_calls, number_parts, resolve_finish, response_of_body
from sigwire.lm.codecs.shared.errors import ErrorRule, empty_reply_error, lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.tools import read_call
from sigwire.lm.codecs.shared.untrusted import objects_of, remove_members, string_of
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["argument_text", "decode", "decode_error", "decode_item", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[ResponsesProfile]) -> Response:
    """Return the response of a reply with status 200. Raises an ``LMError`` if the body is a failure or has no output."""
    if not isinstance(body, dict) or "output" not in body or body.get("error") or body.get("status") == "failed":
        raise error_in_success(body, target)
    choice, warnings = _decode_choice(body, sent, target)
    return response_of_body(body, (choice,), read_usage(body.get("usage"), USAGE), sent, warnings)


def error_in_success(body: JsonValue, target: Target[ResponsesProfile]) -> LMError:
    """Return the error in a reply with status 200, by its code; an unknown code is a server error."""
    if isinstance(body, dict) and (body.get("error") or body.get("status") == "failed"):
        return decode_error(200, {}, body, target)
    return empty_reply_error("output", body, target)


def _decode_choice(
    body: JsonObject, sent: EncodedRequest, target: Target[ResponsesProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    items = objects_of(body["output"])
    parts, _ = number_parts(list(_decode_items(items, sent.names, target.profile.family)), sent.call_ids)
    parts, is_stopped = _stop_parts(sent.stop, parts)
    text = "".join([part.text for part in parts if isinstance(part, TextPart)])
    calls = [part for part in parts if isinstance(part, ToolCall)]
    refusal = None if is_stopped else _refusal_of(items)
    native = "completed" if is_stopped else _finish_name(body)
    reason, whole, warnings = resolve_finish(native, FINISH_REASONS, text=text, calls=calls, refusal=refusal)
    choice = Choice.from_parts(
        keep_calls(parts, whole),
        refusal=refusal,
        finish_reason=reason,
        logprobs=_decode_logprobs(items),
        citations=tuple(_decode_citations(items)),
        raw=body["output"],
    )
    return choice, (*warnings, *_decode_warnings(native, choice))


def _refusal_of(items: Iterable[JsonObject]) -> str | None:
    return "".join([string_of(part, "refusal") or "" for part in _content_parts(items)]) or None


def _finish_name(body: JsonObject) -> JsonValue:
    details = body.get("incomplete_details")
    return (string_of(details, "reason") if body.get("status") == "incomplete" else None) or body.get("status")


def _decode_warnings(native: JsonValue, choice: Choice) -> tuple[LMWarning, ...]:
    if native in ("queued", "in_progress"):
        return (LMWarning("background", f"The response is not complete ({native}); retrieve it later by its id."),)
    if choice.finish_reason == "stop" and not choice.text:
        return (LMWarning("content", "The model stopped without text and without calls."),)
    return ()


def _stop_parts(stops: Sequence[str], parts: list[Part]) -> tuple[list[Part], bool]:
    """Return the parts before the first stop sequence, and whether there was a stop sequence."""
    for number, part in enumerate(parts):
        if not isinstance(part, TextPart):
            continue
        end = stop_at(part.text, stops)
        if end is not None:
            return [*parts[:number], *([TextPart(part.text[:end])] if end else [])], True
    return parts, False


# --- items of replies and of requests


def _decode_items(items: Iterable[JsonObject], names: NameMap, family: str) -> Iterator[Part]:
    reasoning: str | None = None
    for item in items:
        if item.get("type") == "reasoning":
            reasoning = string_of(item, "id")
        yield from decode_item(item, names, family, reasoning)


def decode_item(item: JsonObject, names: NameMap, family: str, after: str | None = None) -> Iterator[Part]:
    """Yield the parts of an item. ``after``: the id of the reasoning item that must be sent with the item's id."""
    if item.get("type") in ("function_call", "custom_tool_call"):
        yield _decode_call(item, names, family, after)
    elif is_message(item):
        shell, texts = split_message(item)
        if shell != {"role": "assistant"}:
            yield OpaquePart(family, shell)
        yield from map(TextPart, texts)
    else:
        if reasoning := _reasoning_text(item):
            yield ThinkingPart(reasoning, provider=family)
        yield OpaquePart(family, item)


def _reasoning_text(item: JsonObject) -> str:
    """Return the summary, or the reasoning itself if there is no summary (open models)."""
    if item.get("type") != "reasoning":
        return ""
    parts = objects_of(item.get("summary")) or objects_of(item.get("content"))
    return "\n\n".join(string_of(part, "text") or "" for part in parts)


def _decode_call(item: JsonObject, names: NameMap, family: str, after: str | None) -> ToolCall:
    """Return a call. The input of a custom tool is free text: it becomes the argument ``input``."""
    is_custom, extra = item.get("type") == "custom_tool_call", remove_members(item, CALL_FIELDS)
    if is_custom:
        extra["type"] = "custom_tool_call"
    data: JsonObject = {"item": extra} if extra else {}
    if after is not None:
        data["after"] = after
    arguments: JsonValue = {"input": item.get("input")} if is_custom else item.get("arguments")
    call = read_call(string_of(item, "call_id"), string_of(item, "name"), arguments, data, names, family)
    # Arguments of a truncated call may be valid: "" would be a call without arguments.
    if item.get("status") == "incomplete":
        return replace(call, arguments=None, raw_arguments=argument_text(item), error=_TRUNCATED)
    return call


_TRUNCATED = CallError("malformed_json", "The call was truncated before its arguments were complete.")


def argument_text(item: JsonObject) -> str:
    """Return the arguments of a call's item as text."""
    return string_of(item, "arguments") or string_of(item, "input") or ""


def _content_parts(items: Iterable[JsonObject]) -> Iterator[JsonObject]:
    for item in items:
        if is_message(item):
            yield from objects_of(item.get("content"))


def _decode_logprobs(items: Iterable[JsonObject]) -> JsonValue:
    tokens = [token for part in _content_parts(items) for token in objects_of(part.get("logprobs"))]
    return {"content": cast(JsonValue, tokens)} if tokens else None


def _decode_citations(items: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield citations with positions in the choice's text; the wire counts from the start of each content part."""
    start = 0
    for part in _content_parts(items):
        for annotation in objects_of(part.get("annotations")):
            places = {
                name: start + place
                for name in ("start_index", "end_index")
                if isinstance(place := annotation.get(name), int)
            }
            yield {**annotation, **places}
        start += len(string_of(part, "text") or "")


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str | JsonValue, target: Target[ResponsesProfile]
) -> LMError:
    """Return the error of a reply with an error status.

    >>> body = '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    >>> error = decode_error(401, {"x-request-id": "r1"}, body, Target("openai", "m", ResponsesProfile()))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMAuthenticationError', 'invalid_api_key', 'r1', False)
    """
    fault = read_error_body(status, headers, body)
    if any("_policy" in code for code in fault.codes):  # bio_policy, image_content_policy_violation, ...
        fault = replace(fault, codes=(*fault.codes, "policy"))
    return lm_error(fault, (*ERRORS, ErrorRule(LMServerError, frozenset({200}))), target)
