"""Messages: body -> Response, the request that continues a paused turn, and the error of an error reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.errors import LMError
from sigwire.lm.codecs.anthropic.blocks import blocks_of, read_block
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.anthropic.tables import ERRORS, FINISH_REASONS, PAUSED, STATUSES, USAGE
from sigwire.lm.codecs.shared.choices import choice_of, number_parts, resolve_finish
from sigwire.lm.codecs.shared.errors import ErrorBody, empty_reply_error, lm_error, read_body, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["continuation", "decode", "decode_error", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[MessagesProfile]) -> Response:
    """Return the reply as a response. Raises an ``LMError`` for a body of status 200 with an error or without content.

    A list is one answer in several bodies: a paused turn and its continuations (see ``continuation``). Their content is
    joined and their tokens are added up.
    """
    bodies = [_content_body(each, target) for each in (body if isinstance(body, list) and body else [body])]
    last = bodies[-1]
    choice, warnings = _decode_choice(bodies, sent, target)
    counts = [read_usage(each.get("usage"), USAGE) for each in bodies]
    doubts = [warning for reading in counts for warning in reading.warnings]
    return Response(
        (replace(choice, raw=body),),
        sum((reading.usage for reading in counts), Usage()),
        string_of(last, "model"),
        string_of(last, "id"),
        (*sent.warnings, *warnings, *doubts),
        raw=body,
    )


def _content_body(body: JsonValue, target: Target[MessagesProfile]) -> JsonObject:
    if isinstance(body, dict) and isinstance(body.get("content"), list | str) and not body.get("error"):
        return body
    raise error_in_success(body, target)


def error_in_success(body: JsonValue, target: Target[MessagesProfile]) -> LMError:
    """Return the error inside a body of status 200, or the error of a body without content."""
    if not isinstance(body, dict) or not body.get("error"):
        return empty_reply_error("content", body, target)
    error = _read_error(200, {}, body)
    status = next((STATUSES[code] for code in error.codes if code in STATUSES), 200)
    return lm_error(replace(error, status=status), ERRORS, target)


def _decode_choice(
    bodies: Sequence[JsonObject], sent: EncodedRequest, target: Target[MessagesProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    last, reason = bodies[-1], string_of(bodies[-1], "stop_reason")
    blocks = [block for body in bodies for block in blocks_of(body.get("content"))]
    blocks, truncated = _without_truncated_call(blocks, reason)
    parts = [part for block in blocks for part in read_block(block, target.profile.family, sent.names)]
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    refusal = (string_of(last.get("stop_details"), "explanation") or "") if reason == "refusal" else None
    numbered, found = number_parts(parts, sent.call_ids)
    finish, calls, lost = resolve_finish(reason, FINISH_REASONS, text=text, calls=found, refusal=refusal)
    paused = (LMWarning("finish_reason", _NOT_CONTINUED),) if reason in PAUSED else ()
    citations = tuple(_citations(blocks))
    choice = choice_of(text, numbered, calls, refusal=refusal, finish_reason=finish, citations=citations)
    return choice, (*truncated, *lost, *paused)


_NOT_CONTINUED = "The provider paused the turn and it was not continued; the text is incomplete."


def _without_truncated_call(
    blocks: list[JsonObject], reason: JsonValue
) -> tuple[list[JsonObject], tuple[LMWarning, ...]]:
    """Drop a call at the end of a truncated answer: its arguments may be incomplete although they parse."""
    is_truncated = reason in ("max_tokens", "model_context_window_exceeded")
    if not is_truncated or not blocks or blocks[-1].get("type") != "tool_use":
        return blocks, ()
    name = string_of(blocks[-1], "name")
    return blocks[:-1], (LMWarning("tool_calls", f"The call of {name!r} was cut off by the token limit and left out."),)


def _citations(blocks: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the citations of each text, flat, with the text's place in the answer."""
    start = 0
    for block in blocks:
        if block.get("type") != "text":
            continue
        end = start + len(string_of(block, "text") or "")
        for citation in objects_of(block.get("citations")):
            yield _flat_citation(citation, start, end)
        start = end


_CITED: Mapping[str, str] = {"cited_text": "text", "document_title": "title", "source": "url"}


def _flat_citation(citation: JsonObject, start: int, end: int) -> JsonObject:
    data = {
        _CITED.get(name, name): value
        for name, value in citation.items()
        if value is not None and name != "encrypted_index"  # opaque; sent back with its block
    }
    return {**data, "start_index": start, "end_index": end}


# --- continuation ------------------------------------------------------------------------------------------------


def continuation(body: JsonValue, sent: EncodedRequest) -> EncodedRequest | None:
    """Return the request that continues a paused turn; ``None`` if the turn is complete.

    The content of the turn is sent back unchanged, with the same tools and the same container, if any. decode() takes
    the list of all bodies; of a list the last body counts. A decoder that was closed on a paused turn accepts the events
    of the reply that continues it.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.anthropic import ANTHROPIC, encode
    >>> sent = encode(Request((Message.user("q"),)), Target("anthropic", "m", ANTHROPIC))
    >>> paused = {"content": [{"type": "text", "text": "Well"}], "stop_reason": "pause_turn"}
    >>> continuation(paused, sent).body["messages"][1]
    {'role': 'assistant', 'content': [{'type': 'text', 'text': 'Well'}]}
    >>> continuation({**paused, "stop_reason": "end_turn"}, sent)
    """
    body = body[-1] if isinstance(body, list) and body else body
    if not isinstance(body, dict) or string_of(body, "stop_reason") not in PAUSED:
        return None
    messages, blocks = list(objects_of(sent.body.get("messages"))), blocks_of(body.get("content"))
    if messages and messages[-1].get("role") == "assistant":
        blocks = [*blocks_of(messages.pop().get("content")), *blocks]
    if blocks:
        messages.append({"role": "assistant", "content": cast(JsonValue, blocks)})
    return sent._replace(body={**sent.body, "messages": cast(JsonValue, messages), **_container(body, sent)})


def _container(body: JsonObject, sent: EncodedRequest) -> JsonObject:
    container, given = string_of(body.get("container"), "id"), sent.body.get("container")
    if container is None:
        return {}
    return {"container": {**given, "id": container} if isinstance(given, dict) else container}


# --- decode_error ------------------------------------------------------------------------------------------


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[MessagesProfile]
) -> LMError:
    """Return the error of an error reply.

    >>> body = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r1"}'
    >>> from sigwire.lm.codecs.anthropic import ANTHROPIC
    >>> error = decode_error(529, {}, body, Target("anthropic", "m", ANTHROPIC))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMServerError', 'overloaded_error', 'r1', True)
    """
    return lm_error(_read_error(status, headers, read_body(body)), ERRORS, target)


def _read_error(status: int, headers: Mapping[str, str], body: JsonValue) -> ErrorBody:
    """Read the error body, with its ``details.error_code`` among the codes."""
    error = read_error_body(status, headers, body)
    code = string_of(value_at(body, "error.details"), "error_code")
    return error if code is None else replace(error, codes=(*error.codes, code.lower()))
