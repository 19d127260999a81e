"""Large tool results of an agent: shown in part, read by a tool; native and as text, in all ways of calling."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sigwire import (
    AgentStopped,
    Choice,
    ConfigurationError,
    FakeLM,
    Journal,
    LMServerError,
    ReAct,
    Tool,
    ToolCall,
    ToolDone,
)
from sigwire.core.capabilities import Capabilities
from sigwire.modules.agents.run import ReActStep

MODES = ["run", "arun", "stream", "astream"]
BOTH_PROTOCOLS = pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
WORDS = " ".join(f"word{n}" for n in range(1000))


def book(chapter: int = 0) -> str:
    """Return a chapter."""
    return f"{WORDS} chapter {chapter}"


async def rows() -> list[dict[str, int]]:
    """Return rows."""
    await asyncio.sleep(0)
    return [{"n": n} for n in range(500)]


def calls(native: bool, *wanted: tuple[str, dict[str, Any]]) -> Choice:
    """Return a turn in the protocol of the model."""
    if native:
        return Choice(tool_calls=tuple(ToolCall(f"id_{name}", name, args) for name, args in wanted))
    blocks = [f"~~~tool_call\n{json.dumps({'name': name, 'arguments': args})}\n~~~" for name, args in wanted]
    return Choice(text="\n\n".join(blocks))


def reading(*reads: dict[str, Any], native: bool = True, tool: str = "book") -> FakeLM:
    """Return a model that calls a tool, reads its result by the id in the note, and submits."""
    left = list(reads)

    def reply(request: Any) -> Choice:
        texts = [result.text for message in request.messages for result in message.tool_results]
        seen = "\n".join([*texts, *(message.text for message in request.messages)])
        if (note := re.search(r'characters omitted; read_result\(id=\\?"([^"\\]+)\\?"', seen)) is None:
            return calls(native, (tool, {}))
        return calls(native, ("read_result", {"id": note[1], **left.pop(0)}) if left else ("submit", {"answer": "ok"}))

    capabilities = Capabilities(native_tools=native, parallel_tool_calls=native)
    return FakeLM(reply, capabilities=capabilities)


def reader(lm: FakeLM, **options: Any) -> Any:
    agent: Any = ReAct("question -> answer", tools=[book, rows], **({"max_output": 300} | options))
    agent.set_lm(lm)
    return agent


async def answered(mode: str, agent: Any) -> tuple[Any, list[Any]]:
    """Return the prediction and the events of a run."""
    if mode == "run":
        return await asyncio.to_thread(agent, question="?"), []
    if mode == "arun":
        return await agent.acall(question="?"), []
    if mode == "stream":
        events = await asyncio.to_thread(lambda: list(agent.stream(question="?")))
    else:
        events = [event async for event in agent.astream(question="?")]
    return events[-1].value, events


def tool_names(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.tools]


@BOTH_PROTOCOLS
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tool", ["book", "rows"])
async def test_large_result_is_read_by_its_id(mode: str, native: bool, tool: str) -> None:
    whole = book() if tool == "book" else json.dumps([{"n": n} for n in range(500)], separators=(",", ":"))
    agent = reader(reading({"start": 200, "length": 50}, native=native, tool=tool))
    result, events = await answered(mode, agent)
    assert [step.results[0].name for step in result.steps] == [tool, "read_result", "submit"]
    assert result.steps[0].results[0].text == whole
    assert result.steps[1].results[0].text == f"Characters 200 to 250 of {len(whole)}:\n{whole[200:250]}"
    done = [event.result for event in events if isinstance(event, ToolDone)]
    assert [each.name for each in done] == ([tool, "read_result", "submit"] if events else [])
    if events:
        id = done[0].id
        assert (
            f'{len(whole) - 300} of {len(whole)} characters omitted; read_result(id="{id}", start=201)' in done[0].text
        )


async def test_reader_is_offered_after_the_first_large_result() -> None:
    lm = reading({"start": 0})
    reader(lm)(question="?")
    assert [tool_names(request) for request in lm.requests] == [
        ["book", "rows", "submit"],
        ["book", "rows", "submit", "read_result"],
        ["book", "rows", "submit", "read_result"],
    ]


def test_run_without_large_results_offers_no_reader() -> None:
    lm = FakeLM([ToolCall("a", "book", {}), ToolCall("b", "submit", {"answer": "ok"})])
    reader(lm, max_output=20_000)(question="?")
    assert [tool_names(request) for request in lm.requests] == [["book", "rows", "submit"]] * 2


def test_later_run_of_the_agent_offers_no_reader_and_does_not_read_earlier_results() -> None:
    agent = reader(reading())
    agent(question="?")
    again = FakeLM([ToolCall("x", "read_result", {"id": "id_book"}), ToolCall("b", "submit", {"answer": "ok"})])
    agent.set_lm(again)
    assert "Unknown tool 'read_result'" in agent(question="?").steps[0].results[0].text
    assert "read_result" not in tool_names(again.requests[0])


def test_continued_run_sees_what_the_model_saw_and_calls_the_tool_again() -> None:
    agent = reader(reading({"start": 0, "length": 50}))
    first = agent(question="?")
    search: dict[str, Any] = {"id": "id_again", "search": "chapter"}
    turns: list[Any] = [ToolCall("id_again", "book", {"chapter": 7}), ToolCall("r", "read_result", search)]
    again = FakeLM([*turns, ToolCall("s", "submit", {"answer": "ok"})])
    agent.set_lm(again)
    steps = agent(question="And chapter 7?", history=json.loads(json.dumps(first.history.to_json()))).steps
    assert 'read_result(id="id_book"' in again.requests[0].messages[3].tool_results[0].text
    assert steps[1].results[0].text.endswith("chapter 7")


def test_search_returns_places_with_their_offsets() -> None:
    agent = reader(reading({"search": "WORD99 "}, {"search": "word9", "length": 250}, {"search": "nowhere"}))
    steps = agent(question="?").steps
    at = WORDS.index("word99 ")
    assert steps[1].results[0].text.startswith(f"1 match in characters 0 to {len(book())}:\n[at {at}] ")
    many = steps[2].results[0].text
    assert many.startswith("111 matches in characters 0 to")
    assert f"(110 more: search with start={WORDS.index('word90')})" in many
    assert steps[3].results[0].text == f"No match in characters 0 to {len(book())}."


def test_read_part_is_never_larger_than_max_output() -> None:
    agent = reader(reading({"start": 100, "length": 100_000}, {"start": 100}))
    for step in agent(question="?").steps[1:3]:
        assert step.results[0].text == f"Characters 100 to 400 of {len(book())}:\n{book()[100:400]}"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"id": "nonsense"}, "There is no large result 'nonsense' in this run. The latest ids are: id_book."),
        ({"id": "id_book", "start": 10**6}, f"The result ends at character {len(book())}; start must be lower."),
        ({"id": "id_book", "start": -1}, "start"),
        ({"id": "id_book", "length": 0}, "length"),
    ],
)
def test_wrong_arguments_of_the_reader_are_errors_for_the_model(arguments: dict[str, Any], problem: str) -> None:
    agent = reader(reading(arguments))
    result = agent(question="?").steps[1].results[0]
    assert result.is_error
    assert problem in result.text


def test_results_of_one_turn_are_read_by_their_ids() -> None:
    turns: list[Any] = [
        [ToolCall("one", "book", {"chapter": 1}), ToolCall("two", "book", {"chapter": 2})],
        [ToolCall(f"r_{id}", "read_result", {"id": id, "search": "chapter"}) for id in ("one", "two")],
        ToolCall("s", "submit", {"answer": "ok"}),
    ]
    results = reader(FakeLM(turns))(question="?").steps[1].results
    assert [result.text[-9:] for result in results] == ["chapter 1", "chapter 2"]


def test_name_of_the_reader_is_free_of_the_users_tools() -> None:
    lm = FakeLM([ToolCall("a", "read_result", {}), ToolCall("b", "submit", {"answer": "ok"})])
    agent: Any = ReAct("question -> answer", tools=[Tool(book, name="read_result")], max_output=300)
    agent.set_lm(lm)
    assert agent(question="?").answer == "ok"
    assert tool_names(lm.requests[1]) == ["read_result", "submit", "read_tool_result"]
    assert 'omitted; read_tool_result(id="a"' in lm.requests[1].messages[-1].tool_results[0].text


def test_cut_results_have_no_reader() -> None:
    lm = FakeLM([ToolCall("a", "book", {}), ToolCall("b", "submit", {"answer": "ok"})])
    reader(lm, large_results="cut")(question="?")
    assert f"[... {len(book()) - 300} of {len(book())} characters omitted ...]" in str(lm.requests[1].to_json())
    assert tool_names(lm.requests[1]) == ["book", "rows", "submit"]


def test_unknown_choice_for_large_results_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="large_results is 'reference' or 'cut', not 'file'"):
        ReAct("question -> answer", tools=[book], large_results="file")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["run", "arun"])
async def test_journal_gives_a_resumed_run_its_large_results(tmp_path: Path, mode: str) -> None:
    ran: list[str] = []

    def find() -> str:
        """Return a text."""
        ran.append("find")
        return book()

    agent: Any = ReAct("question -> answer", tools=[find], max_output=300)
    agent.set_lm(FakeLM([ToolCall("a", "find", {}), LMServerError("down")]))
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(LMServerError):
            journal.run(agent, "one", question="?")
        agent.set_lm(
            FakeLM([ToolCall("r", "read_result", {"id": "a", "start": 200}), ToolCall("s", "submit", {"answer": "ok"})])
        )
        if mode == "run":
            result = await asyncio.to_thread(journal.run, agent, "one", question="?")
        else:
            result = await journal.arun(agent, "one", question="?")
        assert journal.run(agent, "one").steps == result.steps
    assert ran == ["find"]
    assert result.steps[1].results[0].text == f"Characters 200 to 500 of {len(book())}:\n{book()[200:500]}"


def test_json_of_the_run_has_the_whole_result_and_the_read_part() -> None:
    agent = reader(reading({"start": 200, "length": 50}))
    result = agent(question="?")
    loaded = agent.load_result(json.loads(json.dumps(result.to_json())))
    assert loaded.steps == result.steps
    assert [ReActStep.from_json(step.to_json()) for step in result.steps] == list(result.steps)
    assert loaded.steps[0].results[0].text == book()


def test_interrupted_run_keeps_the_whole_results_in_its_steps() -> None:
    agent = reader(FakeLM([ToolCall("a", "book", {}), ToolCall("r", "read_result", {"id": "a"})]), extract=False)
    with pytest.raises(AgentStopped) as caught:
        agent(question="?", max_iters=2)
    assert caught.value.steps[0].results[0].text == book()
    assert caught.value.steps[1].results[0].text.startswith("Characters 0 to 300 of")
