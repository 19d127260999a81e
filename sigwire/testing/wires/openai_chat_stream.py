"""The chunks of a chat completion: the answer's body, cut into the deltas that OpenAI sends.

Per choice: the role, then reasoning (of compatible hosts), text, refusal and calls (a call's name before its arguments), then
the finish reason. Chunks of several choices alternate. Requested token counts are the last chunk, which has no choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.testing.chunking import Cutter, tokens_by_text
from sigwire.testing.wires.openai import padding

__all__ = ["chunks"]


def chunks(body: JsonObject, cut: Cutter, *, usage: bool, padded: bool) -> Iterator[JsonObject]:
    """Yield the chunks of a whole answer. ``usage``: add a chunk with token counts. ``padded``: add padding."""
    head: JsonObject = {**body, "object": "chat.completion.chunk"}
    rest: JsonObject = {"usage": None} if usage else {}
    del head["choices"], head["usage"]
    choices: Any = body["choices"]
    turns = zip_longest(*(_choice(choice, cut) for choice in choices))
    for choice in filter(None, chain.from_iterable(turns)):
        hidden: JsonObject = {"obfuscation": padding(str(choice["delta"]))} if padded else {}
        yield {**head, "choices": [choice], **rest, **hidden}
    if usage:
        yield {**head, "choices": [], "usage": body["usage"]}


def _choice(choice: Any, cut: Cutter) -> Iterator[JsonObject]:
    message, logprobs = choice["message"], choice["logprobs"]
    tokens: list[Any] = logprobs["content"] if logprobs else []
    yield _chunk(choice, {"role": "assistant", "content": None if message["content"] is None else "", "refusal": None})
    for text in cut(message.get("reasoning_content", "")):
        yield _chunk(choice, {"reasoning_content": text})
    texts = cut(message["content"] or "")
    for text, share in zip(texts, tokens_by_text(tokens, texts), strict=True):
        yield _chunk(choice, {"content": text}, {"content": share, "refusal": None} if tokens else None)
    for text in cut(message["refusal"] or ""):
        yield _chunk(choice, {"refusal": text})
    for index, call in enumerate(message.get("tool_calls", ())):
        for part in _call(call, cut):
            yield _chunk(choice, {"tool_calls": [{"index": index, **part}]})
    if message["annotations"]:
        yield _chunk(choice, {"annotations": message["annotations"]})
    yield {**_chunk(choice, {}), "finish_reason": choice["finish_reason"]}


def _chunk(choice: Any, delta: JsonObject, logprobs: JsonValue = None) -> JsonObject:
    return {"index": choice["index"], "delta": delta, "logprobs": logprobs, "finish_reason": None}


def _call(call: Any, cut: Cutter) -> Iterator[JsonObject]:
    function = call["function"]
    yield {**call, "function": {"name": function["name"], "arguments": ""}}
    for text in cut(function["arguments"]):
        yield {"function": {"arguments": text}}
