"""Recorded runs: replay, other inputs, one owner, changed programs, what is in the file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import sigwire
from sigwire import (
    FakeLM,
    InputError,
    Journal,
    JournalDivergence,
    Module,
    Predict,
    Prediction,
    ReAct,
    RunIsLive,
    Signature,
    StateError,
    Tool,
    ToolCall,
    durable,
)
from sigwire.journal.store import Store
from sigwire.testing import FakeProvider
from tests.files.processes import fork, statuses

MODES = ["sync", "async", "stream", "astream"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "runs.sqlite3") as journal:
        yield journal


def sql(path: Path, *statements: str, value: object = None) -> list[Any]:
    """Execute statements; return the rows of the last."""
    with closing(sqlite3.connect(path)) as file, file:
        return [file.execute(statement, () if value is None else (value,)).fetchall() for statement in statements][-1]


async def run(mode: str, journal: Journal, program: Any, name: str = "one", **inputs: Any) -> Any:
    """Run in a mode; blocking modes in a thread, so that each mode works in async tests."""
    if mode == "sync":
        return await asyncio.to_thread(journal.run, program, name, **inputs)
    if mode == "async":
        return await journal.arun(program, name, **inputs)
    return (await events(mode, journal, program, name, **inputs))[-1].value


async def events(mode: str, journal: Journal, program: Any, name: str = "one", **inputs: Any) -> list[Any]:
    if mode == "astream":
        return [event async for event in journal.astream(program, name, **inputs)]
    return await asyncio.to_thread(lambda: list(journal.stream(program, name, **inputs)))


class City(BaseModel):
    name: str
    people: int


def adding_agent(lm: Any, ran: list[Any], **options: Any) -> Any:
    def add(a: int, b: int) -> int:
        ran.append((a, b))
        return a + b

    return ReAct("question -> answer: int", tools=[add], lm=lm, **options)


def script() -> FakeLM:
    """Two calls in one turn, one in the next, the answer."""
    calls = [ToolCall("a", "add", {"a": 1, "b": 2}), ToolCall("b", "add", {"a": 3, "b": 4})]
    return FakeLM([calls, ToolCall("c", "add", {"a": 3, "b": 7}), ToolCall("d", "submit", {"answer": 10})])


# --- replay -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("again", MODES)
async def test_finished_run_returns_its_result_without_an_effect(journal: Journal, mode: str, again: str) -> None:
    ran: list[Any] = []
    agent = adding_agent(script(), ran)
    first = await run(mode, journal, agent, question="?")
    second = await run(again, journal, agent, question="?")
    assert first.answer == second.answer == 10
    assert first.history == second.history
    assert [step.results for step in first.steps] == [step.results for step in second.steps]
    assert sorted(ran) == [(1, 2), (3, 4), (3, 7)]
    assert second.usage == first.usage


async def test_result_of_a_finished_run_is_typed_and_needs_no_replay(journal: Journal) -> None:
    predict = Predict(
        Signature("text -> city: City", custom_types={"City": City}),
        lm=FakeLM([{"city": {"name": "Ulm", "people": 3}}]),
    )
    journal.run(predict, "one", text="Ulm")
    sql(journal.path, "DELETE FROM effects")
    assert journal.run(predict, "one", text="Ulm").city == City(name="Ulm", people=3)


@pytest.mark.parametrize("mode", MODES)
async def test_failed_run_goes_on_at_the_failed_effect(journal: Journal, mode: str) -> None:
    class Twice(Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Predict("a -> b"), Predict("b -> c")

        def forward(self, a: str) -> Prediction:
            return self.second(b=self.first(a=a).b)  # type: ignore[no-any-return]

    program = Twice()
    program.set_lm(FakeLM([{"b": "2"}, sigwire.LMServerError("busy")]))
    with pytest.raises(sigwire.LMServerError):
        await run(mode, journal, program, a="1")
    (info,) = journal.runs()
    assert (info.state, info.program, info.inputs) == ("failed", "Twice", {"a": "1"})
    program.set_lm(FakeLM([{"c": "3"}]))
    assert (await run(mode, journal, program, a="1")).c == "3"
    assert [effect.place for effect in journal.effects("one")] == ["Twice.0/Predict.0/ask.0", "Twice.0/Predict.1/ask.0"]


async def test_error_that_the_request_causes_is_replayed(journal: Journal) -> None:
    predict = Predict("a -> b", lm=FakeLM([sigwire.ContextWindowExceededError("too long", model="m", status=400)]))
    for _ in range(2):  # the model has one outcome only
        with pytest.raises(sigwire.ContextWindowExceededError, match="too long") as caught:
            journal.run(predict, "one", a="1")
        assert (caught.value.model, caught.value.status) == ("m", 400)
    (effect,) = journal.effects("one")
    assert effect.state == "failed"


@pytest.mark.parametrize("mode", ["stream", "astream"])
async def test_streamed_replay_emits_the_events_of_the_first_run(journal: Journal, mode: str) -> None:
    agent = adding_agent(script(), [], parallel=False)
    first = await events(mode, journal, agent, question="?")
    second = await events(mode, journal, agent, question="?")
    assert [type(event) for event in second] == [type(event) for event in first]
    assert [event.result for event in second if hasattr(event, "result")] == [
        event.result for event in first if hasattr(event, "result")
    ]
    assert {event.path for event in second} == {event.path for event in first}


async def test_run_goes_on_after_its_stream_was_closed(journal: Journal) -> None:
    ran: list[Any] = []
    agent = adding_agent(script(), ran)
    with journal.stream(agent, "one", question="?") as stream:
        next(event for event in stream if isinstance(event, sigwire.ToolDone))
    agent.set_lm(FakeLM([ToolCall("c", "add", {"a": 3, "b": 7}), ToolCall("d", "submit", {"answer": 10})]))
    pending = dict.fromkeys(_waiting(journal), "rerun")
    assert (await journal.aresume(agent, "one", pending)).answer == 10


def _waiting(journal: Journal) -> list[str]:
    return [effect.place for effect in journal.effects("one") if effect.state == "started"]


async def test_run_without_inputs_uses_the_recorded_inputs(journal: Journal) -> None:
    predict = Predict(
        Signature("city: City -> b", custom_types={"City": City}), lm=FakeLM([sigwire.LMServerError("busy")])
    )
    with pytest.raises(sigwire.LMServerError):
        journal.run(predict, "one", city=City(name="Ulm", people=3))
    predict.lm = FakeLM([{"b": "2"}])
    assert journal.run(predict, "one").b == "2"


def test_other_inputs_raise_input_error(journal: Journal) -> None:
    predict = Predict("a -> b", lm=FakeLM([{"b": "2"}]))
    journal.run(predict, "one", a="1")
    with pytest.raises(InputError, match="'one' began with other inputs"):
        journal.run(predict, "one", a="2")


def test_input_without_a_json_form_raises_input_error(journal: Journal) -> None:
    with pytest.raises(InputError, match="'a' cannot be recorded"):
        journal.run(Predict("a -> b"), "one", a=object())


def test_program_that_is_no_module_is_refused(journal: Journal) -> None:
    with pytest.raises(sigwire.ConfigurationError, match="runs modules"):
        journal.run(len, "one")  # type: ignore[arg-type]


def test_plain_value_is_returned_by_replay_if_its_json_has_another_type(journal: Journal) -> None:
    class Pair(Module):
        calls = 0

        def forward(self) -> tuple[str, int]:
            self.calls += 1
            return ("a", 1)

    program = Pair()
    assert journal.run(program, "one") == journal.run(program, "one") == ("a", 1)
    assert program.calls == 2


# --- places -----------------------------------------------------------------------------------------------


async def test_parallel_tools_keep_their_places_whichever_is_first(journal: Journal) -> None:
    slow = {"left": 0.02, "right": 0.0}

    def wait(side: str) -> str:
        time.sleep(slow[side])
        return side

    calls = [ToolCall("a", "wait", {"side": "left"}), ToolCall("b", "wait", {"side": "right"})]
    agent: Any = ReAct("q -> a", tools=[wait], lm=FakeLM([calls, sigwire.LMServerError("busy")]))
    with pytest.raises(sigwire.LMServerError):
        await journal.arun(agent, "one", q="?")
    slow["left"], slow["right"] = 0.0, 0.02
    agent.set_lm(FakeLM([ToolCall("c", "submit", {"a": "yes"})]))
    assert [r.content for r in (await journal.arun(agent, "one", q="?")).steps[0].results] == ["left", "right"]
    places = {effect.place: effect.key["arguments"] for effect in journal.effects("one") if effect.kind == "tool"}
    assert places == {"ReAct.0/turn.0/tool.0": {"side": "left"}, "ReAct.0/turn.0/tool.1": {"side": "right"}}


class Many(Module):
    """Three calls at once: by batch, or as tasks."""

    def __init__(self, lm: Any) -> None:
        super().__init__()
        self.each: Any = Predict("a -> b", lm=lm)

    def forward(self, count: int) -> list[str]:
        return [result.b for result in self.each.batch([{"a": str(at)} for at in range(count)], num_threads=3)]

    async def aforward(self, count: int) -> list[str]:
        results = await asyncio.gather(*(self.each.acall(a=str(at)) for at in range(count)))
        return [result.b for result in results]


@pytest.mark.parametrize("mode", MODES)
async def test_calls_at_once_have_places_by_position(journal: Journal, mode: str) -> None:
    def answer(request: Any) -> dict[str, str]:
        return {"b": request.messages[-1].text.splitlines()[1] + "!"}

    assert await run(mode, journal, Many(FakeLM([answer] * 3)), count=3) == ["0!", "1!", "2!"]
    sql(journal.path, "UPDATE runs SET result = NULL")
    assert await run(mode, journal, Many(FakeLM()), count=3) == ["0!", "1!", "2!"]


def test_time_and_chance_are_recorded(journal: Journal) -> None:
    class Dice(Module):
        def forward(self) -> str:
            return f"{durable.now()} {durable.random()} {durable.uuid()} {durable.random()}"

    rolled = journal.run(Dice(), "one")
    sql(journal.path, "UPDATE runs SET result = NULL")
    assert journal.run(Dice(), "one") == rolled
    assert journal.run(Dice(), "two") != rolled
    assert [effect.kind for effect in journal.effects("one")] == ["now", "random", "uuid", "random"]


# --- one owner --------------------------------------------------------------------------------------------


def test_live_run_has_one_owner(journal: Journal) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(Module):
        def forward(self) -> str:
            entered.set()
            leave.wait(60)
            return "done"

    thread = threading.Thread(target=journal.run, args=(Slow(), "one"))
    thread.start()
    entered.wait(60)
    with pytest.raises(RunIsLive) as caught:
        journal.run(Slow(), "one")
    assert caught.value.pid == os.getpid()
    assert caught.value.since == pytest.approx(time.time(), abs=10)
    leave.set()
    thread.join()
    assert journal.run(Slow(), "one") == "done"
    assert list(Path(f"{journal.path}.locks").iterdir()) == []


def test_forked_child_does_not_own_the_run_of_its_parent(tmp_path: Path) -> None:
    program = f"""
