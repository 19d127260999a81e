"""Gemini: errors classified."""

from __future__ import annotations

import json

import pytest

from sigwire import errors
from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs import gemini
from tests.lm.codecs.gemini.wire import decoded, target


def error_body(code: int, status: str, message: str, *details: JsonObject) -> JsonObject:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def reason(word: str) -> JsonObject:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": word, "domain": "googleapis.com"}


def quota(name: str) -> JsonObject:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


WAIT: JsonObject = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36s"}
ERRORS: dict[str, tuple[JsonObject, type[errors.LMError], bool, str]] = {
    "row 73 bad key": (
        error_body(400, "INVALID_ARGUMENT", "API key not valid.", reason("API_KEY_INVALID")),
        errors.LMAuthenticationError,
        False,
        "api_key_invalid",
    ),
    "row 73 bad key without a reason": (
        error_body(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key."),
        errors.LMAuthenticationError,
        False,
        "invalid_argument",
    ),
    "row 73 no key": (error_body(401, "UNAUTHENTICATED", "No"), errors.LMAuthenticationError, False, "unauthenticated"),
    "row 73 forbidden": (
        error_body(403, "PERMISSION_DENIED", "No"),
        errors.LMAuthenticationError,
        False,
        "permission_denied",
    ),
    "row 73 region": (
        error_body(400, "FAILED_PRECONDITION", "User location is not supported"),
        errors.LMAuthenticationError,
        False,
        "failed_precondition",
    ),
    "row 74 unknown model": (
        error_body(404, "NOT_FOUND", "models/m is not found for API version v1"),
        errors.LMUnsupportedModelError,
        False,
        "not_found",
    ),
    "row 75 context": (
        error_body(
            400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)"
        ),
        errors.ContextWindowExceededError,
        False,
        "invalid_argument",
    ),
    "row 76 rate limit": (
        error_body(429, "RESOURCE_EXHAUSTED", "Slow", quota("RequestsPerMinutePerProject"), WAIT),
        errors.LMRateLimitError,
        True,
        "resource_exhausted",
    ),
    "row 77 overloaded": (error_body(503, "UNAVAILABLE", "Overloaded"), errors.LMServerError, True, "unavailable"),
    "row 78 the day's quota": (
        error_body(429, "RESOURCE_EXHAUSTED", "Quota", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")),
        errors.LMBillingError,
        False,
        "quota_per_day",
    ),
    "row 78 billing": (
        error_body(400, "FAILED_PRECONDITION", "Please enable billing on your project"),
        errors.LMBillingError,
        False,
        "failed_precondition",
    ),
    "bad request": (
        error_body(400, "INVALID_ARGUMENT", "Bad"),
        errors.LMInvalidRequestError,
        False,
        "invalid_argument",
    ),
    "a signature is missing": (
        error_body(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts"),
        errors.LMInvalidRequestError,
        False,
        "invalid_argument",
    ),
    "a signature of another key": (
        error_body(400, "INVALID_ARGUMENT", "Corrupted thought signature"),
        errors.LMInvalidRequestError,
        False,
        "invalid_argument",
    ),
    "cancelled": (error_body(499, "CANCELLED", "Gone"), errors.LMTransportError, True, "cancelled"),
    "internal": (error_body(500, "INTERNAL", "Oops"), errors.LMServerError, True, "internal"),
    "deadline": (error_body(504, "DEADLINE_EXCEEDED", "Slow"), errors.LMTimeoutError, True, "deadline_exceeded"),
}


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in a list"])
@pytest.mark.parametrize(("wire", "kind", "retryable", "code"), ERRORS.values(), ids=ERRORS)
def test_errors(wire: JsonObject, kind: type[errors.LMError], retryable: bool, code: str, wrapped: bool) -> None:
    detail = wire["error"]
    assert isinstance(detail, dict)
    status, message = detail["code"], detail["message"]
    assert isinstance(status, int)
    error = gemini.decode_error(status, {}, json.dumps([wire] if wrapped else wire), target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model, error.provider_code) == (status, "gemini", "m", code)
    assert str(message).rstrip(".") in error.message


def test_missing_signature_error_explains_how_to_keep_signatures() -> None:
    for name, words in (("a signature is missing", "choice.message()"), ("a signature of another key", "route")):
        error = gemini.decode_error(400, {}, json.dumps(ERRORS[name][0]), target())
        assert words in error.message


def test_row_76_the_wait_is_on_the_error() -> None:
    wire = json.dumps(ERRORS["row 76 rate limit"][0])
    assert gemini.decode_error(429, {}, wire, target()).retry_after == 36.0
    assert gemini.decode_error(429, {"Retry-After": "5"}, wire, target()).retry_after == 5.0


@pytest.mark.parametrize(
    ("status", "wire", "kind"),
    [
        pytest.param(502, "<html><title>502 Bad Gateway</title>...</html>", errors.LMServerError, id="row 80 html"),
        pytest.param(500, "", errors.LMServerError, id="row 80 empty"),
        pytest.param(400, "[]", errors.LMInvalidRequestError, id="row 80 an empty list"),
        pytest.param(302, "", errors.LMUnexpectedError, id="no status we know"),
    ],
)
def test_errors_that_are_not_the_services_own(status: int, wire: str, kind: type[errors.LMError]) -> None:
    error = gemini.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.message


INSIDE: dict[str, tuple[JsonValue, type[errors.LMError], int]] = {
    "row 79 a code": (error_body(503, "UNAVAILABLE", "Overloaded"), errors.LMServerError, 503),
    "row 79 a limit": (error_body(429, "RESOURCE_EXHAUSTED", "Slow"), errors.LMRateLimitError, 429),
    "row 79 only text": ({"error": "overloaded"}, errors.LMServerError, 200),
    "row 62 no candidates and no reason": ({"usageMetadata": {"promptTokenCount": 3}}, errors.LMServerError, 200),
    "row 62 candidates are null": ({"candidates": None}, errors.LMServerError, 200),
    "row 80 html": ("<html>hello</html>", errors.LMServerError, 200),
    "row 80 empty": ("", errors.LMServerError, 200),
    "row 80 some text": ("hello", errors.LMUnexpectedError, 200),
    "a list": ([], errors.LMServerError, 200),
}


@pytest.mark.parametrize(("wire", "kind", "status"), INSIDE.values(), ids=INSIDE)
def test_failures_inside_a_success(wire: JsonValue, kind: type[errors.LMError], status: int) -> None:
    with pytest.raises(errors.LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == status
    if isinstance(wire, str):
        assert wire in caught.value.message
