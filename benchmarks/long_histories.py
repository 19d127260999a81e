"""Bounds of long conversations and many tools (k1 to k6). There is no floor: the target is an amount of CPU time.

The bounds hold on an idle machine; of a busy one the least of the rounds is what counts, which the table shows in parentheses.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from benchmarks.stub import StubLM
from benchmarks.timing import SIGWIRE, Job, cpu_seconds
from sigwire import Capabilities, Fold, History, Message, ReAct, Tool, ToolCall, ToolResult
from sigwire.core.words import WordIndex
from sigwire.modules.agents.room import Room
from sigwire.modules.agents.tool_catalog import SearchedTools
from sigwire.modules.context.search_tools import find_passages
from sigwire.signatures.types.history import folded

__all__ = ["jobs"]

QUERY = "which code opens the blue door of the garden"
STARTS, ENDS = "gar do blu co wea tra mee or", "den or e de ther in ting der s ing ed al ment ly ion ous ic er"
WORDS = [f"{start}{end}" for start in STARTS.split() for end in ENDS.split()]


def jobs(turns: int = 2_000, shown: int = 10_000, passages: int = 10_000, tools: int = 1_000) -> Iterator[Job]:
    """Yield k1 to k6. The numbers are the sizes of the bounds."""
    yield from triggers(turns)
    yield from views(shown)
    yield from searches(passages)
    yield catalog(tools)


def texts(number: int, characters: int) -> Iterator[str]:
    """Yield texts of words of which few are common, as those of a language."""
    draw = random.Random(number)
    weights = [1 / at for at in range(1, len(WORDS) + 1)]
    for at in range(number):
        made = f"{at} " + " ".join(draw.choices(WORDS, weights, k=characters // 5))
        yield made[:characters]


def turns_of(number: int, characters: int) -> Iterator[Message]:
    """Yield turns of calls and results, two for each call."""
    for at, text in enumerate(texts(number // 2, characters)):
        yield Message.assistant("I look.", [ToolCall(f"call_{at}", "look", {"n": at})])
        yield Message.tool(ToolResult(f"call_{at}", "look", text))


# --- k1: before each request -------------------------------------------------------------------------


def triggers(number: int) -> Iterator[Job]:
    """Return the jobs of a turn: its tokens are counted, and a fold is not due; by counts alone, and near the window."""
    from sigwire.effects.steps import run
    from sigwire.modules.context.folding import fold_near

    before = History(turns_of(number, 400))
    now = before.append(*turns_of(2, 400))
    for what, window in (("far from the window", 10**9), ("near the window", 200_000)):
        agent: Any = ReAct("question -> answer", tools=[Tool(len, name="look")])
        agent.set_lm(StubLM("x", capabilities=Capabilities(native_tools=True, context_window=window)))
        room = Room(agent, agent.react)

        class _Run:
            history = now

        asked: Any = _Run()
        asked.room = room
        counted = 169_800 if window < 10**9 else 1_000

        def turn(room: Room = room, asked: Any = asked, counted: int = counted) -> bool:
            room.set_size(counted, before)
            is_near = room.is_near(now)
            if is_near:
                run(fold_near(asked))
            return is_near

        assert turn() is (window < 10**9)
        assert now.folds == ()
        yield Job("k1", f"before a request of {number:,} turns, {what}", "≤ 50 µs", {SIGWIRE: turn})


# --- k2: the view ------------------------------------------------------------------------------------


def views(number: int) -> Iterator[Job]:
    """Yield the jobs of the first view after a fold: half of the turns are left out, without and with references.

    A reference is a new result in a new message, so their cost is by the result and has no bound of its own.
    """
    history = History(turns_of(number, 400))

    def view_of(fold: Fold) -> History:
        return folded(history, replace(fold)).view()  # the view of one fold is made once

    without = Fold(number // 2, summary="Earlier.", search="find", reader="read")
    cleared = replace(without, cleared=number - 4)
    references = (number // 2 - 4) // 2
    assert view_of(cleared).messages[-1] is history.messages[-1]
    name = f"view of {number:,} turns, once a fold"
    yield Job("k2", name, "≤ 2 ms", {SIGWIRE: partial(view_of, without)}, unit="ms")
    yield Job("k2", f"{name}, {references:,} results by reference", "", {SIGWIRE: partial(view_of, cleared)}, unit="ms")


# --- k3 to k5: the search of what is left out --------------------------------------------------------


def searches(number: int) -> Iterator[Job]:
    """Yield the jobs of a search, of a turn that is added, and of a new index. A result is four passages."""
    messages = [*turns_of(number // 2, 1_150), Message.user("And now?")]
    fold = Fold(len(messages) - 1)
    history = folded(History(messages), fold)

    def search(history: History = history) -> int:
        return len(find_passages(history, QUERY, 8))

    def index() -> int:
        return search(folded(History(messages), fold))

    words, numbers, added = WordIndex[int](length=0.4), count(), list(texts(4, 290))
    for each in texts(number, 290):
        words.add(next(numbers), each)

    def add() -> None:
        for each in added:
            words.add(next(numbers), each)

    assert search() == index() == 8
    yield Job("k3", f"search of {number:,} passages", "≤ 15 ms", {SIGWIRE: search}, unit="ms")
    yield Job("k4", "a turn of 4 passages is added", "≤ 1 ms", {SIGWIRE: add}, unit="ms")
    whole = cpu_seconds(0.001)
    yield Job(
        "k5", f"index of {number:,} passages", "≤ 1,500 ms", {SIGWIRE: index}, unit="ms", sample=whole, most_rounds=5
    )


# --- k6: many tools ----------------------------------------------------------------------------------


def catalog(number: int) -> Job:
    """Return the job of the index of tools."""
    offered = [
        Tool.from_schema(
            f"{text.split()[1]}_{at}",
            text,
            {"type": "object", "properties": {name: {"type": "string", "description": text[:60]} for name in "abcde"}},
        )
        for at, text in enumerate(texts(number, 120))
    ]

    def index() -> SearchedTools:
        return SearchedTools(offered)

    assert index().best(offered[3].description, 1)
    return Job("k6", f"index of {number:,} tools", "≤ 200 ms", {SIGWIRE: index}, unit="ms", most_rounds=7)
