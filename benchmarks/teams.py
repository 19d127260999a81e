"""Programs within programs: copies, the tree of a run, and what a search asks again.

q1: predictors that tools hold. q2: agents whose tools hold none. s1: an agent of five turns whose tools run no programs.
s2: bytes a node of a tree of 10,000 nodes. s3: requests of a search that tunes a predictor behind an agent of four turns.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from zlib import crc32

from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire import COPRO, Example, FakeLM, Module, Predict, Prediction, ReAct, ToolCall, Usage

__all__ = ["bytes_a_node", "jobs", "requests_of_a_search"]

MANY, TURNS, NODES, ROWS = 50, 5, 10_000, 12


def jobs() -> Iterator[Job]:
    """Yield q1, q2, and s1 to s3."""
    attributes, tools = Team(held=False), Team(held=True)
    assert len(attributes.predictors()) == len(tools.predictors()) == MANY + 2
    contestants = {FLOOR: attributes.deepcopy, SIGWIRE: tools.deepcopy}
    yield Job("q1", f"a copy of {MANY} predictors in tools (floor: in attributes)", "≤ 2x", contestants)
    without, plain = ReAct("task -> text"), ReAct("task -> text", tools=[plain_tool(n) for n in range(MANY)])
    what = f"a copy of an agent with {MANY} tools without modules (floor: without tools)"
    yield Job("q2", what, "≤ 2x", {FLOOR: without.deepcopy, SIGWIRE: plain.deepcopy})
    agent, predict = looking_up(), Predict("task -> text", lm=FakeLM(lambda request: {"text": "done"}))
    yield Job(
        "s1",
        f"an agent of {TURNS} turns, each with a call of a function (floor: as many calls of a predictor)",
        "≤ 6x",
        {FLOOR: lambda: [predict(task="look") for _ in range(TURNS)], SIGWIRE: lambda: agent(task="look")},
    )
    what = f"bytes a node of a tree of {NODES:,} nodes"
    yield Job("s2", what, "≤ 2048", {SIGWIRE: bytes_a_node}, "B", sample=counted, most_rounds=1)
    searches = {FLOOR: lambda: requests_of_a_search(reuse=False), SIGWIRE: lambda: requests_of_a_search(reuse=True)}
    yield Job("s3", "requests of COPRO (floor: reuse=False)", "≤ 0.5x", searches, "", sample=counted, most_rounds=1)


def counted(measured: Callable[[], object]) -> float:
    return float(str(measured()))


class Team(Module):
    """Predictors, and an agent with as many tools, which hold the predictors or do not."""

    def __init__(self, *, held: bool) -> None:
        super().__init__()
        predictors: list[Any] = [Predict("topic -> fact") for _ in range(MANY)]
        self.own = [] if held else predictors
        self.agent = ReAct(
            "task -> text", tools=[asking(n, each) if held else plain_tool(n) for n, each in enumerate(predictors)]
        )


def asking(number: int, predictor: Any) -> Callable[[str], str]:
    def ask(topic: str) -> str:
        return str(predictor(topic=topic).fact)

    ask.__name__ = f"ask_{number}"
    return ask


def plain_tool(number: int) -> Callable[[str], str]:
    suffix = str(number)

    def look_up(topic: str) -> str:
        return topic + suffix

    look_up.__name__ = f"look_up_{number}"
    return look_up


def looking_up(turns: int = TURNS) -> ReAct[..., Any]:
    """Return an agent that calls a tool in each turn but the last."""

    def look_up(page: int) -> str:
        return f"page {page}"

    def answer(request: Any) -> ToolCall:
        turn = sum(message.role == "tool" for message in request.messages)
        done = turn == turns - 1
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


def noise(request: Any) -> int:
    return crc32("".join(message.text for message in request.messages).encode())


class Behind(Module):
    """A predictor that is tuned, behind an agent of four turns that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.agent = looking_up(4)
        self.agent._compiled = True
        self.answer = Predict("text, task -> answer", lm=FakeLM(lambda request: {"answer": str(noise(request) % 2)}))

    def forward(self, task: str) -> Prediction:
        return self.answer(text=self.agent(task=task).text, task=task)


def is_answered(example: Example, prediction: Prediction, trace: object = None) -> bool:
    return bool(example.answer == prediction.answer)


def requests_of_a_search(*, reuse: bool) -> float:
    """Return how many requests the program of a search sends."""
    program, numbers = Behind(), count()
    writer = FakeLM(lambda request: {"instruction": f"Try {next(numbers)}."})
    rows = [Example(task=f"task {number}", answer="1").with_inputs("task") for number in range(ROWS)]
    search = COPRO(writer, is_answered, breadth=8, depth=1, reuse=reuse)
    search.compile(program, trainset=rows)
    lms = program.answer.lm, program.agent.react.lm
    return float(sum(len(each.requests) for each in lms))
