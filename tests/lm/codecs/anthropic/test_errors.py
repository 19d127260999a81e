"""Anthropic Messages: errors classified."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwire import errors
from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs import anthropic
from tests.lm.codecs.anthropic.wire import decoded, target


def error_body(kind: str, message: str = "No", **fields: Any) -> JsonObject:
    return {"type": "error", "error": {"type": kind, "message": message, **fields}, "request_id": "req_1"}


LIMIT: dict[str, Any] = {"details": {"error_code": "enforced_spend_limit_reached"}}
ERRORS: dict[str, tuple[int, JsonObject, type[errors.LMError], bool]] = {
    "row 73 bad key": (401, error_body("authentication_error"), errors.LMAuthenticationError, False),
    "row 73 forbidden": (403, error_body("permission_error"), errors.LMAuthenticationError, False),
    "row 74 unknown model": (404, error_body("not_found_error", "model: x"), errors.LMUnsupportedModelError, False),
    "row 75 context": (
        400,
        error_body("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        errors.ContextWindowExceededError,
        False,
    ),
    "row 75 context and limit": (
        400,
        error_body("invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 1 > 8"),
        errors.ContextWindowExceededError,
        False,
    ),
    "row 75 bytes": (413, error_body("request_too_large"), errors.ContextWindowExceededError, False),
    "row 76 rate limit": (429, error_body("rate_limit_error"), errors.LMRateLimitError, True),
    "row 77 overloaded": (529, error_body("overloaded_error"), errors.LMServerError, True),
    "row 78 billing": (402, error_body("billing_error"), errors.LMBillingError, False),
    "row 78 spend limit": (429, error_body("rate_limit_error", **LIMIT), errors.LMBillingError, False),
    "row 78 balance": (
        400,
        error_body("invalid_request_error", "Your credit balance is too low to access the API"),
        errors.LMBillingError,
        False,
    ),
    "row 78 a limit of one's own": (
        400,
        error_body("invalid_request_error", "You have reached your specified API usage limits."),
        errors.LMBillingError,
        False,
    ),
    "bad request": (400, error_body("invalid_request_error"), errors.LMInvalidRequestError, False),
    "conflict": (409, error_body("conflict_error"), errors.LMServerError, True),
    "server": (500, error_body("api_error"), errors.LMServerError, True),
    "timeout": (504, error_body("timeout_error"), errors.LMTimeoutError, True),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_errors(status: int, wire: JsonObject, kind: type[errors.LMError], retryable: bool) -> None:
    error = anthropic.decode_error(status, {}, json.dumps(wire), target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model, error.request_id) == (status, "anthropic", "m", "req_1")


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_row_79_the_same_error_inside_a_success(
    status: int, wire: JsonObject, kind: type[errors.LMError], retryable: bool
) -> None:
    with pytest.raises(errors.LMError) as caught:
        decoded(wire)
    assert (type(caught.value), caught.value.retryable) == (kind, retryable)
    assert caught.value.status == status


def test_row_76_the_wait_and_the_request_id_are_on_the_error() -> None:
    headers = {"Retry-After": "9", "Request-Id": "req_9"}
    error = anthropic.decode_error(429, headers, json.dumps(error_body("rate_limit_error")), target())
    assert (error.retry_after, error.request_id) == (9.0, "req_9")


def test_row_76_the_servers_word_on_trying_again_counts() -> None:
    error = anthropic.decode_error(
        429, {"x-should-retry": "false"}, json.dumps(error_body("rate_limit_error")), target()
    )
    assert error.retryable is False


@pytest.mark.parametrize(
    ("status", "wire", "kind"),
    [
        pytest.param(502, "<html><title>502 Bad Gateway</title></html>", errors.LMServerError, id="row 80 html"),
        pytest.param(401, "", errors.LMAuthenticationError, id="row 80 empty"),
        pytest.param(302, "", errors.LMUnexpectedError, id="row 80 no status we know"),
    ],
)
def test_errors_that_are_no_json(status: int, wire: str, kind: type[errors.LMError]) -> None:
    error = anthropic.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert len(error.message) < 600


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        pytest.param({"id": "msg_1"}, errors.LMServerError, id="row 62 no content"),
        pytest.param({"content": None}, errors.LMServerError, id="row 62 content is null"),
        pytest.param({"error": "overloaded"}, errors.LMServerError, id="row 79 an error in words"),
        pytest.param([], errors.LMServerError, id="an empty list"),
        pytest.param("<html>hello</html>", errors.LMServerError, id="row 80 html"),
        pytest.param("", errors.LMServerError, id="row 80 empty"),
        pytest.param("method=POST", errors.LMUnexpectedError, id="row 80 some text"),
    ],
)
def test_a_success_that_is_no_answer(wire: JsonValue, kind: type[errors.LMError]) -> None:
    with pytest.raises(errors.LMError) as caught:
        decoded(wire)
    assert (type(caught.value), caught.value.status) == (kind, 200)
