"""``request_cache`` of ``dspy.clients.cache``: functions of the user whose values are stored in ``dspy.cache``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from sigwire.dspy.cache import cache
from sigwire.dspy.models.cached_values import encode_value

__all__ = ["request_cache"]

F = TypeVar("F", bound=Callable[..., Any])

_CONNECTION = ("api_base", "api_key", "base_url")


def request_cache(
    cache_arg_name: str | None = None,
    ignored_args_for_cache_key: Sequence[str] | None = None,
    enable_memory_cache: bool = True,
    *,
    maxsize: int | None = None,
) -> Callable[[F], F]:
    """Return a decorator of functions, sync or async: a call with known arguments returns the value in ``dspy.cache``.

    The key has the name of the function and its arguments without ``ignored_args_for_cache_key`` (default: key and
    endpoint); or the entries of the dict in the argument ``cache_arg_name``. The value is one that
    ``Cache`` stores; others, and those of calls whose arguments are not JSON, are not stored. ``configure_cache`` chooses
    memory and disk for all: ``enable_memory_cache`` and ``maxsize`` have no effect.

    >>> @request_cache()
    ... def search(query, k=2):
    ...     return [query] * k
    >>> search("tea"), search(query="tea")  # the second one from the cache, if it is on
    (['tea', 'tea'], ['tea', 'tea'])
    """
    ignored = _CONNECTION if ignored_args_for_cache_key is None else tuple(ignored_args_for_cache_key)

    def decorate(function: F) -> F:
        name = f"{function.__module__}.{function.__qualname__}"
        key_of = _CallKeys(name, inspect.signature(function), cache_arg_name, ignored).key_of

        @wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            key = key_of(args, kwargs)  # the function may change its arguments
            if key is not None and (found := cache.find_value(key)):
                return found[0]
            return _stored(key, function(*args, **kwargs))

        @wraps(function)
        async def acall(*args: object, **kwargs: object) -> object:
            key = key_of(args, kwargs)
            if key is not None and (found := cache.find_value(key)):
                return found[0]
            return _stored(key, await function(*args, **kwargs))

        return cast("F", acall if inspect.iscoroutinefunction(function) else call)

    return decorate


@dataclass(frozen=True, slots=True)
class _CallKeys:
    """The keys of the calls of a function."""

    name: str
    parameters: inspect.Signature
    argument: str | None
    ignored: tuple[str, ...]

    def key_of(self, args: tuple[object, ...], kwargs: dict[str, object]) -> bytes | None:
        given = _named(self.parameters.bind(*args, **kwargs))
        request = {**(given[self.argument] if self.argument else given), "_fn_identifier": self.name}
        try:
            return bytes.fromhex(cache.cache_key(request, self.ignored))
        except (RecursionError, TypeError, ValueError):
            return None


def _named(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return the arguments by name, with defaults; ``**kwargs`` by their own names."""
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        found |= value if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    return found


def _stored(key: bytes | None, value: object) -> object:
    """Store the value if it can be stored; return it."""
    if key is not None and (answer := encode_value(value)) is not None:
        cache.store(key, answer)
    return value
