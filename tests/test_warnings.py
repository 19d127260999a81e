"""Where warnings point: at the line of the user's program, in every way of calling."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire import FakeLM, InputField, Module, Predict, Signature, configure, settings

PREDICT = "question -> answer"


class Counted(Signature):
    """Answer."""

    count: int = InputField()
    answer: str = sigwire.OutputField()


def program() -> Any:
    return Predict(Counted, lm=FakeLM(lambda request: {"answer": "x"}))


class Outer(Module):
    def __init__(self) -> None:
        self.inner = program()

    def forward(self, count: Any) -> Any:
        return self.inner(count=count)


async def read(stream: Any) -> None:
    async for _ in stream:
        pass


CALLS: dict[str, Callable[[], object]] = {
    "a call": lambda: program()(count="many"),
    "an awaited call": lambda: asyncio.run(program().acall(count="many")),
    "a stream": lambda: list(program().stream(count="many")),
    "an awaited stream": lambda: asyncio.run(read(program().astream(count="many"))),
    "a module": lambda: Outer()(count="many"),
    "an option of a field": lambda: InputField(prefix="Q:"),
    "a docstring that is an f-string": lambda: exec_class(),
    "an option of DSPy's adapter": lambda: dspy.ChatAdapter(native_response_types=[dspy.Image]),
    "an option of DSPy's batch": lambda: dspy.Predict(PREDICT, lm=FakeLM(lambda r: {"answer": "x"})).batch(
        [dspy.Example(question="?").with_inputs("question")], max_errors=3
    ),
}


def exec_class() -> None:
    class Sum(Signature):
        f"""Add {"two"} numbers."""  # noqa: B021

        question: str = InputField()
        answer: str = sigwire.OutputField()


@pytest.mark.parametrize("kind", CALLS)
def test_warning_points_at_the_line_of_the_user(kind: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[kind]()
    assert [warning.filename for warning in caught] == [__file__]


class Faulty(sigwire.BaseCallback):
    def on_module_start(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("broken")


def test_warning_of_a_callback_points_at_the_line_of_the_user() -> None:
    before = settings.callbacks
    configure(callbacks=[Faulty()])
    try:
        with pytest.warns(RuntimeWarning, match="Faulty.on_module_start failed") as caught:
            program()(count=1)
    finally:
        configure(callbacks=before)
    assert {warning.filename for warning in caught} == {__file__}
