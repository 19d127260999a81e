"""Error replies: an ``ErrorBody`` read from any known shape, and its error by a table of ``ErrorRule``.

A rule matches if all that it names matches: status, code or type, and a substring of the message. Its ``hint``, what to
do next, ends the message. No clock: dates in the headers are measured against the reply's ``date`` header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
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
from sigwire.lm.request_ids import request_id_of

if TYPE_CHECKING:
    from sigwire.lm.codecs.shared.interface import Target, WireProfile

__all__ = [
    "BALANCE_HINT", "CONTEXT_HINT", "CONTEXT_TEXTS", "EXPIRED_CODES", "KEY_HINT", "MODEL_HINT", "OPENAI_ERRORS", "STATUS_RULES",
    "ErrorBody", "ErrorRule", "damaged_reply_error", "empty_reply_error", "lm_error", "read_body", "read_error_body",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The content of an error reply. ``codes``: its ``code``, ``type`` and ``status`` in lower case.

    ``retry``: whether the server wants a retry, ``None`` if unknown. ``retry_after``: the stated wait in seconds.
    """

    status: int | None
    message: str
    codes: tuple[str, ...] = ()
    request_id: str | None = None
    retry_after: float | None = None
    retry: bool | None = None


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """An error class and the bodies that mean it. An empty condition matches every body.

    ``texts``: substrings of the message, in lower case. ``hint`` may use ``{provider}`` and ``{model}``. ``retry``
    overrides ``retryable`` of the class.
    """

    error: type[LMError]
    statuses: frozenset[int] = frozenset()
    codes: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    hint: str = ""
    retry: bool | None = None

    def matches(self, body: ErrorBody) -> bool:
        """Return True if the body meets every condition of the rule.

        >>> ErrorRule(LMServerError, frozenset({503})).matches(ErrorBody(503, "overloaded"))
        True
        """
        if self.statuses and body.status not in self.statuses:
            return False
        if self.codes and not self.codes.intersection(body.codes):
            return False
        message = body.message.lower()
        return not self.texts or any(text in message for text in self.texts)


CONTEXT_TEXTS: tuple[str, ...] = (  # of the servers and hosts that were seen to send them, in lower case
    "cannot truncate prompt with n_keep",  # LM Studio
    "context window exceeds limit",  # MiniMax
    "context_length_exceeded",  # OpenAI, as text of proxies
    "exceed context limit",  # Anthropic, with max_tokens
    "exceeded model token limit",  # Moonshot
    "exceeds maximum context length",  # Ollama
    "exceeds the available context size",  # llama-server
    "exceeds the context length",  # Ollama
    "exceeds the context window of this model",  # OpenAI, Responses
    "exceeds the maximum number of tokens allowed",  # Gemini
    "exceeds the model's maximum context length",  # SGLang
    "greater than the context length",  # LM Studio
    "input is too long for requested model",  # Bedrock
    "input tokens exceed the configured limit",  # OpenAI
    "is loaded with context length of only",  # LM Studio
    "is longer than the model's context length",  # SGLang
    "longer than the context length",  # Ollama
    "longer than the maximum model length",  # vLLM
    "maximum context length is",  # OpenAI, DeepSeek, OpenRouter, vLLM
    "maximum prompt length is",  # xAI
    "model's maximum context limit",  # Bedrock
    "number of input tokens exceeds maximum length",  # Bedrock, Nova
    "prompt exceeds max length",  # z.ai
    "prompt is too long",  # Anthropic, Fireworks
    "prompt token count of",  # GitHub Copilot
    "prompt too long; exceeded",  # Ollama, its cloud
    "range of input length should be",  # DashScope
    "reduce the length of the messages",  # Groq, Cerebras
    "string too long. expected a string with maximum length",  # OpenAI
    "tokens + `max_new_tokens` must be",  # Text Generation Inference, Together
    "too large for model with",  # Mistral
    "too many tokens: ",  # Cohere; with a comma in place of the colon it is a rate limit of Bedrock
)

KEY_HINT = "Check the API key and its permissions."
MODEL_HINT = "Check the model's name: {provider} does not serve {model!r} to this key."
BALANCE_HINT = "Check the account's balance and limits; a retry does not help."
CONTEXT_HINT = "Shorten the request or use a model with a larger context."

# llama-server answers 500 if its model reads no images or audio; no retry can help.
_NO_MEDIA = ErrorRule(
    LMInvalidRequestError, frozenset({500}), texts=("image input is not supported", "audio input is not supported")
)

