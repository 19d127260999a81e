"""Every contestant of the benchmarks gives the right answer. These tests measure no time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from benchmarks import (
    deciding,
    entries,
    evaluate,
    growth,
    imports,
    layers,
    long_histories,
    over_http,
    parsing,
    peers,
    predict,
    server,
    streaming,
    tools,
)
from benchmarks.by_hand import Sender
from benchmarks.timing import FLOOR, SIGWIRE, Job, Line, measure, opcodes, table
from sigwire.core.json import JsonValue

SOURCES = (imports.jobs, predict.jobs, growth.jobs, tools.jobs, parsing.jobs, layers.jobs, deciding.jobs)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__module__)
def test_every_job_runs_on_both_sides(source: Callable[[], Iterator[Job]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "ROWS", 80)
    for job in source():  # making a job checks its answers
        for contestant in job.contestants.values():
            contestant()
        assert list(job.contestants)[:2] == [FLOOR, SIGWIRE]


def test_every_job_of_long_histories_runs() -> None:
    made = list(long_histories.jobs(turns=20, shown=40, passages=40, tools=8))
    for job in made:  # making a job checks its answers
        job.contestants[SIGWIRE]()
    assert {job.name for job in made} == {f"k{number}" for number in range(1, 7)}


@pytest.mark.long
@pytest.mark.parametrize(
    "source",
    [imports.over_http, over_http.jobs, streaming.jobs, layers.over_http, evaluate.over_http],
    ids=lambda source: source.__module__,
)
def test_every_job_over_http_runs_on_both_sides(
    source: Callable[[], Iterator[Job]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "HTTP_PEERS", {})
    monkeypatch.setattr(over_http, "QUESTIONS", over_http.QUESTIONS[:20])
    for module in (predict, over_http):
        monkeypatch.setattr(module, "CALLS_PER_TASK", 1)
    monkeypatch.setattr(layers, "CALLS", 2)
    monkeypatch.setattr(evaluate, "EXAMPLES", 20)
    for job in source():  # making a job checks its answers and the number of requests
        assert list(job.contestants) == [FLOOR, SIGWIRE]
        for contestant in job.contestants.values():
            contestant()


def test_answer_with_too_many_requests_is_not_timed() -> None:
    with server.serving() as port:
        send = Sender(port, "/")
        assert server.answered(port, lambda: send(b"{}"), server.ANSWER, 1)
        with pytest.raises(AssertionError):
            server.answered(port, lambda: max(send(b"{}"), send(b"{}")), server.ANSWER, 1)
        with pytest.raises(AssertionError):
            server.answered(port, lambda: send(b"{}"), b"something else", 1)
        send.close()


@pytest.mark.parametrize(
    ("beginning", "whole", "is_one"),
    [
        ([], [{"a": 1}], True),
        ([{"a": "wo"}], [{"a": "word", "b": 2}, 3], True),
        ([{"b": 2}], [{"a": "word", "b": 2}], False),
        ([{"a": 1}], [{"a": 12}], False),
        ([1, 2], [1], False),
        ("x", ["x"], False),
    ],
)
def test_partial_value_check_accepts_prefixes_only(beginning: JsonValue, whole: JsonValue, is_one: bool) -> None:
    assert streaming.begins(beginning, whole) is is_one


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the garbage collection before each sample: the heap of a test run is large."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


@pytest.mark.usefixtures("no_collection")
def test_contestants_take_turns_and_a_line_has_every_sample() -> None:
    turns: list[str] = []
    job = Job(
        "x1",
        "a job",
        "≤ 2x",
        {FLOOR: lambda: turns.append("a"), SIGWIRE: lambda: turns.append("b")},
        unit="ms",
        sample=lambda contestant: 0.001 if contestant() is None else 0.0,
    )
    line = measure(job, rounds=2)
    assert turns == ["a", "b", "a", "b", "b", "a"]  # one round to warm up, then in turn, then in reverse order
    assert line.samples == {FLOOR: [1.0, 1.0], SIGWIRE: [1.0, 1.0]}


@pytest.mark.usefixtures("no_collection")
def test_slow_job_gets_few_rounds() -> None:
    job = Job("x1", "a job", "", {SIGWIRE: lambda: None}, sample=lambda contestant: 1.0, most_rounds=2)
    assert len(measure(job, rounds=5).samples[SIGWIRE]) == 2


def test_opcodes_of_a_call_are_counted_with_those_of_what_it_calls() -> None:
    def double(number: int) -> int:
        return number + number

    once, twice = opcodes(lambda: double(1)), opcodes(lambda: (double(1), double(1)))
    assert 0 < once < twice
    assert opcodes(lambda: double(1)) == once
    assert opcodes(lambda: double) < once


def test_the_table_shows_medians_spread_and_the_ratio_to_the_floor() -> None:
    line = Line("x1", "a job", "µs", "≤ 3x", {FLOOR: [1.0, 2.0, 3.0], SIGWIRE: [4.0, 4.0, 10.0], "peer": [20.0]})
    *_, row = table([line]).splitlines()
    assert row == (
        "| x1 | a job | µs | 2.00 (1.00 to 3.00) | 4.00 (4.00 to 10.0) | 2.00x | ≤ 3x | 20.0 (20.0 to 20.0) 10x |"
    )


def test_entries_are_equal_in_each_run_and_end_at_the_socket() -> None:
    with server.serving() as port:
        first, second = entries.one_call(port), entries.one_call(port)
        delta = entries.middle(entries.deltas_read_alone(port))
    # A busy server sends a reply in one part or in two: only the reads of lm/http depend on it.
    without_reads = [[entry for entry in call if not entry.file.startswith("lm/http/")] for call in (first, second)]
    assert without_reads[0] == without_reads[1]
    before = entries.up_to_http(first)
    assert before == entries.up_to_http(second)
    assert 0 < len(before) < len(first)
    assert first[len(before)].file.startswith("lm/http/")
    assert not any(entry.file.startswith("lm/http/") for entry in before)
    assert {"modules/module.py", "lm/http_backend.py"} <= {entry.file for entry in before}
    assert "lm/codecs/openai_chat/stream_decoder.py" in {entry.file for entry in delta}


def test_recorder_skips_comprehensions_and_other_packages() -> None:
    with entries.Recorder() as recorder:
        tools.book(1, 2)
    assert recorder.entries == []
