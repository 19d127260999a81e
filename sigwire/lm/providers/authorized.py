"""A transport that adds the headers of a cloud's credentials to requests without an ``authorization`` header.

The headers come from a blocking function of the request: an AWS signature, or a token that the function renews. For an
awaited request the function runs in a thread, because it may read files or ask a server of the cloud.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

from sigwire.effects.loops import to_thread
from sigwire.lm.http.messages import AsyncReplyStream, HttpReply, HttpRequest, ReplyStream, Transport, method_of
from sigwire.lm.secrets import wrap_headers

__all__ = ["AuthorizedTransport", "Authorizer", "authorized"]

Authorizer: TypeAlias = Callable[[HttpRequest, Mapping[str, str]], Mapping[str, str]]
"""Returns the headers to add to a request, ``{}`` for none. Gets the variables of the URL that were given in code as well."""


class AuthorizedTransport:
    """Sends requests through ``transport``, with the headers of ``authorize`` if they have no ``authorization`` header.

    >>> from sigwire.lm.http import HttpTransport
    >>> AuthorizedTransport(HttpTransport(), lambda request, variables: {"authorization": "Bearer of-now"}).close()
    """

    def __init__(self, transport: Transport, authorize: Authorizer, variables: Mapping[str, str] | None = None) -> None:
        self._transport, self._authorize, self._variables = transport, authorize, variables or {}
        self._added: Mapping[str, str] = {}

    @property
    def secrets(self) -> tuple[object, ...]:
        """The secrets that a reply must not show: the headers that were added last, and the secrets of the transport."""
        return (self._added, *getattr(self._transport, "secrets", ()))

    def with_variables(self, variables: Mapping[str, str]) -> AuthorizedTransport:
        """Return the transport with the variables of a model; those that it has win."""
        return AuthorizedTransport(self._transport, self._authorize, {**variables, **self._variables})

    def send(self, request: HttpRequest) -> HttpReply:
        reply: HttpReply = method_of(self._transport, "send")(self._add_headers(request))
        return reply

    async def asend(self, request: HttpRequest) -> HttpReply:
        reply: HttpReply = await method_of(self._transport, "asend")(await to_thread(self._add_headers, request))
        return reply

    def stream(self, request: HttpRequest) -> AbstractContextManager[ReplyStream]:
        reply: AbstractContextManager[ReplyStream] = method_of(self._transport, "stream")(self._add_headers(request))
        return reply

    @asynccontextmanager
    async def astream(self, request: HttpRequest) -> AsyncGenerator[AsyncReplyStream, None]:
        async with method_of(self._transport, "astream")(await to_thread(self._add_headers, request)) as reply:
            yield reply

    def close(self) -> None:
        self._transport.close()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _add_headers(self, request: HttpRequest) -> HttpRequest:
        if "authorization" in request.headers:
            return request
        self._added = added = wrap_headers(self._authorize(request, self._variables))
        return replace(request, headers={**request.headers, **added})


def authorized(transport: Transport, name: str, variables: Mapping[str, str]) -> Transport:
    """Return the transport with the function ``name`` ("module:function") of a row; one that authorizes keeps its function."""
    if isinstance(transport, AuthorizedTransport):
        return transport.with_variables(variables)
    module, _, function = name.partition(":")
    return AuthorizedTransport(transport, getattr(importlib.import_module(module), function), variables)
