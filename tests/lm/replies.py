"""The least that each wire answers, and a transport that answers without a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.lm.http.messages import HttpReply, HttpRequest

__all__ = ["CHAT", "GEMINI", "MESSAGES", "OLLAMA", "RESPONSES", "Double"]

CHAT: JsonObject = {
    "id": "c1",
    "model": "m-2026",
    "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}
RESPONSES: JsonObject = {
    "id": "r1",
    "model": "m-2026",
    "status": "completed",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}],
    "usage": {"input_tokens": 3, "output_tokens": 1},
}
MESSAGES: JsonObject = {
    "id": "msg_1",
    "model": "m-2026",
    "role": "assistant",
    "type": "message",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 1},
}
GEMINI: JsonObject = {
    "responseId": "g1",
    "modelVersion": "m-2026",
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1},
}
OLLAMA: JsonObject = {
    "model": "m-2026",
    "message": {"role": "assistant", "content": "hi"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 3,
    "eval_count": 1,
}


class Double:
    """A transport that answers and records its requests. An answer of bytes is sent as it is, also in a stream."""

    def __init__(self, answer: Any = CHAT) -> None:
        self.answer = answer
        self.requests: list[HttpRequest] = []

    def send(self, request: HttpRequest) -> HttpReply:
        self.requests.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return HttpReply(200, {}, body)

    async def asend(self, request: HttpRequest) -> HttpReply:
        return self.send(request)

    @contextmanager
    def stream(self, request: HttpRequest) -> Iterator[Any]:
        yield _OneChunk(self.send(request).body)

    @asynccontextmanager
    async def astream(self, request: HttpRequest) -> AsyncIterator[Any]:
        yield _OneChunk(self.send(request).body)

    def close(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


class _OneChunk:
    """A streamed reply that arrives in one chunk."""

    status = 200

    def __init__(self, body: bytes) -> None:
        self.headers: dict[str, str] = {}
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body
