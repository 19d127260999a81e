"""``timeout=`` of ``batch``, ``Parallel`` and ``Evaluate``: code that blocks does not hold the caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sigwire
from sigwire import (
    ConfigurationError,
    Evaluate,
    Example,
    FakeLM,
    FieldDelta,
    Module,
    Parallel,
    Predict,
    Prediction,
    Request,
)
from sigwire.core.response import Usage
from sigwire.modules.call_limit import CallTimeout
from tests.patience import PATIENCE

LIMIT = 0.05


class Blocking(Module):
    """Blocks for the input 1 until the test ends."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on, self.ended = threading.Event(), threading.Event()

    def forward(self, n: int) -> Prediction:
        if n == 1:
            self.go_on.wait(PATIENCE)
            self.ended.set()
        return Prediction(n=n)


@pytest.fixture
def program() -> Iterator[Blocking]:
    made = Blocking()
    yield made
    made.go_on.set()


INPUTS = [{"n": n} for n in range(3)]
WAYS: dict[str, Callable[..., Any]] = {
    "batch": lambda program, **options: program.batch(INPUTS, timeout=LIMIT, **options),
    "abatch": lambda program, **options: asyncio.run(program.abatch(INPUTS, timeout=LIMIT, **options)),
    "Parallel": lambda program, **options: Parallel(timeout=LIMIT, **options)([(program, each) for each in INPUTS]),
    "Parallel awaited": lambda program, **options: asyncio.run(
        Parallel(timeout=LIMIT, **options).acall([(program, each) for each in INPUTS])
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 4])
def test_call_that_blocks_fails_at_its_limit_and_the_others_go_on(way: str, threads: int, program: Blocking) -> None:
    results, failed, errors = WAYS[way](program, num_threads=threads, return_failed_examples=True)
    assert not program.ended.is_set()
    assert results[1] is None
    assert all(
        result is None or result.n == n for n, result in enumerate(results)
    )  # a slow machine may lose others, too
    assert {"n": 1} in failed
    assert {type(error) for error in errors} == {CallTimeout}
    assert isinstance(errors[0], TimeoutError)
    assert "longer than 0.05 seconds" in str(errors[0])


def run_stream(evaluate: Evaluate, program: Module) -> Any:
    return list(evaluate.stream(program))[-1].value  # type: ignore[union-attr]


DRIVERS: dict[str, Callable[..., Any]] = {
    "blocking": lambda evaluate, program: evaluate(program),
    "awaited": lambda evaluate, program: asyncio.run(evaluate.acall(program)),
    "streamed": run_stream,
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("is_function", [False, True])
def test_evaluation_goes_on_without_code_that_blocks(driver: str, is_function: bool, program: Blocking) -> None:
    devset = [Example(n=n).with_inputs("n") for n in range(3)]
    evaluate = Evaluate(
        devset=devset, metric=lambda example, found: found.n == example.n, timeout=LIMIT, progress=False
    )
    result = DRIVERS[driver](evaluate, program.forward if is_function else program)
    assert not program.ended.is_set()
    kinds = [record.cell.failure and record.cell.failure.type for record in result.records]
    assert kinds[1] == "ExampleTimeout"
    assert {*kinds} <= {None, "ExampleTimeout"}  # a slow machine may take as long for others


def test_call_in_time_has_its_trace_usage_and_events() -> None:
    lm = FakeLM([{"answer": "yes"}, {"answer": "no"}], usage=Usage(3, 2))
    predict = Predict("question -> answer", lm=lm)

    class Asking(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = predict
            self.parallel = Parallel(timeout=PATIENCE)

        def forward(self, questions: list[str]) -> Prediction:
            found = self.parallel([(self.ask, {"question": each}) for each in questions])
            return Prediction(answers=sorted(each.answer for each in found))

    events = list(Asking().stream(questions=["a?", "b?"]))
    result: Any = events[-1].value  # type: ignore[union-attr]
    assert result.answers == ["no", "yes"]
    assert sigwire.CallReport.of(result).usage.total_tokens == 10
    assert any(isinstance(event, FieldDelta) for event in events)


def test_error_of_a_call_in_time_is_its_own() -> None:
    def fail(request: Request) -> Any:
        raise KeyError("mine")

    predict = Predict("question -> answer", lm=FakeLM(fail))
    with pytest.raises(KeyError, match="mine"):
        predict.batch([{"question": "?"}], timeout=PATIENCE)


@pytest.mark.parametrize("timeout", [0, -1, "1", True])
def test_limit_that_is_no_number_of_seconds_is_refused(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="timeout is a number of seconds"):
        Blocking().batch(INPUTS, timeout=timeout)
    with pytest.raises(ConfigurationError, match="timeout is a number of seconds"):
        Parallel(timeout=timeout)