import os, time
from sigwire import Journal, Module
journal = Journal({str(tmp_path / "runs.sqlite3")!r})
class Parent(Module):
    def forward(self) -> int:
        child = os.fork()
        if child == 0:
            time.sleep(20)
            os._exit(0)
        print(child, flush=True)
        os.kill(os.getpid(), 9)
class Again(Module):
    def forward(self) -> int:
        return 1
import sys
print(journal.run(Parent() if len(sys.argv) > 1 else Again(), "one"))
"""
    life = [sys.executable, "-W", "ignore", "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen([*life, "die"], env=environment, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    child = int(first.stdout.readline())
    try:
        assert first.wait() == -9
        again = subprocess.run(life, env=environment, capture_output=True, text=True)
        assert again.stdout == "1\n", again.stderr
    finally:
        os.kill(child, 9)
        first.stdout.close()


def test_processes_share_a_file(journal: Journal) -> None:
    program = f"""
import sys
from sigwire import FakeLM, Journal, Predict
journal = Journal({str(journal.path)!r})
for at in range(10):
    journal.run(Predict("a -> b", lm=FakeLM([{{"b": "2"}}])), f"{{sys.argv[1]}}-{{at}}", a="1")
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [subprocess.Popen([sys.executable, "-c", program, name], env=environment) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert {info.state for info in journal.runs()} == {"done"}
    assert len(journal.runs()) == 30


# --- changed programs -------------------------------------------------------------------------------------


def changed_agent(lm: Any, ran: list[Any]) -> Any:
    def add(a: int, b: int) -> int:
        ran.append((a, b))
        return a + b

    return ReAct(Signature("question -> answer: int", "Work carefully."), tools=[add], lm=lm)


@pytest.mark.parametrize("mode", MODES)
async def test_edited_instructions_raise_divergence_that_names_turn_and_message(journal: Journal, mode: str) -> None:
    ran: list[Any] = []
    agent = adding_agent(FakeLM([ToolCall("a", "add", {"a": 1, "b": 2}), sigwire.LMServerError("busy")]), ran)
    with pytest.raises(sigwire.LMServerError):
        await run(mode, journal, agent, question="?")
    with pytest.raises(JournalDivergence) as caught:
        await run(mode, journal, changed_agent(FakeLM(), ran), question="?")
    error = caught.value
    assert str(error).startswith("turn 1: the request's message 1 differs (instructions changed)")
    assert error.place == "ReAct.0/turn.0/Predict.0/ask.0"
    assert "+Work carefully." in error.diff
    assert ran == [(1, 2)]
    assert error.recorded["messages"][1:] == error.now["messages"][1:]  # type: ignore[index]


@pytest.mark.parametrize("mode", MODES)
async def test_fork_continues_a_changed_program_as_another_run(journal: Journal, mode: str) -> None:
    class Two(Module):
        def __init__(self, task: str, lm: Any) -> None:
            super().__init__()
            self.first: Any = Predict("a -> b", lm=lm)
            self.second: Any = Predict(Signature("b -> c", task), lm=lm)

        def forward(self, a: str) -> str:
            return str(self.second(b=self.first(a=a).b).c)

    async def forked(name: str, task: str, lm: Any) -> Any:
        return await run(mode, journal, Two(task, lm), name, a="1", on_change="fork")

    first = Two("Do it.", FakeLM([{"b": "2"}, {"c": "3"}]))
    await run(mode, journal, first, a="1")
    sql(journal.path, "UPDATE runs SET result = NULL, state = 'failed'")
    assert await forked("one", "Do it well.", FakeLM([{"c": "4"}])) == "4"
    assert await forked("one", "Do it well.", FakeLM()) == "4"
    assert await forked("one", "Do it best.", FakeLM([{"c": "5"}])) == "5"
    assert [info.run for info in journal.runs()] == ["one", "one~1", "one~2"]
    assert journal.run(Two("Do it well.", FakeLM()), "one~1", a="1") == "4"


def test_another_program_under_the_name_of_a_run_warns(journal: Journal) -> None:
    journal.run(Predict("a -> b", lm=FakeLM([{"b": "2"}])), "one", a="1")
    sql(journal.path, "UPDATE runs SET result = NULL")
    with pytest.warns(RuntimeWarning, match="is of another program"), pytest.raises(JournalDivergence):
        journal.run(Predict("a -> c", lm=FakeLM()), "one", a="1")


def test_divergence_inside_a_nested_agent_is_no_result_of_its_tool(journal: Journal) -> None:
    def outer(task: str, lm: Any) -> Any:
        inner: Any = Predict(Signature("a -> b", task), lm=lm)

        def think(a: str) -> str:
            return str(inner(a=a).b)

        return ReAct("q -> x", tools=[Tool(think, on_crash="rerun")], lm=FakeLM([ToolCall("a", "think", {"a": "1"})]))

    with pytest.raises(sigwire.SigwireError):
        journal.run(outer("Do.", FakeLM([{"b": "2"}])), "one", q="?")
    sql(journal.path, "UPDATE effects SET state = 'started', value = NULL WHERE kind = 'tool'")
    with pytest.raises(JournalDivergence):
        journal.run(outer("Do well.", FakeLM()), "one", q="?")


# --- the file ---------------------------------------------------------------------------------------------


def test_file_is_private_and_has_no_key(tmp_path: Path) -> None:
    secret = "sk-very-secret-0123456789"
    with FakeProvider(FakeLM([{"b": "2"}]), key=secret) as provider:
        lm = sigwire.LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key=secret)
        with Journal(tmp_path / "kept" / "runs.sqlite3") as journal:
            predict = Predict("a -> b", lm=lm, extra_headers={"authorization": f"Bearer {secret}"})
            journal.run(predict, "one", a="1")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in journal.path.parent.iterdir()}
            content = b"".join(path.read_bytes() for path in journal.path.parent.iterdir() if path.is_file())
            (effect,) = journal.effects("one")
    assert modes == {
        "runs.sqlite3": 0o600, "runs.sqlite3-wal": 0o600, "runs.sqlite3-shm": 0o600, "runs.sqlite3.locks": 0o700,
    }  # fmt: skip
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700
    assert secret.encode() not in content
    assert secret not in repr(effect)


