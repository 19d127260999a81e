"""The tree of a run: what collecting costs an agent, and what a tree holds.

s1: an agent of five turns whose tools run no programs, beside one turn of it. s2: bytes a node of a tree of 10,000 nodes.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire import FakeLM, Module, Predict, Prediction, ReAct, ToolCall, Usage

__all__ = ["bytes_a_node", "jobs"]

TURNS, NODES = 5, 10_000


def jobs() -> Iterator[Job]:
    """Yield s1 and s2."""
    agent, predict = looking_up(), Predict("task -> text", lm=FakeLM(lambda request: {"text": "done"}))
    yield Job(
        "s1",
        f"an agent of {TURNS} turns, each with a call of a function (floor: as many calls of a predictor)",
        "≤ 6x",
        {FLOOR: lambda: [predict(task="look") for _ in range(TURNS)], SIGWIRE: lambda: agent(task="look")},
    )
    what = f"bytes a node of a tree of {NODES:,} nodes"
    yield Job("s2", what, "≤ 2048", {SIGWIRE: bytes_a_node}, "B", sample=lambda held: float(str(held())), most_rounds=1)


def looking_up() -> ReAct[..., Any]:
    """Return an agent that calls a tool in each turn but the last."""

    def look_up(page: int) -> str:
        return f"page {page}"

    def answer(request: Any) -> ToolCall:
        turn = sum(message.role == "tool" for message in request.messages)
        done = turn == TURNS - 1
        return ToolCall("", "submit", {"text": "done"}) if done else ToolCall("", "look_up", {"page": turn})

    agent: ReAct[..., Any] = ReAct("task -> text", tools=[look_up])
    agent.set_lm(FakeLM(answer))
    return agent


class Many(Module):
    """A program of many requests."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = Predict("task -> text", lm=FakeLM(lambda request: {"text": "done"}, usage=Usage(100, 10)))

    def forward(self, task: str) -> Prediction:
        for _ in range(NODES):
            self.ask(task=task)
        return Prediction(text="done")


def bytes_a_node() -> float:
    """Return what the tree of a run holds in memory, for each node."""
    program = Many()
    program.ask(task="warm up")
    gc.collect()
    tracemalloc.start()
    result = program(task="look")
    program.ask.lm.requests.clear()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / sum(1 for _ in result.run)
