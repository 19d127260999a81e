"""HTTP for the wires: one request out, one reply back, blocking or awaited. Knows no provider, retry or key.

messages      HttpRequest, HttpReply, and the protocol ``Transport``
transport     HttpTransport: the transport that sigwire uses; chooses the client
sync_client   blocking requests: a connection pool                                   connect   opens its sockets
async_client  awaited requests: aiohttp's connector, a pool per loop                 aiohttp_errors
reply_parser  the replies of both clients, parsed by httptools
exchange      state of one request; request and reply heads; socket options          deadlines, compression, errors
urls          URLs, proxies of the environment, TLS contexts                         reply_stream   a reply as effects
reply_mask    secrets of a request, masked in its reply
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.lm.http.messages import HttpReply, HttpRequest, Transport
    from sigwire.lm.http.transport import HttpTransport

__all__ = ["HttpReply", "HttpRequest", "HttpTransport", "Transport"]

__getattr__ = lazy_names(__name__, messages="HttpReply HttpRequest Transport", transport="HttpTransport")
