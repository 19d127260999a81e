"""The lines of an Ollama answer: thinking, then text, in deltas; every call complete; the counts in the last line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.testing.chunking import Cutter, tokens_by_text

__all__ = ["lines"]


def lines(body: JsonObject, cut: Cutter) -> Iterator[JsonObject]:
    """Yield the lines of a whole answer."""
    message: Any = body["message"]
    tokens: Any = body.get("logprobs", [])
    for text in cut(message.get("thinking", "")):
        yield _line(body, {"content": "", "thinking": text})
    texts = cut(message["content"])
    for text, share in zip(texts, tokens_by_text(tokens, texts), strict=True):
        yield {**_line(body, {"content": text}), **({"logprobs": share} if share else {})}
    for call in message.get("tool_calls", ()):
        yield _line(body, {"content": "", "tool_calls": [call]})
    counts = {name: value for name, value in body.items() if name != "logprobs"}
    yield {**counts, "message": {"role": "assistant", "content": ""}}


def _line(body: JsonObject, message: JsonObject) -> JsonObject:
    head = {name: body[name] for name in ("model", "created_at")}
    return {**head, "message": {"role": "assistant", **message}, "done": False}
