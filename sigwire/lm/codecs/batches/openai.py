"""The Batch API of OpenAI (platform.openai.com/docs/guides/batch): a file of lines, then a batch of one endpoint and model.

``metadata.sigwire`` of a batch is the mark of its creator. Lines that failed are in a file of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from sigwire.core.json import JsonObject, dumps
from sigwire.lm.codecs.batches.shared import (
    BatchCall,
    BatchCalls,
    BatchCounts,
    BatchLimits,
    BatchLine,
    BatchListing,
    BatchState,
    BatchStatus,
    LineResult,
    count_of,
    cursor_after,
    name_of,
    read_json,
    read_pages,
    read_results,
    result_of,
)
from sigwire.lm.codecs.shared.untrusted import is_number, object_of, objects_of, string_of

__all__ = ["LIMITS", "cancel", "create", "listed", "results", "status"]

LIMITS = BatchLimits(lines=50_000, bytes=200_000_000, price=0.5, date="2026-11-22")
_BOUNDARY = "sigwire-0b1c5d8e7f6a"  # no line has it: JSON texts are one line each, and begin with a brace
_STATES: Mapping[str, BatchState] = {"failed": "failed", "completed": "ended", "expired": "ended", "cancelled": "ended"}


def create(lines: Sequence[BatchLine], mark: str) -> BatchCalls[str]:
    """Upload the lines and create a batch; return its name."""
    path = f"/v1{lines[0].path}"
    text = b"".join(
        b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}\n' % (line.id.encode(), path.encode(), line.body)
        for line in lines
    )
    upload = BatchCall("POST", "/files", _form(text), f"multipart/form-data; boundary={_BOUNDARY}")
    file = name_of(read_json((yield upload)))
    body: JsonObject = {
        "input_file_id": file,
        "endpoint": path,
        "completion_window": "24h",
        "metadata": {"sigwire": mark},
    }
    return name_of(read_json((yield BatchCall("POST", "/batches", dumps(body).encode()))))


def _form(text: bytes) -> bytes:
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return b"%b%b\r\n--%b--\r\n" % (head.encode(), text, _BOUNDARY.encode())


def status(name: str) -> BatchCalls[BatchStatus]:
    """Return the state of a batch; one that was never started, for its size or its lines, is "failed"."""
    reply = read_json((yield BatchCall("GET", f"/batches/{name}")))
    state = _STATES.get(string_of(reply, "status") or "", "running")
    errors = objects_of(object_of(reply.get("errors")).get("data"))
    texts = [f"{string_of(each, 'code')}: {string_of(each, 'message')}" for each in errors]
    lines = [each.get("line") for each in errors]  # from 1
    faults = {line - 1: text for line, text in zip(lines, texts, strict=True) if type(line) is int and line > 0}
    is_cut = reply.get("status") in ("expired", "cancelled")
    return BatchStatus(state, _counts(reply), reply, "; ".join(texts), faults, is_cut)


def _counts(reply: JsonObject) -> BatchCounts:
    counts = object_of(reply.get("request_counts"))
    done, failed = count_of(counts, "completed"), count_of(counts, "failed")
    return BatchCounts(max(count_of(counts, "total") - done - failed, 0), done, failed)


def results(name: str, status: BatchStatus) -> BatchCalls[list[LineResult]]:
    """Return the results of an ended batch, those of both files."""
    found: list[LineResult] = []
    for key in ("output_file_id", "error_file_id"):
        if (file := string_of(status.reply, key)) is not None:
            found += read_results((yield BatchCall("GET", f"/files/{file}/content")), _result)
    return found


def _result(line: JsonObject) -> LineResult:
    id, response, error = string_of(line, "custom_id") or "", object_of(line.get("response")), line.get("error")
    if response.get("status_code"):
        return result_of(id, response["status_code"], response.get("body"))
    never_ran = (string_of(error, "code") or "").startswith("batch_")  # batch_expired, batch_cancelled
    return LineResult(id, None) if never_ran else result_of(id, 500, {"error": error})


def cancel(name: str) -> BatchCalls[None]:
    """Cancel a batch: lines that did not run end as cancelled."""
    yield BatchCall("POST", f"/batches/{name}/cancel")


def listed(since: float) -> BatchCalls[list[BatchListing]]:
    """Return the batches from ``since`` on; the API lists the newest first."""
    return (yield from read_pages("/batches?limit=100", "data", _listing, partial(cursor_after, name="after"), since))


def _listing(item: JsonObject) -> BatchListing | None:
    name, at = string_of(item, "id"), item.get("created_at")
    if name is None:
        return None
    created = float(at) if is_number(at) and abs(at) < 1e12 else None
    return BatchListing(name, string_of(item.get("metadata"), "sigwire"), created, _counts(item).total)
