"""generateContent: body -> Response, the request that continues an answer, and the error of an error reply."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.parts import TextPart
from sigwire.core.response import IMPOSSIBLE, Choice, FinishReason, LMWarning, Response
from sigwire.errors import LMError, LMServerError
from sigwire.lm.codecs.gemini.citations import decode_citations
from sigwire.lm.codecs.gemini.merge import merge_bodies
from sigwire.lm.codecs.gemini.parts import decode_part
from sigwire.lm.codecs.gemini.profiles import GeminiProfile
from sigwire.lm.codecs.gemini.tables import CONTINUED, FINISH_REASONS, USAGE
from sigwire.lm.codecs.shared.choices import (
    check_count,
    choice_of,
    join_responses,
    number_parts,
    resolve_finish,
    response_of_body,
)
from sigwire.lm.codecs.shared.errors import ErrorRule, empty_reply_error, lm_error
from sigwire.lm.codecs.shared.google_errors import GOOGLE_ERRORS, read_google_error
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import index_of, object_of, objects_of, string_of, value_at
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["continuation", "decode", "decode_error", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[GeminiProfile]) -> Response:
    """Return the reply as a response; a blocked prompt is a filtered choice. Raises an ``LMError`` for a failure.

    A list is one answer in several bodies, each a continuation of the one before (see ``continuation``). Their parts are
    joined and their tokens are added up.
    """
    if not isinstance(body, list) or not body:
        return _decode_body(body, sent, target)
    each = join_responses([_decode_body(part, sent, target) for part in body])
    response = _decode_body(merge_bodies(objects_of(body)), sent, target)
    choices = tuple(replace(choice, raw=body) for choice in response.choices)
    doubts = (warning for warning in each.warnings if warning.feature == IMPOSSIBLE)
    warnings = tuple(dict.fromkeys((*response.warnings, *doubts)))
    return replace(response, choices=choices, usage=each.usage, warnings=warnings, raw=body)


def _decode_body(body: JsonValue, sent: EncodedRequest, target: Target[GeminiProfile]) -> Response:
    if not isinstance(body, dict) or body.get("error"):
        raise error_in_success(body, target)
    blocked = string_of(body.get("promptFeedback"), "blockReason")
    candidates = sorted(objects_of(body.get("candidates")), key=index_of)
    if not candidates and not blocked:
        raise error_in_success(body, target)
    check_count(len(candidates), target)
    decoded = [_decode_candidate(candidate, sent, target) for candidate in candidates] or [_blocked_choice(body)]
    warnings = [warning for _, found in decoded for warning in found]
    choices, counts = [choice for choice, _ in decoded], read_usage(body.get("usageMetadata"), USAGE)
    return response_of_body(body, choices, counts, sent, warnings, model="modelVersion", id="responseId")


def _blocked_choice(body: JsonObject) -> tuple[Choice, tuple[LMWarning, ...]]:
    feedback = body["promptFeedback"]
    reason = ": ".join(filter(None, (string_of(feedback, "blockReason"), string_of(feedback, "blockReasonMessage"))))
    choice = Choice(finish_reason="content_filter", raw=feedback)
    return choice, (LMWarning("content_filter", f"The prompt was blocked ({reason})."),)


def error_in_success(body: JsonValue, target: Target[GeminiProfile]) -> LMError:
    """Return the error inside a body of status 200 by its code, or the error of a body without candidates."""
    if not isinstance(body, dict) or not body.get("error"):
        return empty_reply_error("candidates", body, target)
    error = read_google_error(200, {}, body)
    code = next((int(code) for code in error.codes if re.fullmatch(r"[45]\d\d", code)), 200)
    return lm_error(replace(error, status=code), (*GOOGLE_ERRORS, ErrorRule(LMServerError, frozenset({200}))), target)


def _decode_candidate(
    candidate: JsonObject, sent: EncodedRequest, target: Target[GeminiProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    wires = objects_of(value_at(candidate, "content.parts"))
    decoded = [part for wire in wires for part in decode_part(wire, sent.names, target.profile.family)]
    parts, found = number_parts(decoded, sent.call_ids)
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    reason, calls, warnings = resolve_finish(candidate.get("finishReason"), FINISH_REASONS, text=text, calls=found)
    choice = choice_of(
        text,
        parts,
        calls,
        finish_reason=reason,
        logprobs=_decode_logprobs(candidate.get("logprobsResult")),
        citations=tuple(decode_citations(candidate, wires)),
        raw=candidate,
    )
    has_content = len(parts) > len(found) or bool(calls)
    return choice, (*warnings, *_finish_warnings(candidate, reason, has_content))


_NOT_CONTINUED = "The provider stopped before the answer was complete and it was not continued; the text is incomplete."


def _finish_warnings(candidate: JsonObject, reason: FinishReason, has_content: bool) -> tuple[LMWarning, ...]:
    """Return a warning for what the canonical finish reason does not express."""
    native = string_of(candidate, "finishReason") or "no reason"
    if reason in ("error", "content_filter"):
        detail = ": ".join(filter(None, (native, string_of(candidate, "finishMessage"))))
        return (LMWarning("finish_reason", f"The provider ended the answer with {detail}."),)
    if native == CONTINUED:
        return (LMWarning("continuation", _NOT_CONTINUED),)
    if reason == "stop" and not has_content:
        return (LMWarning("content", "The model stopped without text and without calls."),)
    return ()


# --- log probabilities


def _decode_logprobs(result: JsonValue) -> JsonValue:
    """Return log probabilities in OpenAI's shape: each token, and the most likely tokens in its place."""
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


# --- continuation --------------------------------------------------------------------------------------------------


def continuation(body: JsonValue, sent: EncodedRequest) -> EncodedRequest | None:
    """Return the request that continues an answer longer than one reply; ``None`` if the answer is complete.

    It is the same request with the token of the reply. decode() takes the list of all bodies; of a list the last body
    counts. A reply with several candidates cannot be continued.

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
    """Return the error of an error reply.

    >>> body = '{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{'
    >>> body += '"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}'
    >>> from sigwire.lm.codecs.gemini import GEMINI
    >>> error = decode_error(400, {}, body, Target("gemini", "m", GEMINI))
    >>> type(error).__name__, error.provider_code, error.retryable
    ('LMAuthenticationError', 'api_key_invalid', False)
    """
    return lm_error(read_google_error(status, headers, body), GOOGLE_ERRORS, target)
