"""The ends of a prompt that are worth a mark of the provider's cache; each wire writes its marks itself.

``Request.repeated`` is the part of the prompt that other requests repeat. The mark of instructions and demos is behind their
last block and never moves; the mark of the whole request moves along a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members

__all__ = ["MOST_MARKS", "mark_settings", "marked_lengths"]

MOST_MARKS = 4
# Models cache from 512 to 4,096 tokens on and ignore an earlier mark; a write to the cache costs 1.25 times the tokens.
_LEAST_CHARACTERS = 3 * 1024


def marked_lengths(body: JsonObject, request: Request, most: int) -> list[int | None]:
    """Return the numbers of wire messages behind which a mark is worth its price; ``None``: behind all.

    ``prompt_cache={...}`` marks short requests too, and the end of a request without ``repeated``. The wire has two roles,
    and no system turns in ``messages``; 0 is behind the system text.
    """
    given, count = request.options.get("prompt_cache"), len(request.messages)
    is_wanted = isinstance(given, dict)
    if given is False or not (request.repeated or is_wanted):
        return []
    ends = (request.repeated or (count,))[: max(most, 0)]
    lengths = [_wire_length(request.messages[:end]) if end < count else None for end in ends]
    return [length for length in lengths if is_wanted or _is_long(body, length)]


def mark_settings(request: Request) -> JsonObject:
    """Return the settings of a mark (``ttl``) that the caller gave."""
    return remove_members(object_of(request.options.get("prompt_cache")), {"key"})


def _wire_length(messages: Iterable[Message]) -> int:
    """Return the number of messages on the wire, which has two roles and no system turns."""
    return len([*groupby(turn.role == "assistant" for turn in messages if turn.role != "system")])


def _is_long(body: JsonObject, length: int | None) -> bool:
    tools = body.get("tools") or body.get("toolConfig")
    count, rest = 0, [tools, body.get("system"), *objects_of(body["messages"])[:length]]
    while rest and count < _LEAST_CHARACTERS:
        value = rest.pop()
        if isinstance(value, str):
            count += len(value)
        elif isinstance(value, dict | list):
            rest.extend(value.values() if isinstance(value, dict) else value)
    return count >= _LEAST_CHARACTERS
