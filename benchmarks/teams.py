"""Programs in tools: copies of predictors that tools hold (q1), and of agents whose tools hold none (q2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire import Module, Predict, ReAct

__all__ = ["jobs"]

MANY = 50


def jobs() -> Iterator[Job]:
    """Yield q1 and q2."""
    attributes, tools = Team(held=False), Team(held=True)
    assert len(attributes.predictors()) == len(tools.predictors()) == MANY + 2
    contestants = {FLOOR: attributes.deepcopy, SIGWIRE: tools.deepcopy}
    yield Job("q1", f"a copy of {MANY} predictors in tools (floor: in attributes)", "≤ 2x", contestants)
    without, plain = ReAct("task -> text"), ReAct("task -> text", tools=[plain_tool(n) for n in range(MANY)])
    what = f"a copy of an agent with {MANY} tools without modules (floor: without tools)"
    yield Job("q2", what, "≤ 2x", {FLOOR: without.deepcopy, SIGWIRE: plain.deepcopy})


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
