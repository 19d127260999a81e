"""Converse: the points up to which the provider caches a prompt, as blocks, in the places that ``shared.cache_marks`` finds.

Claude and Nova have them; any other model refuses the block. Source:
https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html.
"""

from __future__ import annotations

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.bedrock_converse.tables import ConverseProfile
from sigwire.lm.codecs.shared.cache_marks import MOST_MARKS, mark_settings, marked_lengths, with_marked_part
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import target_warning
from sigwire.lm.codecs.shared.untrusted import objects_of

__all__ = ["with_cache_points"]


def with_cache_points(
    body: JsonObject, request: Request, target: Target[ConverseProfile], warnings: list[LMWarning]
) -> JsonObject:
    """Return the body with a point at each end of ``repeated`` that is worth one, if the model takes points."""
    is_asked = request.repeated or request.repeated_part or "prompt_cache" in request.options
    if not target.facts.cache_breakpoints or not is_asked:
        return body
    settings = mark_settings(request)
    if settings and not target.profile.cache_ttl:
        settings = {}
        warnings.append(target_warning("prompt_cache", target, "has one time to keep a prompt; ttl was left out."))
    point: JsonObject = {"cachePoint": {"type": "default", **settings}}
    if _count_points(body) < MOST_MARKS:
        marked = with_marked_part(objects_of(body["messages"]), request, lambda block: [block, point])
        body = body if marked is None else {**body, "messages": list[JsonValue](marked)}
    for length in marked_lengths(body, request, MOST_MARKS - _count_points(body)):
        body = _with_point_at(body, length, point)
    return body


def _with_point_at(body: JsonObject, length: int | None, point: JsonObject) -> JsonObject:
    if length == 0 and "system" in body:
        return {**body, "system": [*objects_of(body["system"]), point]}
    messages = list(objects_of(body["messages"]))
    place = len(messages) if length is None else length
    if not 0 < place <= len(messages):
        return body
    last = messages[place - 1]
    messages[place - 1] = {**last, "content": [*objects_of(last["content"]), point]}
    return {**body, "messages": list[JsonValue](messages)}


def _count_points(body: JsonObject) -> int:
    contents = (body.get("system"), *(wire["content"] for wire in objects_of(body["messages"])))
    return sum("cachePoint" in block for content in contents for block in objects_of(content))
