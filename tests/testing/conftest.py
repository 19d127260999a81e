"""Fixtures of the fake provider's tests: a running provider with an empty script, and clients that are slow to create."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sigwire.testing import FakeProvider


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


@pytest.fixture(scope="session")
def openai_package() -> Iterator[Any]:
    openai = pytest.importorskip("openai", reason="the official openai package is not installed")
    with openai.OpenAI(api_key="secret", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def anthropic_package() -> Iterator[Any]:
    anthropic = pytest.importorskip("anthropic", reason="the official anthropic package is not installed")
    with anthropic.Anthropic(api_key="secret", max_retries=0) as client:
        yield client
