"""``/v1/files`` and ``/v1/batches`` of the fake provider."""

from __future__ import annotations

from email.parser import BytesParser
from typing import Any

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.testing.answers import Fault
from sigwire.testing.batches.desk import BatchDesk, BatchEndpoints, FakeBatch, FakeLine, LineAnswer, as_reply
from sigwire.testing.server import ServerReply
from sigwire.testing.wire import ReceivedRequest, Rejected
from sigwire.testing.wires.openai_chat import OpenAIChat

__all__ = ["OpenAIBatches"]

_ID = "/v1/batches/([^/]+)"


class OpenAIBatches(BatchEndpoints):
    """Files and batches."""

    wire = OpenAIChat()
    key_header = "authorization"
    routes = (
        ("POST", "/v1/files", "upload"),
        ("GET", "/v1/files/([^/]+)/content", "content"),
        ("POST", "/v1/batches", "create"),
        ("GET", "/v1/batches", "listed"),
        ("GET", _ID, "status"),
        ("POST", f"{_ID}/cancel", "cancel"),
    )

    def upload(self, desk: BatchDesk, exchange: ReceivedRequest) -> ServerReply:
        head = f"Content-Type: {exchange.headers['content-type']}\r\n\r\n".encode()
        parts: Any = BytesParser().parsebytes(head + exchange.body).get_payload()
        form = {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}
        if form["purpose"].strip() != b"batch":
            raise Rejected(Fault("bad_request", "The fake provider keeps files of the purpose 'batch' only."))
        id = f"file-{len(desk.files) + 1}"
        desk.files[id] = form["file"]
        shown: JsonObject = {
            "id": id,
            "object": "file",
            "bytes": len(form["file"]),
            "created_at": int(desk.plan.clock()),
            "filename": "batch.jsonl",
            "purpose": "batch",
            "status": "processed",
        }
        return as_reply(shown)

    def content(self, desk: BatchDesk, exchange: ReceivedRequest, id: str) -> ServerReply:
        kind, _, batch = id.rpartition("-of-")
        if id in desk.files:
            return ServerReply(200, desk.files[id], {"content-type": "application/octet-stream"})
        answers = [each for each in desk.find(batch).answers or () if (each.status == 200) == (kind == "file-output")]
        text = "\n".join(dumps(_line(each, number)) for number, each in enumerate(answers))
        return ServerReply(200, text.encode(), {"content-type": "application/octet-stream"})

    def create(self, desk: BatchDesk, exchange: ReceivedRequest) -> ServerReply:
        body: Any = loads(exchange.body)
        if body["input_file_id"] not in desk.files or body["completion_window"] != "24h":
            raise Rejected(Fault("bad_request", "input_file_id is a file, and completion_window is '24h'."))
        items: list[Any] = [loads(line) for line in desk.files[body["input_file_id"]].splitlines() if line.strip()]
        if {(item["method"], item["url"]) for item in items} - {("POST", body["endpoint"])}:
            raise Rejected(Fault("bad_request", "Each line has the method POST and the url of the batch's endpoint."))
        if len({item["body"]["model"] for item in items}) > 1:
            raise Rejected(Fault("bad_request", "All requests of a batch are for one model."))
        lines = [FakeLine(item["custom_id"], item["url"], item["body"]) for item in items]
        return self.created(desk, desk.create(lines, exchange, "batch_", body=body))

    def shown(self, desk: BatchDesk, batch: FakeBatch) -> JsonObject:
        given: JsonObject = batch.facts["body"]
        ended, failed, expired = batch.answers is not None, batch.count("failed"), batch.count("expired")
        over = "cancelled" if batch.cancelled else "expired" if expired else "completed"
        counts: JsonObject = {"total": len(batch.lines), "completed": batch.count("done"), "failed": failed}
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": given["endpoint"],
            "input_file_id": given["input_file_id"],
            "completion_window": "24h",
            "created_at": int(batch.created),
            "metadata": given.get("metadata"),
            "status": over if ended else "in_progress",
            "request_counts": counts,
            "output_file_id": f"file-output-of-{batch.id}" if batch.count("done") else None,
            "error_file_id": f"file-error-of-{batch.id}" if failed + expired else None,
        }

    def listed(self, desk: BatchDesk, exchange: ReceivedRequest) -> ServerReply:
        query = exchange.query
        page, has_more = desk.listed("batch_", query.get("limit", ""), query.get("after", ""))
        data: list[JsonValue] = [self.shown(desk, each) for each in page]
        ids: list[JsonValue] = [each.id for each in page] or [None]
        return as_reply({"object": "list", "data": data, "has_more": has_more, "first_id": ids[0], "last_id": ids[-1]})


def _line(answer: LineAnswer, number: int) -> JsonObject:
    response: JsonObject = {"status_code": answer.status, "request_id": f"req_{number}", "body": answer.body}
    error: JsonObject = {"code": "batch_expired", "message": "This request could not be executed before it expired."}
    ran = answer.status > 0
    return {
        "id": f"batch_req_{number}",
        "custom_id": answer.id,
        "response": response if ran else None,
        "error": None if ran else error,
    }
