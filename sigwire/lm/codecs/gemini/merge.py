"""Merge one answer of several replies: the events of a stream, or the bodies of a continued answer.

Each reply holds the next parts of a candidate. The candidate's other members are repeated, or extended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members, value_at

__all__ = ["Seen", "merge_bodies", "merge_members"]

Seen: TypeAlias = dict[str, set[str]]
"""The items of the lists that keep no equal ones, as JSON, by the name of the list."""


def merge_bodies(bodies: Sequence[JsonObject]) -> JsonObject:
    """Merge the bodies of an answer with one candidate: all its parts, the last value of every other member.

    >>> first, last = ({"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in ("Hi ", "you"))
    >>> merge_bodies([first, {**last, "responseId": "r2"}])
    {'candidates': [{'content': {'parts': [{'text': 'Hi '}, {'text': 'you'}]}}], 'responseId': 'r2'}
    """
    candidates = [candidate for body in bodies for candidate in objects_of(body.get("candidates"))]
    parts: list[JsonValue] = [
        part for candidate in candidates for part in objects_of(value_at(candidate, "content.parts"))
    ]
    whole: JsonObject = {}
    content: JsonObject = {}
    seen: Seen = {}
    for candidate in candidates:
        content |= remove_members(object_of(candidate.get("content")), {"parts"})
        merge_members(whole, remove_members(candidate, {"content"}), seen)
    return {**bodies[-1], "candidates": [{**whole, "content": {**content, "parts": parts}}]}


_LISTS: Mapping[str, tuple[frozenset[str], bool]] = {
    "citationMetadata": (frozenset({"citations", "citationSources"}), False),
    "groundingMetadata": (frozenset({"groundingChunks", "groundingSupports", "webSearchQueries"}), False),
    "logprobsResult": (frozenset({"chosenCandidates", "topCandidates"}), True),
    "urlContextMetadata": (frozenset({"urlMetadata"}), False),
}
"""The lists that replies extend, and whether equal items are kept: tokens are, repeated sources are not."""


def merge_members(merged: JsonObject, more: JsonObject, seen: Seen) -> None:
    """Add the members of a candidate from the next reply: the last value of each counts, lists of _LISTS are extended.

    ``seen`` begins empty and stays with ``merged``.
    """
    for name, value in more.items():
        have = merged.setdefault(name, {}) if name in _LISTS else None
        if isinstance(have, dict) and isinstance(value, dict):
            _extend_lists(have, value, *_LISTS[name], seen)
        else:
            merged[name] = value


def _extend_lists(merged: JsonObject, more: JsonObject, lists: frozenset[str], keeps_equal: bool, seen: Seen) -> None:
    for name, value in more.items():
        items = merged.setdefault(name, []) if name in lists else None
        if isinstance(items, list) and isinstance(value, list):
            items.extend(value if keeps_equal else _unseen(value, seen.setdefault(name, set())))
        else:
            merged[name] = value


def _unseen(items: Iterable[JsonValue], seen: set[str]) -> Iterator[JsonValue]:
    for item in items:
        key = json.dumps(item, sort_keys=True)
        if key not in seen:
            seen.add(key)
            yield item
