"""The fake provider's Messages wire as Vertex AI serves it: the model in the path, the version in the body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from sigwire.testing.answers import Fault
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import ParsedRequest, ReceivedRequest, Rejected, Status, bearer
from sigwire.testing.wires.anthropic import Anthropic
from sigwire.testing.wires.clouds import Vertex

__all__ = ["VertexClaude"]

# The version of the body by that of Vertex AI; the official package sends the second.
_VERSIONS: Mapping[str, str] = {"vertex-2023-10-16": "2023-06-01", "2026-10-21": "2026-10-21"}


class VertexClaude(Anthropic):
    """``POST /v1/projects/{project}/locations/{location}/publishers/anthropic/models/{model}:rawPredict``."""

    name = "vertex-claude"
    base = Vertex.base
    route = re.compile(
        r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(?P<model>[^/]+):"
        r"(?P<method>rawPredict|streamRawPredict)"
    )
    wrong_key = Vertex.wrong_key
    no_such_model = Vertex.no_such_model
    statuses: ClassVar[Mapping[str, Status]] = {**Anthropic.statuses, "not_found": (404, "NOT_FOUND", None)}

    def key(self, exchange: ReceivedRequest) -> str | None:
        if (key := bearer(exchange)) is None:
            raise Rejected(
                Fault("auth", "Request is missing required authentication credential.", code="CREDENTIALS_MISSING")
            )
        return key

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        place = self.route.fullmatch(exchange.path)
        assert place is not None, "the server routes by this pattern"
        version = _VERSIONS[body["anthropic_version"].text(_VERSIONS)]
        if body.has("model"):
            raise InvalidValue("unknown", ("model",))
        fields = {name: value for name, value in body.fields().items() if name != "anthropic_version"}
        is_stream = (stream := body.get("stream")) is not None and stream.flag()
        if is_stream != (place["method"] == "streamRawPredict"):
            raise body.wrong(f"{place['method']} does not fit stream={is_stream}")
        whole = RequestNode({**fields, "model": place["model"]})
        return super().read(whole, replace(exchange, headers={**exchange.headers, "anthropic-version": version}))
