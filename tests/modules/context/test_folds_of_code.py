"""Folds of programs whose model writes code: ``CodeAct`` and ``RLM``, in all ways of calling."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import sigwire
from sigwire import (
    AgentRun,
    CodeAct,
    Compacted,
    Compaction,
    ContextWindowExceededError,
    History,
    Journal,
    Message,
)
from sigwire.compaction import drop_oldest, summarize
from sigwire.modules.code.rlm import RLM
from tests.modules.code.driving import MODES, called, events
from tests.modules.context.test_folding import page
from tests.modules.context.worlds import World, note_of, shown_texts

WINDOW = 4_000


def writing(pages: int, last: str = "submit(answer='read')") -> Callable[[Any], Any]:
    """Return the turns of a model whose code reads pages one by one, and then runs ``last``."""

    def turn(request: Any) -> Any:
        if "## code ##" not in request.messages[0].text:
            return {"reasoning": "r", "answer": "extracted"}
        found = re.search(r"fact f(\d+)", request.messages[-1].text) if len(request.messages) > 2 else None
        number = int(found[1]) + 1 if found else 0
        return {"reasoning": "next", "code": f"print(page({number}))" if number < pages else last}

    return turn


def coder(kind: str, world: Any, **options: Any) -> Any:
    options = {"max_iters": 60, "tools": [page], **options}
    program: Any = (CodeAct if kind == "CodeAct" else RLM)("question -> answer", **options)
    program.set_lm(world)
    return program


KINDS = pytest.mark.parametrize("kind", ["CodeAct", "RLM"])


@KINDS
@pytest.mark.parametrize("mode", MODES)
def test_code_folds_near_the_window_and_is_never_refused(kind: str, mode: str) -> None:
    world = World(writing(30), WINDOW)
    program = coder(kind, world, compaction=Compaction([summarize(tokens=200)], window=WINDOW))
    result = called(mode, program, question="Read.")
    assert (result.answer, world.refused) == ("read", [])
    history = AgentRun.of(result).history
    assert len(history.folds) >= 2
    assert len(history) > 60
    assert "fact f0 is v0." in history.folds[-1].summary
    note = note_of(world.turns[-1])
    assert note is not None
    assert f"\n> {history.folds[-1].summary}" in note.text
    assert "page(" in "".join(shown_texts(world.turns[-1])[:2])  # the list of functions is pinned


@KINDS
@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_stream_of_code_has_an_event_for_each_fold(kind: str, mode: str) -> None:
    program = coder(kind, World(writing(30), WINDOW), compaction=Compaction([drop_oldest()], window=WINDOW))
    found = events(mode, program, question="Read.")
    folds = [event for event in found if isinstance(event, Compacted)]
    assert [event.fold for event in folds] == list(AgentRun.of(found[-1].value).history.folds)
    assert folds
    assert all(event.path == "self" and event.turn is not None for event in folds)


@KINDS
@pytest.mark.parametrize("mode", MODES[1:])
def test_all_ways_of_calling_code_send_equal_requests(kind: str, mode: str) -> None:
    made = []
    for each in ("sync", mode):
        world = World(writing(25), WINDOW)
        result = called(each, coder(kind, world, compaction=Compaction(window=WINDOW)), question="Read.")
        made.append(([request.to_json() for request in world.requests], AgentRun.of(result).history))
    assert made[0] == made[1]


@KINDS
def test_function_that_the_note_names_finds_what_was_left_out(kind: str) -> None:
    last = "submit(answer=search_conversation(query='fact f1'))"
    world = World(writing(25, last), WINDOW)
    result = coder(kind, world, compaction=Compaction([drop_oldest()], window=WINDOW))(question="Read.")
    assert "fact f1 is v1" in result.answer


@KINDS
def test_note_names_only_calls_that_return_something(kind: str) -> None:
    world = World(writing(25), WINDOW)
    history = AgentRun.of(
        coder(kind, world, compaction=Compaction([drop_oldest()], window=WINDOW))(question="Read.")
    ).history
    note = note_of(world.turns[-1])
    assert note is not None
    assert 'search_conversation(query="...")' in note.text
    assert "read_result" not in note.text  # results of code are no results of calls: they have no id
    assert {fold.reader for fold in history.folds} == {""}


@KINDS
def test_later_run_of_code_begins_with_the_view_and_its_function(kind: str) -> None:
    first = coder(kind, World(writing(25), WINDOW), compaction=Compaction([drop_oldest()], window=WINDOW))(
        question="Read."
    )
    last = "submit(answer=search_conversation(query='fact f1'))"
    worlds = [World(writing(0, last), WINDOW) for _ in range(2)]
    history = AgentRun.of(first).history
    for world, before in zip(worlds, (history, History.from_json(history.to_json())), strict=True):
        result = coder(kind, world, compaction=Compaction(window=WINDOW))(question="And f1?", history=before)
        assert "fact f1 is v1" in result.answer
        assert AgentRun.of(result).history.messages[: len(history)] == history.messages
    assert [request.to_json() for request in worlds[0].requests] == [
        request.to_json() for request in worlds[1].requests
    ]
    assert note_of(worlds[0].requests[-1]) is not None


@KINDS
def test_code_that_is_refused_folds_and_asks_again(kind: str) -> None:
    world = World(writing(25), WINDOW)
    result = coder(kind, world, compaction=Compaction([drop_oldest()]))(question="Read.")
    assert (result.answer, len(world.refused)) == ("read", 1)
    assert AgentRun.of(result).history.folds[0].why == "refused"


@KINDS
def test_extraction_of_code_reads_what_fits(kind: str) -> None:
    world = World(writing(99), WINDOW)
    program = coder(kind, world, compaction=Compaction([drop_oldest()], window=WINDOW), max_iters=30)
    result = program(question="Read.")
    assert (result.answer, result.termination_reason, world.refused) == ("extracted", "limit", [])
    text = "".join(shown_texts(world.requests[-1]))
    assert "fact f29 is v29" in text
    assert "fact f1 is v1." not in text


@KINDS
def test_code_without_folds_sends_everything(kind: str) -> None:
    world = World(writing(25), WINDOW)
    result = coder(kind, world, compaction=False)(question="Read.")
    assert result.termination_reason == "context_window_exceeded"
    assert AgentRun.of(result).history.folds == ()


@KINDS
def test_on_turn_of_code_replaces_one_request_only(kind: str) -> None:
    seen: list[int] = []

    def change(view: History) -> History | None:
        seen.append(len(view))
        return view.append(Message.user("fact f7 is near.")) if len(seen) == 2 else None

    world = World(writing(9), 10_000)
    result = coder(kind, world, on_turn=change)(question="Read.")
    assert result.answer == "read"
    assert [request.messages[-1].text == "fact f7 is near." for request in world.requests[:3]] == [False, True, False]
    assert all(turn != Message.user("fact f7 is near.") for turn in AgentRun.of(result).history.messages)


@KINDS
def test_recorded_code_that_is_interrupted_folds_where_it_folded(kind: str, tmp_path: Any) -> None:
    class Stops(World):
        stops = True

        def _answer(self, request: Any) -> Any:
            if self.stops and len(self.summaries) == 2 and not self.is_summary(request):
                self.stops = False
                raise KeyboardInterrupt
            return super()._answer(request)

    plain = World(writing(45), WINDOW)
    options: Any = {"compaction": Compaction([summarize(tokens=200)], window=WINDOW)}
    expected = AgentRun.of(coder(kind, plain, **options)(question="Read.")).history
    world = Stops(writing(45), WINDOW)
    program = coder(kind, world, **options)
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(KeyboardInterrupt):
            journal.run(program, "one", question="Read.")
        history = AgentRun.of(journal.run(program, "one", question="Read.")).history
    assert history == expected
    assert len(world.summaries) == len(plain.summaries) >= 2


@KINDS
def test_task_of_code_larger_than_the_window_ends_with_the_sizes(kind: str) -> None:
    program = coder(kind, World(writing(3), 300), compaction=Compaction(window=300), extract=False)
    with pytest.raises(sigwire.AgentStopped) as caught:
        program(question="word " * 900)
    assert isinstance(caught.value.__cause__, ContextWindowExceededError)
    assert re.search(r"instructions [\d,]+, tools [\d,]+, task [\d,]+, latest turn [\d,]+", str(caught.value.__cause__))
