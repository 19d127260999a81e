"""The Batch API of Gemini (ai.google.dev/gemini-api/docs/batch-api), with the requests inside the request that creates it.

``displayName`` of a batch is the mark of its creator. Uploaded files, for batches above 20 MB, are not used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.batches.shared import (
    UNREADABLE,
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
    name_of,
    read_json,
    read_pages,
    result_of,
    seconds_of,
)
from sigwire.lm.codecs.shared.paths import value_in_query
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of, value_at

__all__ = ["LIMITS", "cancel", "create", "listed", "results", "status"]

LIMITS = BatchLimits(lines=50_000, bytes=19_000_000, price=0.5, date="2026-11-22")
_BASE = "/v1beta"  # the version that the documentation of batches names
_STATES: Mapping[str, BatchState] = {
    "FAILED": "failed",
    **dict.fromkeys(("SUCCEEDED", "CANCELLED", "EXPIRED"), "ended"),
}
_HTTP_OF_GRPC = {1: None, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
_OUTPUTS = ("metadata.output.inlinedResponses.inlinedResponses", "response.inlinedResponses.inlinedResponses")


def create(lines: Sequence[BatchLine], mark: str) -> BatchCalls[str]:
    """Create a batch; return its name.

    >>> line = BatchLine("a", "/v1/models/m:generateContent", b'{"contents":[]}')
    >>> next(create([line], "x")).path
    '/v1beta/models/m:batchGenerateContent'
    """
    items = (b'{"request":%b,"metadata":{"key":"%b"}}' % (line.body, line.id.encode()) for line in lines)
    body = b'{"batch":{"displayName":"%b","inputConfig":{"requests":{"requests":[%b]}}}}' % (
        mark.encode(),
        b",".join(items),
    )
    model = lines[0].path.split("/")[-1].removesuffix(":generateContent")
    return name_of(read_json((yield BatchCall("POST", f"{_BASE}/models/{model}:batchGenerateContent", body))), "name")


def status(name: str) -> BatchCalls[BatchStatus]:
    """Return the state of a batch."""
    reply = read_json((yield BatchCall("GET", f"{_BASE}/{name}")))
    state = (string_of(reply.get("metadata"), "state") or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    detail = string_of(reply.get("error"), "message") or ""
    is_cut = state in ("CANCELLED", "EXPIRED")
    return BatchStatus(_STATES.get(state, "running"), _counts(reply), reply, detail, is_cut=is_cut)


def _counts(reply: JsonObject) -> BatchCounts:
    counts = object_of(value_at(reply, "metadata.batchStats"))
    names = ("pendingRequestCount", "successfulRequestCount", "failedRequestCount")
    return BatchCounts(*(count_of(counts, each) for each in names))


def results(name: str, status: BatchStatus) -> BatchCalls[list[LineResult]]:
    """Return the results of an ended batch; the reply with its state has them."""
    yield from ()
    found = [objects_of(value_at(status.reply, path)) for path in _OUTPUTS]
    return [_result(line) for line in next(filter(None, found), ())]


def _result(line: JsonObject) -> LineResult:
    id = string_of(line.get("metadata"), "key") or ""
    if isinstance(response := line.get("response"), dict):
        return result_of(id, 200, response)
    error: JsonValue = line.get("error")
    code = object_of(error).get("code")
    if type(code) is not int:
        return LineResult(id, UNREADABLE, "a result without a response and without a code")
    status = code if code >= 100 else _HTTP_OF_GRPC.get(code, 500)
    return LineResult(id, None) if status is None else result_of(id, status, {"error": error})


def cancel(name: str) -> BatchCalls[None]:
    """Cancel a batch: lines that did not run have no result."""
    yield BatchCall("POST", f"{_BASE}/{name}:cancel", b"{}")


def listed(since: float) -> BatchCalls[list[BatchListing]]:
    """Return all batches: the order of the list is not documented."""
    return (yield from read_pages(f"{_BASE}/batches?pageSize=100", "operations", _listing, _next_page, -math.inf))


def _next_page(reply: JsonObject) -> str | None:
    token = string_of(reply, "nextPageToken")
    return None if token is None else f"&pageToken={value_in_query(token)}"


def _listing(item: JsonObject) -> BatchListing | None:
    name, metadata = string_of(item, "name"), item.get("metadata")
    if name is None:
        return None
    created = seconds_of(string_of(metadata, "createTime"))
    return BatchListing(name, string_of(metadata, "displayName"), created, _counts(item).total)
