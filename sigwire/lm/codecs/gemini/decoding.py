"""generateContent: body -> Response, the request that goes on with an answer, and the error of a reply that is none."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import TextPart
from sigwire.core.response import Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools.tool import ToolCall, number_calls
from sigwire.errors import LMError, LMServerError, LMUnexpectedError
from sigwire.lm.codecs.gemini.citations import decode_citations
from sigwire.lm.codecs.gemini.merge import merge_bodies
from sigwire.lm.codecs.gemini.parts import decode_part
from sigwire.lm.codecs.gemini.profiles import GeminiProfile
from sigwire.lm.codecs.gemini.tables import CONTINUED, ERRORS, FINISH_REASONS, USAGE
from sigwire.lm.codecs.shared.choices import resolve_finish
from sigwire.lm.codecs.shared.errors import ErrorBody, ErrorRule, lm_error, read_body, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import is_number, object_of, objects_of, string_of, value_at

__all__ = ["candidate_index", "continuation", "decode", "decode_error", "decode_usage", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[GeminiProfile]) -> Response:
    """The reply as a response; a blocked prompt is a choice that was filtered. Raises an ``LMError`` for a failure.

    A list is one answer in several bodies, each of which went on from the one before it (see ``resume``). Their parts are
    joined and their tokens are added up.
    """
    if not isinstance(body, list) or not body:
        return _decode_body(body, sent, target)
    usage = Usage()
    for one in body:
        usage += _decode_body(one, sent, target).usage
    response = _decode_body(merge_bodies(objects_of(body)), sent, target)
    choices = tuple(replace(choice, raw=body) for choice in response.choices)
    return replace(response, choices=choices, usage=usage, raw=body)


def _decode_body(body: JsonValue, sent: EncodedRequest, target: Target[GeminiProfile]) -> Response:
    if not isinstance(body, dict) or body.get("error"):
        raise error_in_success(body, target)
    blocked = string_of(body.get("promptFeedback"), "blockReason")
    candidates = sorted(objects_of(body.get("candidates")), key=candidate_index)
    if not candidates and not blocked:
        raise error_in_success(body, target)
    decoded = [_decode_candidate(candidate, sent, target) for candidate in candidates] or [_blocked(body)]
    return Response(
        tuple(choice for choice, _ in decoded),
        decode_usage(body.get("usageMetadata")),
        string_of(body, "modelVersion"),
        string_of(body, "responseId"),
        (*sent.warnings, *(warning for _, warnings in decoded for warning in warnings)),
        raw=body,
    )


def candidate_index(candidate: JsonObject) -> int:
    index = candidate.get("index")
    return index if isinstance(index, int) else 0


def _blocked(body: JsonObject) -> tuple[Choice, tuple[LMWarning, ...]]:
    feedback = body["promptFeedback"]
    said = ": ".join(filter(None, (string_of(feedback, "blockReason"), string_of(feedback, "blockReasonMessage"))))
    choice = Choice(finish_reason="content_filter", raw=feedback)
    return choice, (LMWarning("content_filter", f"The prompt was blocked ({said})."),)


def error_in_success(body: JsonValue, target: Target[GeminiProfile]) -> LMError:
    """An error that came with status 200: its own code stands in for the status; without one the server failed."""
    fault = _read_fault(200, {}, body)
    if isinstance(body, dict) and body.get("error"):
        code = next((int(code) for code in fault.codes if re.fullmatch(r"[45]\d\d", code)), 200)
        return lm_error(replace(fault, status=code), (*ERRORS, ErrorRule(LMServerError, frozenset({200}))), target)
    said = f"The reply holds no candidates: {fault.message or dumps(body)[:200]}"
    spoke = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    error = LMUnexpectedError if spoke else LMServerError
    return error(said, model=target.model, provider=target.provider, status=200)


def _decode_candidate(
    candidate: JsonObject, sent: EncodedRequest, target: Target[GeminiProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    wires = objects_of(value_at(candidate, "content.parts"))
    parts = [part for wire in wires for part in decode_part(wire, sent.names, target.profile.family)]
    found = number_calls((part for part in parts if isinstance(part, ToolCall)), sent.call_ids)
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    reason, calls, warnings = resolve_finish(candidate.get("finishReason"), FINISH_REASONS, text=text, calls=found)
    numbered = iter(found)
    parts = [next(numbered) if isinstance(part, ToolCall) else part for part in parts]
    parts = [part for part in parts if not isinstance(part, ToolCall) or part in calls]
    rest: dict[str, Any] = {
        "finish_reason": reason,
        "logprobs": _decode_logprobs(candidate.get("logprobsResult")),
        "citations": tuple(decode_citations(candidate, wires)),
        "raw": candidate,
    }
    warnings += _finish_warnings(candidate, reason, bool(parts))
    usual = tuple(parts) == (*((TextPart(text),) if text else ()), *calls)
    return Choice(text, calls, **rest) if usual else Choice.from_parts(parts, **rest), warnings


_WENT_NOT_ON = (
    "The provider stopped before the answer was complete and nobody went on; what it said so far is not all of it."
)


def _finish_warnings(candidate: JsonObject, reason: FinishReason, spoke: bool) -> tuple[LMWarning, ...]:
    """What the finish reason in our words does not tell any more."""
    native = string_of(candidate, "finishReason") or "no reason"
    if reason in ("error", "content_filter"):
        said = ": ".join(filter(None, (native, string_of(candidate, "finishMessage"))))
        return (LMWarning("finish_reason", f"The provider ended the answer with {said}."),)
    if native == CONTINUED:
        return (LMWarning("continuation", _WENT_NOT_ON),)
    if reason == "stop" and not spoke:
        return (LMWarning("content", "The model stopped without text and without calls."),)
    return ()


# --- what stands beside the parts


def decode_usage(usage: JsonValue) -> Usage:
    counts = object_of(usage)
    return Usage(**{name: _sum(counts, fields) for name, fields in USAGE.items()})


def _sum(counts: JsonObject, fields: tuple[str, ...]) -> int | None:
    """The sum of what is known; ``None`` where nothing is."""
    values = (counts.get(name) for name in fields)
    known = [int(value) for value in values if is_number(value)]
    return sum(known) if known else None


def _decode_logprobs(result: JsonValue) -> JsonValue:
    """In OpenAI's shape: each token, and the likeliest in its place."""
    if not isinstance(result, dict):
        return None
    tops = [objects_of(top.get("candidates")) for top in objects_of(result.get("topCandidates"))]
    content: list[JsonValue] = []
    for chosen, top in itertools.zip_longest(objects_of(result.get("chosenCandidates")), tops, fillvalue=None):
        if isinstance(chosen, dict):
            content.append({**_logprob(chosen), "top_logprobs": [_logprob(token) for token in top or ()]})
    return {"content": content}


