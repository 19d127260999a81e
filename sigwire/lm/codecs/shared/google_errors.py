"""The error replies of Google's APIs: reasons beside the message, and the rules for them. Of the wires that Google serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sigwire.core.json import JsonObject, JsonValue
from sigwire.errors import (
    LMAuthenticationError,
    LMBillingError,
    LMInvalidRequestError,
    LMTimeoutError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.shared.errors import KEY_HINT, ErrorBody, ErrorRule, read_body, read_error_body
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at

__all__ = ["GOOGLE_ERRORS", "read_google_error"]

GOOGLE_ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(LMAuthenticationError, codes=frozenset({"api_key_invalid"}), hint=KEY_HINT),
    ErrorRule(LMAuthenticationError, frozenset({400}), texts=("api key not valid", "api key expired"), hint=KEY_HINT),
    ErrorRule(
        LMBillingError,
        frozenset({429}),
        codes=frozenset({"quota_per_day"}),
        hint="The quota of the day is used up; a retry before tomorrow does not help.",
    ),
    ErrorRule(
        LMBillingError,
        frozenset({400}),
        codes=frozenset({"failed_precondition"}),
        texts=("billing",),
        hint="Check the project's billing.",
    ),
    ErrorRule(
        LMAuthenticationError,
        frozenset({400}),
        codes=frozenset({"failed_precondition"}),
        hint="The service is not available to this project or region; billing may have to be enabled.",
    ),
    ErrorRule(
        LMInvalidRequestError,
        frozenset({400}),
        texts=("missing a thought_signature",),
        hint="Put each answer into the history unchanged, with its signatures: choice.message().",
    ),
    ErrorRule(
        LMInvalidRequestError,
        frozenset({400}),
        texts=("thought signature", "thought_signature"),
        hint="A signature is valid for the model, key and route that made it; leave others out of the history.",
    ),
    ErrorRule(
        LMUnsupportedModelError,
        frozenset({404}),
        hint="Check the model's name: {provider} does not serve {model!r} to this key under this version of the API.",
    ),
    ErrorRule(LMTimeoutError, frozenset({504})),
)


def read_google_error(status: int, headers: Mapping[str, str], body: bytes | str | JsonValue) -> ErrorBody:
    """Read an error reply. Among its codes, Google's reasons come first, and words come before numbers.

    >>> body = '{"error": {"code": 429, "message": "Wait.", "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}}'
    >>> read_google_error(429, {}, body).codes
    ('quota_per_day', '429')
    """
    data = read_body(body) if isinstance(body, bytes | str) else body
    error = read_error_body(status, headers, data)
    data = data[0] if isinstance(data, list) and data else data
    details = objects_of(value_at(data, "error.details"))
    reasons = [reason.lower() for detail in details if (reason := string_of(detail, "reason"))]
    if any(map(_has_daily_limit, details)):
        reasons.append("quota_per_day")
    codes = sorted(error.codes, key=str.isdigit)
    return replace(error, codes=tuple(dict.fromkeys((*reasons, *codes))))


def _has_daily_limit(detail: JsonObject) -> bool:
    limits = objects_of(detail.get("violations"))
    return any("perday" in (string_of(limit, "quotaId") or "").lower() for limit in limits)
