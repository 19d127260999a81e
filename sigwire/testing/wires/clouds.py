"""The wires on two clouds, Azure and Vertex: other paths, other keys, other texts of some errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from sigwire.core.json import JsonObject
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.chunking import Cutter
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import ParsedRequest, ReceivedRequest, Rejected, Status, bearer
from sigwire.testing.wires.compatible import CompatibleChat
from sigwire.testing.wires.gemini import Gemini
from sigwire.testing.wires.openai import OpenAIWire
from sigwire.testing.wires.openai_chat import OpenAIChat
from sigwire.testing.wires.openai_responses import OpenAIResponses

__all__ = ["AzureChat", "AzureResponses", "Vertex", "VertexChat"]

_DENIED = (
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active "
    "subscription and use a correct regional API endpoint for your resource."
)
_FILTERED: Mapping[str, Any] = {
    "code": "ResponsibleAIPolicyViolation",
    "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
}


class _Azure(OpenAIWire):
    """The common part of both Azure endpoints: an ``api-key``, and the deployment's name in the path or in ``model``."""

    base = ""
    wrong_key = _DENIED
    no_such_model = (
        "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, "
        "please wait a moment and try again."
    )
    statuses: ClassVar[Mapping[str, Status]] = {
        **OpenAIWire.statuses,
        "auth": (401, "", "401"),
        "content_filter": (400, "", "content_filter"),
        "not_found": (404, "", "DeploymentNotFound"),
        "rate_limit": (429, "", "429"),
    }
    messages: ClassVar[Mapping[FaultKind, str]] = {
        **OpenAIWire.messages,
        "content_filter": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    }

    def key(self, exchange: ReceivedRequest) -> str | None:
        if (key := exchange.headers.get("api-key") or bearer(exchange)) is None:
            raise Rejected(Fault("auth", _DENIED))
        return key

    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        body = super().refuse(fault, request_id)
        inner: JsonObject = {"innererror": dict(_FILTERED)} if fault.kind == "content_filter" else {}
        error: Any = body["error"]
        return {"error": {**error, "type": error["type"] or None, **inner}}


class AzureChat(_Azure, OpenAIChat):
    """``POST /openai/deployments/{deployment}/chat/completions?api-version=...``, ``/openai/v1/chat/completions``, and
    Foundry's ``/models/chat/completions?api-version=...``."""

    name = "azure"
    route = re.compile(r"/(?:openai/(?:deployments/(?P<deployment>[^/]+)|v1)|(?P<foundry>models))/chat/completions")

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        place = self.route.fullmatch(exchange.path)
        assert place is not None, "the server routes by this pattern"
        if (place["deployment"] or place["foundry"]) and "api-version" not in exchange.query:
            raise Rejected(Fault("not_found", "Resource not found", code="404"))
        if place["deployment"]:
            body = RequestNode({**body.fields(), "model": place["deployment"]})
        return super().read(body, exchange)

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        # The results of the prompt filters are the first chunk, which has no choice.
        filtered: JsonObject = {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
        yield {"choices": [], "created": 0, "id": "", "model": "", "object": "", **filtered}
        yield from super().split(body, parsed, cut)


class AzureResponses(_Azure, OpenAIResponses):
    """``POST /openai/v1/responses``, also ``/openai/responses?api-version=...``."""

    name = "azure-responses"
    route = re.compile(r"/openai/(?:v1/)?responses")


class VertexChat(CompatibleChat):
    """``POST /v1/projects/{project}/locations/{location}/endpoints/openapi/chat/completions``: models of partners."""

    name = "vertex-chat"
    base = "/v1/projects/fake-project/locations/global"
    route = re.compile(r"/v1(?:beta1)?/projects/[^/]+/locations/[^/]+/endpoints/openapi/chat/completions")


class Vertex(Gemini):
    """``POST /v1/projects/{project}/locations/{location}/publishers/google/models/{model}:generateContent``, and of a tuned
    model ``/endpoints/{endpoint}:generateContent``."""

    name = "vertex"
    base = "/v1/projects/fake-project/locations/global"
    route = re.compile(
        r"/v1(?:beta1)?/projects/[^/]+/locations/[^/]+/(?:publishers/google/models|endpoints)/"
        r"(?P<model>[^/]+):(?P<method>generateContent|streamGenerateContent)"
    )
    wrong_key = "Request had invalid authentication credentials. Expected OAuth 2 access token."
    no_such_model = "Publisher Model `{model}` was not found or your project does not have access to it."
    statuses: ClassVar[Mapping[str, Status]] = {
        **Gemini.statuses,
        "auth": (401, "UNAUTHENTICATED", "ACCESS_TOKEN_TYPE_UNSUPPORTED"),
    }

    def key(self, exchange: ReceivedRequest) -> str | None:
        if (key := bearer(exchange)) is None:
            text = "Request is missing required authentication credential. Expected OAuth 2 access token."
            raise Rejected(Fault("auth", text, code="CREDENTIALS_MISSING"))
        return key
