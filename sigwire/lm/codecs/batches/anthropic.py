"""Message Batches of Anthropic (platform.claude.com/docs/en/build-with-claude/batch-processing).

One request creates a batch. It keeps no text of its creator: after a lost reply, only its time and size identify it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sigwire.core.json import JsonObject
from sigwire.lm.codecs.anthropic.tables import STATUSES
from sigwire.lm.codecs.batches.shared import (
    BatchCall,
    BatchCalls,
    BatchCounts,
    BatchLimits,
    BatchLine,
    BatchListing,
    BatchStatus,
    LineResult,
    count_of,
    name_of,
    read_json,
    read_lines,
)
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["LIMITS", "cancel", "create", "listed", "results", "status"]

LIMITS = BatchLimits(lines=100_000, bytes=256_000_000, price=0.5, date="2026-11-22")
_PATH = "/v1/messages/batches"


def create(lines: Sequence[BatchLine], mark: str) -> BatchCalls[str]:
    """Create a batch; return its name.

    >>> next(create([BatchLine("a", "/v1/messages", b'{"model":"m"}')], "")).body
    b'{"requests":[{"custom_id":"a","params":{"model":"m"}}]}'
    """
    items = (b'{"custom_id":"%b","params":%b}' % (line.id.encode(), line.body) for line in lines)
    return name_of(read_json((yield BatchCall("POST", _PATH, b'{"requests":[%b]}' % b",".join(items)))))


def status(name: str) -> BatchCalls[BatchStatus]:
    """Return the state of a batch."""
    reply = read_json((yield BatchCall("GET", f"{_PATH}/{name}")))
    return BatchStatus("ended" if reply.get("processing_status") == "ended" else "running", _counts(reply), reply)


def _counts(reply: JsonObject) -> BatchCounts:
    counts = object_of(reply.get("request_counts"))
    return BatchCounts(
        *(count_of(counts, *names.split()) for names in ("processing", "succeeded", "errored", "expired canceled"))
    )


def results(name: str, status: BatchStatus) -> BatchCalls[list[LineResult]]:
    """Return the results of an ended batch."""
    return [_result(line) for line in read_lines((yield BatchCall("GET", f"{_PATH}/{name}/results")))]


def _result(line: JsonObject) -> LineResult:
    result = object_of(line.get("result"))
    id, kind = string_of(line, "custom_id") or "", string_of(result, "type")
    if kind == "succeeded":
        return LineResult(id, 200, result.get("message"))
    if kind != "errored":
        return LineResult(id, None)
    error = object_of(result.get("error"))
    error_type = string_of(error.get("error"), "type") or ""
    return LineResult(id, STATUSES.get(error_type, 500), error)


def cancel(name: str) -> BatchCalls[None]:
    """Cancel a batch: lines that did not run end as cancelled."""
    yield BatchCall("POST", f"{_PATH}/{name}/cancel")


def listed() -> BatchCalls[list[BatchListing]]:
    """Return the newest batches."""
    reply = read_json((yield BatchCall("GET", f"{_PATH}?limit=100")))
    return [
        BatchListing(name_of(each), None, _seconds(string_of(each, "created_at")), _counts(each).total)
        for each in objects_of(reply.get("data"))
    ]


def _seconds(time: str | None) -> float | None:
    return None if time is None else datetime.fromisoformat(time).timestamp()
