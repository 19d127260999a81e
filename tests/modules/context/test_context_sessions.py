"""Sessions with programs without tools: folds, passages of what is left out, JSON, errors."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

from sigwire import (
    ChatSession,
    Choice,
    Compaction,
    ConfigurationError,
    ContextWindowExceededError,
    FakeLM,
    History,
    LMServerError,
    Message,
    Module,
    Predict,
    ReAct,
)
from sigwire.compaction import drop_oldest, summarize
from tests.modules.context.worlds import World, called, note_of, shown_texts

MODES = ["run", "arun", "stream", "astream"]


def chat_of(lm: Any, **options: Any) -> ChatSession:
    return ChatSession(Predict("question, history: History -> answer", lm=lm), **options)


def said(number: int) -> str:
    return f"fact f{number} is v{number}. " + f"word{number} " * 60


async def ask(mode: str, chat: Any, question: str) -> Any:
    if mode == "run":
        return await asyncio.to_thread(chat, question=question)
    if mode == "arun":
        return await chat.acall(question=question)
    if mode == "stream":
        return (await asyncio.to_thread(lambda: list(chat.stream(question=question))))[-1].value
    return [event async for event in chat.astream(question=question)][-1].value


@pytest.mark.parametrize("mode", MODES)
async def test_session_folds_and_keeps_all_turns(mode: str) -> None:
    world = World(lambda request: {"answer": "fine"}, 2000)
    chat = chat_of(world, compaction=Compaction(window=2000))
    before = History()
    for number in range(30):
        await ask(mode, chat, said(number))
        assert chat.conversation.messages[: len(before)] == before.messages
        before = chat.conversation
    assert world.refused == []
    assert len(chat.conversation) == 30
    assert len(chat.conversation.folds) >= 2
    assert "fact f0 is v0." in chat.conversation.folds[-1].summary


def test_passages_are_in_front_of_the_inputs_in_one_request_only() -> None:
    world = World(lambda request: {"answer": "fine"}, 2000)
    chat = chat_of(world, compaction=Compaction([drop_oldest()], window=2000, recall=2))
    for number in range(20):
        chat(question=said(number))
    chat(question="What is fact f3?")
    *_, passages, question = world.requests[-1].messages
    assert "What is fact f3?" in question.text
    assert "fact f3 is v3" in passages.text
    assert passages.text.count("[turn ") == 2
    chat(question="Thanks.")
    assert all("fact f3 is v3" not in text for text in shown_texts(world.requests[-1]))


def test_session_without_recall_adds_no_passage() -> None:
    world = World(lambda request: {"answer": "fine"}, 2000)
    chat = chat_of(world, compaction=Compaction([drop_oldest()], window=2000, recall=0))
    for number in range(20):
        chat(question=said(number))
    chat(question="What is fact f3?")
    assert all("fact f3" not in text for text in shown_texts(world.requests[-1])[:-1])


def test_session_continues_in_another_process_with_the_same_bytes() -> None:
    worlds = [World(lambda request: {"answer": "fine"}, 2000) for _ in range(2)]
    chat = chat_of(worlds[0], compaction=Compaction([drop_oldest()], window=2000))
    for number in range(20):
        chat(question=said(number))
    data = json.loads(json.dumps(chat.to_json()))
    assert data["folds"]
    other = chat_of(worlds[1], compaction=Compaction([drop_oldest()], window=2000), conversation=data)
    chat(question="What is fact f3?")
    other(question="What is fact f3?")
    assert worlds[0].requests[-1].to_json() == worlds[1].requests[-1].to_json()
    assert copy.deepcopy(other).conversation == other.conversation


def test_session_folds_after_a_refusal() -> None:
    world = World(lambda request: {"answer": "fine"}, 2000)
    chat = chat_of(world, compaction=Compaction([drop_oldest()]))
    for number in range(20):
        chat(question=said(number))
    assert len(world.refused) == 1
    assert chat.conversation.folds[0].why == "refused"


def test_fold_of_a_call_that_failed_is_kept() -> None:
    answers: list[Any] = [{"answer": "fine"}] * 9

    class Fails(World):
        def turned(self, request: Any) -> Any:
            return answers.pop() if answers else LMServerError("down")

    world = Fails(lambda request: answers.pop() if answers else LMServerError("down"), 4000)
    chat = chat_of(world, compaction=Compaction([drop_oldest()], window=1500))
    for number in range(9):
        chat(question=said(number))
    before = chat.conversation
    with pytest.raises(LMServerError):
        chat(question=said(10) * 3)
    assert chat.conversation.messages == before.messages


def test_cancelled_question_that_is_asked_again_keeps_the_folds() -> None:
    world = World(lambda request: {"answer": "fine"}, 2000)
    chat = chat_of(world, compaction=Compaction([drop_oldest()], window=2000))
    for number in range(20):
        chat(question=said(number))
    folds = chat.conversation.folds
    assert folds
    world.turn = lambda request: KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        chat(question="What is fact f3?")
    world.turn = lambda request: {"answer": "v3"}
    assert chat().answer == "v3"
    assert chat.conversation.folds == folds
    assert note_of(world.requests[-1]) is not None


def test_session_of_an_agent_takes_no_compaction() -> None:
    with pytest.raises(ConfigurationError, match="folds its own conversation"):
        ChatSession(ReAct("question -> answer"), compaction=False)


def test_program_without_a_history_has_no_session() -> None:
    with pytest.raises(ConfigurationError, match="takes no history"):
        ChatSession(Predict("question -> answer"), compaction=Compaction(window=10))


def test_on_turn_of_a_session_replaces_one_request() -> None:
    lm = FakeLM([{"answer": "one"}, {"answer": "two"}])
    chat = chat_of(lm, on_turn=lambda view: History([Message.user("Only this.")]) if len(view) else None)
    chat(question="first")
    chat(question="second")
    assert [message.text for message in lm.requests[1].messages[1:-1]] == ["Only this."]
    assert len(chat.conversation) == 2


def test_summary_of_a_session_is_tuned_under_its_name() -> None:
    chat = chat_of(FakeLM([]), compaction=Compaction([summarize()], window=2000))
    assert [name for name, _ in chat.named_predictors()] == ["program", "summary"]
    assert [name for name, _ in chat_of(FakeLM([])).named_predictors()] == ["program"]


def test_answer_of_the_world_is_a_choice() -> None:
    assert isinstance(World(lambda request: Choice(text="x"), 9).turn(None), Choice)


class WithAgent(Module):
    """Asks an agent with its conversation."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent

    def forward(self, question: str, history: History) -> Any:
        return self.agent(question=question, history=history)


@pytest.mark.parametrize("mode", MODES)
async def test_program_whose_agent_has_nothing_left_to_fold_runs_its_tools_once(mode: str) -> None:
    paid: list[int] = []

    def pay(cents: int) -> str:
        """Pay."""
        paid.append(cents)
        return "receipt " * 2000

    agent: Any = ReAct("question -> answer", tools=[pay], max_output=None)
    agent.set_lm(World(lambda request: called(f"pay{len(paid)}", "pay", cents=5), 4000))
    turns = [{"question": f"{number} word " * 90, "answer": "word " * 90} for number in range(9)]
    with pytest.raises(ContextWindowExceededError):
        await ask(mode, ChatSession(WithAgent(agent), turns), "Pay.")
    assert paid == [5]
