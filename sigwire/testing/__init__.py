"""For the tests of programs that use sigwire: a provider on this machine, and what it answers.

with FakeProvider(["Hello", Fault("rate_limit")]) as provider:
    lm = LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key="any")
"""

from __future__ import annotations

from sigwire.testing.answers import Answer, Fault, Raw
from sigwire.testing.fake_provider import FakeProvider, Recorded

__all__ = ["Answer", "FakeProvider", "Fault", "Raw", "Recorded"]
