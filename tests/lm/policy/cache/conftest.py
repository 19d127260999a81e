"""Fixtures of the tests of the cache: a cache in a folder of the test, and a provider that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sigwire.lm.client import LM
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.testing import FakeProvider


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a new cache, in memory and on disk. The suite's fixture switches it off."""
    configure_cache(disk_cache_dir=tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def provider(folder: Path) -> Iterator[FakeProvider]:
    """A provider that answers "answer 1", "answer 2", ..."""
    with FakeProvider([f"answer {number}" for number in range(1, 60)]) as found:
        yield found


@pytest.fixture
def lm_of(provider: FakeProvider) -> Callable[..., LM]:
    def make(model: str = "openai/gpt-4o-mini", wire: str = "openai", **options: Any) -> LM:
        return LM(model, base_url=provider.url(wire), api_key="k", **options)

    return make
