"""The common part of the wires of embeddings: profile, texts of a request, vectors of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.errors import LMServerError, UnsupportedFeature
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target, WireProfile
from sigwire.lm.codecs.shared.paths import model_in_path
from sigwire.lm.codecs.shared.untrusted import is_number
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["EmbeddingProfile", "encoded", "response_of", "texts_of"]

_USAGE = {"input_tokens": "input_tokens"}


@dataclass(frozen=True, kw_only=True)
class EmbeddingProfile(WireProfile):
    """The path of one host. ``{model}`` is filled in."""

    family: str = "embeddings"
    path: str = "/embeddings"
    names: NameRules = NameRules()


def texts_of(request: Request, target: Target[EmbeddingProfile]) -> list[str]:
    """Return the texts of a request. Raises ``UnsupportedFeature`` for options and parts that embeddings have not."""
    unknown = sorted(request.options.keys() - {"dimensions", "extra_headers"})
    if unknown or request.tools or request.response_format is not None:
        raise UnsupportedFeature(
            f"{target.label} makes embeddings and does not take {', '.join(unknown) or 'tools or a response format'} "
            "(nothing was sent). Its option is dimensions."
        )
    return [message.text for message in request.messages]


def encoded(body: JsonObject, target: Target[EmbeddingProfile]) -> EncodedRequest:
    """Return the request of a body."""
    path = target.profile.path.format(model=model_in_path(target.model))
    return EncodedRequest(path, body, {}, target.profile.headers, (), NameMap((), target.profile.names))


def response_of(
    vectors: Sequence[object],
    tokens: JsonValue,
    body: JsonObject,
    sent: EncodedRequest,
    target: Target[EmbeddingProfile],
) -> Response:
    """Return a choice for each vector. ``tokens``: the count of input tokens that the provider sent.

    Raises ``LMServerError`` if the reply has another number of vectors than texts, or a vector that is not of finite numbers.
    """
    wanted = _number_of_texts(sent.body)
    if len(vectors) != wanted or not all(_is_vector(each) for each in vectors):
        raise LMServerError(
            f"The reply has {len(vectors)} vectors for {wanted} texts, or one that is not made of finite numbers (decoding "
            "embeddings).",
            model=target.model,
            provider=target.provider,
            status=200,
        )
    model, usage = body.get("model"), read_usage({"input_tokens": tokens}, _USAGE)
    choices = tuple(Choice(raw=_floats(each)) for each in vectors)
    return Response(choices, usage.usage, model if isinstance(model, str) else target.model, warnings=usage.warnings)


def _number_of_texts(body: JsonObject) -> int:
    texts: Any = body.get("input", body.get("requests"))
    return len(texts)


def _is_vector(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(is_number, value))  # pyright: ignore[reportUnknownArgumentType]


def _floats(vector: Any) -> JsonValue:
    return [float(value) for value in vector]
