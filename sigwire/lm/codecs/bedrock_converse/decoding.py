"""Converse: body -> Response, and error reply -> ``LMError``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.errors import LMError
from sigwire.lm.codecs.bedrock_converse.blocks import read_block, text_of_citations
from sigwire.lm.codecs.bedrock_converse.tables import ERRORS, EXCEPTIONS, FINISH_REASONS, USAGE, ConverseProfile
from sigwire.lm.codecs.shared.choices import choice_of, number_parts, resolve_finish
from sigwire.lm.codecs.shared.errors import ErrorBody, empty_reply_error, lm_error, read_body, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members, string_of, value_at
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["decode", "decode_error", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[ConverseProfile]) -> Response:
    """Return the response of a reply with status 200. Raises an ``LMError`` for a body without content."""
    content = value_at(body, "output.message.content")
    if not isinstance(body, dict) or not isinstance(content, list):
        raise error_in_success(body, target)
    choice, warnings = _decode_choice(body, objects_of(content), sent, target)
    usage, doubts = read_usage(body.get("usage"), USAGE)
    return Response((choice,), usage, target.model, None, (*sent.warnings, *warnings, *doubts), raw=body)


def error_in_success(body: JsonValue, target: Target[ConverseProfile]) -> LMError:
    """Return the error of an exception in a stream, or of a body without content."""
    if not isinstance(body, dict) or not body.get("error"):
        return empty_reply_error("message", body, target)
    error = read_error_body(200, {}, body)
    status = next((EXCEPTIONS[code] for code in error.codes if code in EXCEPTIONS), 500)
    return lm_error(replace(error, status=status), ERRORS, target)


def _decode_choice(
    body: JsonObject, content: tuple[JsonObject, ...], sent: EncodedRequest, target: Target[ConverseProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    reason = body.get("stopReason")
    content, truncated = _without_truncated_call(content, reason)
    found = (read_block(block, target.profile.family, sent.names) for block in content)
    parts, calls = number_parts([part for part in found if part is not None], sent.call_ids)
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    finish, calls, lost = resolve_finish(reason, FINISH_REASONS, text=text, calls=calls)
    citations = tuple(_citations(content))
    choice = choice_of(text, parts, calls, finish_reason=finish, citations=citations, raw=body)
    return choice, (*truncated, *lost)


def _without_truncated_call(
    content: tuple[JsonObject, ...], reason: JsonValue
) -> tuple[tuple[JsonObject, ...], tuple[LMWarning, ...]]:
    """Drop a call at the end of a truncated answer: its arguments may be incomplete although they parse."""
    if FINISH_REASONS.get(str(reason)) != "length" or not content or "toolUse" not in content[-1]:
        return content, ()
    name = string_of(content[-1]["toolUse"], "name")
    return content[:-1], (
        LMWarning("tool_calls", f"The call of {name!r} was cut off by the token limit and left out."),
    )


def _citations(content: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the citations of each text, flat, with the text's place in the answer."""
    start = 0
    for block in content:
        cited = object_of(block.get("citationsContent"))
        end = start + len(string_of(block, "text") or text_of_citations(cited))
        for citation in objects_of(cited.get("citations")):
            quoted = "".join(string_of(item, "text") or "" for item in objects_of(citation.get("sourceContent")))
            url = value_at(citation, "location.web.url") or citation.get("source")
            found: JsonObject = {"title": citation.get("title"), "url": url, "text": quoted or None}
            kind = next(iter(object_of(citation.get("location"))), "citation")
            yield {"type": kind, **remove_members(found, ()), "start_index": start, "end_index": end}
        start = end


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[ConverseProfile]
) -> LMError:
    """Return the error of an error reply. The exception's name is in a header, or in ``__type`` of the body.

    >>> from sigwire.lm.codecs.bedrock_converse import CONVERSE
    >>> headers = {"x-amzn-ErrorType": "ThrottlingException:http://internal.amazon.com/"}
    >>> error = decode_error(429, headers, '{"message": "Too many requests"}', Target("bedrock", "m", CONVERSE))
    >>> type(error).__name__, error.provider_code
    ('LMRateLimitError', 'throttlingexception')
    """
    lower = {name.lower(): value for name, value in headers.items()}
    data = read_body(body)
    named = lower.get("x-amzn-errortype") or string_of(data, "__type") or ""
    code = named.partition(":")[0].rpartition("#")[2].lower()
    error: ErrorBody = read_error_body(status, headers, data)
    message = error.message or string_of(data, "Message") or ""  # the front of the service spells it so
    codes = (code, *error.codes) if code else error.codes
    return lm_error(replace(error, message=message, codes=codes), ERRORS, target)
