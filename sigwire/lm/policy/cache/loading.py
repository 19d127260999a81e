"""The import of the cache at the first call that uses it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sigwire.core.request import Request
    from sigwire.lm.policy.cache.choice import CacheChoice
    from sigwire.lm.policy.call import Layer

__all__ = ["load_cache_layer"]


@functools.cache
def load_cache_layer() -> Callable[[Callable[[Request], bytes | None], CacheChoice], Layer]:
    """Return the constructor of a layer around the cache of the process."""
    from sigwire.lm.policy.cache.cache import cache
    from sigwire.lm.policy.cache.layer import CacheLayer

    return partial(CacheLayer, cache)
