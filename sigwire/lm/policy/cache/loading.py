"""The layers of the cache around a call. The cache is imported by the first call that uses it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from sigwire.lm.policy.cache.choice import is_off

if TYPE_CHECKING:
    from sigwire.core.request import Request
    from sigwire.lm.policy.cache.choice import CacheChoice
    from sigwire.lm.policy.call import Layer

    Identity = Callable[[Request], bytes | None]

__all__ = ["cache_layers", "cache_state"]


def cache_layers(backend: object, choice: CacheChoice) -> tuple[Layer, ...]:
    """Return the layers of the cache around a call: one, or none if the cache is off or the backend has no identity."""
    identity: Identity | None = None if choice.cache is False or is_off() else getattr(backend, "identity", None)
    return () if identity is None else (_layer_maker()(identity, choice),)


def cache_state(backend: object, request: Request, choice: CacheChoice) -> Literal["hit", "miss", "off"]:
    """Return "hit" if the stored answer would be returned, "miss" if an answer could be stored, else "off"."""
    if not cache_layers(backend, choice):
        return "off"
    from sigwire.lm.policy.cache.cache import cache
    from sigwire.lm.policy.cache.choice import with_settings
    from sigwire.lm.policy.cache.keys import changes_with_time, request_key

    if choice.cache != "on" and changes_with_time(request):
        return "off"
    is_fresh, sample = with_settings(choice)
    identity = cast(Any, backend).identity(request)
    key = None if identity is None else request_key(identity, request, sample)
    if key is None:
        return "off"
    return "hit" if not is_fresh and cache.holds(key) else "miss"


@functools.cache
def _layer_maker() -> Callable[[Identity, CacheChoice], Layer]:
    from sigwire.lm.policy.cache.cache import cache
    from sigwire.lm.policy.cache.layer import CacheLayer

    return partial(CacheLayer, cache)