def _logprob(token: JsonObject) -> JsonObject:
    return {"token": token.get("token"), "logprob": token.get("logProbability")}


# --- resume --------------------------------------------------------------------------------------------------


def continuation(body: JsonValue, sent: EncodedRequest) -> EncodedRequest | None:
    """The request that goes on with an answer that is longer than one reply; ``None`` where there is nothing to go on with.

    It is the same request again, with the token of the reply. Send it, ask again, and give decode() the list of all bodies;
    of a list the last body counts. Several candidates have no way to go on: their reply is all there is.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.gemini import GEMINI, encode
    >>> sent = encode(Request((Message.user("q"),)), Target("gemini", "m", GEMINI))
    >>> candidate = {"finishReason": "CONTINUATION", "continuationToken": "AAEC"}
    >>> continuation({"candidates": [candidate]}, sent).body["continuationToken"]
    'AAEC'
    >>> continuation({"candidates": [{**candidate, "finishReason": "STOP"}]}, sent)
    """
    body = body[-1] if isinstance(body, list) and body else body
    candidates = objects_of(object_of(body).get("candidates"))
    if len(candidates) != 1 or string_of(candidates[0], "finishReason") != CONTINUED:
        return None
    token = string_of(candidates[0], "continuationToken")
    if not token:
        return None
    return sent._replace(body={**sent.body, "continuationToken": token})


# --- errors --------------------------------------------------------------------------------------------------


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str, target: Target[GeminiProfile]) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{'
    >>> body += '"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}'
    >>> from sigwire.lm.codecs.gemini import GEMINI
    >>> error = decode_error(400, {}, body, Target("gemini", "m", GEMINI))
    >>> type(error).__name__, error.provider_code, error.retryable
    ('LMAuthenticationError', 'api_key_invalid', False)
    """
    return lm_error(_read_fault(status, headers, read_body(body)), ERRORS, target)


def _read_fault(status: int, headers: Mapping[str, str], body: JsonValue) -> ErrorBody:
    """The usual reading; then Google's reasons come first among the codes, and its words before its numbers."""
    fault = read_error_body(status, headers, body)
    body = body[0] if isinstance(body, list) and body else body
    details = objects_of(value_at(body, "error.details"))
    reasons = [reason.lower() for detail in details if (reason := string_of(detail, "reason"))]
    limits = [violation for detail in details for violation in objects_of(detail.get("violations"))]
    if any("perday" in (string_of(limit, "quotaId") or "").lower() for limit in limits):
        reasons.append("quota_per_day")
    words = [code for code in fault.codes if not code.isdigit()]
    numbers = [code for code in fault.codes if code.isdigit()]
    return replace(fault, codes=tuple(dict.fromkeys((*reasons, *words, *numbers))))
