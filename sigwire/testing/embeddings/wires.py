"""Embeddings of the fake provider: vectors of words (``lexical_vector``), at the endpoints of OpenAI, Gemini and Ollama.

Texts that share words are near each other, so that programs that search can be tested. No script is used up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.lm.offline.vectors import lexical_vector
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import IdSequence, ParsedRequest, ReceivedRequest, request_tokens
from sigwire.testing.wires.gemini import Gemini
from sigwire.testing.wires.ollama import Ollama
from sigwire.testing.wires.openai_chat import OpenAIChat

__all__ = ["EMBEDDING_WIRES", "GeminiEmbeddings", "OllamaEmbeddings", "OpenAIEmbeddings"]


def _parsed(model: str, texts: Sequence[str], size: RequestNode | None) -> ParsedRequest:
    options: JsonObject = {} if size is None else {"dimensions": size.integer(1)}
    return ParsedRequest(model, Request(tuple(map(Message.user, texts)), options=options))


def _answer(parsed: ParsedRequest) -> Response:
    size = parsed.request.options.get("dimensions")
    cut = size if isinstance(size, int) else None
    return Response(tuple(Choice(raw=[*lexical_vector(message.text)[:cut]]) for message in parsed.request.messages))


def _vectors(response: Response) -> list[JsonValue]:
    return [choice.raw for choice in response.choices]


def _tokens(parsed: ParsedRequest) -> int:
    return request_tokens(parsed)


class OpenAIEmbeddings(OpenAIChat):
    """``POST /v1/embeddings``."""

    name = "openai-embeddings"
    route = re.compile(r"/v1/embeddings")

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        body.fields(frozenset({"model", "input", "encoding_format", "dimensions", "user"}))
        given = body["input"]
        texts = [given.text()] if isinstance(given.value, str) else [each.text() for each in given.items(filled=True)]
        return _parsed(body["model"].text(), texts, body.get("dimensions"))

    def answer(self, parsed: ParsedRequest) -> Response | None:
        return _answer(parsed)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        data: list[JsonValue] = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(_vectors(response))
        ]
        count = _tokens(parsed)
        usage: JsonObject = {"prompt_tokens": count, "total_tokens": count}
        return {"object": "list", "data": data, "model": parsed.model, "usage": usage}


class GeminiEmbeddings(Gemini):
    """``POST /v1/models/{model}:batchEmbedContents``."""

    name = "gemini-embeddings"
    route = re.compile(r"/v1(?:alpha|beta)?/models/(?P<model>.+):batchEmbedContents")

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        place = self.route.fullmatch(exchange.path)
        assert place is not None, "the server routes by this pattern"
        requests = body["requests"].items(filled=True)
        texts = ["".join(part["text"].text() for part in each["content"]["parts"].items()) for each in requests]
        return _parsed(place["model"], texts, requests[0].get("outputDimensionality"))

    def answer(self, parsed: ParsedRequest) -> Response | None:
        return _answer(parsed)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        return {"embeddings": [{"values": vector} for vector in _vectors(response)]}


class OllamaEmbeddings(Ollama):
    """``POST /api/embed``."""

    name = "ollama-embeddings"
    route = re.compile(r"/api/embed")

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        given = body["input"]
        texts = [given.text()] if isinstance(given.value, str) else [each.text() for each in given.items()]
        return _parsed(body["model"].text(), texts, body.get("dimensions"))

    def answer(self, parsed: ParsedRequest) -> Response | None:
        return _answer(parsed)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        return {"model": parsed.model, "embeddings": _vectors(response), "prompt_eval_count": _tokens(parsed)}


EMBEDDING_WIRES = (OpenAIEmbeddings(), GeminiEmbeddings(), OllamaEmbeddings())