STATUS_RULES: tuple[ErrorRule, ...] = (
    ErrorRule(ContextWindowExceededError, frozenset({400, 413, 422, 500}), texts=CONTEXT_TEXTS, hint=CONTEXT_HINT),
    _NO_MEDIA,
    ErrorRule(LMAuthenticationError, frozenset({401, 403}), hint=KEY_HINT),
    ErrorRule(LMBillingError, frozenset({402}), hint="Check the account's balance and limits."),
    ErrorRule(LMUnsupportedModelError, frozenset({404}), hint=MODEL_HINT),
    ErrorRule(LMTimeoutError, frozenset({408})),
    ErrorRule(LMServerError, frozenset({409, 425})),
    ErrorRule(ContextWindowExceededError, frozenset({413}), hint=CONTEXT_HINT),
    ErrorRule(LMRateLimitError, frozenset({429})),
    ErrorRule(LMTransportError, frozenset({499})),
    ErrorRule(LMInvalidRequestError, frozenset(range(400, 500))),
    ErrorRule(LMServerError, frozenset(range(500, 600))),
)
"""By status alone, after the rules of the wire."""

_OPENAI_BILLING = frozenset({"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "402"})

OPENAI_ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        ContextWindowExceededError,
        codes=frozenset({"context_length_exceeded", "exceed_context_size_error"}),
        hint=CONTEXT_HINT,
    ),
    ErrorRule(ContextWindowExceededError, frozenset({400, 413, 422, 500}), texts=CONTEXT_TEXTS),
    ErrorRule(LMBillingError, codes=_OPENAI_BILLING, hint=BALANCE_HINT),
    ErrorRule(
        LMContentFilteredError,
        codes=frozenset({"content_filter", "content_policy_violation"}),
        hint="Change the request; a retry does not help.",
    ),
    ErrorRule(LMUnsupportedModelError, codes=frozenset({"model_not_found"}), hint=MODEL_HINT),
    # Groq checks calls itself. A reply that openai_chat.recover cannot read as a call is retryable.
    ErrorRule(LMInvalidRequestError, codes=frozenset({"tool_use_failed"}), retry=True),
    ErrorRule(LMRateLimitError, codes=frozenset({"rate_limit_exceeded", "rate_limit_error", "slow_down"})),
    _NO_MEDIA,
    ErrorRule(LMServerError, codes=frozenset({"server_error", "server_is_overloaded", "insufficient_system_resource"})),
)
"""By OpenAI's error codes: the rows of its two wires and of compatible hosts."""


def lm_error(body: ErrorBody, rules: Iterable[ErrorRule], target: Target[WireProfile]) -> LMError:
    """Return the error of the first rule that matches; ``LMUnexpectedError`` for an unknown status."""
    rule = next((rule for rule in (*rules, *STATUS_RULES) if rule.matches(body)), ErrorRule(LMUnexpectedError))
    message = body.message.rstrip(". \n") or f"{target.provider} answered with status {body.status} and no message"
    hint = rule.hint.format(provider=target.provider, model=target.model)
    error = rule.error(
        f"{message}. {hint}".rstrip(),
        model=target.model,
        provider=target.provider,
        provider_code=body.codes[0] if body.codes else None,
        status=body.status,
        request_id=body.request_id,
        retry_after=body.retry_after,
    )
    retry = rule.retry if body.retry is None else body.retry
    if retry is not None:
        error.retryable = retry
    if body.status == 529 or _OVERLOAD_CODES.intersection(body.codes):
        error.overload = True
    return error


EXPIRED_CODES = frozenset({"expiredtokenexception", "unrecognizedclientexception"})
"""Codes of a status 403 (AWS) that another key can cure."""
_OVERLOAD_CODES = frozenset({"overloaded_error", "server_is_overloaded"})


def empty_reply_error(missing: str, body: JsonValue, target: Target[WireProfile]) -> LMError:
    """Return the error of a reply of status 200 without ``missing`` ("choices") and without an error.

    It is retryable unless the body is plain text.
    """
    message = f"The reply holds no {missing}: {read_error_body(200, {}, body).message or dumps(body)[:200]}"
    is_text = isinstance(body, str) and body.strip() and body.lstrip()[:1] != "<"
    kind = LMUnexpectedError if is_text else LMServerError
    error = kind(message, model=target.model, provider=target.provider, status=200)
    error.empty = True
    return error


def damaged_reply_error(error: LMError, text: str, headers: Mapping[str, str]) -> LMTransportError:
    """Return the error of a success whose body is not JSON, instead of the codec's: truncated or corrupted in transit.

    An HTML page comes from another server than the API: a gateway in trouble, which passes, or a wrong ``base_url``. It is
    retried once (``empty``); anything else that is damaged is retried as every transient failure.
    """
    is_page = _PAGE.match(text) is not None or "text/html" in headers.get("content-type", "").lower()
    message = f"{error.message.rstrip('. ')}. {_PAGE_HINT}" if is_page else error.message
    damaged = LMTransportError(message, model=error.model, provider=error.provider, status=error.status)
    damaged.empty = is_page
    return damaged


