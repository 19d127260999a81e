"""TODO map."""

from __future__ import annotations

import os
import socket

__all__ = ["ProtocolError", "TooLongError", "describe_os_error"]


class ProtocolError(ValueError):
    """What came is not a whole HTTP/1.1 reply, or a proxy refused. The message says what was wrong, without quoting a body.

    ``hint`` says what to do; ``retryable`` whether trying again can help.
    """

    hint = ""
    retryable = True


class TooLongError(ProtocolError):
    """A reply's body is longer than it may be."""

    hint = "If it is what it should be, raise max_reply of the HttpTransport."
    retryable = False


_CERTIFICATE_HINT = "If an authority of your own issued the certificate, pass its file as ca."


_REFUSED_HINT = "Check that the server is running and that the address is right."


_NAME_HINT = "Check the host's name and the network."


def describe_os_error(error: OSError) -> tuple[str, str, bool]:
    """What happened, what to do about it, and whether trying again can help."""
    import ssl  # a trip that goes well over plain HTTP does without

    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted ({error.verify_message})", _CERTIFICATE_HINT, False
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no reason given'})", "", True
    if isinstance(error, socket.gaierror):
        return f"the host's name is not known ({error.strerror})", _NAME_HINT, True
    what = os.strerror(error.errno).lower() if error.errno else str(error)
    return what, _REFUSED_HINT if isinstance(error, ConnectionRefusedError) else "", True
