"""Ollama: errors by status, code and text."""

from __future__ import annotations

import json

import pytest

from sigwire import errors
from sigwire.core.json import JsonValue
from sigwire.lm.codecs import ollama
from tests.lm.codecs.ollama.wire import answer, decoded, target


def message_of(message: str) -> str:
    return json.dumps({"error": message})


ERRORS: dict[str, tuple[int, str, type[errors.LMError], bool, str]] = {
    "row 73 bad key": (
        401,
        '{"error": "unauthorized", "signin_url": "https://ollama.com/connect"}',
        errors.LMAuthenticationError,
        False,
        "OLLAMA_API_KEY",
    ),
    "row 73 forbidden": (403, message_of("remote is disabled"), errors.LMAuthenticationError, False, "ollama signin"),
    "row 74 unknown model": (
        404,
        message_of("model 'm' not found"),
        errors.LMUnsupportedModelError,
        False,
        "`ollama pull m`",
    ),
    "row 74 no such page": (404, "404 page not found", errors.LMInvalidRequestError, False, "/v1"),
    "row 75 context": (
        400,
        message_of("the prompt is longer than the context length currently configured"),
        errors.ContextWindowExceededError,
        False,
        "num_ctx",
    ),
    "row 75 context, in the runner's words": (
        400,
        message_of("the request exceeds the available context size"),
        errors.ContextWindowExceededError,
        False,
        "num_ctx",
    ),
    "row 75 context, in older words": (
        500,
        message_of("the input length exceeds the context length"),
        errors.ContextWindowExceededError,
        False,
        "num_ctx",
    ),
    "row 76 rate limit": (429, message_of("too many requests"), errors.LMRateLimitError, True, ""),
    "row 77 overloaded": (
        503,
        message_of("server busy, please try again. maximum pending requests exceeded"),
        errors.LMServerError,
        True,
        "",
    ),
    "row 78 billing": (402, message_of("payment required"), errors.LMBillingError, False, "balance"),
    "row 80 html": (
        502,
        "<html><title>502 Bad Gateway</title>...</html>",
        errors.LMServerError,
        True,
        "502 Bad Gateway",
    ),
    "row 80 empty": (500, "", errors.LMServerError, True, "status 500"),
    "row 54 an invalid call": (
        500,
        message_of("error parsing tool call: raw='{'"),
        errors.LMServerError,
        True,
        "raw=",
    ),
    "no tools": (
        400,
        message_of("registry.ollama.ai/library/m:latest does not support tools"),
        errors.LMInvalidRequestError,
        False,
        "`ollama show m`",
    ),
    "no thinking": (
        400,
        message_of('"m" does not support thinking'),
        errors.LMInvalidRequestError,
        False,
        "option reasoning",
    ),
    "bad request": (400, message_of('invalid think value: "loud"'), errors.LMInvalidRequestError, False, "loud"),
    "canceled": (499, message_of("request canceled"), errors.LMTransportError, True, ""),
    "runner crash": (500, message_of("llama runner process has terminated"), errors.LMServerError, True, ""),
    "cloud away": (502, message_of("cloud model unreachable"), errors.LMServerError, True, ""),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable", "words"), ERRORS.values(), ids=ERRORS)
def test_decode_error_returns_the_error_of_a_reply(
    status: int, wire: str, kind: type[errors.LMError], retryable: bool, words: str
) -> None:
    error = ollama.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model) == (status, "ollama", "m")
    assert words in error.message


def test_row_76_error_has_retry_after() -> None:
    assert ollama.decode_error(429, {"Retry-After": "9"}, message_of("slow"), target()).retry_after == 9


INSIDE: dict[str, tuple[JsonValue, type[errors.LMError]]] = {
    "row 79 an error": ({"error": "llama runner process has terminated"}, errors.LMServerError),
    "row 79 an error beside half an answer": ({**answer({"content": "Hi"}), "error": "gone"}, errors.LMServerError),
    "row 79 an error with more fields": (
        {"error": "the prompt is longer than the context length"},
        errors.ContextWindowExceededError,
    ),
    "row 62 no message": ({"model": "m", "done": True}, errors.LMServerError),
    "row 68 cut off": ({**answer({"content": "Hi"}), "done": False}, errors.LMTransportError),
    "row 80 html": ("<html>hello</html>", errors.LMServerError),
    "row 80 empty": ("", errors.LMServerError),
    "a list": ([], errors.LMServerError),
}  # fmt: skip


@pytest.mark.parametrize(("wire", "kind"), INSIDE.values(), ids=INSIDE)
def test_decode_raises_the_error_in_a_reply_with_status_200(wire: JsonValue, kind: type[errors.LMError]) -> None:
    with pytest.raises(errors.LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == 200
    assert caught.value.message
