"""OpenAI Responses: errors by status, code and text."""

from __future__ import annotations

import pytest

from sigwire import errors
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.lm.codecs import openai_responses
from tests.lm.codecs.encoding import features, openai_error
from tests.lm.codecs.openai_responses.wire import ASKED, FAMILY, WIRE_TEXT, answer, decoded, target

ERRORS: dict[str, tuple[int, str, type[errors.LMError], bool]] = {
    "row 73 bad key": (401, openai_error("Incorrect API key", "invalid_api_key"), errors.LMAuthenticationError, False),
    "row 73 forbidden": (403, openai_error("Country not supported"), errors.LMAuthenticationError, False),
    "row 74 unknown model": (
        404,
        openai_error("No such model", "model_not_found"),
        errors.LMUnsupportedModelError,
        False,
    ),
    "row 74 unknown model as 400": (
        400,
        openai_error("No such", "model_not_found"),
        errors.LMUnsupportedModelError,
        False,
    ),
    "row 75 context code": (
        400,
        openai_error("Too long", "context_length_exceeded"),
        errors.ContextWindowExceededError,
        False,
    ),
    "row 75 context text": (
        400,
        openai_error("This model's maximum context length is 8192 tokens"),
        errors.ContextWindowExceededError,
        False,
    ),
    "row 76 rate limit": (429, openai_error("Slow", "rate_limit_exceeded"), errors.LMRateLimitError, True),
    "row 77 overloaded": (503, openai_error("Busy", "server_is_overloaded"), errors.LMServerError, True),
    "row 78 quota": (429, openai_error("No quota", "insufficient_quota"), errors.LMBillingError, False),
    "row 78 balance": (402, openai_error("Pay"), errors.LMBillingError, False),
    "row 80 html": (502, "<html><title>502 Bad Gateway</title>...</html>", errors.LMServerError, True),
    "row 80 empty": (500, "", errors.LMServerError, True),
    "bad request": (400, openai_error("Bad", "invalid_value"), errors.LMInvalidRequestError, False),
    "content filter": (400, openai_error("Flagged", "invalid_prompt"), errors.LMContentFilteredError, False),
    "timeout": (408, openai_error("Slow"), errors.LMTimeoutError, True),
    "no status we know": (302, "", errors.LMUnexpectedError, False),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_decode_error_returns_the_error_of_a_reply(
    status: int, wire: str, kind: type[errors.LMError], retryable: bool
) -> None:
    error = openai_responses.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model) == (status, FAMILY, "m")
    assert error.message


def test_row_76_error_has_retry_after_and_request_id() -> None:
    headers = {"Retry-After-Ms": "1500", "retry-after": "9", "x-request-id": "r9"}
    error = openai_responses.decode_error(429, headers, openai_error("Slow"), target())
    assert (error.retry_after, error.request_id) == (1.5, "r9")


def failed(code: JsonValue) -> JsonObject:
    return answer(status="failed", error={"code": code, "message": "It failed"})


INSIDE: dict[str, tuple[JsonValue, type[errors.LMError]]] = {
    "row 76 rate limit": (failed("rate_limit_exceeded"), errors.LMRateLimitError),
    "row 79 server": (failed("server_error"), errors.LMServerError),
    "row 79 prompt": (failed("invalid_prompt"), errors.LMContentFilteredError),
    "row 79 policy": (failed("bio_policy"), errors.LMContentFilteredError),
    "row 79 image policy": (failed("image_content_policy_violation"), errors.LMContentFilteredError),
    "row 79 image": (failed("invalid_image_format"), errors.LMInvalidRequestError),
    "row 79 store": (failed("vector_store_timeout"), errors.LMTimeoutError),
    "row 79 unknown": (failed("strange"), errors.LMServerError),
    "row 79 no error": ({**answer(), "status": "failed", "error": None}, errors.LMServerError),
    "row 79 an error without a status": (
        {"error": {"code": "rate_limit_exceeded", "message": "Up"}},
        errors.LMRateLimitError,
    ),
    "row 80 html": ("<html>hello</html>", errors.LMServerError),
    "row 80 empty": ("", errors.LMServerError),
    "row 80 some text": ("method=POST", errors.LMUnexpectedError),
    "row 62 no output": ({"id": "r1"}, errors.LMServerError),
    "a list": ([], errors.LMServerError),
}


@pytest.mark.parametrize(("wire", "kind"), INSIDE.values(), ids=INSIDE)
def test_decode_raises_the_error_in_a_reply_with_status_200(wire: JsonValue, kind: type[errors.LMError]) -> None:
    with pytest.raises(errors.LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == 200
    if isinstance(wire, dict) and isinstance(error := wire.get("error"), dict):
        assert caught.value.provider_code == error["code"]
        assert str(error["message"]) in caught.value.message


def test_response_has_the_warnings_of_encode() -> None:
    assert features(decoded(answer(WIRE_TEXT), Request((ASKED,), options={"seed": 1})).warnings) == ["seed"]
