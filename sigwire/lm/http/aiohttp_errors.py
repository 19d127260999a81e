"""Errors of aiohttp as errors of sigwire.

aiohttp's errors are not chained as the cause: the error of a proxy holds the headers that were sent to it, its password
among them.
"""

from __future__ import annotations

from typing import NoReturn

import aiohttp
from aiohttp.http import HttpProcessingError

from sigwire.errors import LMError
from sigwire.lm.http.errors import ProtocolError
from sigwire.lm.http.exchange import LOGIN_HINT, HttpExchange

__all__ = ["raise_transport_error"]


def raise_transport_error(error: BaseException, exchange: HttpExchange) -> NoReturn:
    """Raise the ``LMError`` for a network error; raise any other error unchanged."""
    failure = _error_for(error, exchange)
    if failure is None:
        raise error
    raise failure from getattr(error, "os_error", None)


def _error_for(error: BaseException, exchange: HttpExchange) -> LMError | None:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return exchange.proxy_refusal(error.status)
    if isinstance(error, aiohttp.ClientConnectorError):
        cause: OSError = getattr(error, "certificate_error", None) or error.os_error
        return exchange.error_for(cause, (error.host, error.port))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return exchange.transport_error("the server closed the connection without a reply")
    # An error of the optional SOCKS packages, found without importing them.
    is_socks = type(error).__module__.startswith(("python_socks", "aiohttp_socks"))
    if is_socks and not isinstance(error, TimeoutError):
        hint = LOGIN_HINT if "authentication" in str(error).lower() else ""
        return exchange.transport_error(f"{exchange.proxy_name}: {error}", hint)
    is_framing = isinstance(error, aiohttp.ClientError | HttpProcessingError) and not isinstance(error, OSError)
    return exchange.error_for(ProtocolError("the server's answer is not an HTTP/1.1 reply") if is_framing else error)
