"""``models/{model}:batchEmbedContents`` of the Gemini API (ai.google.dev/api/embeddings)."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import LMError
from sigwire.lm.codecs.embeddings.shared import EmbeddingProfile, encoded, response_of, texts_of
from sigwire.lm.codecs.shared.errors import lm_error
from sigwire.lm.codecs.shared.google_errors import GOOGLE_ERRORS, read_google_error
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of

__all__ = ["ENCODING_VERSION", "decode", "decode_error", "encode"]

ENCODING_VERSION = 1


def encode(request: Request, target: Target[EmbeddingProfile], *, stream: bool = False) -> EncodedRequest:
    """Encode the texts of a request.

    >>> from sigwire.core.messages import Message
    >>> encode(Request((Message.user("a"),)), Target("gemini", "m", EmbeddingProfile())).body
    {'requests': [{'model': 'models/m', 'content': {'parts': [{'text': 'a'}]}}]}
    """
    size = request.options.get("dimensions")
    chosen: JsonObject = {} if size is None else {"outputDimensionality": size}
    requests: list[JsonValue] = [
        {"model": f"models/{target.model}", "content": {"parts": [{"text": text}]}, **chosen}
        for text in texts_of(request, target)
    ]
    return encoded({"requests": requests}, target)


def decode(body: JsonValue, sent: EncodedRequest, target: Target[EmbeddingProfile]) -> Response:
    """Return the vectors; they are in the order of the texts."""
    reply = object_of(body)
    vectors = [item.get("values") for item in objects_of(reply.get("embeddings"))]
    tokens = object_of(reply.get("usageMetadata")).get("promptTokenCount")
    return response_of(vectors, tokens, reply, sent, target)


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[EmbeddingProfile]
) -> LMError:
    """Return the error of a reply with an error status."""
    return lm_error(read_google_error(status, headers, body), GOOGLE_ERRORS, target)
