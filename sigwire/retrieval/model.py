"""``EmbeddingModel``: a provider's model of embeddings, with the keys, retries, limits, budgets and cache of ``LM``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.codecs.embeddings.shared import EmbeddingProfile
from sigwire.lm.http_backend import HttpBackend
from sigwire.lm.providers.registry import find_provider
from sigwire.lm.providers.row import Provider, Wire

__all__ = ["EmbeddingModel"]

_WIRES: Mapping[str, Wire] = {
    "gemini": Wire("embeddings.gemini", EmbeddingProfile(path="/v1/models/{model}:batchEmbedContents")),
    "ollama": Wire("embeddings.ollama", EmbeddingProfile(path="/api/embed")),
}
_OPENAI = Wire("embeddings.openai", EmbeddingProfile())


class EmbeddingModel(LM):
    """A model of embeddings. A request has one message a text; ``raw`` of each choice of its response is a vector.

    ``model``: "openai/text-embedding-3-small", "gemini/gemini-embedding-001", "ollama/nomic-embed-text", or a model of a host
    with OpenAI's ``/embeddings``. Arguments are those of ``LM``; ``dimensions``: the length of the vectors, if the model
    has a choice. Raises ``ConfigurationError`` for a provider without such an endpoint.
    """

    def _connect(self) -> None:
        super()._connect()
        row, name = find_provider(self.model)
        connection = replace(self._connection, wire="embeddings")
        self._backend = HttpBackend(_row_of_embeddings(row), name, connection, self.capabilities, self.model)


def _row_of_embeddings(row: Provider) -> Provider:
    wire = _WIRES.get(row.prefix.removesuffix("-cloud")) or _OPENAI
    if row.backend or callable(row.base_url) or (wire is _OPENAI and "chat" not in row.wires):
        raise ConfigurationError(
            f"sigwire knows no embeddings of {row.prefix} (making a model of embeddings). Use openai/, gemini/, ollama/ or a "
            "host with OpenAI's /embeddings, or pass Embedder a function of texts to vectors."
        )
    return replace(row, wires={"embeddings": wire}, rules=(), builtin_wire=None)