def test_redact_gets_every_value_before_it_is_written(tmp_path: Path) -> None:
    def redact(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("Ada", "***")
        if isinstance(value, dict):
            return {name: redact(item) for name, item in value.items()}
        return [redact(item) for item in value] if isinstance(value, list) else value

    with Journal(tmp_path / "runs.sqlite3", redact=redact) as journal:
        predict = Predict("name -> greeting", lm=FakeLM([{"greeting": "Hello Ada"}]))
        assert journal.run(predict, "one", name="Ada").greeting == "Hello Ada"
        assert journal.run(predict, "one", name="Ada").greeting == "Hello ***"
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert b"Ada" not in content
        assert "***" in str(journal.effects("one")[0].key["messages"])


def test_messages_of_a_long_run_are_stored_once(journal: Journal) -> None:
    turns: list[Any] = [ToolCall(f"c{at}", "add", {"a": at, "b": 1}) for at in range(20)]
    agent = adding_agent(FakeLM([*turns, ToolCall("s", "submit", {"answer": 1})]), [], max_iters=30)
    journal.run(agent, "one", question="?" * 2000)
    ((messages,),) = sql(journal.path, "SELECT count(*) FROM texts")
    ((keys,),) = sql(journal.path, "SELECT sum(length(key)) FROM effects")
    assert messages == 2 + 2 * 20 + 2  # instructions and task, call and result of each turn, two tools
    assert keys < 30_000


def test_long_text_is_stored_once_for_all_runs(journal: Journal) -> None:
    document = os.urandom(100_000).hex()
    for name in ("one", "two"):
        predict = Predict("text -> copy", lm=FakeLM([{"copy": document}]))
        assert journal.run(predict, name, text=document).copy == document
        assert journal.run(predict, name, text=document).copy == document
    journal.close()
    assert journal.path.stat().st_size < 4 * 110_000  # the text as input, in the message, in the answer


def test_prune_deletes_finished_runs_and_their_texts(journal: Journal) -> None:
    journal.run(Predict("a -> b", lm=FakeLM([{"b": "2"}])), "one", a="1")
    with pytest.raises(sigwire.LMServerError):
        journal.run(Predict("a -> b", lm=FakeLM([sigwire.LMServerError("busy")])), "two", a="1")
    assert journal.prune(older_than=60) == 0
    assert journal.prune(older_than=-1) == 1
    assert [info.run for info in journal.runs()] == ["two"]
    assert journal.prune(older_than=-1, unfinished=True) == 1
    assert sql(journal.path, "SELECT count(*) FROM texts") == [(0,)]


@pytest.mark.parametrize("data", [b"j{", b"x", b"z123", b"", b'j[1,[[["a"],"d"]]]', "text", 7, b"j" + b"[" * 100_000])
def test_corrupt_value_raises_state_error(journal: Journal, data: object) -> None:
    predict = Predict("a -> b", lm=FakeLM([{"b": "2"}]))
    journal.run(predict, "one", a="1")
    sql(journal.path, "UPDATE runs SET result = NULL")
    sql(journal.path, "UPDATE effects SET value = ?", value=data)
    with pytest.raises(StateError, match="cannot be read"):
        journal.run(predict, "one", a="1")


@pytest.mark.parametrize(
    "value", ["{}", '{"response": 7}', '{"error": "nonsense"}', '{"response": {"choices": "x"}}', "[]"]
)
def test_value_of_another_shape_raises_state_error(journal: Journal, value: str) -> None:
    predict = Predict("a -> b", lm=FakeLM([{"b": "2"}]))
    journal.run(predict, "one", a="1")
    sql(journal.path, "UPDATE runs SET result = NULL")
    sql(journal.path, "UPDATE effects SET value = ?", value=f"j[{value},[]]".encode())
    with pytest.raises(StateError, match="cannot be read"):
        journal.run(predict, "one", a="1")


def test_other_file_is_refused_and_not_changed(tmp_path: Path) -> None:
    text, database = tmp_path / "notes.txt", tmp_path / "shop.sqlite"
    text.write_text("no database " * 100)
    sql(database, "CREATE TABLE stock (a)")
    for path in (text, database):
        with pytest.raises(StateError, match=r"not a journal|another kind"):
            Journal(path).run(Predict("a -> b", lm=FakeLM()), "one", a="1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "shop.sqlite"]
    assert text.read_text().startswith("no database")
    assert sql(database, "SELECT name FROM sqlite_master") == [("stock",)]


def test_file_that_cannot_be_opened_raises_state_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "folder" / "runs.sqlite3"):
        with pytest.raises(StateError, match="cannot be used"):
            Journal(path).runs()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_run_that_meets_a_full_disk_names_it_and_resumes(journal: Journal) -> None:
    class Many(Module):
        def __init__(self, lm: Any) -> None:
            super().__init__()
            self.step: Any = Predict("a -> b", lm=lm)

        def forward(self) -> int:
            return sum(len(self.step(a=str(number)).b) for number in range(9))

    def text(request: Any) -> Any:
        return {"b": os.urandom(20_000).hex()}

    def fill() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, 250_000))
        with pytest.raises(StateError, match=r"cannot be written: .* Free space on its disk, then resume"):
            journal.run(Many(FakeLM(text)), "one")

    assert statuses([fork(fill)]) == [0]
    answered = len([effect for effect in journal.effects("one") if effect.state == "done"])
    assert 0 < answered < 9
    lm = FakeLM(text)
    assert journal.run(Many(lm), "one") == 9 * 40_000
    assert len(lm.requests) == 9 - answered


