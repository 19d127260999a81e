"""``/api/embed`` of Ollama (docs.ollama.com/api/embed)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.json import JsonValue
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import LMError
from sigwire.lm.codecs.embeddings.shared import EmbeddingProfile, encoded, response_of, texts_of
from sigwire.lm.codecs.ollama.tables import ERRORS
from sigwire.lm.codecs.shared.errors import lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import object_of

__all__ = ["ENCODING_VERSION", "decode", "decode_error", "encode"]

ENCODING_VERSION = 1


def encode(request: Request, target: Target[EmbeddingProfile], *, stream: bool = False) -> EncodedRequest:
    """Encode the texts of a request. A text that is longer than the window is an error and not cut.

    >>> from sigwire.core.messages import Message
    >>> encode(Request((Message.user("a"),)), Target("ollama", "m", EmbeddingProfile())).body
    {'model': 'm', 'input': ['a'], 'truncate': False}
    """
    texts: list[JsonValue] = [*texts_of(request, target)]
    size = request.options.get("dimensions")
    chosen: dict[str, JsonValue] = {} if size is None else {"dimensions": size}
    return encoded({"model": target.model, "input": texts, "truncate": False, **chosen}, target)


def decode(body: JsonValue, sent: EncodedRequest, target: Target[EmbeddingProfile]) -> Response:
    """Return the vectors; they are in the order of the texts."""
    reply = object_of(body)
    found = reply.get("embeddings")
    vectors: Any = found if isinstance(found, list) else []
    tokens = reply.get("prompt_eval_count")
    return response_of(vectors, tokens, reply, sent, target)


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes | str, target: Target[EmbeddingProfile]
) -> LMError:
    """Return the error of a reply with an error status."""
    return lm_error(read_error_body(status, headers, body), ERRORS, target)
