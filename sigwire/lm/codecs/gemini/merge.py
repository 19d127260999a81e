"""One answer in several replies: what stands beside a candidate's parts, grown or repeated, and whole bodies put together.

A stream's events and the bodies of an answer that was gone on with are alike in this: each holds the next pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, value_at, without

__all__ = ["join_beside", "merge_bodies"]


def merge_bodies(bodies: Sequence[JsonObject]) -> JsonObject:
    """The bodies of one answer of one candidate as one: all its parts, what came last of the rest.

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
    for candidate in candidates:
        content |= without(object_of(candidate.get("content")), {"parts"})
        join_beside(whole, without(candidate, {"content"}))
    return {**bodies[-1], "candidates": [{**whole, "content": {**content, "parts": parts}}]}


_LISTS: Mapping[str, tuple[frozenset[str], bool]] = {
    "citationMetadata": (frozenset({"citations", "citationSources"}), False),
    "groundingMetadata": (frozenset({"groundingChunks", "groundingSupports", "webSearchQueries"}), False),
    "logprobsResult": (frozenset({"chosenCandidates", "topCandidates"}), True),
    "urlContextMetadata": (frozenset({"urlMetadata"}), False),
}
"""Lists that come in pieces, and whether an equal item is another one: tokens are, sources are the same again."""


def join_beside(beside: JsonObject, more: JsonObject) -> None:
    """Add a reply's fields of a candidate: the last value of each counts, but lists that come in pieces grow."""
    for name, value in more.items():
        held = beside.setdefault(name, {}) if name in _LISTS else None
        if isinstance(held, dict) and isinstance(value, dict):
            _join_lists(held, value, *_LISTS[name])
        else:
            beside[name] = value


def _join_lists(held: JsonObject, more: JsonObject, lists: frozenset[str], repeats: bool) -> None:
    for name, value in more.items():
        growing = held.setdefault(name, []) if name in lists else None
        if isinstance(growing, list) and isinstance(value, list):
            growing.extend(item for item in value if repeats or item not in growing)
        else:
            held[name] = value
