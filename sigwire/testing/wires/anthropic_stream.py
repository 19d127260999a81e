"""The events of an Anthropic answer: one block after the other, each with a start, deltas and a stop.

The signature of a thought comes before its stop; the arguments of a call are JSON text; blocks of other kinds are complete
at the start. The stop reason and the final counts are in the ``message_delta`` after the last block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject, dumps
from sigwire.testing.chunking import Cutter

__all__ = ["PING", "events"]

PING: Mapping[str, Any] = {"type": "ping"}

_ADDED = ("stop_reason", "stop_sequence", "stop_details")  # fields that are known at the end only


def events(body: JsonObject, cut: Cutter) -> Iterator[JsonObject]:
    """Yield the events of a whole answer."""
    content: Any = body["content"]
    usage: Any = body["usage"]
    sofar: JsonObject = {**usage, "output_tokens": 1}
    del sofar["output_tokens_details"]
    started: JsonObject = {**body, "content": [], **dict.fromkeys(_ADDED), "usage": sofar}
    yield {"type": "message_start", "message": started}
    for index, block in enumerate(content):
        yield from _block(index, block, cut)
    counts: JsonObject = {name: count for name, count in usage.items() if name != "service_tier"}
    yield {"type": "message_delta", "delta": {name: body[name] for name in _ADDED}, "usage": counts}
    yield {"type": "message_stop"}


def _block(index: int, block: Any, cut: Cutter) -> Iterator[JsonObject]:
    start, write = _KINDS.get(block["type"], _WHOLE)
    started = {name: value for name, value in {**block, **start}.items() if name != "citations"}
    yield {"type": "content_block_start", "index": index, "content_block": started}
    if index == 0:
        yield dict(PING)
    for delta in write(block, cut):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _text(block: Any, cut: Cutter) -> Iterator[JsonObject]:
    for text in cut(block["text"]):
        yield {"type": "text_delta", "text": text}
    for citation in block.get("citations") or ():
        yield {"type": "citations_delta", "citation": citation}


def _thinking(block: Any, cut: Cutter) -> Iterator[JsonObject]:
    for text in cut(block["thinking"]):
        yield {"type": "thinking_delta", "thinking": text}
    yield {"type": "signature_delta", "signature": block["signature"]}


def _call(block: Any, cut: Cutter) -> Iterator[JsonObject]:
    # The first delta of a call is empty; a call without arguments has no other delta.
    for text in ["", *(cut(dumps(block["input"])) if block["input"] else ())]:
        yield {"type": "input_json_delta", "partial_json": text}


_Kind: TypeAlias = "tuple[Mapping[str, Any], Callable[[Any, Cutter], Iterator[JsonObject]]]"
_WHOLE: _Kind = ({}, lambda block, cut: iter(()))
# The start of a block, and its deltas.
_KINDS: Mapping[str, _Kind] = {
    "text": ({"text": ""}, _text),
    "thinking": ({"thinking": "", "signature": ""}, _thinking),
    "tool_use": ({"input": {}}, _call),
    "server_tool_use": ({"input": {}}, _call),
}
