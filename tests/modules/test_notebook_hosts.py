"""The hosts that run cells and scripts: a loop in the main thread, a loop in another one, and a new thread for each run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sigwire import LM, Predict, ReAct, ToolCall, context
from sigwire.testing import FakeProvider

Cell = Callable[[], Any]


def in_main_loop(cell: Cell) -> Any:
    """Run a cell as ipykernel does: blocking code inside a task of the loop; what it returns may be awaited."""

    async def task() -> Any:
        value = cell()
        return await value if isinstance(value, Awaitable) else value

    return asyncio.run(task())


def in_new_thread(run: Callable[[Cell], Any], cell: Cell) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run(cell)))
    thread.start()
    thread.join(60)
    return found[0]


def in_loop_of_a_thread(cell: Cell) -> Any:
    """Run a cell as marimo's run mode does: in a loop that is not that of the main thread."""
    return in_new_thread(in_main_loop, cell)


def in_script_thread(cell: Cell) -> Any:
    """Run a script as Streamlit does: in a new thread without a loop."""

    def run(cell: Cell) -> Any:
        value = cell()
        return asyncio.run(value) if asyncio.iscoroutine(value) else value

    return in_new_thread(run, cell)


HOSTS = pytest.mark.parametrize("host", [in_main_loop, in_loop_of_a_thread, in_script_thread], ids=lambda f: f.__name__)


async def double(n: int) -> int:
    """Double a number."""
    await asyncio.sleep(0)
    return 2 * n


def ask(lm: LM) -> Any:
    return Predict("question -> answer", lm=lm)(question="?").answer


def ask_many(lm: LM) -> Any:
    [found] = Predict("question -> answer", lm=lm).batch([{"question": "?"}])
    return found.answer


def ask_awaited(lm: LM) -> Any:
    async def answer() -> str:
        return str((await Predict("question -> answer", lm=lm).acall(question="?")).answer)

    return answer()


def ask_streamed(lm: LM) -> Any:
    *_, finished = Predict("question -> answer", lm=lm).stream(question="?")
    return finished.value.answer  # type: ignore[union-attr]


def ask_agent(lm: LM) -> Any:
    with context(lm=lm):
        return ReAct("question -> answer", tools=[double])(question="?").answer


TEXT = "[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"
CALLS = [ToolCall("a", "double", {"n": 2}), ToolCall("b", "submit", {"answer": "yes"})]


@HOSTS
@pytest.mark.parametrize("work", [ask, ask_many, ask_awaited, ask_streamed, ask_agent])
def test_model_of_one_cell_answers_in_later_ones(host: Callable[[Cell], Any], work: Callable[[LM], Any]) -> None:
    answers: list[Any] = CALLS * 2 if work is ask_agent else [TEXT] * 2
    with FakeProvider(answers) as provider:
        lm = host(lambda: LM("openai/gpt-4.1", base_url=provider.url("openai"), api_key="k", cache=False))
        assert [host(lambda: work(lm)) for _ in range(2)] == ["yes", "yes"]
        lm.close()
