"""Messages: the marks up to which the provider caches a prompt, from the request's ``repeated`` and ``prompt_cache``.

The mark of the whole request is at its top level: the provider applies it to the last block and moves it along a
conversation. The mark of instructions and demos is in their last block and never moves. So each request of a conversation
starts with the bytes of the request before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members

__all__ = ["with_cache_marks"]

_MOST_MARKS = 4
# Models cache from 512 to 4,096 tokens on and ignore an earlier mark; a write to the cache costs 1.25 times the tokens.
_LEAST_CHARACTERS = 3 * 1024


def with_cache_marks(body: JsonObject, request: Request, profile: MessagesProfile) -> JsonObject:
    """Return the body with a mark at each end of ``repeated`` that is worth one.

    ``prompt_cache={...}`` marks short requests too, and the end of a request without ``repeated``.
    """
    given, count = request.options.get("prompt_cache"), len(request.messages)
    is_wanted = isinstance(given, dict)
    if given is False or not profile.cache_control or not (request.repeated or is_wanted):
        return body
    mark: JsonObject = {"type": "ephemeral", **remove_members(object_of(given), {"key"})}
    for end in (request.repeated or (count,))[: max(_MOST_MARKS - _count_marks(body), 0)]:
        length = _wire_length(request.messages[:end]) if end < count else None
        if is_wanted or _is_long(body, length):
            body = _with_mark_at(body, length, mark)
    return body


def _with_mark_at(body: JsonObject, length: int | None, mark: JsonObject) -> JsonObject:
    """Return the body with a mark behind its first ``length`` messages, or behind all (``None``); 0: behind the system text."""
    messages = list(objects_of(body["messages"]))
    if length is None:
        return {**body, "cache_control": mark}
    if length == 0 and "system" in body:
        return {**body, "system": _with_mark(body["system"], mark)}
    if not 0 < length <= len(messages):
        return body
    last = messages[length - 1]
    messages[length - 1] = {**last, "content": _with_mark(last["content"], mark)}
    return {**body, "messages": list[JsonValue](messages)}


def _wire_length(messages: Iterable[Message]) -> int:
    """Return the number of messages on the wire, which has two roles and no system turns."""
    return len([*groupby(turn.role == "assistant" for turn in messages if turn.role != "system")])


def _count_marks(body: JsonObject) -> int:
    contents = (body.get("tools"), body.get("system"), *(wire.get("content") for wire in objects_of(body["messages"])))
    return sum("cache_control" in block for content in contents for block in objects_of(content))


def _is_long(body: JsonObject, length: int | None) -> bool:
    count, rest = 0, [body.get("tools"), body.get("system"), *objects_of(body["messages"])[:length]]
    while rest and count < _LEAST_CHARACTERS:
        value = rest.pop()
        if isinstance(value, str):
            count += len(value)
        elif isinstance(value, dict | list):
            rest.extend(value.values() if isinstance(value, dict) else value)
    return count >= _LEAST_CHARACTERS


def _with_mark(content: JsonValue, mark: JsonObject) -> JsonValue:
    text: JsonObject = {"type": "text", "text": content}
    blocks = (text,) if isinstance(content, str) else objects_of(content)
    return [*blocks[:-1], {**blocks[-1], "cache_control": mark}]
