"""Conversations that begin with one history: two agents, two users, at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sigwire import AgentRun, Compaction, Fold, History, Message, ReAct, Tool
from sigwire.compaction import drop_oldest
from sigwire.modules.context.search_tools import find_passages
from sigwire.signatures.types.history import folded
from tests.modules.context.worlds import World, called

LATER = Message.assistant("Later.")


def branch(base: History, name: str) -> History:
    """Return the conversation of a user, whose last folded turn is the same object for all."""
    return folded(base.append({"q": f"The secret of {name} is {name}{name}."}, LATER, {"q": "?"}), Fold(4))


def test_search_of_a_conversation_never_finds_turns_of_another_one() -> None:
    base = folded(History([{"q": "Hello."}, {"q": "All right."}]), Fold(1))
    branches = {name: branch(base, name) for name in ("Ada", "Bob", "Cleo")}
    for _ in range(2):
        for name, history in branches.items():
            assert [passage.text for passage in find_passages(history, "secret", 5)] == [
                f"The secret of {name} is {name}{name}."
            ]
    assert find_passages(base, "secret", 5) == []


def test_searches_of_conversations_at_once_find_their_own_turns() -> None:
    names = [f"N{number}" for number in range(40)]
    for _ in range(5):
        base = folded(History([{"q": "Hello."}, {"q": "All right."}]), Fold(1))
        branches = [branch(base, name) for name in names]
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda history: find_passages(history, "secret", 5), branches))
        assert [[passage.text for passage in each] for each in found] == [
            [f"The secret of {name} is {name}{name}."] for name in names
        ]


def agent_of(tools: list[Tool], window: int) -> tuple[Any, World]:
    world = World(lambda request: called("s", "submit", answer="word " * 60), 10**9)
    agent: Any = ReAct(
        "question -> answer", tools=tools, tool_search=False, compaction=Compaction([drop_oldest()], window=window)
    )
    agent.set_lm(world)
    return agent, world


def test_agent_with_few_tools_does_not_fold_by_the_size_of_an_agent_with_many() -> None:
    tools = [Tool(len, name=f"tool_{number}", description="word " * 60) for number in range(60)]
    many, world = agent_of(tools, 40_000)
    history = History()
    for _ in range(10):
        history = AgentRun.of(many(question="Hi.", history=history)).history
    few, other = agent_of(tools[:1], 4_000)
    assert AgentRun.of(few(question="And you?", history=history)).history.folds == ()
    assert len(other.requests) == 1
    assert history.folds == ()
    assert len(world.requests) == 10
