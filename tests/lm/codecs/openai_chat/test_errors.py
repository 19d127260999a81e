"""Chat completions: errors by status, code and text."""

from __future__ import annotations

import pytest

from sigwire import errors
from sigwire.core.json import JsonValue
from sigwire.lm.codecs import openai_chat
from tests.lm.codecs.encoding import openai_error
from tests.lm.codecs.openai_chat.wire import decoded, target

ERRORS: dict[str, tuple[int, str, type[errors.LMError], bool]] = {
    "row 73 bad key": (401, openai_error("Incorrect API key", "invalid_api_key"), errors.LMAuthenticationError, False),
    "row 73 forbidden": (403, openai_error("Country not supported"), errors.LMAuthenticationError, False),
    "row 74 unknown model": (
        404,
        openai_error("No such model", "model_not_found"),
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
    "row 75 context on llama.cpp": (
        400,
        openai_error("the request exceeds it", 400, "exceed_context_size_error"),
        errors.ContextWindowExceededError,
        False,
    ),
    "row 76 rate limit": (429, openai_error("Slow", "rate_limit_exceeded"), errors.LMRateLimitError, True),
    "row 77 overloaded": (503, openai_error("Busy", "server_is_overloaded"), errors.LMServerError, True),
    "row 78 quota": (429, openai_error("No quota", "insufficient_quota"), errors.LMBillingError, False),
    "row 78 quota by type": (429, openai_error("No quota", None, "insufficient_quota"), errors.LMBillingError, False),
    "row 78 balance": (402, openai_error("Pay"), errors.LMBillingError, False),
    "row 80 html": (502, "<html><title>502 Bad Gateway</title>...</html>", errors.LMServerError, True),
    "row 80 empty": (500, "", errors.LMServerError, True),
    "no images on llama.cpp": (
        500,
        openai_error("image input is not supported - hint: ...", 500, "server_error"),
        errors.LMInvalidRequestError,
        False,
    ),
    "bad request": (400, openai_error("Bad", "unsupported_value"), errors.LMInvalidRequestError, False),
    "validation": (
        422,
        '{"detail":[{"loc":["body","n"],"msg":"bad","type":"t"}]}',
        errors.LMInvalidRequestError,
        False,
    ),
    "content filter": (400, openai_error("Filtered", "content_filter"), errors.LMContentFilteredError, False),
    "timeout": (408, openai_error("Slow"), errors.LMTimeoutError, True),
    "conflict": (409, openai_error("Busy"), errors.LMServerError, True),
    "a call the host refused": (400, openai_error("Call", "tool_use_failed"), errors.LMInvalidRequestError, True),
    "no status we know": (302, "", errors.LMUnexpectedError, False),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_decode_error_returns_the_error_of_a_reply(
    status: int, wire: str, kind: type[errors.LMError], retryable: bool
) -> None:
    error = openai_chat.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model) == (status, "openai-chat", "m")
    assert error.message


def test_row_76_error_has_retry_after_and_request_id() -> None:
    headers = {"Retry-After-Ms": "1500", "retry-after": "9", "x-request-id": "r9"}
    error = openai_chat.decode_error(429, headers, openai_error("Slow"), target())
    assert (error.retry_after, error.request_id) == (1.5, "r9")


INSIDE: dict[str, tuple[JsonValue, type[errors.LMError], int]] = {
    "row 79 a code": (
        {"choices": None, "error": {"code": 429, "message": "Rate limited"}},
        errors.LMRateLimitError,
        429,
    ),
    "row 79 a word": (
        {"error": {"code": "rate_limit_exceeded", "message": "Rate limited"}},
        errors.LMRateLimitError,
        200,
    ),
    "row 79 beside an answer": (
        {"choices": [{"message": {"content": "Hi"}}], "error": {"code": 429, "message": "Rate limited"}},
        errors.LMRateLimitError,
        429,
    ),
    "row 79 only text": ({"error": "overloaded"}, errors.LMServerError, 200),
    "row 79 in the choice": (
        {"choices": [{"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "Up"}}]},
        errors.LMServerError,
        502,
    ),
    "row 62 choices are null": ({"choices": None}, errors.LMServerError, 200),
    "row 62 no choices": ({"choices": []}, errors.LMServerError, 200),
    "row 80 html": ("<html>hello</html>", errors.LMServerError, 200),
    "row 80 empty": ("", errors.LMServerError, 200),
    "row 80 some text": ("method=POST", errors.LMUnexpectedError, 200),
    "a list": ([], errors.LMServerError, 200),
}


@pytest.mark.parametrize(("wire", "kind", "status"), INSIDE.values(), ids=INSIDE)
def test_decode_raises_the_error_in_a_reply_with_status_200(
    wire: JsonValue, kind: type[errors.LMError], status: int
) -> None:
    with pytest.raises(errors.LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == status
