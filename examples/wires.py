"""One program over every wire: a provider on this machine, real HTTP, and the same model behind each wire.

`sigwire.testing.FakeProvider` speaks the providers' wires at one address and refuses what they refuse; `offline/lexical` stands
behind it. The program is handed a model for each wire in turn and knows nothing of it, so whatever it gives must be equal.
LiteLLM is the sixth way where it is installed: over it go all providers that have no row in sigwire's table.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import sigwire
from sigwire.testing import FakeProvider, Recorded

__all__ = ["WAYS", "Trip", "Way", "trips"]

T = TypeVar("T")


@dataclass(frozen=True)
class Way:
    """A wire, and how a program names a model that is spoken to over it. ``needs`` is a package that may be missing."""

    wire: str
    model: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    needs: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether what it needs is installed."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


WAYS = (
    Way("openai", "openai/gpt-4.1"),
    Way("openai-responses", "openai/gpt-4.1", {"wire": "responses"}),
    Way("anthropic", "anthropic/claude-opus-5"),
    Way("gemini", "gemini/gemini-3-flash"),
    Way("ollama", "ollama/qwen3"),
    Way("openai", "litellm/openai/gpt-4.1", needs="litellm"),
)


@dataclass(frozen=True)
class Trip(Generic[T]):
    """What the program gave over one wire, and what went over the wire meanwhile."""

    way: Way
    result: T
    requests: tuple[Recorded, ...]

    @property
    def arrived(self) -> bool:
        """Whether every request came over this wire, and none was refused."""
        return {(sent.wire, sent.status) for sent in self.requests} == {(self.way.wire, 200)}


def trips(program: Callable[[sigwire.LM], T]) -> Iterator[Trip[T]]:
    """Run a program over each wire that is open, one after the other."""
    for way in WAYS:
        if way.is_open:
            with FakeProvider(sigwire.LM("offline/lexical")) as provider:
                lm = sigwire.LM(way.model, base_url=provider.url(way.wire), api_key="any key", **way.options)
                yield Trip(way, program(lm), provider.requests)
