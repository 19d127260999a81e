"""The places of the fake provider as tables: wires, their variants on hosts and clouds, embeddings, batch APIs."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.testing.batches.anthropic import AnthropicBatches
from sigwire.testing.batches.gemini import GeminiBatches
from sigwire.testing.batches.openai import OpenAIBatches
from sigwire.testing.clouds.converse import Converse
from sigwire.testing.clouds.vertex_claude import VertexClaude
from sigwire.testing.embeddings.wires import EMBEDDING_WIRES
from sigwire.testing.wire import FakeWire
from sigwire.testing.wires.anthropic import Anthropic
from sigwire.testing.wires.clouds import AzureChat, AzureResponses, Vertex, VertexChat
from sigwire.testing.wires.compatible import CompatibleChat
from sigwire.testing.wires.decisions import DECISION_WIRES
from sigwire.testing.wires.gemini import Gemini
from sigwire.testing.wires.ollama import Ollama
from sigwire.testing.wires.openai_chat import OpenAIChat
from sigwire.testing.wires.openai_responses import OpenAIResponses

__all__ = ["BATCH_APIS", "PLACES", "ROUTED", "WIRES"]

WIRES: Mapping[str, FakeWire] = {
    wire.name: wire for wire in (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini(), Ollama(), Converse())
}
"""The wires by name."""

PLACES: Mapping[str, FakeWire] = {
    **WIRES,
    **{
        wire.name: wire
        for wire in (
            CompatibleChat(),
            AzureChat(),
            AzureResponses(),
            Vertex(),
            VertexChat(),
            VertexClaude(),
            *DECISION_WIRES,
        )
    },
}
"""The wires, their variants on compatible hosts and clouds, and the decision endpoints."""

ROUTED = (*PLACES.values(), *EMBEDDING_WIRES)
"""Everything that a path may lead to, in the order of the search."""

BATCH_APIS = (AnthropicBatches(), OpenAIBatches(), GeminiBatches())
"""The batch APIs of the providers."""
