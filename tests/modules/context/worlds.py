"""A small world: a model with a window that calls tools, searches when it sees nothing, and writes summaries.

The model is a function of the request, as a real one is: it knows what the request shows. Tokens are characters divided by
four.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sigwire import Choice, ContextWindowExceededError, FakeLM, Request, ToolCall
from sigwire.core.json import dumps
from sigwire.core.messages import Message
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolResult

__all__ = ["World", "called", "last_result", "names_of", "note_of", "shown_texts", "tokens_of_request"]


def shown_texts(request: Request) -> list[str]:
    """Return the texts of a request, results and calls included."""
    texts: list[str] = []
    for message in request.messages:
        texts.append(message.text)
        texts += [result.text for result in message.tool_results]
        texts += [call.arguments_text for call in message.tool_calls]
    return texts


def tokens_of_request(request: Request) -> int:
    """Return the tokens of a request: characters divided by four, tools included."""
    return (sum(map(len, shown_texts(request))) + len(dumps(list(request.tools)))) // 4


class World(FakeLM):
    """A model that refuses requests above ``limit`` tokens. ``text``: of its refusals. ``counts``: report input tokens.

    Each request without a summary's mark is answered by ``turn(request)``; a request for a summary by ``summarized(request)``.
    """

    limit = 10**9
    counts = True
    text = "prompt is too long: {tokens} tokens > {limit} maximum"
    cached = False

    def __init__(self, turn: Any, limit: int, **options: Any) -> None:
        super().__init__(self._turned, **options)
        self.turn, self.limit = turn, limit
        self.summaries: list[Request] = []
        self.refused: list[Request] = []
        self._last: list[str] = []

    def summarized(self, request: Request) -> Any:
        """Return the summary of the facts that the request shows."""
        facts: Mapping[str, str] = dict(re.findall(r"fact (\w+) is (\w+)", "\n".join(shown_texts(request))))
        return " ".join(f"fact {name} is {value}." for name, value in facts.items()) or "Nothing was said."

    def is_summary(self, request: Request) -> bool:
        return "the new summary" in "\n".join(shown_texts(request)[:1] + shown_texts(request)[-1:])

    def _turned(self, request: Request) -> Any:
        return self.summarized(request) if self.is_summary(request) else self.turn(request)

    def _answer(self, request: Request) -> Response:
        tokens = tokens_of_request(request)
        if tokens > self.limit:
            self.refused.append(request)
            raise ContextWindowExceededError(self.text.format(tokens=tokens, limit=self.limit), model=self.model)
        if self.is_summary(request):
            self.summaries.append(request)
        response = super()._answer(request)
        texts = [dumps(message.to_json()) for message in request.messages]
        same = sum(1 for _ in _common(texts, self._last))
        self._last = texts
        read = sum(map(len, texts[:same])) // 4 if self.cached else 0
        usage = Usage(tokens, 20, cached_tokens=min(read, tokens)) if self.counts else Usage()
        return Response(response.choices, usage, self.model)

    @property
    def turns(self) -> list[Request]:
        """The requests that were no summaries and were not refused."""
        return [each for each in self.requests if not self.is_summary(each)]


def _common(first: list[str], second: list[str]) -> Any:
    for mine, theirs in zip(first, second, strict=False):
        if mine != theirs:
            return
        yield mine


def called(id: str, name: str, /, **arguments: Any) -> Choice:
    """Return an answer that calls a tool."""
    return Choice(tool_calls=(ToolCall(id, name, arguments),), finish_reason="tool_calls")


def last_result(request: Request) -> ToolResult | None:
    """Return the latest result of a request, if the request ends with it."""
    last = request.messages[-1]
    return last.tool_results[-1] if last.role == "tool" else None


def note_of(request: Request) -> Message | None:
    """Return the note of what is left out."""
    return next((each for each in request.messages if each.role == "user" and "earliest turns" in each.text), None)


def names_of(request: Any) -> list[str]:
    """Return the names of the tools that a request offers."""
    return [tool["function"]["name"] for tool in request.tools]
