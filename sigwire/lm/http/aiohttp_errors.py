"""Errors of aiohttp as errors of sigwire.

    raise_transport_error(error, exchange)        raise the error for a request that failed

aiohttp's errors are not chained as the cause: the error of a proxy holds the headers that were sent to it, its password
among them.
"""

from __future__ import annotations

from typing import NoReturn, cast

import aiohttp
from aiohttp.http import HttpProcessingError

from sigwire.errors import LMError
from sigwire.lm.http.exchange import HttpExchange
from sigwire.lm.http.urls import Proxy

__all__ = ["raise_transport_error"]


def raise_transport_error(error: BaseException, exchange: HttpExchange) -> NoReturn:
    """Raise the ``LMError`` for a network error; raise any other error unchanged."""
    failure = _error_for(error, exchange)
    if failure is None:
        raise error
    raise failure from getattr(error, "os_error", None)


def _error_for(error: BaseException, exchange: HttpExchange) -> LMError | None:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return exchange.transport_error(_tunnel_refusal(exchange.proxy, error.status))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return exchange.error_for(cast(OSError, error.certificate_error))
    if isinstance(error, aiohttp.ClientConnectorError):
        return exchange.error_for(error.os_error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return exchange.transport_error("the server closed the connection without a reply")
    if _is_socks_error(error):
        return exchange.transport_error(_socks_problem(exchange.proxy, error))
    failure = exchange.error_for(error)
    if failure is None and isinstance(error, aiohttp.ClientError | HttpProcessingError):
        return exchange.transport_error("the server's answer is not an HTTP/1.1 reply")
    return failure


# --- proxies -------------------------------------------------------------------------------------------


def _tunnel_refusal(proxy: Proxy | None, status: int) -> str:
    """Return the problem text for a proxy that refused CONNECT."""
    why = " (put a user name and password into its URL)" if status == 407 else ""
    return f"{proxy} answered CONNECT with status {status}{why}"


def _is_socks_error(error: BaseException) -> bool:
    """Return True for an error of the optional SOCKS packages, without importing them."""
    return type(error).__module__.startswith(("python_socks", "aiohttp_socks"))


_SOCKS_ERRORS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "timed out",
    7: "command not supported",
    8: "address type not supported",
}


def _socks_problem(proxy: Proxy | None, error: BaseException) -> str:
    """Return the problem text for a SOCKS proxy that refused or is unreachable."""
    code = getattr(error, "error_code", None)
    if code is not None:
        return f"{proxy} could not connect: {_SOCKS_ERRORS.get(code, f'error {code}')}"
    hint = " (put the user and password into its URL)" if "authentication" in str(error).lower() else ""
    return f"{proxy}: {error}{hint}"
