"""Fixtures of the tests of batches: a clock that jumps, and models of the three wires at one fake provider."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire.lm.batch.model import BatchLM
from sigwire.lm.client import LM
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.testing import FakeProvider
from tests.lm.batch.clock import JumpingClock

MODELS = {
    "anthropic": "anthropic/claude-haiku-4-5",
    "openai": "openai/gpt-4.1-mini",
    "openai-responses": "openai/gpt-4.1-mini",
    "gemini": "gemini/gemini-2.5-flash",
}


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def make(tmp_path: Path, clock: JumpingClock) -> Callable[..., BatchLM]:
    """Return a function that makes the BatchLM of a wire at a fake provider."""

    def make_batch_lm(provider: FakeProvider, wire: str = "anthropic", **options: Any) -> BatchLM:
        given: dict[str, Any] = {"wire": "responses"} if wire == "openai-responses" else {}
        given["base_url"] = provider.url("openai" if wire == "openai-responses" else wire)
        retry = RetryPolicy(first_wait=0.001, longest_backoff=0.001)
        lm = LM(MODELS[wire], api_key="k", cache=False, retry=retry, **given)
        settings: dict[str, Any] = {"store": tmp_path / "runs" / "x.batch", "clock": clock, **options}
        model = BatchLM(lm, **settings)
        if settings["clock"] is clock:
            clock.follow(model.queue)
        return model

    return make_batch_lm
