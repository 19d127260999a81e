"""The id that a provider gives a request, in the headers of its reply: its support asks for it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["request_id_of"]

_NAMES = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-typesafe-request-id")


def request_id_of(headers: Mapping[str, str] | None) -> str | None:
    """Return the id of a request; ``None`` without one.

    >>> request_id_of({"Request-Id": "req_1"}), request_id_of({})
    ('req_1', None)
    """
    lower = {name.lower(): value for name, value in (headers or {}).items()}
    return next((found for name in _NAMES if (found := lower.get(name))), None)
