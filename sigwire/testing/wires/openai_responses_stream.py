"""The typed events of an OpenAI response, numbered: every item is added empty, filled by deltas, and marked as done.

Done events repeat the complete part and item; the last event repeats the complete response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.testing.chunking import Cutter, tokens_by_text
from sigwire.testing.wires.openai import padding

__all__ = ["events"]


def events(body: JsonObject, cut: Cutter, *, padded: bool) -> Iterator[JsonObject]:
    """Yield the events of a whole answer. ``padded``: add padding."""
    for number, event in enumerate(_events(body, cut)):
        hidden: JsonObject = {"obfuscation": padding(str(event["delta"]))} if padded and "delta" in event else {}
        yield {"type": event["type"], "sequence_number": number, **event, **hidden}


def _events(body: JsonObject, cut: Cutter) -> Iterator[JsonObject]:
    output: Any = body["output"]
    started: JsonObject = {**body, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for index, item in enumerate(output):
        yield from _item(index, item, cut)
    yield {"type": f"response.{body['status']}", "response": body}


def _item(index: int, item: Any, cut: Cutter) -> Iterator[JsonObject]:
    started, write = _KINDS.get(item["type"], _WHOLE)
    yield {"type": "response.output_item.added", "output_index": index, "item": {**item, **started}}
    for event in write(item, cut):
        yield {"item_id": item.get("id"), "output_index": index, **event}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _message(item: Any, cut: Cutter) -> Iterator[JsonObject]:
    for index, part in enumerate(item["content"]):
        write, started = (_refusal, {"refusal": ""}) if part["type"] == "refusal" else (_text, {"text": "", **_BARE})
        yield {"type": "response.content_part.added", "content_index": index, "part": {**part, **started}}
        for event in write(part, cut):
            yield {"content_index": index, **event}
        yield {"type": "response.content_part.done", "content_index": index, "part": part}


_BARE: Mapping[str, Any] = {"annotations": [], "logprobs": []}


def _text(part: Any, cut: Cutter) -> Iterator[JsonObject]:
    texts, tokens = cut(part["text"]), part.get("logprobs", [])
    for text, share in zip(texts, tokens_by_text(tokens, texts), strict=True):
        yield {"type": "response.output_text.delta", "delta": text, "logprobs": share}
    for index, annotation in enumerate(part.get("annotations", ())):
        where: JsonObject = {"annotation_index": index, "annotation": annotation}
        yield {"type": "response.output_text.annotation.added", **where}
    yield {"type": "response.output_text.done", "text": part["text"], "logprobs": tokens}


def _refusal(part: Any, cut: Cutter) -> Iterator[JsonObject]:
    for text in cut(part["refusal"]):
        yield {"type": "response.refusal.delta", "delta": text}
    yield {"type": "response.refusal.done", "refusal": part["refusal"]}


def _reasoning(item: Any, cut: Cutter) -> Iterator[JsonObject]:
    for index, part in enumerate(item.get("summary", ())):
        where: JsonObject = {"summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
        for text in cut(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **where, "delta": text}
        yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **where, "part": part}


def _call(item: Any, cut: Cutter) -> Iterator[JsonObject]:
    for text in cut(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "delta": text}
    complete: JsonObject = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **complete}


_Kind: TypeAlias = "tuple[Mapping[str, Any], Callable[[Any, Cutter], Iterator[JsonObject]]]"
_WHOLE: _Kind = ({}, lambda item, cut: iter(()))
# An item when added, and its deltas. The encrypted reasoning at the start differs from that at the end.
_KINDS: Mapping[str, _Kind] = {
    "message": ({"status": "in_progress", "content": []}, _message),
    "reasoning": ({"summary": [], "encrypted_content": "sealed_not_yet"}, _reasoning),
    "function_call": ({"status": "in_progress", "arguments": ""}, _call),
}
