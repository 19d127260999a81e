"""The chunks of a Gemini answer, each a response in itself: text and thoughts in deltas, every call complete.

The finish reason is in the last chunk, beside an empty text. Every chunk has cumulative token counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.testing.chunking import Cutter

__all__ = ["chunks"]


def chunks(body: JsonObject, cut: Cutter) -> Iterator[JsonObject]:
    """Yield the chunks of a whole answer; chunks of several candidates alternate."""
    candidates: Any = body.get("candidates")
    if candidates is None:  # a blocked prompt
        yield body
        return
    usage: Any = body["usageMetadata"]
    sofar: JsonObject = {name: usage[name] for name in ("promptTokenCount", "promptTokensDetails")}
    sofar["totalTokenCount"] = sofar["promptTokenCount"]
    turns = chain.from_iterable(zip_longest(*(_candidate(candidate, cut) for candidate in candidates)))
    *most, last = filter(None, turns)
    for candidate in most:
        yield {**body, "candidates": [candidate], "usageMetadata": sofar}
    yield {**body, "candidates": [last]}


def _candidate(candidate: Any, cut: Cutter) -> Iterator[JsonObject]:
    for part in candidate["content"]["parts"]:
        for delta in _deltas(part, cut):
            yield {"content": {"role": "model", "parts": [delta]}, "index": candidate["index"]}
    yield {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}


def _deltas(part: Any, cut: Cutter) -> Iterator[JsonObject]:
    """Yield the deltas of a text part, the last with its signature; other parts are one delta."""
    if "text" not in part:
        yield part
        return
    *most, last = cut(part["text"]) or [""]
    for text in most:
        yield {name: value for name, value in {**part, "text": text}.items() if name != "thoughtSignature"}
    yield {**part, "text": last}
