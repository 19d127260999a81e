"""Gemini's answer in chunks, each a whole response in itself: texts and thoughts piece by piece, every call complete.

The reason of the end comes last, beside an empty text. Every chunk counts the tokens so far; the last count is the answer's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.testing.chunking import Cutter

__all__ = ["chunks"]


def chunks(body: JsonObject, cut: Cutter) -> Iterator[JsonObject]:
    """The chunks of a whole answer; those of several candidates take turns."""
    candidates: Any = body.get("candidates")
    if candidates is None:  # blocked before it began
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
        for piece in _pieces(part, cut):
            yield {"content": {"role": "model", "parts": [piece]}, "index": candidate["index"]}
    yield {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}


def _pieces(part: Any, cut: Cutter) -> Iterator[JsonObject]:
    """The pieces of a text, the last one with its signature; anything else is one piece."""
    if "text" not in part:
        yield part
        return
    *most, last = cut(part["text"]) or [""]
    for text in most:
        yield {name: value for name, value in {**part, "text": text}.items() if name != "thoughtSignature"}
    yield {**part, "text": last}
