"""Places of effects, and ``drive`` and ``adrive``, which let another engine perform them."""

from __future__ import annotations

import asyncio
from typing import Any

from sigwire import FakeLM, Module, Predict, ReAct, ToolCall
from sigwire.effects.performing import adrive, current_frame, drive


def agent() -> Any:
    def add(a: int, b: int) -> int:
        return a + b

    calls = [ToolCall("a", "add", {"a": 1, "b": 2}), ToolCall("b", "add", {"a": 3, "b": 4})]
    return ReAct("q -> a: int", tools=[add], lm=FakeLM([calls, ToolCall("s", "submit", {"a": 10})]))


PLACES = [
    "ReAct.0/turn.0/Predict.0/ask.0",
    "ReAct.0/turn.0/tool.0",
    "ReAct.0/turn.0/tool.1",
    "ReAct.0/turn.1/Predict.0/ask.0",
]


def test_drive_performs_each_effect_at_its_place() -> None:
    places: list[str] = []

    def perform(effect: Any, place: str) -> Any:
        places.append(place)
        data = effect.dump(effect.run())
        return effect.load(data).run()

    program = agent()
    assert drive(lambda: program.call_steps(q="?"), perform).a == 10
    assert sorted(places) == sorted(PLACES)
    assert current_frame() is None


async def test_adrive_awaits_each_effect_at_its_place() -> None:
    places: list[str] = []

    async def perform(effect: Any, place: str) -> Any:
        places.append(place)
        await asyncio.sleep(0)
        return await effect.arun()

    program = agent()
    assert (await adrive(lambda: program.call_steps(q="?"), perform)).a == 10
    assert sorted(places) == sorted(PLACES)


class Forward(Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner: Any = Predict("a -> b", lm=FakeLM([{"b": "1"}, {"b": "2"}]))

    def forward(self) -> list[str]:
        return [self.inner(a="x").b for _ in range(2)]


class AsyncForward(Forward):
    async def aforward(self) -> list[str]:
        return [(await self.inner.acall(a="x")).b for _ in range(2)]


async def test_blocking_code_is_performed_by_an_async_engine() -> None:
    async def perform(effect: Any, place: str) -> Any:
        return await effect.arun()

    assert await adrive(Forward().call_steps, perform) == ["1", "2"]


def test_async_code_is_performed_by_a_blocking_engine() -> None:
    assert drive(AsyncForward().call_steps, lambda effect, place: effect.run()) == ["1", "2"]


def test_batch_children_have_places_by_position() -> None:
    places: list[str] = []

    class Many(Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner: Any = Predict("a -> b", lm=FakeLM([{"b": "1"}] * 3))

        def forward(self) -> None:
            self.inner.batch([{"a": "x"}] * 3)

    def perform(effect: Any, place: str) -> Any:
        places.append(place)
        return effect.run()

    drive(Many().call_steps, perform)
    assert sorted(places) == [f"Many.0/gather.0/part.{at}/Predict.0/ask.0" for at in range(3)]
