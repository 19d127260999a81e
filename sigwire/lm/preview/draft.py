"""``RequestDraft``: a request as a model would send it, made by the code that sends it. Opens no socket and reads no key."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.shared.interface import EncodedRequest
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.policy.cache.choice import CacheChoice
from sigwire.lm.policy.cache.loading import cache_state
from sigwire.lm.policy.call import Call
from sigwire.lm.policy.money.prices import Price
from sigwire.lm.providers.address import EndpointResolver, ResolvedKey
from sigwire.lm.providers.row import ApiKey

__all__ = ["KEY_MARK", "CacheState", "NamedKeyResolver", "RequestDraft", "draft_of"]

CacheState: TypeAlias = Literal["hit", "miss", "off"]
KEY_MARK = "env:"
"""The mark before the name of an environment variable that stands for a key."""


class RequestDraft(NamedTuple):
    """A request with the options of its model, and its encoding.

    ``http``: the exchange, with names in place of keys; ``body``: its JSON. ``arguments``: those of a package's function, if
    the backend calls one. Both are ``None`` for a model without a wire. ``repeat``: how often the request is sent.
    """

    request: Request
    http: HttpRequest | None = None
    body: JsonObject | None = None
    arguments: JsonObject | None = None
    warnings: tuple[LMWarning, ...] = ()
    repeat: int = 1
    cache: CacheState = "off"
    price: Price | None = None


class _HttpDrafts(Protocol):
    def first_exchange(
        self, call: Call, resolver: Callable[..., EndpointResolver]
    ) -> tuple[HttpRequest, EncodedRequest]: ...


class _ArgumentDrafts(Protocol):
    def first_arguments(self, call: Call) -> tuple[JsonObject, EncodedRequest]: ...


def draft_of(backend: Any, call: Call, choice: CacheChoice, price: Price | None) -> RequestDraft:
    """Return the draft of a call. Raises ``CallerError`` if the request cannot be encoded."""
    request, state = call.request, cache_state(backend, call.request, choice)
    if hasattr(backend, "first_exchange"):
        drafts: _HttpDrafts = backend
        http, sent = drafts.first_exchange(call, NamedKeyResolver)
        return RequestDraft(request, http, sent.body, None, sent.warnings, sent.repeat, state, price)
    if hasattr(backend, "first_arguments"):
        package: _ArgumentDrafts = backend
        arguments, sent = package.first_arguments(call)
        return RequestDraft(request, None, sent.body, arguments, sent.warnings, sent.repeat, state, price)
    return RequestDraft(request, cache=state, price=price)


class NamedKeyResolver(EndpointResolver):
    """Resolves endpoints with ``env:NAME`` in place of keys. Calls no function that returns a key."""

    def _key(self, base: str, given: bool, users: Mapping[str, str]) -> ResolvedKey:
        row = self._provider
        if users and not users.keys().isdisjoint(key.header for key in row.keys):
            return ResolvedKey()
        if self._connection.api_key is None:
            return self._variable_key([key for key in row.keys if self._may_send(key, base, given)])
        # The variable of the row is named at the row's hosts only: a command with it would send that key.
        first = row.keys[0] if row.keys else ApiKey("")
        return _named(first, first.variable if not given or self.is_own_host(base) else "")

    def _variable_key(self, fitting: Sequence[ApiKey]) -> ResolvedKey:
        """Return the key of the first variable that is set; without one the first, if the provider needs a key."""
        found = [key for key in fitting if os.environ.get(key.variable, "").strip()]
        if not found and self._provider.key == "needed":
            found = list(fitting)
        return _named(found[0], found[0].variable) if found else ResolvedKey()


def _named(key: ApiKey, variable: str) -> ResolvedKey:
    return ResolvedKey({key.header: key.form.format(KEY_MARK + (variable or "API_KEY"))})
