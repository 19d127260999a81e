"""Messages: the marks up to which the provider caches a prompt, in the places that ``shared.cache_marks`` finds.

The mark of the whole request is at its top level: the provider applies it to the last block and moves it along a
conversation, so each request of a conversation starts with the bytes of the request before it. Clouds lack that place; there
the last block has the mark.
"""

from __future__ import annotations

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.shared.cache_marks import MOST_MARKS, mark_settings, marked_lengths, with_marked_part
from sigwire.lm.codecs.shared.untrusted import objects_of

__all__ = ["with_cache_marks"]


def with_cache_marks(body: JsonObject, request: Request, profile: MessagesProfile) -> JsonObject:
    """Return the body with a mark at each end of ``repeated`` that is worth one."""
    if not profile.cache_control or not (
        request.repeated or request.repeated_part or "prompt_cache" in request.options
    ):
        return body
    mark: JsonObject = {"type": "ephemeral", **mark_settings(request)}
    if _count_marks(body) < MOST_MARKS:
        marked = with_marked_part(
            objects_of(body["messages"]), request, lambda block: [{**block, "cache_control": mark}]
        )
        body = body if marked is None else {**body, "messages": list[JsonValue](marked)}
    for length in marked_lengths(body, request, MOST_MARKS - _count_marks(body)):
        if length is None and profile.cache_control == "request":
            body = {**body, "cache_control": mark}
        else:
            body = _with_mark_at(body, length, mark)
    return body


def _with_mark_at(body: JsonObject, length: int | None, mark: JsonObject) -> JsonObject:
    """Return the body with a mark behind its first ``length`` messages, or behind all (``None``); 0: behind the system text."""
    messages = list(objects_of(body["messages"]))
    if length == 0 and "system" in body:
        return {**body, "system": _with_mark(body["system"], mark)}
    place = len(messages) if length is None else length
    if not 0 < place <= len(messages):
        return body
    last = messages[place - 1]
    messages[place - 1] = {**last, "content": _with_mark(last["content"], mark)}
    return {**body, "messages": list[JsonValue](messages)}


def _count_marks(body: JsonObject) -> int:
    contents = (body.get("tools"), body.get("system"), *(wire.get("content") for wire in objects_of(body["messages"])))
    return sum("cache_control" in block for content in contents for block in objects_of(content))


def _with_mark(content: JsonValue, mark: JsonObject) -> JsonValue:
    text: JsonObject = {"type": "text", "text": content}
    blocks = (text,) if isinstance(content, str) else objects_of(content)
    return [*blocks[:-1], {**blocks[-1], "cache_control": mark}]
