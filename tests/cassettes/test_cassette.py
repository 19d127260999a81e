"""Cassettes: record and replay in every mode of calling, misses, streams, errors, the file and its secrets."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire import (
    Cassette,
    CassetteMiss,
    Choice,
    FakeLM,
    Image,
    Journal,
    LMError,
    LMRateLimitError,
    Module,
    Predict,
    ReAct,
    Response,
    Signature,
    StateError,
    Tool,
    ToolCall,
    UsageUpdate,
    durable,
)
from sigwire.cassettes import asks, lines, packing
from sigwire.cassettes.packing import pack
from sigwire.core.events import collect, events_of
from sigwire.core.json import dumps, loads
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.response import Attempt
from sigwire.testing import FakeProvider, Fault, Streamed
from tests.files.processes import fork, statuses

MODES = ["sync", "async", "stream", "astream"]
WIRES = {
    "openai": "openai/gpt-4.1", "openai-responses": "openai/gpt-5-mini", "anthropic": "anthropic/claude-haiku-4-5",
    "gemini": "gemini/gemini-2.5-flash", "ollama": "ollama/qwen3",
    "bedrock": "bedrock/amazon.nova-lite-v1:0",
}  # fmt: skip
SUM = Signature("question -> answer, steps: list[int]")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "run.jsonl"


async def call(mode: str, cassette: Cassette, program: Any, **inputs: Any) -> Any:
    """Call a program inside a cassette; blocking modes in a thread, so that each mode works in async tests."""
    return (await events(mode, cassette, program, **inputs))[-1]


async def events(mode: str, cassette: Cassette, program: Any, **inputs: Any) -> list[Any]:
    """Return the events of a stream and its value; of a call the value."""

    def blocking() -> list[Any]:
        with cassette:
            if mode == "sync":
                return [program(**inputs)]
            *rest, last = program.stream(**inputs)
            return [*rest, last.value]

    if mode in ("sync", "stream"):
        return await asyncio.to_thread(blocking)
    with cassette:
        if mode == "async":
            return [await program.acall(**inputs)]
        *rest, last = [event async for event in program.astream(**inputs)]
        return [*rest, last.value]


def adding_agent(ran: list[Any], **options: Any) -> Any:
    """Two calls in one turn, one in the next, the answer."""

    def add(a: int, b: int) -> int:
        ran.append((a, b))
        return a + b

    calls = [ToolCall("a", "add", {"a": 1, "b": 2}), ToolCall("b", "add", {"a": 3, "b": 4})]
    lm = FakeLM([calls, ToolCall("c", "add", {"a": 3, "b": 7}), ToolCall("d", "submit", {"answer": 10})])
    return ReAct("question -> answer: int", tools=[add], lm=lm, **options)


def answering(*answers: Any, cut: Any = None, wire: str = "openai", **options: Any) -> tuple[FakeProvider, sigwire.LM]:
    provider = FakeProvider([Streamed(answer, cut=cut) if cut else answer for answer in answers], key="sk-mine").start()
    return provider, sigwire.LM(WIRES[wire], base_url=provider.url(wire), api_key="sk-mine", num_retries=0, **options)


def fields(answer: str, steps: str) -> str:
    return f"[[ ## answer ## ]]\n{answer}\n\n[[ ## steps ## ]]\n{steps}\n\n[[ ## completed ## ]]\n"


def without_usage(events: list[Any]) -> list[Any]:
    """Return the events of a stream; some providers report tokens in the middle, and a replay at the end."""
    return [event for event in events if not isinstance(event, UsageUpdate)]


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[1:-1]]


# --- replay -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", MODES)
@pytest.mark.parametrize("mode", MODES)
async def test_run_of_an_agent_replays_without_model_and_tools(path: Path, mode: str, again: str) -> None:
    ran: list[Any] = []
    agent = adding_agent(ran)
    first = await call(mode, Cassette(path), agent, question="?")
    second = await call(again, Cassette(path, "replay", strict=True), agent, question="?")
    assert first.answer == second.answer == 10
    assert first.history == second.history
    assert [step.results for step in first.steps] == [step.results for step in second.steps]
    assert second.usage == first.usage
    assert sorted(ran) == [(1, 2), (3, 4), (3, 7)]


@pytest.mark.parametrize("mode", MODES)
async def test_two_replays_are_equal_byte_by_byte(path: Path, mode: str) -> None:
    agent = adding_agent([], parallel=False)  # events of parallel calls come as the calls end
    await call("stream", Cassette(path), agent, question="?")
    before = path.read_bytes()
    replays = [await events(mode, Cassette(path, "replay"), agent, question="?") for _ in range(2)]
    texts = [
        dumps([sigwire.Finished(each[-1]).to_json(), *(event.to_json() for event in each[:-1])]) for each in replays
    ]
    assert texts[0] == texts[1]
    assert path.read_bytes() == before


@pytest.mark.parametrize("wire", WIRES)
async def test_partial_fields_of_a_stream_fall_where_they_fell(path: Path, wire: str) -> None:
    provider, lm = answering(fields("four, I think", "[1, 22, 333]"), cut=3, wire=wire)
    predict = Predict(SUM, lm=lm)
    recorded = await events("stream", Cassette(path), predict, question="2+2?")
    provider.close()
    assert sum(event.kind == "field_partial" for event in recorded[:-1]) > 2
    for mode in ("stream", "astream"):
        replayed = await events(mode, Cassette(path, "replay"), predict, question="2+2?")
        assert without_usage(replayed) == without_usage(recorded)
    for mode in ("sync", "async"):
        assert (await call(mode, Cassette(path, "replay"), predict, question="2+2?")) == recorded[-1]
    assert "cuts" in written(path)[0]


def test_recording_without_a_stream_replays_as_a_stream(path: Path) -> None:
    predict = Predict(SUM, lm=FakeLM([{"answer": "4", "steps": [1]}]))
    with Cassette(path):
        predict(question="2+2?")
    with Cassette(path):
        *_, last = predict.stream(question="2+2?")
    assert last.value.steps == [1]


def test_model_without_a_base_class_is_recorded_and_streamed(path: Path) -> None:
    class Echo:
        model, capabilities = "echo", sigwire.Capabilities()

        def respond(self, request: sigwire.Request) -> Response:
            return Response((Choice(fields("4", "[1]")),))

        async def arespond(self, request: sigwire.Request) -> Response:
            return self.respond(request)

    predict = Predict(SUM, lm=Echo())
    with Cassette(path):
        recorded = list(predict.stream(question="2+2?"))
    with Cassette(path, strict=True):
        assert list(predict.stream(question="2+2?")) == recorded


def test_stream_whose_deltas_are_in_another_order_is_stored_as_events(path: Path) -> None:
    text = fields("4", "[1]")
    choice = Choice.from_parts([TextPart(text[:20]), ThinkingPart("hm"), TextPart(text[20:])])
    seen: list[Any] = [(0, event) for event in events_of(Response((choice,)))]
    assert "cuts" in asks._stream(Response((choice,)), seen)
    assert "events" in asks._stream(Response((choice,)), [seen[0], *reversed(seen[1:])])


@given(st.text(max_size=30), st.lists(st.integers(0, 9)), st.text(max_size=9))
def test_cuts_give_the_deltas_of_the_recorded_stream(text: str, lengths: list[int], reasoning: str) -> None:
    response = Response((Choice(text, reasoning=reasoning or None),))
    recorded = list(asks._cut(response, [(0, length) for length in lengths]))
    line = asks._stream(response, recorded)
    replayed = list(asks._events(line, response))
    assert [event for _, event in replayed] == [event for _, event in recorded]
    assert collect(event for _, event in replayed) == response


def test_speed_waits_between_the_deltas_of_a_stream(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    class Noted:
        def __init__(self, seconds: float) -> None:
            self.seconds = seconds

        def run(self) -> None:
            waits.append(self.seconds)

    monkeypatch.setattr(asks, "Sleep", Noted)
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    with Cassette(path):
        list(predict.stream(question="2+2?"))
    path.write_text(re.sub(r'"cuts":\[\[\d+,', '"cuts":[[500,', path.read_text()))
    for speed in (None, 1.0, 2.0):
        with Cassette(path, speed=speed):
            list(predict.stream(question="2+2?"))
    assert [seconds for seconds in waits if seconds > 0.1] == [0.5, 0.25]


# --- misses (row 30 of the table of failures) -------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "wire"), [*((mode, "openai") for mode in MODES), *(("stream", wire) for wire in WIRES)]
)
async def test_changed_prompt_raises_a_miss_with_the_difference_and_sends_nothing(
    path: Path, mode: str, wire: str
) -> None:
    provider, lm = answering(fields("4", "[1]"), wire=wire)
    with provider:
        await call(mode, Cassette(path), Predict(SUM, lm=lm), question="2+2?")
        changed = Predict(SUM.with_instructions("Be brief."), lm=lm)
        with pytest.raises(CassetteMiss) as caught:
            await call(mode, Cassette(path, "replay"), changed, question="2+2?")
        assert len(provider.requests) == 1
    error = caught.value
    assert "message 1 differs (instructions changed), compared with line 2" in str(error)
    assert "+Be brief." in error.diff
    assert (error.path, error.place) == (path, "Predict.0/ask.0")
    assert isinstance(error, StateError)


def test_miss_inside_a_tool_ends_the_agent(path: Path) -> None:
    inner = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    questions = ["2+2?", "3+3?"]

    def ask() -> str:
        return str(inner(question=questions.pop(0)).answer)

    lm = FakeLM([ToolCall("a", "ask", {}), ToolCall("b", "submit", {"answer": "4"})])
    agent = ReAct("question -> answer", tools=[ask], lm=lm)
    with Cassette(path):
        agent(question="?")
    with pytest.raises(CassetteMiss, match="message 2 differs"), Cassette(path, tools="run"):
        agent(question="?")


def test_option_of_the_model_is_part_of_the_question(path: Path) -> None:
    with Cassette(path):
        Predict("question -> answer", lm=FakeLM([{"answer": "4"}], temperature=0.0))(question="2+2?")
    with pytest.raises(CassetteMiss, match="the options differ"), Cassette(path):
        Predict("question -> answer", lm=FakeLM(temperature=0.5))(question="2+2?")


def test_equal_questions_are_replayed_in_the_recorded_order_and_then_used_up(path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": str(number)} for number in range(3)]))
    with Cassette(path):
        assert [predict(question="?").answer for _ in range(3)] == ["0", "1", "2"]
    with Cassette(path, strict=True):
        assert [predict(question="?").answer for _ in range(3)] == ["0", "1", "2"]
    with pytest.raises(CassetteMiss, match="used up"), Cassette(path):
        [predict(question="?").answer for _ in range(4)]


def test_unused_line_of_a_tool_is_found(path: Path) -> None:
    agent = adding_agent([])
    with Cassette(path):
        agent(question="?")
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:-1], lines[2].replace('"key":"', '"key":"0'), ""]))
    with pytest.raises(StateError, match=r"1 lines were not used, such as line 8 \(ReAct"), Cassette(path, strict=True):
        agent(question="?")


def test_miss_that_the_program_catches_warns_at_the_end(path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    with Cassette(path):
        predict(question="2+2?")
    cassette = Cassette(path).__enter__()
    predict(question="2+2?")
    with pytest.raises(CassetteMiss):
        predict(question="3+3?")
    with pytest.warns(RuntimeWarning, match="1 CassetteMiss were raised, and caught"):
        cassette.__exit__(None, None, None)


def test_equal_questions_of_a_batch_keep_their_answers_whichever_thread_is_first(path: Path) -> None:
    lock, numbers = threading.Lock(), iter(range(99))

    def answer(request: Any) -> Any:
        with lock:
            return {"answer": str(next(numbers))}

    predict = Predict("question -> answer", lm=FakeLM(answer))
    inputs: Any = [{"question": "?"}] * 8

    def answers() -> list[str]:
        return [each.answer for each in predict.batch(inputs, num_threads=4)]

    with Cassette(path):
        recorded = answers()
    for _ in range(3):
        with Cassette(path, strict=True):
            assert answers() == recorded


def test_unused_lines_warn_or_raise(path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    with Cassette(path):
        predict(question="2+2?")
    unused = r"1 lines were not used, such as line 2 \(Predict.0/ask.0\) \(closing"
    with pytest.warns(RuntimeWarning, match=unused), Cassette(path):
        pass
    with pytest.raises(StateError, match=unused), Cassette(path, strict=True):
        pass


# --- modes ------------------------------------------------------------------------------------------------


def test_new_replays_what_is_there_and_appends_the_rest(path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}, {"answer": "6"}]))
    with Cassette(path, "record"):
        predict(question="2+2?")
    before = path.read_bytes()
    with Cassette(path, "new"):
        assert (predict(question="2+2?").answer, predict(question="3+3?").answer) == ("4", "6")
    assert path.read_bytes().startswith(before)
    assert [line["lm"] for line in written(path)] == [2, 3]
    with Cassette(path, strict=True):
        assert (predict(question="3+3?").answer, predict(question="2+2?").answer) == ("6", "4")


def test_auto_records_once_and_never_in_ci(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(StateError, match="is no file"), Cassette(path):
        pass
    monkeypatch.setenv("CI", "false")
    for _ in range(2):
        with Cassette(path):
            assert predict(question="2+2?").answer == "4"


def test_recording_that_fails_keeps_the_file_before(path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}, {"answer": "5"}, LMError]))
    with Cassette(path, "record"):
        predict(question="2+2?")
    before = path.read_bytes()
    with pytest.raises(LMError) as caught, Cassette(path, "record"):
        [predict(question="2+2?") for _ in range(2)]
    assert path.read_bytes() == before
    part = path.with_name("run.jsonl.part")
    assert sorted(path.parent.iterdir()) == [path, part]
    assert any(note.startswith(f"2 recorded lines are kept in {part}") for note in caught.value.__notes__)
    part.replace(path)
    with Cassette(path, "new"):
        assert predict(question="2+2?").answer == "5"


def test_recording_of_a_failed_test_warns_where_its_lines_are(path: Path) -> None:
    cassette = Cassette(path, "record").__enter__()
    Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))(question="2+2?")
    with pytest.warns(RuntimeWarning, match=r"1 recorded lines are kept in .*run\.jsonl\.part"):
        cassette.__exit__(AssertionError, None, None)


def test_recording_that_fails_before_the_first_answer_is_removed(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Cassette(path, "record"):
        _ = 1 / 0
    assert list(path.parent.iterdir()) == []


# --- torn files, two writers, full disks, kills (the rows of tests/files/test_lines.py, seen from here) ---------------------


def recorded(path: Path, count: int = 3) -> bytes:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": str(number)} for number in range(count)]))
    with Cassette(path, "record"):
        [predict(question=f"{number}?") for number in range(count)]
    return path.read_bytes()


def replayed(path: Path, mode: Any, question: str, *answers: str) -> str:
    with Cassette(path, mode):
        predict = Predict("question -> answer", lm=FakeLM([{"answer": answer} for answer in answers]))
        return str(predict(question=question).answer)


@pytest.mark.filterwarnings("ignore:.*were not used:RuntimeWarning")
@pytest.mark.parametrize("cut", [1, 2, 20, 200])
def test_torn_last_line_counts_as_not_recorded(cut: int, path: Path) -> None:
    content = recorded(path)
    for mode in ("replay", "auto", "new"):
        path.write_bytes(content[:-cut])
        assert [replayed(path, mode, f"{number}?") for number in range(2)] == ["0", "1"]
        if cut == 1:  # only the line feed is missing
            assert replayed(path, mode, "2?") == "2"
        elif mode == "new":
            assert replayed(path, mode, "2?", "again") == "again"
        else:
            with pytest.raises(CassetteMiss):
                replayed(path, mode, "2?")
    assert [line["lm"] for line in written(path)] == [2, 3, 4]


@pytest.mark.parametrize("mode", ["record", "new"])
def test_full_disk_at_the_end_is_a_note_on_the_error_of_the_block(
    mode: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    for error in (ZeroDivisionError, StateError):
        with pytest.raises(error) as caught, Cassette(path, mode):  # noqa: PT012
            monkeypatch.setattr(os, "fsync", full)
            if error is ZeroDivisionError:
                raise ZeroDivisionError("of the block")
        monkeypatch.undo()
        text = [*getattr(caught.value, "__notes__", ()), str(caught.value)][0]
        assert "cannot be used: No space left on device" in text


@pytest.mark.parametrize("mode", ["new", "replay"])
def test_whole_last_line_that_is_no_json_is_an_error(mode: Any, path: Path) -> None:
    path.write_bytes(recorded(path) + b'{"lm"\n')
    before = path.read_bytes()
    with pytest.raises(StateError, match="Correct the line"), Cassette(path, mode):
        raise AssertionError
    assert path.read_bytes() == before


def test_file_with_a_torn_head_is_recorded_as_a_new_one(path: Path) -> None:
    path.write_bytes(recorded(path)[:9])
    assert replayed(path, "new", "0?", "again") == "again"
    assert replayed(path, "replay", "0?") == "again"


@pytest.mark.parametrize("mode", ["record", "new"])
@pytest.mark.parametrize("other", ["record", "new"])
def test_second_recorder_of_a_file_is_refused_and_changes_nothing(mode: Any, other: Any, path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "1"}, {"answer": "2"}]))
    with Cassette(path, mode):
        assert predict(question="1?").answer == "1"
        with pytest.raises(StateError, match="is being recorded by another block or process"), Cassette(path, other):
            raise AssertionError
        assert predict(question="2?").answer == "2"
    assert [line["lm"] for line in written(path)] == [2, 3]
    assert list(path.parent.iterdir()) == [path]
    with Cassette(path, other):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_records_nothing_into_the_file_of_its_parent(path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "1"}]))

    def child() -> None:
        with pytest.raises(StateError, match="opened by the parent process"):
            predict(question="1?")
        cassette.__exit__(None, None, None)

    with Cassette(path, "record") as cassette:
        assert statuses([fork(child)]) == [0]
        assert not path.exists()
        predict(question="1?")
    assert [line["lm"] for line in written(path)] == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_full_disk_is_a_state_error_and_loses_no_line(path: Path) -> None:
    before = recorded(path)

    def fill() -> None:
        import resource

        predict = Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "x" * 3_000}))
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        with pytest.raises(StateError, match=r"cannot be used: File too large .*Free space"), Cassette(path, "new"):
            [predict(question=str(number)) for number in range(100)]

    assert statuses([fork(fill)]) == [0]
    assert path.read_bytes().startswith(before)
    assert [line["lm"] for line in written(path)] == list(range(2, len(written(path)) + 2))
    assert len(written(path)) > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("mode", ["record", "new"])
def test_killed_recorder_keeps_its_lines_and_frees_its_lock(mode: Any, path: Path) -> None:
    reader, writer = os.pipe()

    def record() -> None:
        predict = Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "x" * 3_000}))
        with Cassette(path, mode):
            for number in range(1_000):
                predict(question=str(number))
                os.write(writer, b"!")

    child = fork(record)
    os.close(writer)
    for _ in range(3):
        assert os.read(reader, 1) == b"!"
    os.kill(child, 9)
    assert statuses([child]) == [-9]
    os.close(reader)
    file = path.with_name("run.jsonl.part") if mode == "record" else path
    numbers = [line.number for line in lines.read_lines(file)]
    assert numbers == list(range(2, len(numbers) + 2))
    assert len(numbers) >= 3
    assert replayed(path, "new", "new?", "new") == "new"


@pytest.mark.parametrize("options", [{"mode": "once"}, {"tools": "skip"}, {"speed": 0}])
def test_option_without_a_meaning_is_refused(path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(sigwire.ConfigurationError, match="making a Cassette"):
        Cassette(path, **options)


def test_stream_that_is_read_after_its_block_is_refused(path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    with Cassette(path):
        stream = predict.stream(question="2+2?")
    with pytest.raises(StateError, match="is closed"):
        list(stream)


def test_cassette_that_is_open_refuses_a_second_block(path: Path) -> None:
    with Cassette(path) as cassette, pytest.raises(StateError, match="open already"), cassette:
        pass


def test_threads_have_cassettes_of_their_own(tmp_path: Path, path: Path) -> None:
    predict = Predict("question -> answer", lm=FakeLM(lambda request: {"answer": request.messages[-1].text[-2:-1]}))
    paths = [tmp_path / f"{number}.jsonl" for number in range(4)]

    def ask(number: int) -> None:
        with Cassette(paths[number]):
            predict(question=f"number {number}?")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, each in enumerate(paths):
        assert f"number {number}?" in dumps(written(each)[0]["request"])


# --- errors and closed streams ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_error_is_raised_again_with_its_facts_and_attempts(path: Path, mode: str) -> None:
    provider, lm = answering(Fault("rate_limit", retry_after=3600))
    predict = Predict(SUM, lm=lm)
    with provider, Cassette(path), pytest.raises(LMRateLimitError):
        predict(question="2+2?")
    with pytest.raises(LMRateLimitError) as first:
        await call(mode, Cassette(path, "replay"), predict, question="2+2?")
    assert (first.value.status, first.value.retry_after) == (429, 3600.0)
    assert first.value.attempts == (Attempt(model=WIRES["openai"], error="rate_limit"),)
    assert "sk-mine" not in path.read_text()


def test_broken_stream_is_broken_at_the_same_word(path: Path) -> None:
    provider, lm = answering(Streamed(fields("one two three", "[1]"), stop_after=9, fault=Fault("server")))
    predict = Predict(SUM, lm=lm)

    def collected() -> tuple[list[Any], LMError]:
        seen: list[Any] = []
        try:
            for event in predict.stream(question="2+2?"):
                seen.append(event)  # kept when the stream raises
        except LMError as error:
            return seen, error
        raise AssertionError("the stream did not break")

    with provider, Cassette(path):
        recorded, error = collected()
    with Cassette(path):
        replayed, again = collected()
    assert replayed == recorded
    assert len(recorded) > 2
    assert (type(again), again.partial) == (type(error), error.partial)


@pytest.mark.parametrize("count", [1, 3])
def test_stream_that_was_closed_early_replays_until_there(path: Path, count: int) -> None:
    predict = Predict(SUM, lm=FakeLM([{"answer": "one two three", "steps": [1]}]))

    def head() -> list[Any]:
        with predict.stream(question="2+2?") as stream:
            return [event for event, _ in zip(stream, range(count), strict=False)]

    with Cassette(path):
        recorded = head()
    with Cassette(path, strict=True):
        assert head() == recorded
    with pytest.raises(CassetteMiss, match="line 2 ends here, as the stream was closed there"), Cassette(path):
        list(predict.stream(question="2+2?"))


# --- tools, time and programs inside tools ----------------------------------------------------------------


def test_tools_run_in_a_replay_with_the_option(path: Path) -> None:
    ran: list[Any] = []
    agent = adding_agent(ran)
    with Cassette(path):
        agent(question="?")
    with Cassette(path, tools="run", strict=True):
        assert agent(question="?").answer == 10
    assert len(ran) == 6


def test_failures_and_media_of_tools_replay_as_results(path: Path) -> None:
    picture = Image(f"data:image/png;base64,{b64encode(bytes(range(256)) * 40).decode()}")

    def look(name: str) -> Any:
        if name == "y":
            return picture
        raise sigwire.ToolFailed("no such picture")

    calls = [ToolCall("a", "look", {"name": "x"}), ToolCall("b", "look", {"name": "y"})]
    agent = ReAct("question -> answer", tools=[look], lm=FakeLM([calls, ToolCall("c", "submit", {"answer": "none"})]))
    with Cassette(path):
        first = agent(question="?")
    with Cassette(path, strict=True):
        second = agent(question="?")
    failed, seen = second.steps[0].results
    assert first.steps[0].results == second.steps[0].results
    assert failed.is_error
    assert seen.media[0].data == picture.data
    assert path.stat().st_size < 10_000


def test_shortened_result_of_a_tool_is_shown_as_it_was(path: Path) -> None:
    def read() -> str:
        return "word " * 1000

    lm = FakeLM([ToolCall("a", "read", {}), ToolCall("b", "submit", {"answer": "ok"})])
    agent = ReAct("question -> answer", tools=[read], lm=lm, max_output=100)
    with Cassette(path):
        first = agent(question="?")
    with Cassette(path, strict=True):
        assert agent(question="?").history == first.history
    assert "shown" in written(path)[1]


@pytest.mark.parametrize("mode", MODES)
async def test_verdicts_about_tool_calls_are_those_of_the_recording(path: Path, mode: str) -> None:
    asked: list[Any] = []

    def approve(call: Any) -> Any:
        asked.append(call)
        return {"deny": "too late"}

    def pay(cents: int) -> str:
        raise AssertionError("paid")

    lm = FakeLM([ToolCall("a", "pay", {"cents": 9}), ToolCall("b", "submit", {"answer": "no"})])
    agent = ReAct("question -> answer", tools=[Tool(pay, approve=approve)], lm=lm)
    first = await call(mode, Cassette(path), agent, question="?")
    second = await call(mode, Cassette(path, strict=True), agent, question="?")
    assert [next(iter(line)) for line in written(path)] == ["lm", "approval", "lm"]
    assert first.history == second.history
    assert len(asked) == 1


def test_agent_that_waited_and_was_resumed_replays(path: Path) -> None:
    ran: list[int] = []

    def pay(cents: int) -> str:
        ran.append(cents)
        return "paid"

    lm = FakeLM([ToolCall("a", "pay", {"cents": 9}), ToolCall("b", "submit", {"answer": "yes"})])
    agent = ReAct("question -> answer", tools=[Tool(pay, approve=True)], lm=lm)
    for _ in range(2):
        with Cassette(path, strict=True):
            with pytest.raises(sigwire.ApprovalNeeded) as waiting:
                agent(question="?")
            (pending,) = waiting.value.pending
            assert agent.resume(waiting.value.state, {pending.id: "approve"}).answer == "yes"
    assert ran == [9]


@pytest.mark.parametrize("mode", MODES)
async def test_program_inside_a_tool_is_not_missed_in_a_replay(path: Path, mode: str) -> None:
    inner = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))

    def ask(question: str) -> str:
        return str(inner(question=question).answer)

    lm = FakeLM([ToolCall("a", "ask", {"question": "2+2?"}), ToolCall("b", "submit", {"answer": "4"})])
    agent = ReAct("question -> answer", tools=[Tool(ask)], lm=lm)
    await call(mode, Cassette(path), agent, question="?")
    assert [next(iter(line)) for line in written(path)] == ["lm", "lm", "tool", "lm"]
    assert (await call(mode, Cassette(path, strict=True), agent, question="?")).answer == "4"
    assert (await call(mode, Cassette(path, strict=True, tools="run"), agent, question="?")).answer == "4"


@pytest.mark.parametrize("mode", MODES)
async def test_time_and_chance_are_those_of_the_recording(path: Path, mode: str) -> None:
    class Clock(Module):
        def forward(self) -> Any:
            return durable.now(), durable.random(), durable.uuid(), durable.uuid()

    recorded = await call(mode, Cassette(path), Clock())
    assert await call(mode, Cassette(path, strict=True), Clock()) == recorded
    assert recorded[2] != recorded[3]


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_run_of_a_journal_inside_a_cassette_is_recorded_by_both(path: Path, mode: str) -> None:
    ran: list[Any] = []
    agent = adding_agent(ran)
    for number in range(2):
        with Journal(path.with_name(f"{number}.sqlite3")) as journal, Cassette(path, strict=True):
            if mode == "sync":
                assert journal.run(agent, "one", question="?").answer == 10
            else:
                assert list(journal.stream(agent, "one", question="?"))[-1].value.answer == 10
            assert len(journal.effects("one")) == 6
    assert sorted(ran) == [(1, 2), (3, 4), (3, 7)]


# --- the file ---------------------------------------------------------------------------------------------


def test_file_has_no_secret_and_replays_with_another_one(path: Path) -> None:
    lm = FakeLM(
        [{"answer": "use sk-4bcdefghijklmnopqrst, not sk-learn-compatible-api"}], extra_body={"api_key": "k-123"}
    )
    predict = Predict("question -> answer", lm=lm)
    with Cassette(path):
        predict(question="Is Bearer abcdefghijklmnopqrstuv right?")
    assert "bcdefghijklmnop" not in path.read_text()
    assert "k-123" not in path.read_text()
    with Cassette(path, strict=True):
        assert (
            predict(question="Is Bearer 0123456789abcdefghij right?").answer == "use ***, not sk-learn-compatible-api"
        )


def test_redact_changes_what_is_written_and_what_is_compared(path: Path) -> None:
    def redact(line: Any) -> Any:
        return json.loads(json.dumps(line).replace("ada@example.org", "someone").replace("bob@example.org", "someone"))

    predict = Predict("mail -> name", lm=FakeLM([{"name": "ada@example.org"}]))
    with Cassette(path, redact=redact):
        predict(mail="From ada@example.org")
    assert "ada" not in path.read_text()
    with Cassette(path, redact=redact, strict=True):
        assert predict(mail="From bob@example.org").name == "someone"


def test_redact_without_a_value_is_refused(path: Path) -> None:
    predict = Predict("mail -> name", lm=FakeLM([{"name": "x"}]))
    with pytest.raises(sigwire.ConfigurationError, match="not NoneType"), Cassette(path, redact=lambda line: None):  # type: ignore[arg-type, return-value]
        predict(mail="?")


def test_long_media_is_a_file_by_digest_and_short_media_is_in_the_line(path: Path) -> None:
    png = b"\x89PNG" + bytes(range(256)) * 20
    predict = Predict("picture: Image -> answer", lm=FakeLM([{"answer": "a dot"}] * 2))
    pictures = [Image(f"data:image/png;base64,{b64encode(data).decode()}") for data in (png, png[:300])]
    with Cassette(path):
        for picture in pictures:
            predict(picture=picture)
    folder = path.with_name("run.media")
    (kept,) = folder.iterdir()
    assert kept.read_bytes() == png
    assert kept.suffix == ".png"
    assert f"media:{kept.name}" in path.read_text()
    bare = path.with_name("bare.jsonl")
    with Cassette(bare, redact=lambda line: {**line, "request": None}):
        Predict("picture: Image -> answer", lm=FakeLM([{"answer": "a dot"}]))(picture=pictures[0])
    assert not bare.with_name("bare.media").exists()
    with Cassette(path, strict=True):
        assert [predict(picture=picture).answer for picture in pictures] == ["a dot", "a dot"]
    with Cassette(path, "record"):
        Predict("picture: Image -> answer", lm=FakeLM([{"answer": "a dot"}]))(picture=pictures[1])
    assert list(folder.iterdir()) == []


def test_media_of_a_result_is_read_again_and_leads_to_no_other_file(tmp_path: Path) -> None:
    data = b64encode(b"%PDF" + bytes(9000)).decode()
    kept: dict[str, bytes] = {}
    packed = packing.pack({"data": data, "url": f"data:application/pdf;base64,{data}"}, kept.__setitem__)
    assert len(kept) == 1
    for name, content in kept.items():
        (tmp_path / name).write_bytes(content)
    assert packing.unpack(packed, tmp_path) == {"data": data, "url": f"data:application/pdf;base64,{data}"}
    assert packing.unpack("media:../../secret", tmp_path) == "media:../../secret"
    with pytest.raises(OSError, match="media"):
        packing.unpack("media:" + "0" * 64, tmp_path / "media")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(JSON)
def test_json_without_secrets_and_media_is_packed_as_it_is(value: Any) -> None:
    def keep(name: str, data: bytes) -> None:
        raise AssertionError(name)

    assert packing.unpack(packing.pack(value, keep), Path()) == value


def test_half_a_character_and_line_separators_are_written_and_read(path: Path) -> None:
    answer = "a\u2028b\x85 \ud83d é"
    predict = Predict("question -> answer", lm=FakeLM([{"answer": answer}]))
    for _ in range(2):
        with Cassette(path, strict=True):
            assert predict(question="half \ud83d of a pair").answer == answer
    assert "é" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"lm":2', '"lm" 2'), "line 2, cannot be read"),
        (lambda text: text.replace('"cassette":1', '"cassette":2'), "line 1, cannot be read: its format is 2"),
        (lambda text: text.replace('"lm":2', '"sung":2'), "line 2, cannot be read: a line of another kind"),
        (lambda text: text.replace('"response":{', '"response":{"nonsense":1,'), "line 2, cannot be replayed"),
        (lambda text: text.replace('"response":', '"reply":'), "line 2, cannot be replayed"),
        (lambda text: "[]\n", "line 1, cannot be read"),
    ],
)
def test_damaged_file_is_refused_with_its_line(path: Path, change: Callable[[str], str], message: str) -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
    with Cassette(path):
        predict(question="2+2?")
    path.write_text(change(path.read_text()))
    with pytest.raises(StateError, match=message), Cassette(path):
        predict(question="2+2?")


def test_lines_are_json_with_the_question_and_the_answer(path: Path) -> None:
    provider, lm = answering(fields("4 é", "[1]"))
    with provider, Cassette(path):
        Predict(SUM, lm=lm)(question="2+2?")
    text = path.read_text(encoding="utf-8")
    assert "sk-mine" not in text
    assert "authorization" not in text.lower()
    head, line = map(loads, text.split("\n")[:2])
    assert head == {"cassette": 1, "sigwire": sigwire.__version__}
    assert list(line) == ["lm", "place", "key", "model", "request", "response"]
    assert "é" in text


@pytest.mark.parametrize(
    "secret", ["sk" + "_live_4bcdefghijklmnop", "hf" + "_abcdefghijklmnopqrstuvwx", "glpat" + "-abcdefghij1234567890"]
)
def test_forms_of_other_services_are_masked(secret: str) -> None:
    assert pack(f"use {secret} now", print) == "use *** now"


@pytest.mark.parametrize("mode", ["record", "new"])
def test_lock_of_a_killed_recorder_is_used_again_and_removed(path: Path, mode: Any) -> None:
    lock = path.with_name(f".{path.name}.lock")

    def killed() -> None:
        Cassette(path, mode).__enter__()
        os.kill(os.getpid(), signal.SIGKILL)

    assert statuses([fork(killed)]) == [-signal.SIGKILL]
    assert lock.exists(), "the killed process could not remove it"
    assert replayed(path, mode, "1?", "one") == "one"
    assert not lock.exists()


# --- samples


def test_answer_of_another_sample_is_not_replayed_for_the_same_question(tmp_path: Path) -> None:
    path, lm = tmp_path / "samples.jsonl", FakeLM([{"answer": "first"}, {"answer": "second"}])
    predict = Predict("question -> answer", lm=lm)
    with Cassette(path, "new"):
        assert predict(question="2+2?").answer == "first"
    with Cassette(path, "new"), sigwire.context(rollout_id=2):
        assert predict(question="2+2?").answer == "second"
    for sample, answer in ((2, "second"), (None, "first")):
        with (
            pytest.warns(RuntimeWarning, match="not used"),
            Cassette(path, "replay"),
            sigwire.context(rollout_id=sample),
        ):
            assert predict(question="2+2?").answer == answer


def test_recording_without_samples_replays_for_each_sample(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "only"}]))
    with Cassette(path, "record"):
        predict(question="2+2?")
    with Cassette(path, "replay", strict=True), sigwire.context(rollout_id=2):
        assert predict(question="2+2?").answer == "only"


def line_of(number: int, key: str, *, fails: bool = False) -> lines.CassetteLine:
    outcome: Any = {"error": {"type": "server", "retryable": True}} if fails else {"response": {}}
    return lines.CassetteLine(number, "lm", {"key": key, **outcome})


def test_failures_that_may_pass_are_left_out_all_or_those_with_a_later_answer() -> None:
    found = [line_of(2, "a", fails=True), line_of(3, "b", fails=True), line_of(4, "a"), line_of(5, "c")]
    assert [line.number for line in lines.without_failures(found, all_of_them=True)] == [4, 5]
    assert [line.number for line in lines.without_failures(found, all_of_them=False)] == [3, 4, 5]
