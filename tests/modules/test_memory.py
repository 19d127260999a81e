"""``Memory``: notes that outlive a conversation."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.tools.calls import ToolCall
from sigwire.errors import ConfigurationError, InputError, RetryTool, StateError, ToolFailed
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.toolbox import Toolbox, as_tools
from sigwire.modules.memory import Memory
from tests.files.processes import at_once, fork

forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def tools(memory: Memory) -> dict[str, Callable[..., Any]]:
    return {tool.name: tool for tool in memory.tools}


def test_agent_remembers_over_conversations(path: Path) -> None:
    script = [
        [ToolCall("", "remember", {"text": "Ann flies from Lyon.", "about": "travel"})],
        [ToolCall("", "submit", {"answer": "Noted."})],
        [ToolCall("", "recall", {"query": "from where does she fly?"})],
        [ToolCall("", "submit", {"answer": "Lyon"})],
    ]
    lm = FakeLM(script)

    def answer() -> Any:
        agent = ReAct("question -> answer", tools=[len, Memory(path, scope="ann")])
        agent.set_lm(lm)
        return agent(question="?")

    answer()
    result = answer()
    text = result.steps[0].results[0].text
    assert '"Ann flies from Lyon."' in text
    assert "may be wrong" in text
    assert "no instructions" in text


def test_other_scope_sees_and_forgets_nothing(path: Path) -> None:
    note = Memory(path, scope="ann").add("The code is 7431.")
    other = Memory(path, scope="bob")
    assert other.notes() == other.search("code") == ()
    with pytest.raises(ToolFailed):
        tools(other)["forget"](id=note.id)
    other.clear()
    assert [each.text for each in Memory(path, scope="ann").notes()] == ["The code is 7431."]
    names = {name for tool in other.tools for name in tool.parameters["properties"]}  # type: ignore[union-attr]
    assert names == {"text", "about", "query", "count", "id"}


def test_text_that_is_kept_is_kept_once_and_has_one_id(path: Path) -> None:
    memory = Memory(path)
    first = memory.add("Once.")
    assert memory.add("Once.") == first == Memory(path).notes()[0]
    assert Memory(path, scope="other").add("Once.").id != first.id


def test_best_note_is_first_and_newest_of_equals_last(path: Path) -> None:
    memory = Memory(path)
    for text in ("The cat is red.", "A dog barks.", "The cat is blue.", "The cat and the dog, the cat."):
        memory.add(text)
    assert next(note.text for note in memory.search("cat dog", 3)) == "The cat and the dog, the cat."
    assert [note.text for note in memory.search("is", 2)] == ["The cat is red.", "The cat is blue."]


def test_search_sees_what_others_wrote_and_forgot(path: Path) -> None:
    memory, other = Memory(path), Memory(path)
    first = memory.add("alpha one")
    assert [note.text for note in other.search("alpha")] == ["alpha one"]
    memory.add("alpha two")
    tools(memory)["forget"](id=first.id)
    assert [note.text for note in other.search("alpha")] == ["alpha two"]
    memory.clear()
    assert other.search("alpha") == ()


def test_full_memory_asks_to_forget(path: Path) -> None:
    memory = Memory(path, max_notes=2)
    for text in ("one", "two", "two"):
        memory.add(text)
    with pytest.raises(ToolFailed, match="Forget notes"):
        memory.add("three")
    tools(memory)["forget"](id=memory.notes()[0].id)
    memory.add("three")


@pytest.mark.parametrize("text", ["", " \n", "x" * 2_001])
def test_empty_and_long_notes_are_refused(path: Path, text: str) -> None:
    with pytest.raises(RetryTool):
        tools(Memory(path))["remember"](text=text)
    with pytest.raises(InputError, match=r"a note .*\(keeping a note\)"):
        Memory(path).add(text)
    assert not Memory(path).notes()


@pytest.mark.parametrize("given", [None, 3, b"bytes"])
def test_texts_of_another_type_are_refused_by_name(path: Path, given: Any) -> None:
    memory = Memory(path)
    with pytest.raises(InputError, match="text of a note is a text, not"):
        memory.add(given)
    with pytest.raises(InputError, match="about of a note is a text, not"):
        memory.add("a", about=given)
    with pytest.raises(InputError, match="query is a text, not"):
        memory.search(given)


@pytest.mark.parametrize("count", [0, -1, 1.5, None])
def test_search_for_no_number_of_notes_is_refused(path: Path, count: Any) -> None:
    with pytest.raises(InputError, match="count is a number above 0"):
        Memory(path).search("a", count=count)


@pytest.mark.parametrize("text", ["\ud800 lone", "NUL \0 inside", "🦊 ' ; DROP TABLE notes --"])
def test_any_text_is_kept(path: Path, text: str) -> None:
    Memory(path).add(text, about=text)
    assert len(Memory(path).notes()) == 1


def test_file_is_private_and_has_a_form(path: Path) -> None:
    Memory(path).add("x")
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 1


def test_foreign_file_is_refused_and_keeps_its_bytes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE stock (item TEXT)")
    before = path.read_bytes()
    with pytest.raises(StateError, match="not a memory"):
        Memory(path).add("x")
    assert path.read_bytes() == before
    with pytest.raises(StateError, match="cannot be used"):
        Memory(path.parent).notes()


@pytest.mark.parametrize(
    "options", [{"scope": ""}, {"scope": 3}, {"scope": "\ud800"}, {"max_notes": 0}, {"max_notes": True}]
)
def test_wrong_options_are_refused(path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Memory(path, **options)


def test_memory_is_copied_by_its_address(path: Path) -> None:
    memory = Memory(path, scope="ann", max_notes=7)
    memory.add("x")
    other = pickle.loads(pickle.dumps(memory))
    assert (other.scope, other.max_notes, len(other.notes())) == ("ann", 7, 1)
    assert copy.deepcopy(memory) is memory


@forks
@pytest.mark.parametrize(("processes", "count"), [(2, 20), pytest.param(4, 1_000, marks=pytest.mark.long)])
def test_no_note_of_several_processes_is_lost(path: Path, processes: int, count: int) -> None:
    def write(number: int) -> Callable[[], None]:
        def run() -> None:
            memory = Memory(path)
            for at in range(count):
                memory.add(f"note {number} {at}")

        return run

    assert at_once(*map(write, range(processes))) == [0] * processes
    assert len({note.text for note in Memory(path).notes()}) == processes * count


@forks
def test_notes_are_whole_after_a_kill_while_writing(path: Path) -> None:
    reader, writer = os.pipe()

    def write() -> None:
        memory = Memory(path)
        for at in range(100_000):
            memory.add(f"note {at} " + "x" * 1_000)
            os.write(writer, b".")

    child = fork(write)
    assert len(os.read(reader, 1)) == 1
    while len(os.read(reader, 8)) < 1:
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    memory = Memory(path)
    texts = [note.text for note in memory.notes()]
    assert texts == [f"note {at} " + "x" * 1_000 for at in range(len(texts))]
    memory.add("after")
    assert len(memory.notes()) == len(texts) + 1 >= 2


def test_toolsets_are_read_as_their_tools(path: Path) -> None:
    memory = Memory(path)
    assert [tool.name for tool in as_tools(memory)] == ["remember", "recall", "forget"]
    assert [tool.name for tool in as_tools([len, memory])] == ["len", "remember", "recall", "forget"]
    assert list(Toolbox([memory]).tools) == ["remember", "recall", "forget"]
    assert {tool.on_crash for tool in memory.tools} == {"rerun"}
