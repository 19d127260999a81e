"""Error replies in every shape seen in the wild, how long to wait, and which error they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonValue
from sigwire.core.tools.names import NameRules
from sigwire.errors import LMAuthenticationError, LMError, LMInvalidRequestError, LMRateLimitError, LMServerError
from sigwire.lm.codecs.shared.errors import ErrorBody, ErrorRule, lm_error, read_body, read_error_body
from sigwire.lm.codecs.shared.interface import Target, WireProfile

TARGET = Target("home", "m", WireProfile(family="home", path="/", names=NameRules()))

SHAPES: dict[str, tuple[JsonValue, str, tuple[str, ...]]] = {
    "openai": ({"error": {"message": "M", "type": "T", "code": "C"}}, "M", ("c", "t")),
    "openai without a code": ({"error": {"message": "M", "type": "T", "code": None}}, "M", ("t",)),
    "anthropic": ({"type": "error", "error": {"type": "T", "message": "M"}, "request_id": "r"}, "M", ("t",)),
    "gemini": ({"error": {"code": 400, "message": "M", "status": "S"}}, "M", ("400", "s")),
    "gemini in a list": ([{"error": {"code": 400, "message": "M", "status": "S"}}], "M", ("400", "s")),
    "ollama": ({"error": "M"}, "M", ()),
    "mistral": ({"object": "error", "message": "M", "type": "T", "code": 3}, "M", ("3", "t")),
    "fastapi text": ({"detail": "M"}, "M", ()),
    "fastapi list": ({"detail": [{"loc": ["body", "a"], "msg": "M"}, {"msg": "N"}]}, "body.a: M; N", ()),
    "nothing": ({}, "", ()),
    "html": ("<html><head><title> 502 Bad Gateway </title></head></html>", "502 Bad Gateway", ()),
    "text": ("x" * 600, "x" * 500, ()),
}


@pytest.mark.parametrize(("body", "message", "codes"), SHAPES.values(), ids=SHAPES)
def test_error_body_is_read_from_every_known_shape(body: JsonValue, message: str, codes: tuple[str, ...]) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    for form in (text, text.encode(), "\ufeff" + text):
        fault = read_error_body(400, {}, form)
        assert (fault.message, fault.codes) == (message, codes)
    if not isinstance(body, str):
        assert read_error_body(400, {}, body).message == message


DATE = "Sat, 21 Nov 2026 10:00:00 GMT"
RETRY_INFO: JsonValue = {
    "error": {"details": [{"@type": "x"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36s"}]}
}
WAITS: dict[str, tuple[dict[str, str], JsonValue, float | None]] = {
    "milliseconds before seconds": ({"retry-after-ms": "250", "Retry-After": "9"}, {}, 0.25),
    "seconds": ({"Retry-After": "1.5"}, {}, 1.5),
    "a date against the reply's date": ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", "date": DATE}, {}, 30.0),
    "a date that has passed": ({"retry-after": "Sat, 21 Nov 2026 09:00:00 GMT", "Date": DATE}, {}, 0.0),
    "a date alone": ({"retry-after": DATE}, {}, None),
    "a date that is none": ({"retry-after": "Sat, 31 Feb 2026 09:00:00 GMT", "Date": DATE}, {}, None),
    "nonsense": ({"retry-after": "soon"}, {}, None),
    "negative": ({"retry-after": "-3"}, {}, None),
    "retry info": ({}, RETRY_INFO, 36.0),
    "words in seconds": ({}, {"error": {"message": "Please try again in 1.2s."}}, 1.2),
    "words in minutes": ({}, {"error": {"message": "Try again in 6m0s"}}, 360.0),
    "words in milliseconds": ({}, {"error": {"message": "please retry after 345ms"}}, 0.345),
    "words in days": ({}, {"error": {"message": "Try again in 1d2h."}}, 93_600.0),
    "the longest reset of a used-up limit": (
        {
            "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms",
            "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s",
            "x-ratelimit-remaining-images": "5", "x-ratelimit-reset-images": "9h",
        },
        {},
        360.0,
    ),
    "a reset after a stated wait": ({"retry-after": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "9"}, {}, 1.0),
    "a reset in seconds": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9.5"}, {}, 9.5),
    "a reset as Unix time": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1795255210", "date": DATE}, {}, 10.0),
    "a reset in milliseconds": (
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1795255210500", "date": DATE}, {}, 10.5
    ),
    "a Unix time alone": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1795255210"}, {}, None),
    "Anthropic's reset": (
        {
            "anthropic-ratelimit-tokens-remaining": "0",
            "anthropic-ratelimit-tokens-reset": "2026-11-21T10:00:07Z",
            "date": DATE,
        },
        {},
        7.0,
    ),
    "a reset without a date": (
        {"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2026-11-21T10:00:07Z"}, {}, None
    ),
    "a limit that is not used up": ({"x-ratelimit-remaining": "1", "x-ratelimit-reset": "9"}, {}, None),
    "none": ({}, {}, None),
}  # fmt: skip


@pytest.mark.parametrize(("headers", "body", "wait"), WAITS.values(), ids=WAITS)
def test_retry_after_is_read_from_headers_body_and_message(
    headers: dict[str, str], body: JsonValue, wait: float | None
) -> None:
    assert read_error_body(429, headers, body).retry_after == (None if wait is None else pytest.approx(wait))


@pytest.mark.parametrize(
    ("headers", "body", "request_id"),
    [
        ({"X-Request-Id": "a"}, {}, "a"),
        ({"request-id": "b"}, {}, "b"),
        ({}, {"request_id": "c"}, "c"),
        ({}, {}, None),
    ],
)
def test_request_id_is_read_from_headers_and_body(
    headers: dict[str, str], body: JsonValue, request_id: str | None
) -> None:
    assert read_error_body(500, headers, body).request_id == request_id


RULES = (
    ErrorRule(LMAuthenticationError, frozenset({400}), codes=frozenset({"api_key_invalid"}), hint="Key of {provider}?"),
    ErrorRule(LMInvalidRequestError, texts=("no tools",), retry=True),
)


def test_rules_of_the_wire_match_before_statuses() -> None:
    error = lm_error(ErrorBody(400, "Bad key.", ("api_key_invalid",)), RULES, TARGET)
    assert type(error) is LMAuthenticationError
    assert error.message == "Bad key. Key of home?"
    assert type(lm_error(ErrorBody(429, "x"), RULES, TARGET)) is LMRateLimitError


def test_rule_and_server_override_retryable() -> None:
    assert lm_error(ErrorBody(400, "It takes No Tools"), RULES, TARGET).retryable is True
    assert lm_error(ErrorBody(400, "It takes No Tools", retry=False), RULES, TARGET).retryable is False
    assert lm_error(read_error_body(503, {"x-should-retry": "false"}, ""), (), TARGET).retryable is False
    assert LMServerError.retryable is True


def test_reset_of_a_limit_counts_for_rate_limits_only() -> None:
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9"}
    assert read_error_body(503, headers, {}).retry_after is None


def test_overload_is_named() -> None:
    assert lm_error(ErrorBody(529, "busy"), (), TARGET).overload
    assert lm_error(ErrorBody(None, "busy", ("overloaded_error",)), (), TARGET).overload
    assert not lm_error(ErrorBody(503, "busy"), (), TARGET).overload


def test_error_without_a_message_names_the_status() -> None:
    assert lm_error(ErrorBody(500, ""), (), TARGET).message == "home answered with status 500 and no message."


@given(st.integers(100, 599), st.binary(max_size=60) | st.text(max_size=60))
def test_any_body_makes_an_error_with_status_and_message(status: int, body: bytes | str) -> None:
    read_body(body)
    error = lm_error(read_error_body(status, {}, body), (), TARGET)
    assert isinstance(error, LMError)
    assert error.status == status
    assert error.message
