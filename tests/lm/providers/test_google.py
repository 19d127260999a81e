"""Requests to Vertex AI have the token of google-auth if no key is given, and only at Vertex AI's own hosts."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sigwire.errors import LMAuthenticationError
from sigwire.lm.client import LM
from sigwire.lm.providers import google
from tests.lm.calls import HELLO, HOWS, ask, forget_keys, stream
from tests.lm.replies import GEMINI, MESSAGES, Double

MODELS = {
    "vertex/gemini-2.5-flash": (GEMINI, "/publishers/google/models/gemini-2.5-flash:generateContent"),
    "vertex_ai/claude-sonnet-4-5@20250929": (
        MESSAGES,
        "/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict",
    ),
}


class Credentials:
    """Credentials whose first token has expired."""

    def __init__(self) -> None:
        self.valid, self.token, self.refreshed = False, "old", 0

    def refresh(self, request: object) -> None:
        self.valid, self.token, self.refreshed = True, "of-now", self.refreshed + 1


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> Credentials:
    auth = pytest.importorskip("google.auth", reason="google-auth is not installed")
    pytest.importorskip("google.auth.transport.requests", reason="requests is not installed")
    forget_keys(monkeypatch)
    monkeypatch.setattr(google, "_found", [])
    made = Credentials()
    monkeypatch.setattr(auth, "default", lambda **rest: (made, "p"))  # pyright: ignore[reportUnknownLambdaType]
    return made


@HOWS
@pytest.mark.parametrize("model", MODELS)
async def test_token_is_renewed_and_sent(how: str, model: str, credentials: Credentials) -> None:
    reply, path = MODELS[model]
    double = Double(reply)
    lm = LM(model, project="p", transport=double, cache=False)
    await ask(how, lm)
    await ask(how, lm)
    assert {request.headers["authorization"] for request in double.requests} == {"Bearer of-now"}
    assert {request.url for request in double.requests} == {
        f"https://aiplatform.googleapis.com/v1/projects/p/locations/global{path}"
    }
    assert credentials.refreshed == 1


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_token_is_sent_to_the_host_of_the_location(location: str, host: str, credentials: Credentials) -> None:
    double = Double(MESSAGES)
    LM("vertex/claude-opus-4-1", project="p", location=location, transport=double).respond(HELLO)
    assert double.requests[0].url.startswith(f"https://{host}/v1/projects/p/locations/{location}/")
    assert "authorization" in double.requests[0].headers


@pytest.mark.parametrize(
    "base",
    [
        "https://gateway.example/v1",
        "https://aiplatform.googleapis.com.evil.example/v1",
        "http://aiplatform.googleapis.com",
    ],
)
def test_token_is_not_sent_to_another_host(base: str, credentials: Credentials) -> None:
    double = Double(GEMINI)
    LM("vertex/gemini-2.5-flash", base_url=base, transport=double).respond(HELLO)
    assert "authorization" not in double.requests[0].headers


def test_key_given_in_code_wins(credentials: Credentials) -> None:
    double = Double(GEMINI)
    LM("vertex/gemini-2.5-flash", project="p", api_key=lambda: "mine", transport=double).respond(HELLO)
    assert double.requests[0].headers["authorization"] == "Bearer mine"


def test_missing_package_names_the_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(LMAuthenticationError, match=r"GOOGLE_OAUTH_ACCESS_TOKEN.*api_key.*google-auth"):
        LM("vertex/gemini-2.5-flash", project="p", transport=Double(GEMINI)).respond(HELLO)


def test_failed_credentials_are_an_authentication_error(
    credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: Any = importlib.import_module("google.auth.exceptions")

    def fail(scopes: object) -> Any:
        raise errors.DefaultCredentialsError("no credentials here")

    monkeypatch.setattr("google.auth.default", fail)
    with pytest.raises(LMAuthenticationError, match="no credentials here"):
        LM("vertex/gemini-2.5-flash", project="p", transport=Double(GEMINI)).respond(HELLO)


@HOWS
async def test_claude_on_vertex_has_the_version_in_the_body(how: str) -> None:
    double = Double(MESSAGES)
    lm = LM("vertex/claude-opus-4-1@20250805", project="p", api_key="k", transport=double, cache=False)
    await ask(how, lm)
    await stream(how, lm)
    bodies = [request.body for request in double.requests]
    assert all(b'"anthropic_version":"vertex-2023-10-16"' in body and b'"model"' not in body for body in bodies)
    assert [request.url.rpartition(":")[2] for request in double.requests] == ["rawPredict", "streamRawPredict"]
    assert "anthropic-version" not in double.requests[0].headers


@HOWS
@pytest.mark.parametrize("form", ["path", "text", "object"])
async def test_given_credentials_are_read_once_and_sent(
    how: str, form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    auth = pytest.importorskip("google.auth", reason="google-auth is not installed")
    pytest.importorskip("google.auth.transport.requests", reason="requests is not installed")
    forget_keys(monkeypatch)
    made, read = Credentials(), list[object]()

    def load(given: object, scopes: object) -> tuple[Credentials, str]:
        read.append(given)
        return made, "p"

    monkeypatch.setattr(auth, "load_credentials_from_file", load)
    monkeypatch.setattr(auth, "load_credentials_from_dict", load)
    key = {"type": "service_account"}
    given: Any = {"path": str(tmp_path / "key.json"), "text": json.dumps(key), "object": key}[form]
    double = Double(GEMINI)
    transport = google.google_transport(given, transport=double)
    lm = LM("vertex/gemini-2.5-flash", project="p", transport=transport, cache=False)
    await ask(how, lm)
    await ask(how, lm)
    assert {request.headers["authorization"] for request in double.requests} == {"Bearer of-now"}
    assert read == [given if form == "path" else key]


def test_credentials_that_are_no_json_are_an_error() -> None:
    pytest.importorskip("google.auth", reason="google-auth is not installed")
    lm = LM("vertex/gemini-2.5-flash", project="p", transport=google.google_transport("{no", transport=Double(GEMINI)))
    with pytest.raises(LMAuthenticationError, match="are no JSON"):
        lm.respond(HELLO)
