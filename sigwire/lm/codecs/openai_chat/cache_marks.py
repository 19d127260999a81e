"""Chat completions: the marks up to which a prompt is cached, of hosts that take them.

A gateway to Claude gets the marks of Anthropic (``cache_control`` in a block of text), in the places of its own wire that
``shared.cache_marks`` finds; on demand the first system turn has one, too. OpenAI caches by itself: it has only the latter.
Source: https://openrouter.ai/docs/guides/best-practices/prompt-caching.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.shared.cache_marks import MOST_MARKS, mark_settings, marked_lengths, with_marked_part
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.untrusted import objects_of

__all__ = ["with_cache_marks"]

_ANTHROPIC = "cache_control"


def with_cache_marks(
    messages: list[JsonObject], tools: JsonValue, request: Request, target: Target[ChatProfile]
) -> list[JsonObject]:
    """Return the wire messages with marks, if the model takes them."""
    mark = target.profile.cache_mark
    if not target.facts.cache_breakpoints or not messages:
        return messages
    if mark != _ANTHROPIC:
        messages = _with_marked_part(messages, request, mark, {"mode": "explicit"})
        on_demand = isinstance(request.options.get("prompt_cache"), dict) and messages[0]["role"] == "system"
        return _with_mark(messages, 0, mark, {"mode": "explicit"}) if on_demand else messages
    settings: JsonObject = {"type": "ephemeral", **mark_settings(request)}
    messages = _with_marked_part(messages, request, mark, settings)
    for place in _places(messages, tools, request):
        messages = _with_mark(messages, place, mark, settings)
    return messages


def _with_marked_part(messages: list[JsonObject], request: Request, name: str, mark: JsonObject) -> list[JsonObject]:
    """Mark the end of inputs that many calls repeat."""
    marked = with_marked_part(messages, request, lambda block: [{**block, name: mark}])
    return messages if marked is None else marked


def _places(messages: Sequence[JsonObject], tools: JsonValue, request: Request) -> list[int]:
    """Return the places of the messages behind which a mark is worth its price; a mark of the caller counts."""
    system = [place for place, each in enumerate(messages) if each["role"] == "system"]
    rest = [place for place, each in enumerate(messages) if each["role"] != "system"]
    turns = [[*turn] for _, turn in groupby(rest, lambda place: messages[place]["role"] == "assistant")]
    body = {
        "tools": tools,
        "system": [messages[place] for place in system],
        "messages": [{"turn": [messages[place] for place in turn]} for turn in turns],
    }
    most = MOST_MARKS - sum(_ANTHROPIC in part for each in messages for part in objects_of(each.get("content")))
    is_plain = not request.repeated and isinstance(request.options.get("prompt_cache"), dict)
    found = [system[: min(most, 1)] if is_plain else []]
    for length in marked_lengths(cast("JsonObject", body), request, most - len(found[0])):
        if length is None:
            found.append([len(messages) - 1])
        elif length <= len(turns):
            found.append(turns[length - 1][-1:] if length else system[:1])
    return [place for places in found for place in places]


def _with_mark(messages: list[JsonObject], place: int, name: str, mark: JsonObject) -> list[JsonObject]:
    """Return the messages with a mark at the last text up to a place; a turn with calls alone has none."""
    while place > 0 and not messages[place].get("content"):
        place -= 1
    content = messages[place].get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*objects_of(content)]
    if not parts:
        return messages
    marked = {**messages[place], "content": [*parts[:-1], {**parts[-1], name: mark}]}
    return [*messages[:place], cast("JsonObject", marked), *messages[place + 1 :]]
