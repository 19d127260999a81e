"""The three batch APIs as pure functions: the calls that they make, and what they read in replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.lm.codecs.batches import WIRES
from sigwire.lm.codecs.batches.shared import (
    BatchCall,
    BatchCalls,
    BatchCounts,
    BatchLine,
    BatchStatus,
    BatchWire,
    LineResult,
)

T = TypeVar("T")
PATHS = {"anthropic": "/v1/messages", "openai": "/chat/completions", "gemini": "/v1/models/m:generateContent"}


def wire_of(name: str) -> BatchWire:
    return cast(BatchWire, import_module(f"sigwire.lm.codecs.batches.{WIRES[name]}"))


def play(calls: BatchCalls[T], *replies: object) -> tuple[list[BatchCall], T]:
    """Return the calls of a generator, and its value."""
    made: list[BatchCall] = []
    texts = [reply if isinstance(reply, bytes) else json.dumps(reply).encode() for reply in replies]
    try:
        made.append(next(calls))
        for text in texts:
            made.append(calls.send(text))
    except StopIteration as stop:
        return made, stop.value
    raise AssertionError(f"one more call: {made[-1]}")


def status_of(name: str, reply: object) -> BatchStatus:
    return play(wire_of(name).status("b"), reply)[1]


@pytest.mark.parametrize("name", WIRES)
def test_limits_have_a_price_and_a_date(name: str) -> None:
    limits = wire_of(name).LIMITS
    assert limits.price == 0.5
    assert limits.date >= "2026"
    assert limits.lines >= 50_000


@pytest.mark.parametrize("name", WIRES)
@given(texts=st.lists(st.text(), min_size=1, max_size=4))
def test_lines_are_in_the_calls_of_a_creation_unchanged(name: str, texts: list[str]) -> None:
    bodies = [{"model": "m", "text": text} for text in texts]
    lines = [BatchLine(f"id{number}", PATHS[name], json.dumps(body).encode()) for number, body in enumerate(bodies)]
    replies = [{"id": "file-1"}, {"id": "b1"}] if name == "openai" else [{"id": "b1", "name": "b1"}]
    calls, made = play(wire_of(name).create(lines, "mark"), *replies)
    assert made == "b1"
    assert read_lines_of(name, calls) == [(line.id, body) for line, body in zip(lines, bodies, strict=True)]


def read_lines_of(name: str, calls: list[BatchCall]) -> list[tuple[str, Any]]:
    if name == "openai":
        text = calls[0].body.split(b"application/jsonl\r\n\r\n")[1].rsplit(b"\r\n--", 1)[0]
        return [(line["custom_id"], line["body"]) for line in map(json.loads, text.split(b"\n")[:-1])]
    body = json.loads(calls[0].body)
    if name == "anthropic":
        return [(line["custom_id"], line["params"]) for line in body["requests"]]
    assert body["batch"]["displayName"] == "mark"
    requests = body["batch"]["inputConfig"]["requests"]["requests"]
    return [(line["metadata"]["key"], line["request"]) for line in requests]


def test_openai_batch_has_the_endpoint_of_its_lines_and_the_mark() -> None:
    line = BatchLine("a", "/responses", b"{}")
    calls, _ = play(wire_of("openai").create([line], "mark"), {"id": "file-1"}, {"id": "b1"})
    assert json.loads(calls[1].body) == {
        "input_file_id": "file-1",
        "endpoint": "/v1/responses",
        "completion_window": "24h",
        "metadata": {"sigwire": "mark"},
    }


STATES = [
    ("anthropic", {"processing_status": "in_progress"}, "running"),
    ("anthropic", {"processing_status": "canceling"}, "running"),
    ("anthropic", {"processing_status": "ended"}, "ended"),
    *(("openai", {"status": state}, "running") for state in ("validating", "in_progress", "finalizing", "cancelling")),
    *(("openai", {"status": state}, "ended") for state in ("completed", "expired", "cancelled")),
    ("openai", {"status": "failed"}, "failed"),
    *(("gemini", {"metadata": {"state": f"BATCH_STATE_{each}"}}, "running") for each in ("PENDING", "RUNNING")),
    *(("gemini", {"metadata": {"state": f"JOB_STATE_{each}"}}, "ended") for each in ("SUCCEEDED", "EXPIRED")),
    ("gemini", {"metadata": {"state": "BATCH_STATE_CANCELLED"}}, "ended"),
    ("gemini", {"metadata": {"state": "BATCH_STATE_FAILED"}, "error": {"message": "no"}}, "failed"),
    ("gemini", {"name": "batches/1"}, "running"),
]


@pytest.mark.parametrize(("name", "reply", "state"), STATES)
def test_state_of_the_provider_is_running_ended_or_failed(name: str, reply: object, state: str) -> None:
    assert status_of(name, reply).state == state


def test_counts_are_read_from_each_form() -> None:
    counts: dict[str, object] = {"processing": 1, "succeeded": 2, "errored": 3, "canceled": 4, "expired": 5}
    assert status_of("anthropic", {"request_counts": counts}).counts == BatchCounts(1, 2, 3, 9)
    totals: dict[str, object] = {"total": 6, "completed": 2, "failed": 1}
    assert status_of("openai", {"request_counts": totals}).counts == BatchCounts(3, 2, 1)
    stats: dict[str, object] = {"requestCount": "3", "successfulRequestCount": "2", "pendingRequestCount": "1"}
    assert status_of("gemini", {"metadata": {"batchStats": stats}}).counts == BatchCounts(1, 2)


def test_failed_batch_names_its_errors() -> None:
    errors = {"data": [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]}
    assert status_of("openai", {"status": "failed", "errors": errors}).detail == (
        "token_limit_exceeded: Enqueued token limit reached"
    )


def test_results_of_anthropic_have_the_status_of_their_error() -> None:
    lines = [
        {"custom_id": "a", "result": {"type": "succeeded", "message": {"id": "m"}}},
        {"custom_id": "b", "result": {"type": "errored", "error": {"error": {"type": "overloaded_error"}}}},
        {"custom_id": "c", "result": {"type": "errored", "error": {"error": {"type": "invalid_request_error"}}}},
        {"custom_id": "d", "result": {"type": "expired"}},
        {"custom_id": "e", "result": {"type": "canceled"}},
    ]
    text = "\n".join(map(json.dumps, lines)).encode()
    calls, found = play(wire_of("anthropic").results("b", status_of("anthropic", {})), text)
    assert calls[0].path == "/v1/messages/batches/b/results"
    assert [(each.id, each.status) for each in found] == [("a", 200), ("b", 529), ("c", 400), ("d", None), ("e", None)]
    assert found[0].body == {"id": "m"}


def test_results_of_openai_are_those_of_both_files() -> None:
    done: dict[str, Any] = {"custom_id": "a", "response": {"status_code": 200, "body": {"id": "c"}}, "error": None}
    failed: dict[str, Any] = {"custom_id": "b", "response": {"status_code": 429, "body": {"error": {}}}, "error": None}
    expired: dict[str, Any] = {"custom_id": "c", "response": None, "error": {"code": "batch_expired"}}
    other: dict[str, Any] = {"custom_id": "d", "response": None, "error": {"code": "server"}}
    status = status_of("openai", {"status": "completed", "output_file_id": "o", "error_file_id": "e"})
    errors = "\n".join(map(json.dumps, (failed, expired, other))).encode()
    calls, found = play(wire_of("openai").results("b", status), done, errors)
    assert [call.path for call in calls] == ["/files/o/content", "/files/e/content"]
    assert [(each.id, each.status) for each in found] == [("a", 200), ("b", 429), ("c", None), ("d", 500)]


def test_results_of_gemini_are_in_its_state() -> None:
    lines: list[dict[str, Any]] = [
        {"metadata": {"key": "a"}, "response": {"candidates": []}},
        {"metadata": {"key": "b"}, "error": {"code": 3, "message": "odd"}},
        {"metadata": {"key": "c"}, "error": {"code": 429}},
    ]
    inlined: dict[str, Any] = {"inlinedResponses": {"inlinedResponses": lines}}
    replies: tuple[object, ...] = ({"metadata": {"output": inlined}}, {"response": inlined})
    for reply in replies:
        _, found = play(wire_of("gemini").results("b", status_of("gemini", reply)))
        assert [(each.id, each.status) for each in found] == [("a", 200), ("b", 400), ("c", 429)]


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("reply", [{}, {"data": 3, "operations": 3}, {"data": [3], "operations": [3]}, []])
def test_list_of_an_unknown_form_has_no_batches(name: str, reply: object) -> None:
    assert play(wire_of(name).listed(0.0), reply)[1] == []


PAGES: dict[str, tuple[str, Callable[[int], dict[str, object]]]] = {
    "anthropic": ("after_id=b%2F1", lambda day: {"created_at": f"2026-11-{day:02}T00:00:00Z"}),
    "openai": ("after=b%2F1", lambda day: {"created_at": 1_793_491_200 + 86_400 * day}),
    "gemini": ("pageToken=b%2F1", lambda day: {"metadata": {"createTime": f"2026-11-{day:02}T00:00:00Z"}}),
}


def page_of(name: str, day: int, last: bool) -> dict[str, object]:
    """Return a page of one batch of a day of November 2026."""
    item = {"id": f"batch of {day}", "name": f"batch of {day}", **PAGES[name][1](day)}
    more: dict[str, object] = {} if last else {"has_more": True, "last_id": "b/1", "nextPageToken": "b/1"}
    return {"data": [item, {"id": 3}, "x"], "operations": [item], **more}


@pytest.mark.parametrize("name", WIRES)
def test_list_is_read_to_its_end_with_the_cursor_of_each_page(name: str) -> None:
    pages = [page_of(name, 20, last=False), page_of(name, 19, last=True)]
    calls, found = play(wire_of(name).listed(1_795_000_000.0), *pages)
    assert [each.name for each in found] == ["batch of 20", "batch of 19"]
    assert PAGES[name][0] in calls[1].path
    assert all(each.created and 1_795_000_000 < each.created < 1_796_000_000 for each in found)


@pytest.mark.parametrize("name", ["anthropic", "openai"])  # these list the newest batches first
def test_list_is_not_read_beyond_the_time_that_matters(name: str) -> None:
    calls, found = play(wire_of(name).listed(1_795_000_000.0), page_of(name, 2, last=False))
    assert (len(calls), len(found)) == (1, 1)


@pytest.mark.parametrize("name", WIRES)
def test_list_whose_cursor_does_not_move_ends(name: str) -> None:
    calls, _ = play(wire_of(name).listed(0.0), *[page_of(name, 20, last=False)] * 100)
    assert len(calls) == 100


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("time", ["yesterday", 10**400, None, [], "9999-99-99T00:00:00Z"])
def test_listed_batch_of_an_odd_time_has_none(name: str, time: object) -> None:
    item = {"id": "b", "name": "b", "created_at": time, "metadata": {"createTime": time}}
    assert [each.created for each in play(wire_of(name).listed(0.0), {"data": [item], "operations": [item]})[1]] == [
        None
    ]


@pytest.mark.parametrize("name", WIRES)
def test_reply_that_is_not_json_is_a_value_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting|column"):
        play(wire_of(name).status("b"), b"<html>")


KEYS = """id name status state processing_status request_counts errors data line metadata output inlinedResponses response
error code message custom_id result type body status_code output_file_id batchStats created_at createTime operations has_more
succeeded total successfulRequestCount""".split()
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 1, 200, 10**400, "", "a", "²", "FAILED", "ended", "completed", 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("name", WIRES)
@given(reply=ANY_JSON)
def test_reply_of_any_form_is_read_or_a_value_error(name: str, reply: object) -> None:
    wire = wire_of(name)
    with suppress(ValueError):
        status = status_of(name, reply)
        found = play_all(wire.results("b", status), reply)
        assert all(each.status is None or each.status == 0 or 200 <= each.status <= 599 for each in found)
    assert all(each.name for each in play_all(wire.listed(0.0), reply))


def play_all(calls: BatchCalls[T], reply: object) -> T:
    """Return the value of a generator that gets one reply again and again."""
    text = json.dumps(reply).encode()
    try:
        next(calls)
        while True:
            calls.send(text)
    except StopIteration as stop:
        value: T = stop.value
        return value


@pytest.mark.parametrize("name", WIRES)
def test_cancel_is_one_post(name: str) -> None:
    calls, _ = play(wire_of(name).cancel("b"), {})
    assert [call.method for call in calls] == ["POST"]
    assert calls[0].path.endswith(("/cancel", ":cancel"))


def test_line_result_without_a_status_never_ran() -> None:
    assert LineResult("a", None) == ("a", None, None)
