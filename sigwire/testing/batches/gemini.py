"""``:batchGenerateContent`` and ``/batches`` of the fake provider."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.narrow import is_object
from sigwire.testing.batches.desk import BatchDesk, BatchEndpoints, FakeBatch, FakeLine, LineAnswer, as_reply
from sigwire.testing.server import ServerReply
from sigwire.testing.wire import ReceivedRequest
from sigwire.testing.wires.gemini import Gemini

__all__ = ["GeminiBatches"]

_VERSION = r"/v1(?:alpha|beta)?"
_ID = rf"{_VERSION}/(batches/[^/:]+)"


class GeminiBatches(BatchEndpoints):
    """Batches with their requests inside."""

    wire = Gemini()
    key_header = "x-goog-api-key"
    routes = (
        ("POST", rf"({_VERSION}/models/[^/:]+):batchGenerateContent", "create"),
        ("GET", f"{_VERSION}/batches", "listed"),
        ("GET", _ID, "status"),
        ("POST", f"{_ID}:cancel", "cancel"),
    )

    def create(self, desk: BatchDesk, exchange: ReceivedRequest, model: str) -> ServerReply:
        body: Any = loads(exchange.body)
        batch = body["batch"]
        path = f"{model}:generateContent"
        requests = _either(_either(batch, "inputConfig"), "requests")["requests"]
        lines = [
            FakeLine(_key_of(each, number), path, _without_model(each["request"]))
            for number, each in enumerate(requests)
        ]
        facts = {"mark": _either(batch, "displayName"), "model": "models/" + model.rpartition("/")[2]}
        return self.created(desk, desk.create(lines, exchange, "batches/", **facts))

    def shown(self, desk: BatchDesk, batch: FakeBatch) -> JsonObject:
        ended = batch.answers is not None
        over = "CANCELLED" if batch.cancelled else "EXPIRED" if batch.count("expired") else "SUCCEEDED"
        at = datetime.fromtimestamp(batch.created, UTC).isoformat()
        stats: JsonObject = {
            "requestCount": str(len(batch.lines)),
            "successfulRequestCount": str(batch.count("done")),
            "failedRequestCount": str(batch.count("failed")),
            "pendingRequestCount": str(batch.count("waiting", "expired")),
        }
        metadata: JsonObject = {
            "displayName": batch.facts["mark"],
            "model": batch.facts["model"],
            "createTime": at,
            "updateTime": at,
            "state": f"BATCH_STATE_{over}" if ended else "BATCH_STATE_RUNNING",
            "batchStats": stats,
        }
        if ended:
            lines: list[JsonValue] = [_line(each) for each in batch.answers or () if each.status]
            metadata["output"] = {"inlinedResponses": {"inlinedResponses": lines}}
        return {"name": batch.id, "metadata": metadata, "done": ended}

    def listed(self, desk: BatchDesk, exchange: ReceivedRequest) -> ServerReply:
        query = exchange.query
        page, has_more = desk.listed("batches/", query.get("pageSize", ""), query.get("pageToken", ""))
        more: JsonObject = {"nextPageToken": page[-1].id} if has_more else {}
        return as_reply({"operations": [self.shown(desk, each) for each in page], **more})


def _either(data: Any, name: str) -> Any:
    """Return a member by its name in camel case, or in snake case, which the official package sends."""
    snake = "".join(f"_{each.lower()}" if each.isupper() else each for each in name)
    return data.get(name, data.get(snake))


def _key_of(request: Any, number: int) -> str:
    metadata: Any = request.get("metadata") or {}
    return str(metadata.get("key", number))


def _without_model(request: JsonObject) -> JsonObject:
    return {name: value for name, value in request.items() if name != "model"}


def _line(answer: LineAnswer) -> JsonObject:
    name = "response" if answer.status == 200 else "error"
    value = answer.body.get("error") if name == "error" and is_object(answer.body) else answer.body
    return {name: value, "metadata": {"key": answer.id}}
