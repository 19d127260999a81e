"""The ends of a prompt that are worth a mark of the provider's cache; each wire writes its marks itself.

``Request.repeated`` is the part of the prompt that other requests repeat. The mark of instructions and demos is behind their
last block and never moves; the mark of the whole request moves along a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import TextPart
from sigwire.core.request import Request
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members

__all__ = ["MOST_MARKS", "mark_settings", "marked_lengths", "with_marked_part"]

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


def with_marked_part(
    wires: Sequence[JsonObject],
    request: Request,
    mark: Callable[[JsonObject], Sequence[JsonObject]],
    text_type: str = "text",
) -> list[JsonObject] | None:
    """Return the wire messages with a mark behind ``repeated_part``; ``None`` if it has none, or none that is worth its price.

    ``mark`` gets the last block of the part and returns that block with its mark. ``text_type``: of a block of text.
    """
    given = request.options.get("prompt_cache")
    if request.repeated_part is None or given is False:
        return None
    place, count = request.repeated_part
    parts = request.messages[place].parts
    for number, wire in enumerate(wires):
        found = _split(wire.get("content"), parts, count, text_type) if wire.get("role") == "user" else None
        if found is not None:
            front, rest = found
            if not (isinstance(given, dict) or _has_length([[*request.tools], [*wires[:number]], [*front]])):
                return None
            content: list[JsonValue] = [*front[:-1], *mark(front[-1]), *rest]
            return [*wires[:number], {**wire, "content": content}, *wires[number + 1 :]]
    return None


def _split(
    content: JsonValue, parts: Sequence[Part], count: int, text_type: str
) -> tuple[Sequence[JsonObject], Sequence[JsonObject]] | None:
    """Return the blocks up to the repeated parts, and those behind them; ``None`` if the content does not have them."""
    last, following = parts[count - 1], parts[count] if count < len(parts) else None
    if isinstance(content, str):
        text = "".join(part.text for part in parts[:count] if isinstance(part, TextPart))
        if not text or not content.startswith(text):
            return None
        blocks: list[JsonObject] = [{"type": text_type, "text": each} for each in (text, content[len(text) :]) if each]
        return blocks[:1], blocks[1:]
    blocks = [*objects_of(content)]
    texts = [block.get("text") for block in blocks]
    if isinstance(last, TextPart) and last.text in texts:
        end = texts.index(last.text) + 1
    elif isinstance(following, TextPart) and following.text in texts:
        end = texts.index(following.text)
    else:
        return None
    return (blocks[:end], blocks[end:]) if end else None


def mark_settings(request: Request) -> JsonObject:
    """Return the settings of a mark (``ttl``) that the caller gave."""
    return remove_members(object_of(request.options.get("prompt_cache")), {"key"})


def _wire_length(messages: Iterable[Message]) -> int:
    """Return the number of messages on the wire, which has two roles and no system turns."""
    return len([*groupby(turn.role == "assistant" for turn in messages if turn.role != "system")])


def _is_long(body: JsonObject, length: int | None) -> bool:
    tools = body.get("tools") or body.get("toolConfig")
    return _has_length([tools, body.get("system"), *objects_of(body["messages"])[:length]])


def _has_length(rest: list[JsonValue]) -> bool:
    count = 0
    while rest and count < _LEAST_CHARACTERS:
        value = rest.pop()
        if isinstance(value, str):
            count += len(value)
        elif isinstance(value, dict | list):
            rest.extend(value.values() if isinstance(value, dict) else value)
    return count >= _LEAST_CHARACTERS