_PAGE = re.compile(
    r"\s*(?:<!--.{0,1000}?-->\s*)?(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_PAGE_HINT = "The body is an HTML page and not a reply of the API: check base_url, which may be wrong."


# --- reading a reply -------------------------------------------------------------------------------------


def read_body(body: bytes | str) -> JsonValue:
    """Return the body as JSON, or as text if it is no JSON. A byte order mark is ignored.

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
    """Read an error reply of any known shape. The message of plain text is its first 500 characters.

    >>> error = read_error_body(400, {}, '{"error": {"message": "Bad tool", "type": "invalid_request_error", "code": null}}')
    >>> error.message, error.codes
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
        request_id_of(headers) or string_of(data, "request_id"),
        _retry_after(status, lower, detail, message),
        _SHOULD_RETRY.get(lower.get("x-should-retry", "").lower()),
    )


_SHOULD_RETRY: Mapping[str, bool] = {"true": True, "false": False}


def _detail(data: JsonValue) -> JsonObject:
    if not isinstance(data, dict):
        return {}
    return next((each for name in ("error", "detail") if isinstance(each := data.get(name), dict)), data)


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
            return "; ".join(filter(None, map(_validation_error, value)))
    return ""


_TITLE, _TITLE_END = re.compile(r"<title[^<>]*>", re.IGNORECASE), re.compile("</title>", re.IGNORECASE)


def _excerpt(text: str) -> str:
    title = _TITLE.search(text)
    end = _TITLE_END.search(text, title.end()) if title else None
    return (text[title.end() : end.start()] if title and end else text).strip()[:500]


def _validation_error(item: JsonValue) -> str:
    if not isinstance(item, dict):
        return str(item)
    path = item.get("loc")
    location = ".".join(map(str, path)) if isinstance(path, list) else ""
    return ": ".join(filter(None, (location, string_of(item, "msg") or string_of(item, "message") or "")))


def _codes(detail: JsonObject) -> tuple[str, ...]:
    found = (detail.get(name) for name in ("code", "type", "error_type", "status"))
    words = [str(word).lower() for word in found if isinstance(word, str | int) and not isinstance(word, bool) and word]
    return tuple(dict.fromkeys(words))


# --- how long to wait -----------------------------------------------------------------------------------

_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 366 * 86400.0  # a longer wait, and one that is no number, is none
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_RETRY_TEXT = re.compile(r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)", re.IGNORECASE)


def _retry_after(status: int | None, headers: Mapping[str, str], detail: JsonObject, message: str) -> float | None:
    """Return the first readable hint: milliseconds, seconds or a date, the retry info of the body, the message, the limits."""
    found, date = _RETRY_TEXT.search(message), _date(headers.get("date", ""))
    hints = (
        _number(headers.get("retry-after-ms"), 0.001),
        _number(headers.get("retry-after"), 1.0),
        _seconds_until(headers.get("retry-after"), date),
        _retry_info(detail),
        _seconds(found.group(1)) if found else None,
        _reset(headers, date) if status == 429 else None,
    )
    return next((hint for hint in hints if hint is not None and 0 <= hint <= _LONGEST), None)


def _number(text: str | None, scale: float) -> float | None:
    try:
        return float(text) * scale if text else None
    except ValueError:
        return None


def _seconds_until(text: str | None, now: datetime | None) -> float | None:
    then = _date(text or "")
    return max(0.0, (then - now).total_seconds()) if then and now else None


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)")
_HTTP_DATE = re.compile(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT")


def _date(text: str) -> datetime | None:
    try:
        if _HTTP_DATE.fullmatch(text):
            from email.utils import parsedate_to_datetime  # slow to load; few replies have a date to read

            return parsedate_to_datetime(text)
        return datetime.fromisoformat(text).astimezone(UTC) if _ISO_DATE.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _reset(headers: Mapping[str, str], now: datetime | None) -> float | None:
    """Return the longest wait for a resource of which nothing remains."""
    # x-ratelimit-reset-tokens (OpenAI), anthropic-ratelimit-tokens-reset
    waits = (
        _reset_seconds(headers.get(name.replace("remaining", "reset"), ""), now)
        for name, count in headers.items()
        if "ratelimit" in name and "remaining" in name and _number(count, 1.0) == 0
    )
    return max((wait for wait in waits if wait is not None), default=None)


def _reset_seconds(text: str, now: datetime | None) -> float | None:
    """Return the seconds of a date, a duration ("6m0s"), a number, or a Unix time in seconds or milliseconds."""
    number = _number(text, 1.0)
    if number is None:
        return _seconds_until(text, now) if "T" in text else _seconds(text)
    if number < 1e9:  # not a Unix time, which some gateways send
        return number
    return None if now is None else max(0.0, (number / 1000 if number > 1e11 else number) - now.timestamp())


def _retry_info(detail: JsonObject) -> float | None:
    details = detail.get("details")
    for item in details if isinstance(details, list) else ():
        if (string_of(item, "@type") or "").endswith("RetryInfo"):
            return _seconds(string_of(item, "retryDelay") or "")
    return None


def _seconds(text: str) -> float | None:
    """Return a duration such as ``6m0s``, ``1.2s`` or ``345ms`` in seconds."""
    found = _DURATION.findall(text)
    return sum(float(number) * _UNITS[unit] for number, unit in found) if found else None
