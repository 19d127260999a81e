"""Error replies, shared by all wires: what a body says (``Fault``), and which error that is (a table of ``ErrorRule``).

    fault = read_fault(status, headers, body)       tolerant of every shape seen in the wild, HTML included
    error = lm_error(fault, RULES, target)          first rule that fits; STATUS_RULES after the wire's own

A rule fits when everything it names fits: status, code or type, and a piece of the message. Its ``hint`` is the last
sentence of the message: what to do next. No clock: an HTTP date to retry after is measured against the reply's own
``date`` header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.errors import (
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnexpectedError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.shared.untrusted import string_of

if TYPE_CHECKING:
    from sigwire.lm.codecs.shared.interface import Target, WireProfile

__all__ = [
    "CONTEXT_TEXTS",
    "OPENAI_ERRORS",
    "STATUS_RULES",
    "ErrorBody",
    "ErrorRule",
    "empty_reply_error",
    "lm_error",
    "read_body",
    "read_error_body",
]


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an error reply says. ``codes`` are its machine words in lower case: ``code``, ``type``, ``status``.

    ``retry`` is the server's own word on whether to try again; ``retry_after`` is in seconds.
    """

    status: int | None
    message: str
    codes: tuple[str, ...] = ()
    request_id: str | None = None
    retry_after: float | None = None
    retry: bool | None = None


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """Which error a fault is. Empty conditions fit everything; ``texts`` are pieces of the message, in lower case.

    ``hint`` may use ``{provider}`` and ``{model}``. ``retry`` overrides the class's word on trying again.
    """

    error: type[LMError]
    statuses: frozenset[int] = frozenset()
    codes: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    hint: str = ""
    retry: bool | None = None

    def matches(self, fault: ErrorBody) -> bool:
        """Whether the fault is this rule's.

        >>> ErrorRule(LMServerError, frozenset({503})).matches(ErrorBody(503, "overloaded"))
        True
        """
        if self.statuses and fault.status not in self.statuses:
            return False
        if self.codes and not self.codes.intersection(fault.codes):
            return False
        message = fault.message.lower()
        return not self.texts or any(text in message for text in self.texts)


