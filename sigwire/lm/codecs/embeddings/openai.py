"""``/embeddings`` of OpenAI and compatible hosts (developers.openai.com, Embeddings)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.json import JsonValue
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import LMError
from sigwire.lm.codecs.embeddings.shared import EmbeddingProfile, encoded, response_of, texts_of
from sigwire.lm.codecs.shared.errors import OPENAI_ERRORS, lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of

__all__ = ["ENCODING_VERSION", "decode", "decode_error", "encode"]

ENCODING_VERSION = 1


def encode(request: Request, target: Target[EmbeddingProfile], *, stream: bool = False) -> EncodedRequest:
    """Encode the texts of a request.

    >>> from sigwire.core.messages import Message
    >>> request = Request((Message.user("a"), Message.user("b")), options={"dimensions": 64})
    >>> encode(request, Target("openai", "m", EmbeddingProfile())).body
    {'model': 'm', 'input': ['a', 'b'], 'encoding_format': 'float', 'dimensions': 64}
    """
    texts: list[JsonValue] = [*texts_of(request, target)]
    size = request.options.get("dimensions")
    chosen: dict[str, JsonValue] = {} if size is None else {"dimensions": size}
    return encoded({"model": target.model, "input": texts, "encoding_format": "float", **chosen}, target)


def decode(body: JsonValue, sent: EncodedRequest, target: Target[EmbeddingProfile]) -> Response:
    """Return the vectors in the order of the texts."""
    reply = object_of(body)
    items: list[Any] = sorted(objects_of(reply.get("data")), key=_index)
    tokens = object_of(reply.get("usage")).get("prompt_tokens")
    return response_of([item.get("embedding") for item in items], tokens, reply, sent, target)


def _index(item: Mapping[str, Any]) -> int:
    index = item.get("index")
    return index if isinstance(index, int) else 0


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[EmbeddingProfile]
) -> LMError:
    """Return the error of a reply with an error status."""
    return lm_error(read_error_body(status, headers, body), OPENAI_ERRORS, target)
