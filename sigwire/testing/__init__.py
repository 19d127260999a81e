"""Test support for programs that use sigwire: a provider on the loopback interface, its answers and its streams.

with FakeProvider(["Hello", Fault("rate_limit"), Streamed("Hello", seed=7)]) as provider:
    lm = LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key="any")

fake_provider  FakeProvider: wires, script, faults      answers       what the script returns, in order
server         HTTP/1.1 on the loopback interface       request_node  a value of a request, and errors at its path
wire           the base of a wire                       wires         a file for each wire, and for its stream
clouds         Bedrock's Converse, Claude on Vertex AI  embeddings    the endpoints of embeddings
batches        batch APIs                               rate_limit    limits that the provider announces and keeps
families       requests that vendors refuse for a family of models, on every host
refusals       histories that real providers refuse     media         media that real providers refuse
chunking       answers cut into deltas                  framing       events as bytes
playback       a stream sent, and its four ends         places        the tables of wires, clouds and batch APIs
clock          FakeClock: waits that take no time
"""

from __future__ import annotations

from sigwire.testing.answers import Answer, Delivered, Events, Fault, Raw, Streamed
from sigwire.testing.batches.desk import BatchPlan
from sigwire.testing.chunking import Gate
from sigwire.testing.clock import FakeClock
from sigwire.testing.fake_provider import FakeProvider, Recorded
from sigwire.testing.playback import Progress
from sigwire.testing.rate_limit import RateLimit, Traffic

__all__ = [
    "Answer", "BatchPlan", "Delivered", "Events", "FakeClock", "FakeProvider", "Fault", "Gate", "Progress", "RateLimit", "Raw",
    "Recorded", "Streamed", "Traffic",
]  # fmt: skip