def _statuses(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


CONTEXT_TEXTS: tuple[str, ...] = (
    "context_length_exceeded",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the maximum number of tokens allowed",
    "input tokens exceed the configured limit",
    "is longer than the model's context length",
    "longer than the context length",
    "maximum context length is",
    "model's maximum context limit",
    "prompt is too long",
    "string too long. expected a string with maximum length",
    "tokens + `max_new_tokens` must be",
)

_KEY_HINT = "Check the API key and what it may do."
_MODEL_HINT = "Check the model's name: {provider} does not serve {model!r} to this key."
_CONTEXT_HINT = "Shorten the request or use a model with a larger context."

STATUS_RULES: tuple[ErrorRule, ...] = (
    ErrorRule(ContextWindowExceededError, _statuses(400, 413, 422, 500), texts=CONTEXT_TEXTS, hint=_CONTEXT_HINT),
    ErrorRule(LMAuthenticationError, _statuses(401, 403), hint=_KEY_HINT),
    ErrorRule(LMBillingError, _statuses(402), hint="Check the account's balance and limits."),
    ErrorRule(LMUnsupportedModelError, _statuses(404), hint=_MODEL_HINT),
    ErrorRule(LMTimeoutError, _statuses(408)),
    ErrorRule(LMServerError, _statuses(409)),
    ErrorRule(ContextWindowExceededError, _statuses(413), hint=_CONTEXT_HINT),
    ErrorRule(LMRateLimitError, _statuses(425, 429)),
    ErrorRule(LMTransportError, _statuses(499)),
    ErrorRule(LMInvalidRequestError, frozenset(range(400, 500))),
    ErrorRule(LMServerError, frozenset(range(500, 600))),
)
"""By status alone. A wire's own rules come before these."""

_OPENAI_BILLING = frozenset({"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "402"})

OPENAI_ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        ContextWindowExceededError,
        codes=frozenset({"context_length_exceeded", "exceed_context_size_error"}),
        hint=_CONTEXT_HINT,
    ),
    ErrorRule(ContextWindowExceededError, frozenset({400, 413, 422, 500}), texts=CONTEXT_TEXTS),
    ErrorRule(
        LMBillingError,
        codes=_OPENAI_BILLING,
        hint="Check the account's balance and limits; trying again does not help.",
    ),
    ErrorRule(
        LMContentFilteredError,
        codes=frozenset({"content_filter", "content_policy_violation"}),
        hint="Change what is sent; trying again does not help.",
    ),
    ErrorRule(
        LMUnsupportedModelError,
        codes=frozenset({"model_not_found"}),
        hint=_MODEL_HINT,
    ),
    # Groq checks calls itself. A reply that openai_chat.recover cannot read as a call is retryable.
    ErrorRule(LMInvalidRequestError, codes=frozenset({"tool_use_failed"}), retry=True),
    ErrorRule(LMRateLimitError, codes=frozenset({"rate_limit_exceeded", "rate_limit_error", "slow_down"})),
    ErrorRule(LMServerError, codes=frozenset({"server_error", "server_is_overloaded", "insufficient_system_resource"})),
)
"""By OpenAI's error codes: the rows of its two wires and of compatible hosts."""


def lm_error(fault: ErrorBody, rules: Iterable[ErrorRule], target: Target[WireProfile]) -> LMError:
    """The error of a fault, by the first rule that fits; an unknown status is ``LMUnexpectedError``."""
    rule = next((rule for rule in (*rules, *STATUS_RULES) if rule.matches(fault)), ErrorRule(LMUnexpectedError))
    said = fault.message.rstrip(". \n") or f"{target.provider} answered with status {fault.status} and no message"
    hint = rule.hint.format(provider=target.provider, model=target.model)
    error = rule.error(
        f"{said}. {hint}".rstrip(),
        model=target.model,
        provider=target.provider,
        provider_code=fault.codes[0] if fault.codes else None,
        status=fault.status,
        request_id=fault.request_id,
        retry_after=fault.retry_after,
    )
    retry = rule.retry if fault.retry is None else fault.retry
    if retry is not None:
        error.retryable = retry
    return error


def empty_reply_error(what: str, body: JsonValue, target: Target[WireProfile]) -> LMError:
    """The error of a reply that came with status 200 and is none: without ``what`` ("choices"), and without an error.

    A server that fails so is asked again; one that answers in plain words is not.
    """
    said = f"The reply holds no {what}: {read_error_body(200, {}, body).message or dumps(body)[:200]}"
    spoke = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    error = LMUnexpectedError if spoke else LMServerError
    return error(said, model=target.model, provider=target.provider, status=200)


# --- reading a reply -------------------------------------------------------------------------------------


def read_body(body: bytes | str) -> JsonValue:
    """The body as JSON, or as text where it is none. A byte order mark is ignored.

    >>> read_body(b'{"error": "no"}'), read_body("<html>Bad gateway</html>")
    ({'error': 'no'}, '<html>Bad gateway</html>')
    """
    text = (body.decode("utf-8", "replace") if isinstance(body, bytes) else body).removeprefix("\ufeff")
    try:
        data: JsonValue = loads(text)
    except ValueError:
        return text
    return data


def read_error_body(status: int | None, headers: Mapping[str, str], body: bytes | str | JsonValue) -> ErrorBody:
    """What an error reply says, whichever of the usual shapes it has; of text without a shape the first 500 characters.

    >>> fault = read_error_body(400, {}, '{"error": {"message": "Bad tool", "type": "invalid_request_error", "code": null}}')
    >>> fault.message, fault.codes
    ('Bad tool', ('invalid_request_error',))
    """
    lower = {name.lower(): value for name, value in headers.items()}
    data = read_body(body) if isinstance(body, bytes | str) else body
    data = data[0] if isinstance(data, list) and data else data
    detail = _detail(data)
    message = _message(data, detail)
    return ErrorBody(
        status,
        message,
        _codes(detail),
        lower.get("x-request-id") or lower.get("request-id") or string_of(data, "request_id"),
        _wait(lower, detail, message),
        _SAYS_RETRY.get(lower.get("x-should-retry", "").lower()),
    )


_SAYS_RETRY: Mapping[str, bool] = {"true": True, "false": False}


def _detail(data: JsonValue) -> JsonObject:
    if not isinstance(data, dict):
        return {}
    inner = data.get("error")
    return inner if isinstance(inner, dict) else data


def _message(data: JsonValue, detail: JsonObject) -> str:
    if isinstance(data, str):
        return _excerpt(data)
    if isinstance(data, dict) and isinstance(data.get("error"), str):
        return str(data["error"])
    for name in ("message", "detail", "msg"):
        value = detail.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list):
            return "; ".join(filter(None, map(_complaint, value)))
    return ""


