"""Requests to Bedrock are signed as botocore signs its own, with credentials from functions, profiles and the environment."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sigwire.core.json import JsonObject
from sigwire.errors import ConfigurationError, LMAuthenticationError
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.providers import aws
from sigwire.lm.providers.aws import aws_transport, sign
from sigwire.testing import FakeProvider
from tests.lm.calls import HELLO, HOWS, ask, forget_keys, stream
from tests.lm.loopback import Host
from tests.lm.replies import Double

pytest.importorskip("botocore", reason="botocore is not installed")

MODEL = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>\w+)/\d{8}/(?P<region>[a-z0-9-]+)/bedrock/aws4_request, "
    r"SignedHeaders=(?P<signed>[a-z0-9;-]+), Signature=[0-9a-f]{64}"
)
REPLY: JsonObject = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
}


class Keys(NamedTuple):
    """Keys as a user's function returns them."""

    access_key: str
    secret_key: str
    token: str | None


KEYS = Keys("AKIAFUNCTION", "a secret", "a token")


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_keys(monkeypatch)
    for name, file in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")):
        monkeypatch.setenv(name, str(tmp_path / file))
    monkeypatch.setattr(aws, "_sessions", {})


def signed(request: HttpRequest) -> re.Match[str]:
    found = SIGNATURE.fullmatch(request.headers["authorization"])
    assert found is not None, request.headers["authorization"]
    return found


# --- the signature ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_signature_is_that_of_botocores_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    auth: Any = importlib.import_module("botocore.auth")
    session: Any = importlib.import_module("botocore.session")
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    monkeypatch.setattr(auth, "get_current_datetime", lambda **rest: now.replace(tzinfo=None))
    double = Double(REPLY)
    keys = Keys("AKIATEST", "secret", "token")
    transport = aws_transport(lambda: keys, region="eu-west-1", transport=double)
    LM(MODEL, region="eu-west-1", transport=transport).respond(HELLO)
    theirs: list[Any] = []

    def stop(request: Any, **rest: Any) -> None:
        theirs.append(request)
        raise InterruptedError

    client = session.Session().create_client(
        "bedrock-runtime", region_name="eu-west-1", aws_access_key_id="AKIATEST", aws_secret_access_key="secret",
        aws_session_token="token",
    )  # fmt: skip
    client.meta.events.register("before-send.bedrock-runtime.Converse", stop)
    ours = double.requests[0]
    with pytest.raises(InterruptedError):
        client.converse(modelId=MODEL.partition("/")[2], messages=[{"role": "user", "content": [{"text": "hello"}]}])
    client.close()
    (request,) = theirs
    assert (ours.url, ours.headers["x-amz-date"]) == (request.url, request.headers["X-Amz-Date"].decode())
    ours_again = sign_again(ours, request.body)
    assert ours_again["authorization"] == request.headers["Authorization"].decode()


def sign_again(request: HttpRequest, body: bytes) -> dict[str, str]:
    """Sign the body as botocore's client writes it, which has blanks."""
    keys = Keys("AKIATEST", "secret", "token")
    double = Double(REPLY)
    plain = HttpRequest(request.url, {"content-type": "application/json"}, body)
    aws_transport(lambda: keys, region="eu-west-1", transport=double).send(plain)
    return dict(double.requests[0].headers)


@HOWS
async def test_path_arrives_as_it_was_signed(how: str, serve: Callable[..., Host]) -> None:
    host = serve(REPLY)
    model = "bedrock/arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x"
    lm = LM(model, base_url=host.url, region="eu-west-1", transport=aws_transport(lambda: KEYS))
    await ask(how, lm)
    assert host.seen[0].path == "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.x/converse"
    lm.close()


# --- where credentials come from -----------------------------------------------------------------------------


@HOWS
@pytest.mark.parametrize("place", ["function", "environment", "profile"])
async def test_credentials_sign_whole_and_streamed_calls(
    how: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"region": "eu-west-1"}
    if place == "function":
        options["transport"] = aws_transport(lambda: KEYS)
    elif place == "environment":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFUNCTION")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    else:
        text = "[work]\naws_access_key_id = AKIAFUNCTION\naws_secret_access_key = a secret\n"
        (tmp_path / "credentials").write_text(text)
        options["profile"] = "work"
    async with FakeProvider(lambda request: "hi you", key="AKIAFUNCTION") as provider:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", provider.url("bedrock"))
        lm = LM(MODEL, cache=False, **options)
        assert (await ask(how, lm)).choices[0].text == "hi you"
        assert [event.kind for event in await stream(how, lm)].count("text_delta") == 2
        lm.close()
        assert {request.path.rpartition("/")[2] for request in provider.requests} == {"converse", "converse-stream"}


