"""Azure and Vertex at the fake provider: sigwire's rows and the official packages reach them, with their keys and errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import LMAuthenticationError, LMContentFilteredError, LMUnsupportedModelError
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider, Fault

HELLO = Request((Message.user("Hi"),))
ROWS = [
    ("azure/gpt-4.1", "azure", "azure", "/openai/deployments/gpt-4.1/chat/completions"),
    ("azure/gpt-5-pro", "azure", "azure-responses", "/openai/v1/responses"),
    (
        "vertex/gemini-3-flash",
        "vertex",
        "vertex",
        "/v1/projects/fake-project/locations/global/publishers/google/models/gemini-3-flash:generateContent",
    ),
    (
        "vertex/claude-sonnet-4-5@20250929",
        "vertex-claude",
        "vertex-claude",
        "/v1/projects/fake-project/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict",
    ),
    ("bedrock/amazon.nova-lite-v1:0", "bedrock", "bedrock", "/model/amazon.nova-lite-v1:0/converse"),
]
EVERY_ROW = pytest.mark.parametrize(("model", "place", "wire", "path"), ROWS, ids=[row[0] for row in ROWS])


@EVERY_ROW
async def test_provider_rows_of_the_clouds_reach_the_fake_provider(
    model: str, place: str, wire: str, path: str
) -> None:
    async with FakeProvider(["one", "two"], key="right") as provider:
        lm = LM(model, base_url=provider.url(place), api_key="right")
        answers = [(await lm.arespond(HELLO)).choices[0].text, lm.respond(HELLO).choices[0].text]
    assert answers == ["one", "two"]
    assert {(sent.wire, sent.path) for sent in provider.requests} == {(wire, path)}


@EVERY_ROW
def test_wrong_key_has_the_text_of_the_cloud(model: str, place: str, wire: str, path: str) -> None:
    with FakeProvider(["one"], key="right") as provider, pytest.raises(LMAuthenticationError) as caught:
        LM(model, base_url=provider.url(place), api_key="wrong").respond(HELLO)
    assert caught.value.status == (403 if wire == "bedrock" else 401)


@EVERY_ROW
def test_unknown_model_has_the_text_of_the_cloud(model: str, place: str, wire: str, path: str) -> None:
    with FakeProvider(["one"], models={"other"}) as provider, pytest.raises(LMUnsupportedModelError):
        LM(model, base_url=provider.url(place), api_key="k").respond(HELLO)


def test_azure_content_filter_has_the_text_of_the_cloud() -> None:
    with FakeProvider([Fault("content_filter")]) as provider, pytest.raises(LMContentFilteredError):
        LM("azure/gpt-4.1", base_url=provider.url("azure"), api_key="k").respond(HELLO)
    assert "innererror" in str(provider.requests[0].answer)


def test_the_package_for_azure_is_answered_and_streamed_to() -> None:
    openai = pytest.importorskip("openai", reason="the official openai package is not installed")
    ask: Any = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}
    there = {"api_key": "k", "api_version": "2024-10-21", "max_retries": 0}
    with (
        FakeProvider(["one", "two", "three"]) as provider,
        openai.AzureOpenAI(azure_endpoint=provider.url("azure"), **there) as client,
    ):
        assert client.chat.completions.create(**ask).choices[0].message.content == "one"
        with client.chat.completions.create(**ask, stream=True) as stream:
            first, *chunks = list(stream)
        assert (first.choices, first.prompt_filter_results[0]["prompt_index"]) == ([], 0)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "two"
        assert client.responses.create(model="gpt-4.1", input="Hi").output_text == "three"
    assert [sent.query for sent in provider.requests] == [{"api-version": "2024-10-21"}] * 3


def test_azure_needs_a_version_beside_a_deployment() -> None:
    openai = pytest.importorskip("openai", reason="the official openai package is not installed")
    with (
        FakeProvider(["one"]) as provider,
        openai.OpenAI(base_url=provider.url("azure") + "/openai/deployments/m", api_key="k", max_retries=0) as client,
        pytest.raises(openai.NotFoundError, match="Resource not found"),
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_package_for_vertex_is_answered_and_streamed_to() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about itself while it is imported
        genai = pytest.importorskip("google.genai", reason="the official google-genai package is not installed")
        from google.oauth2.credentials import Credentials
    with FakeProvider(["one", "two"]) as provider:
        there = {"base_url": provider.url("gemini"), "api_version": "v1"}  # the package adds the rest of the path
        client = genai.Client(
            vertexai=True, project="p", location="l", credentials=Credentials("k"), http_options=there
        )
        ask = {"model": "gemini-3-flash", "contents": "Hi"}
        assert client.models.generate_content(**ask).text == "one"
        assert [chunk.text for chunk in client.models.generate_content_stream(**ask)] == ["two", ""]
        client.close()
    assert {sent.wire for sent in provider.requests} == {"vertex"}
    assert provider.requests[0].headers["authorization"] == "***"


def test_the_package_for_claude_on_vertex_is_answered_and_streamed_to() -> None:
    anthropic = pytest.importorskip("anthropic", reason="the official anthropic package is not installed")
    ask: Any = {"model": "claude-m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    there = {"project_id": "fake-project", "region": "global", "access_token": "k", "max_retries": 0}
    with FakeProvider(["one", "two three"]) as provider:
        root = provider.url("vertex-claude").partition("/projects")[0]
        with anthropic.AnthropicVertex(base_url=root, **there) as client:
            assert client.messages.create(**ask).content[0].text == "one"
            with client.messages.stream(**ask) as stream:
                assert "".join(stream.text_stream) == "two three"
    assert [sent.path.rpartition(":")[2] for sent in provider.requests] == ["rawPredict", "streamRawPredict"]