_TITLE, _TITLE_END = re.compile(r"<title[^<>]*>", re.IGNORECASE), re.compile("</title>", re.IGNORECASE)


def _excerpt(text: str) -> str:
    """The title of a page, or how a text begins."""
    title = _TITLE.search(text)
    end = _TITLE_END.search(text, title.end()) if title else None
    return (text[title.end() : end.start()] if title and end else text).strip()[:500]


def _complaint(item: JsonValue) -> str:
    """One entry of a validation error's list: where, and what."""
    if not isinstance(item, dict):
        return str(item)
    place = item.get("loc")
    where = ".".join(map(str, place)) if isinstance(place, list) else ""
    return ": ".join(filter(None, (where, string_of(item, "msg") or string_of(item, "message") or "")))


def _codes(detail: JsonObject) -> tuple[str, ...]:
    found = (detail.get(name) for name in ("code", "type", "status"))
    words = [str(word).lower() for word in found if isinstance(word, str | int) and not isinstance(word, bool) and word]
    return tuple(dict.fromkeys(words))


# --- how long to wait --------------------------------------------------------------------------------------

_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_TRY_AGAIN = re.compile(r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|s|m|h))+)", re.IGNORECASE)


def _wait(headers: Mapping[str, str], detail: JsonObject, message: str) -> float | None:
    """The first hint that can be read: milliseconds, seconds or date, the body's retry info, the message's words."""
    told = _TRY_AGAIN.search(message)
    hints = (
        _number(headers.get("retry-after-ms"), 0.001),
        _number(headers.get("retry-after"), 1.0),
        _until(headers.get("retry-after"), headers.get("date")),
        _retry_info(detail),
        _span(told.group(1)) if told else None,
    )
    return next((hint for hint in hints if hint is not None and hint >= 0), None)


def _number(text: str | None, scale: float) -> float | None:
    try:
        return float(text) * scale if text else None
    except ValueError:
        return None


def _until(date: str | None, now: str | None) -> float | None:
    then, start = _http_date(date or ""), _http_date(now or "")
    return max(0.0, (then - start).total_seconds()) if then and start else None


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HTTP_DATE = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")


def _http_date(text: str) -> datetime | None:
    found = _HTTP_DATE.fullmatch(text)
    if not found or found.group(2) not in _MONTHS:
        return None
    day, month, *rest = found.groups()
    try:
        year, hour, minute, second = map(int, rest)
        return datetime(year, _MONTHS.index(month) + 1, int(day), hour, minute, second)
    except ValueError:
        return None


def _retry_info(detail: JsonObject) -> float | None:
    details = detail.get("details")
    for item in details if isinstance(details, list) else ():
        if (string_of(item, "@type") or "").endswith("RetryInfo"):
            return _span(string_of(item, "retryDelay") or "")
    return None


def _span(text: str) -> float | None:
    """``6m0s``, ``1.2s`` and ``345ms`` in seconds."""
    pieces = _SPAN.findall(text)
    return sum(float(number) * _UNITS[unit] for number, unit in pieces) if pieces else None