def test_credentials_of_the_environment_are_read_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    double = Double(REPLY)
    lm = LM(MODEL, region="eu-west-1", transport=double, cache=False)
    for key in ("AKIAONE", "AKIATWO"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
        lm.respond(HELLO)
    assert [signed(request)["key"] for request in double.requests] == ["AKIAONE", "AKIATWO"]


def test_function_is_called_for_each_request_and_its_token_is_sent() -> None:
    double, made = Double(REPLY), iter(["AKIAONE", "AKIATWO"])
    transport = aws_transport(lambda: Keys(next(made), "s", "t"), transport=double)
    lm = LM(MODEL, region="us-west-2", transport=transport, cache=False)
    lm.respond(HELLO)
    lm.respond(HELLO)
    assert [signed(request)["key"] for request in double.requests] == ["AKIAONE", "AKIATWO"]
    assert {request.headers["x-amz-security-token"] for request in double.requests} == {"t"}
    assert {signed(request)["region"] for request in double.requests} == {"us-west-2"}


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://bedrock-runtime.ap-south-1.amazonaws.com", "ap-south-1"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://vpce-1-2.bedrock-runtime.eu-central-1.vpce.amazonaws.com", "eu-central-1"),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("https://gateway.example", "us-east-2"),
    ],
)
def test_region_is_that_of_the_host_else_of_the_environment(
    url: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    double = Double(REPLY)
    LM(MODEL, base_url=url, transport=aws_transport(lambda: KEYS, transport=double)).respond(HELLO)
    assert signed(double.requests[0])["region"] == region


# --- keys, and what is missing ---------------------------------------------------------------------------------


@HOWS
async def test_bedrock_api_key_is_a_bearer_token_and_nothing_is_signed(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAONE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    double = Double(REPLY)
    await ask(how, LM(MODEL, region="eu-west-1", transport=double, api_key=lambda: "of-now", cache=False))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "of-environment")
    await ask(how, LM(MODEL, region="eu-west-1", transport=double, cache=False))
    assert [request.headers["authorization"] for request in double.requests] == [
        "Bearer of-now",
        "Bearer of-environment",
    ]
    assert double.requests[0].url.startswith("https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic")


@HOWS
async def test_missing_credentials_are_an_error_before_anything_is_sent(how: str) -> None:
    double = Double(REPLY)
    with pytest.raises(LMAuthenticationError, match=r"AWS_ACCESS_KEY_ID.*AWS_PROFILE.*AWS_BEARER_TOKEN_BEDROCK"):
        await ask(how, LM(MODEL, region="eu-west-1", transport=double))
    assert double.requests == []


def test_unknown_profile_is_named() -> None:
    with pytest.raises(LMAuthenticationError, match="nobody"):
        LM(MODEL, region="eu-west-1", profile="nobody", transport=Double(REPLY)).respond(HELLO)


def test_function_without_credentials_is_an_error() -> None:
    transport = aws_transport(lambda: None, transport=Double(REPLY))
    with pytest.raises(LMAuthenticationError, match="returned no credentials"):
        LM(MODEL, region="eu-west-1", transport=transport).respond(HELLO)


def test_missing_botocore_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(ConfigurationError, match=r'pip install "sigwire\[bedrock\]".*AWS_BEARER_TOKEN_BEDROCK'):
        LM(MODEL, region="eu-west-1", transport=Double(REPLY)).respond(HELLO)
    double = Double(REPLY)
    LM(MODEL, base_url="http://127.0.0.1:9", transport=double).respond(HELLO)
    assert "authorization" not in double.requests[0].headers


def test_missing_region_names_its_variable() -> None:
    with pytest.raises(ConfigurationError, match="AWS_REGION"):
        LM(MODEL, transport=Double(REPLY)).respond(HELLO)
    with pytest.raises(ConfigurationError, match="AWS_REGION"):
        LM(MODEL, base_url="http://127.0.0.1:9", transport=aws_transport(lambda: KEYS, transport=Double())).respond(
            HELLO
        )


def test_request_to_a_foreign_host_without_credentials_is_not_signed() -> None:
    assert sign(HttpRequest("http://127.0.0.1:9/model/m/converse"), {}) == {}


def test_secrets_of_a_signature_are_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAONE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-canary")
    keys = vars(aws)["_from_environment"]()
    assert "sk-canary" not in repr(keys)
    double = Double(REPLY)
    LM(MODEL, region="eu-west-1", transport=double).respond(HELLO)
    assert "Signature=" not in repr(double.requests[0].headers)
