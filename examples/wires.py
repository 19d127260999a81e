"""One program over every wire: a provider on this machine, real HTTP, and the same model behind each wire.

`sigwire.testing.FakeProvider` serves the providers' wires at one address, validates requests as the providers do, and answers
with `offline/lexical`. The program gets a model for each wire in turn and does not know the wire, so all results must be equal.
LiteLLM, if installed, is the sixth endpoint: it serves providers that have no row in sigwire's table.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import sigwire
from sigwire.testing import FakeProvider, Recorded

__all__ = ["ENDPOINTS", "Endpoint", "WireRun", "run_over_wires"]

T = TypeVar("T")


@dataclass(frozen=True)
class Endpoint:
    """A wire and the model that uses it. ``needs``: an optional package."""

    wire: str
    model: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    needs: str | None = None

    @property
    def is_open(self) -> bool:
        """Return True if the needed package is installed."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


ENDPOINTS = (
    Endpoint("openai", "openai/gpt-4.1"),
    Endpoint("openai-responses", "openai/gpt-4.1", {"wire": "responses"}),
    Endpoint("anthropic", "anthropic/claude-opus-5"),
    Endpoint("gemini", "gemini/gemini-3-flash"),
    Endpoint("ollama", "ollama/qwen3"),
    Endpoint("openai", "litellm/openai/gpt-4.1", needs="litellm"),
)


@dataclass(frozen=True)
class WireRun(Generic[T]):
    """The result of the program over one wire, and the requests that the wire carried."""

    endpoint: Endpoint
    result: T
    requests: tuple[Recorded, ...]

    @property
    def is_accepted(self) -> bool:
        """Return True if every request used this wire and none was refused."""
        return {(sent.wire, sent.status) for sent in self.requests} == {(self.endpoint.wire, 200)}


def run_over_wires(program: Callable[[sigwire.LM], T]) -> Iterator[WireRun[T]]:
    """Run a program over each open endpoint in turn."""
    for endpoint in ENDPOINTS:
        if endpoint.is_open:
            with FakeProvider(sigwire.LM("offline/lexical")) as provider:
                url = provider.url(endpoint.wire)
                lm = sigwire.LM(endpoint.model, base_url=url, api_key="any key", cache=False, **endpoint.options)
                yield WireRun(endpoint, program(lm), provider.requests)
