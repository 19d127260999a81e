"""``/v1/messages/batches`` of the fake provider."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.testing.answers import Fault
from sigwire.testing.batches.desk import BatchDesk, BatchEndpoints, FakeBatch, FakeLine, as_reply
from sigwire.testing.server import ServerReply
from sigwire.testing.wire import ReceivedRequest, Rejected
from sigwire.testing.wires.anthropic import Anthropic

__all__ = ["AnthropicBatches"]

_PATH = "/v1/messages/batches"
_ID = f"{_PATH}/([^/]+)"


class AnthropicBatches(BatchEndpoints):
    """Message Batches."""

    wire = Anthropic()
    key_header = "x-api-key"
    routes = (
        ("POST", _PATH, "create"),
        ("GET", _PATH, "listed"),
        ("GET", _ID, "status"),
        ("GET", f"{_ID}/results", "results"),
        ("POST", f"{_ID}/cancel", "cancel"),
    )

    def create(self, desk: BatchDesk, exchange: ReceivedRequest) -> ServerReply:
        body: Any = loads(exchange.body)
        lines = [FakeLine(each["custom_id"], "/v1/messages", each["params"]) for each in body["requests"]]
        if any(not 1 <= len(line.id) <= 64 for line in lines):
            raise Rejected(Fault("bad_request", "requests.0.custom_id: String should have at most 64 characters"))
        return self.created(desk, desk.create(lines, exchange, "msgbatch_", host=exchange.headers.get("host")))

    def shown(self, desk: BatchDesk, batch: FakeBatch) -> JsonObject:
        ended = batch.answers is not None
        at = datetime.fromtimestamp(batch.created, UTC).isoformat()
        expired = batch.count("expired")
        counts: JsonObject = {
            "processing": batch.count("waiting"),
            "succeeded": batch.count("done"),
            "errored": batch.count("failed"),
            "canceled": expired if batch.cancelled else 0,
            "expired": 0 if batch.cancelled else expired,
        }
        return {
            "id": batch.id,
            "type": "message_batch",
            "request_counts": counts,
            "created_at": at,
            "expires_at": at,
            "ended_at": at if ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "processing_status": "ended" if ended else "in_progress",
            "results_url": f"http://{batch.facts['host']}/{desk.run}{_PATH}/{batch.id}/results" if ended else None,
        }

    def listed(self, desk: BatchDesk, exchange: ReceivedRequest) -> ServerReply:
        query = exchange.query
        page, has_more = desk.listed("msgbatch_", query.get("limit", ""), query.get("after_id", ""))
        data: list[JsonValue] = [self.shown(desk, each) for each in page]
        ids: list[JsonValue] = [each.id for each in page] or [None]
        return as_reply({"data": data, "has_more": has_more, "first_id": ids[0], "last_id": ids[-1]})

    def results(self, desk: BatchDesk, exchange: ReceivedRequest, id: str) -> ServerReply:
        batch = desk.find(id)
        never: JsonObject = {"type": "canceled" if batch.cancelled else "expired"}
        lines: list[JsonObject] = []
        for answer in batch.answers or ():
            result: JsonObject = {"type": "errored", "error": answer.body}
            result = {"type": "succeeded", "message": answer.body} if answer.status == 200 else result
            lines.append({"custom_id": answer.id, "result": result if answer.status else never})
        return ServerReply(200, "\n".join(map(dumps, lines)).encode(), {"content-type": "application/x-jsonl"})
