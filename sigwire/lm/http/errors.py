"""Errors below ``sigwire.errors``: a broken reply as ``ProtocolError``, and operating system errors in words.

Both clients use them, so that one failure has one text. An exchange turns them into ``LMTransportError``.
"""

from __future__ import annotations

import os
import socket

__all__ = ["ProtocolError", "TooLongError", "describe_os_error"]


class ProtocolError(ValueError):
    """A reply that is not a whole HTTP/1.1 reply, or a refusal by a proxy. The message quotes no body.

    ``hint`` is the advice for the user. ``retryable``: whether a retry can succeed.
    """

    hint = ""
    retryable = True


class TooLongError(ProtocolError):
    """A reply body over the limit of the transport."""

    hint = "If the length is expected, raise max_reply of the HttpTransport."
    retryable = False


_CERTIFICATE_HINT = (
    "If a private authority issued the certificate, name its PEM file in REQUESTS_CA_BUNDLE, or pass "
    'LM(..., transport=sigwire.lm.http.HttpTransport(ca="authority.pem")).'
)
_REFUSED_HINT = "Check that the server is running and that the address is right."
_NAME_HINT = "Check the host's name and the network."


def describe_os_error(error: OSError) -> tuple[str, str, bool]:
    """Return the problem, a hint, and whether a retry can succeed."""
    import ssl  # plain HTTP without errors never loads ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted ({error.verify_message})", _CERTIFICATE_HINT, False
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no reason given'})", "", True
    if isinstance(error, socket.gaierror):
        return f"the host name is unknown ({error.strerror})", _NAME_HINT, True
    what = os.strerror(error.errno).lower() if error.errno else str(error)
    return what, _REFUSED_HINT if isinstance(error, ConnectionRefusedError) else "", True
