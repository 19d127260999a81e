"""Test support for programs that use sigwire: a provider on the loopback interface, its answers and its streams.

with FakeProvider(["Hello", Fault("rate_limit"), Streamed("Hello", seed=7)]) as provider:
    lm = LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key="any")
"""

from __future__ import annotations

from sigwire.testing.answers import Answer, Delivered, Events, Fault, Raw, Streamed
from sigwire.testing.batches.desk import BatchPlan
from sigwire.testing.chunking import Gate
from sigwire.testing.fake_provider import FakeProvider, Recorded
from sigwire.testing.playback import Progress
from sigwire.testing.rate_limit import RateLimit, Traffic

__all__ = [
    "Answer", "BatchPlan", "Delivered", "Events", "FakeProvider", "Fault", "Gate", "Progress", "RateLimit", "Raw", "Recorded",
    "Streamed", "Traffic",
]  # fmt: skip
