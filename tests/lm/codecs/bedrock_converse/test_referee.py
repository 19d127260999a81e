"""Converse: botocore serializes what the codec encodes, and reads from the fake provider what the codec reads."""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider
from tests.lm.codecs.bedrock_converse.test_encoding import CONVERSATIONS, FIELDS, OFFERS
from tests.lm.codecs.bedrock_converse.wire import SCHEMA, STRICT, TOOL, encoded

pytestmark = pytest.mark.long  # a client of botocore reads its models for half a second
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SIGNED = ThinkingPart("hm", signature="AAEC")
ANSWERS = {
    "text": Choice("It is so."),
    "thinking, text and calls": Choice.from_parts(
        (SIGNED, TextPart("t"), ToolCall("tooluse_1", "f", {"x": 1}), ToolCall("tooluse_2", "f", {}))
    ),
    "a tool of the provider": Choice.from_parts(
        (OpaquePart("bedrock", {"toolResult": {"toolUseId": "s_1", "content": [{"text": "a"}]}}), TextPart("a"))
    ),
}


@pytest.fixture(scope="module")
def service() -> Any:
    session = pytest.importorskip("botocore.session").Session()
    return session.get_service_model("bedrock-runtime")


def serialized(service: Any, body: Any, operation: str = "Converse") -> tuple[str, Any]:
    """Return the path and the body that botocore makes of the arguments of a call."""
    serializers: Any = importlib.import_module("botocore.serialize")
    shape = service.operation_model(operation)
    arguments = {"modelId": MODEL, **_with_bytes(body)}
    made = serializers.create_serializer("rest-json", include_validation=True).serialize_to_request(arguments, shape)
    return made["url_path"], json.loads(made["body"])


def _with_bytes(value: Any) -> Any:
    """Return a body as arguments of boto3, which takes bytes."""
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    blobs = {"bytes", "redactedContent"}
    return {name: base64.b64decode(item) if name in blobs else _with_bytes(item) for name, item in value.items()}


BODIES = {
    "schema": encoded(Request((Message.user("q"),), response_format=ResponseFormat(SCHEMA)), STRICT),
    **{f"conversation {name}": encoded(Request(messages)) for name, (messages, _) in CONVERSATIONS.items()},
    **{f"tools {name}": encoded(request, to) for name, (request, to, *_) in OFFERS.items()},
    **{
        f"options {name}": encoded(Request((Message.user("q"),), options=options), to)
        for name, (to, options, *_) in FIELDS.items()
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_botocore_serializes_the_body_that_is_sent(name: str, service: Any) -> None:
    body = BODIES[name].body
    for operation in ("Converse", "ConverseStream"):
        assert serialized(service, body, operation)[1] == body


@pytest.mark.parametrize(
    "model", [MODEL, "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0"]
)
def test_path_of_a_model_is_that_of_boto3(model: str) -> None:
    seen: list[str] = []

    def stop(request: Any, **rest: Any) -> None:
        seen.append(request.url)
        raise InterruptedError

    with _client("http://127.0.0.1:9") as client:
        client.meta.events.register("before-send.bedrock-runtime.Converse", stop)
        with pytest.raises(InterruptedError):
            client.converse(modelId=model, messages=[{"role": "user", "content": [{"text": "q"}]}])
    sent: list[str] = []

    class Stopped:
        def send(self, request: Any) -> Any:
            sent.append(request.url)
            raise InterruptedError

    lm: Any = LM(f"bedrock/{model}", base_url="http://127.0.0.1:9", api_key="k", transport=Stopped(), num_retries=0)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="No answer"):
        lm.respond(Request((Message.user("q"),)))
    assert sent == seen


@contextmanager
def _client(url: str) -> Iterator[Any]:
    session = pytest.importorskip("botocore.session").Session()
    client = session.create_client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=url, aws_access_key_id="AKIATEST",
        aws_secret_access_key="secret",
    )  # fmt: skip
    yield client
    client.close()


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    replies = {f"q {name}": choice for name, choice in ANSWERS.items()}
    with FakeProvider(lambda request: replies[request.messages[-1].text]) as running:
        yield running


@pytest.fixture(scope="module")
def client(provider: FakeProvider) -> Iterator[Any]:
    with _client(provider.url("bedrock")) as made:
        yield made


@pytest.mark.parametrize("name", ANSWERS)
def test_botocore_reads_the_answer_that_the_codec_reads(name: str, provider: FakeProvider, client: Any) -> None:
    request = Request((Message.user(f"q {name}"),), (TOOL,))
    lm = LM(f"bedrock/{MODEL}", base_url=provider.url("bedrock"), api_key="k", cache=False)
    ours = lm.respond(request)
    body: Any = provider.requests[-1].body
    theirs = client.converse(modelId=MODEL, **body)
    assert provider.requests[-1].body == body
    assert _read(theirs["output"]["message"]["content"]) == _read(_with_bytes(_raw(ours)))
    assert theirs["usage"]["totalTokens"] == (ours.usage.input_tokens or 0) + (ours.usage.output_tokens or 0)


@pytest.mark.parametrize("name", ANSWERS)
def test_botocore_reads_the_stream_that_the_codec_reads(name: str, provider: FakeProvider, client: Any) -> None:
    request = Request((Message.user(f"q {name}"),), (TOOL,))
    lm = LM(f"bedrock/{MODEL}", base_url=provider.url("bedrock"), api_key="k", cache=False)
    ours = [*lm.stream(request)]
    body: Any = provider.requests[-1].body
    events = [*client.converse_stream(modelId=MODEL, **body)["stream"]]
    assert events == [_with_bytes(event) for event in provider.requests[-1].answer]  # type: ignore[union-attr]
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    text = "".join(delta.get("text", "") for delta in deltas)
    assert text == "".join(getattr(event, "text", "") for event in ours if event.kind == "text_delta")


def _raw(response: Any) -> Any:
    return response.raw["output"]["message"]["content"]


def _read(blocks: Any) -> Any:
    """Return blocks without the ids that the fake provider counts."""
    return json.loads(json.dumps(blocks, default=str))
