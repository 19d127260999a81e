"""What aiohttp's errors mean, in sigwire's words.

    tell(error, trip)        raises the error of a request that failed

aiohttp's own errors are not shown as the cause: that of a proxy holds the headers it was sent, its password among them.
"""

from __future__ import annotations

from typing import NoReturn, cast

import aiohttp
from aiohttp.http import HttpProcessingError

from sigwire.errors import LMError
from sigwire.lm.http.errors import ProtocolError, describe_os_error
from sigwire.lm.http.exchange import HttpExchange
from sigwire.lm.http.urls import Proxy

__all__ = ["raise_transport_error"]


def raise_transport_error(error: BaseException, trip: HttpExchange) -> NoReturn:
    """Raise what went wrong in sigwire's words; what is not the network's business, as it is."""
    told = _told(error, trip)
    if told is None:
        raise error
    raise told from getattr(error, "os_error", None)


def _told(error: BaseException, trip: HttpExchange) -> LMError | None:
    if isinstance(error, TimeoutError):
        return trip.timed_out()
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return trip.broken(_no_tunnel(trip.proxy, error.status))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return trip.broken(*describe_os_error(cast(OSError, error.certificate_error)))
    if isinstance(error, aiohttp.ClientConnectorError):
        return trip.broken(*describe_os_error(error.os_error))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        begun = not isinstance(error.message, str)  # aiohttp puts there what has come of the head
        where = "in the middle of the reply's head" if begun else "without a reply"
        return trip.broken(f"the server closed the connection {where}")
    if isinstance(error, OSError):
        return trip.broken(*describe_os_error(error))
    if isinstance(error, aiohttp.ClientPayloadError):
        cut = "Not enough data" in str(error)
        what = "the server closed the connection in the middle of" if cut else "there is a fault in the framing of"
        return trip.broken(f"{what} the reply's body")
    if isinstance(error, aiohttp.ClientError | HttpProcessingError):
        return trip.broken("what came is not an HTTP/1.1 reply")
    if isinstance(error, ProtocolError):
        return trip.broken(str(error), error.hint, error.retryable)
    return trip.broken(_socks_fault(trip.proxy, error)) if _is_socks_error(error) else None


# --- proxies -------------------------------------------------------------------------------------------


def _no_tunnel(proxy: Proxy | None, status: int) -> str:
    """What to say of a proxy that refused CONNECT."""
    why = " (it wants a user name and password in its URL)" if status == 407 else ""
    return f"{proxy} answered CONNECT with status {status}{why}"


def _is_socks_error(error: BaseException) -> bool:
    """Whether it is one of the extra's own, which must not be imported to ask."""
    return type(error).__module__.startswith(("python_socks", "aiohttp_socks"))


_SOCKS_FAULTS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "it took too long",
    7: "command not supported",
    8: "address type not supported",
}


def _socks_fault(proxy: Proxy | None, error: BaseException) -> str:
    """What to say of a SOCKS proxy that refused, or is not there."""
    code = getattr(error, "error_code", None)
    if code is not None:
        return f"{proxy} could not connect: {_SOCKS_FAULTS.get(code, f'fault {code}')}"
    hint = " (user and password belong into its URL)" if "authentication" in str(error).lower() else ""
    return f"{proxy}: {error}{hint}"
