"""Messages: body -> Response, the request that goes on with a paused turn, and the error of a reply that is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Part, TextPart
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.tool import ToolCall, number_calls
from sigwire.errors import LMError, LMServerError, LMUnexpectedError
from sigwire.lm.codecs.anthropic.blocks import ANSWER_READERS, blocks_of, read_block
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.anthropic.tables import ERRORS, FINISH_REASONS, PAUSED, STATUSES, USAGE
from sigwire.lm.codecs.shared.choices import resolve_finish, usage_of
from sigwire.lm.codecs.shared.errors import ErrorBody, lm_error, read_body, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of

__all__ = ["continuation", "decode", "decode_error", "decode_usage", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[MessagesProfile]) -> Response:
    """The reply as a response. Raises an ``LMError`` for an error, or no answer at all, inside status 200.

    A list is one answer in several bodies: those of a paused turn and of what went on from it (see ``resume``). Their
    content is joined and their tokens are added up.
    """
    bodies = [_checked(one, target) for one in (body if isinstance(body, list) and body else [body])]
    last = bodies[-1]
    choice, warnings = _decode_choice(bodies, sent, target)
    usage = Usage()
    for one in bodies:
        usage += decode_usage(one)
    return Response(
        (replace(choice, raw=body),),
        usage,
        string_of(last, "model"),
        string_of(last, "id"),
        (*sent.warnings, *warnings),
        raw=body,
    )


def _checked(body: JsonValue, target: Target[MessagesProfile]) -> JsonObject:
    if isinstance(body, dict) and isinstance(body.get("content"), list | str) and not body.get("error"):
        return body
    raise error_in_success(body, target)


def error_in_success(body: JsonValue, target: Target[MessagesProfile]) -> LMError:
    """The error that came under status 200: the one that is told of, or that of a reply that is no answer at all."""
    if isinstance(body, dict) and body.get("error"):
        fault = _fault(200, {}, body)
        status = next((STATUSES[code] for code in fault.codes if code in STATUSES), 200)
        return lm_error(replace(fault, status=status), ERRORS, target)
    said = read_error_body(200, {}, body).message or dumps(body)[:200]
    spoke = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    error = LMUnexpectedError if spoke else LMServerError
    return error(f"The reply holds no content: {said}", model=target.model, provider=target.provider, status=200)


def _decode_choice(
    bodies: Sequence[JsonObject], sent: EncodedRequest, target: Target[MessagesProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    last, family = bodies[-1], target.profile.family
    blocks = [block for body in bodies for block in blocks_of(body.get("content"))]
    reason = string_of(last, "stop_reason")
    blocks, cut = _without_cut_call(blocks, reason)
    parts = [part for block in blocks for part in read_block(block, family, sent.names, ANSWER_READERS)]
    calls = number_calls((part for part in parts if isinstance(part, ToolCall)), sent.call_ids)
    numbered = iter(calls)
    parts = [next(numbered) if isinstance(part, ToolCall) else part for part in parts]
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    refusal = (string_of(last.get("stop_details"), "explanation") or "") if reason == "refusal" else None
    finished, calls, lost = resolve_finish(reason, FINISH_REASONS, text=text, calls=calls, refusal=refusal)
    parts = [part for part in parts if not isinstance(part, ToolCall) or part in calls]
    rest: dict[str, Any] = {"refusal": refusal, "finish_reason": finished, "citations": tuple(_citations(blocks))}
    paused = (LMWarning("finish_reason", _WENT_NOT_ON),) if reason in PAUSED else ()
    warnings = (*cut, *lost, *paused)
    if _is_usual(parts):
        return Choice(text, calls, **rest), warnings
    return Choice.from_parts(parts, **rest), warnings


_WENT_NOT_ON = "The provider paused its turn and nobody went on; what it said so far is not the whole answer."


def _without_cut_call(blocks: list[JsonObject], reason: JsonValue) -> tuple[list[JsonObject], tuple[LMWarning, ...]]:
    """A call at the end of a cut answer may be half a call, though what arrived of it is an object."""
    cut = reason in ("max_tokens", "model_context_window_exceeded")
    if not cut or not blocks or blocks[-1].get("type") != "tool_use":
        return blocks, ()
    name = string_of(blocks[-1], "name")
    return blocks[:-1], (LMWarning("tool_calls", f"The call of {name!r} was cut off by the token limit and left out."),)


def _is_usual(parts: Sequence[Part]) -> bool:
    """Whether text and calls alone, in this order, say it all."""
    calls = parts[1:] if parts and isinstance(parts[0], TextPart) else parts
    return all(isinstance(part, ToolCall) for part in calls)


def _citations(blocks: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """What each text stands on, flat: where it is in the answer, and what the source says."""
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
    told = {
        _CITED.get(name, name): value
        for name, value in citation.items()
        if value is not None and name != "encrypted_index"  # goes back with its block; nobody else can read it
    }
    return {**told, "start_index": start, "end_index": end}


def decode_usage(body: JsonObject) -> Usage:
    """What was read is the sum of three counts: fresh, from the cache, into the cache."""
    usage = usage_of(body.get("usage"), USAGE)
    counts = (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens)
    known = [count for count in counts if count is not None]
    return replace(usage, input_tokens=sum(known)) if known else usage


# --- resume ------------------------------------------------------------------------------------------------


def continuation(body: JsonValue, sent: EncodedRequest) -> EncodedRequest | None:
    """The request that goes on with a turn the provider paused; ``None`` where the turn is over.

    What was said so far goes back unchanged, with the same tools, and in the same container if there is one. Send it,
    ask again, and give decode() the list of all bodies; of a list the last body counts. A decoder that was closed on a
    paused turn reads the stream that goes on from it.

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
    messages, said = list(objects_of(sent.body.get("messages"))), blocks_of(body.get("content"))
    if messages and messages[-1].get("role") == "assistant":
        said = [*blocks_of(messages.pop().get("content")), *said]
    if said:
        messages.append({"role": "assistant", "content": cast(JsonValue, said)})
    return sent._replace(body={**sent.body, "messages": cast(JsonValue, messages), **_same_container(body, sent)})


def _same_container(body: JsonObject, sent: EncodedRequest) -> JsonObject:
    container, asked = string_of(body.get("container"), "id"), sent.body.get("container")
    if container is None:
        return {}
    return {"container": {**asked, "id": container} if isinstance(asked, dict) else container}


# --- decode_error ------------------------------------------------------------------------------------------


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[MessagesProfile]
) -> LMError:
    """The error of a reply that is no success.

    >>> body = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r1"}'
    >>> from sigwire.lm.codecs.anthropic import ANTHROPIC
    >>> error = decode_error(529, {}, body, Target("anthropic", "m", ANTHROPIC))
    >>> type(error).__name__, error.provider_code, error.request_id, error.retryable
    ('LMServerError', 'overloaded_error', 'r1', True)
    """
    return lm_error(_fault(status, headers, read_body(body)), ERRORS, target)


def _fault(status: int, headers: Mapping[str, str], body: JsonValue) -> ErrorBody:
    """What the body says, its ``details.error_code`` among the codes."""
    fault = read_error_body(status, headers, body)
    error = body.get("error") if isinstance(body, dict) else None
    code = string_of(error.get("details"), "error_code") if isinstance(error, dict) else None
    return fault if code is None else replace(fault, codes=(*fault.codes, code.lower()))