def test_file_without_its_tables_raises_state_error(journal: Journal) -> None:
    journal.run(Predict("a -> b", lm=FakeLM([{"b": "2"}])), "one", a="1")
    sql(journal.path, "DROP TABLE effects")
    with pytest.raises(StateError, match="no such table"):
        journal.effects("one")


def test_attempt_that_is_no_number_raises_state_error(journal: Journal) -> None:
    predict = Predict("a -> b", lm=FakeLM([{"b": "2"}]))
    journal.run(predict, "one", a="1")
    sql(journal.path, "UPDATE runs SET result = NULL", "UPDATE effects SET value = NULL, attempt = 'x'")
    with pytest.raises(StateError, match="cannot be read"):
        journal.run(predict, "one", a="1")


@pytest.mark.parametrize("name", ["", 3, None])
def test_name_of_a_run_that_is_no_text_is_refused(journal: Journal, name: Any) -> None:
    with pytest.raises(InputError, match="name of the run"):
        journal.run(Predict("a -> b", lm=FakeLM()), name, a="1")


def test_journal_of_a_later_format_is_refused(journal: Journal) -> None:
    journal.runs()
    journal.close()
    sql(journal.path, "PRAGMA user_version = 2")
    with pytest.raises(StateError, match="format 2"):
        journal.runs()


def test_commits_are_durable(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite3")
    with store._writing() as execute:
        assert execute("PRAGMA synchronous").fetchone() == (2,)
        assert execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()
