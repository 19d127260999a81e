"""``error.where`` and the note of an error: module path, model, turn, tool and example, in every way of calling."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import AdapterParseError, AgentStopped, InputError, LMServerError, SigwireError, Where
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.batch import BatchRun
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.tracebacks import shortened

Call = Callable[..., Awaitable[Any]]


async def blocking(program: Any, **inputs: Any) -> Any:
    return program(**inputs)


async def awaited(program: Any, **inputs: Any) -> Any:
    return await program.acall(**inputs)


async def streamed(program: Any, **inputs: Any) -> Any:
    return list(program.stream(**inputs))


async def streamed_awaited(program: Any, **inputs: Any) -> Any:
    return [event async for event in program.astream(**inputs)]


every_way = pytest.mark.parametrize("call", [blocking, awaited, streamed, streamed_awaited])


async def error_of(call: Call, program: Any, **inputs: Any) -> Any:
    with pytest.raises(Exception) as caught:
        await call(program, **inputs)
    return caught.value


def notes_of(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


class Double(Module):
    def __init__(self, second: Module) -> None:
        super().__init__()
        self.first = Predict("n -> m", lm=FakeLM([{"m": "1"}] * 2))
        self.second = second

    def forward(self, n: str) -> Any:
        return self.second(n=self.first(n=n).m)


def failing(answer: Any = "no number") -> FakeLM:
    return FakeLM([answer] * 2, model="fake/words")


@every_way
async def test_parse_error_names_its_predictor_and_model(call: Call) -> None:
    error = await error_of(call, Double(Predict("n -> m: int", lm=failing())), n="2")
    assert isinstance(error, AdapterParseError)
    assert error.where == Where("second", "Predict 'n -> m'", model="fake/words")
    assert notes_of(error) == ["at second (Predict 'n -> m') · model fake/words"]
    assert notes_of(error)[0] in "".join(traceback.format_exception(error))


@every_way
async def test_path_leads_through_lists_and_nested_programs(call: Call) -> None:
    class Steps(Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps_of = [Double(ChainOfThought("n -> m: int", lm=failing()))]

        async def aforward(self, n: str) -> Any:
            return await self.steps_of[0].acall(n=n)

    assert (await error_of(call, Steps(), n="2")).where.path == "steps_of[0].second.predict"


@every_way
@pytest.mark.parametrize(
    ("program", "path"), [(Predict("n -> m: int"), "self"), (ChainOfThought("n -> m: int"), "predict")]
)
async def test_error_of_a_library_module_outside_a_program(call: Call, program: Any, path: str) -> None:
    program.set_lm(failing())
    assert (await error_of(call, program, n="2")).where.path == path


@every_way
async def test_error_of_an_agent_names_its_turn_and_the_request(call: Call) -> None:
    def look(at: str) -> str:
        return at

    agent = ReAct("n -> m: int", tools=[look])
    broken = LMServerError("down", request_id="req_7", model="fake/agent")
    agent.set_lm(FakeLM([ToolCall("", "look", {"at": "x"}), broken] * 2))
    error = await error_of(call, Double(agent), n="2")
    assert (error.where.path, error.where.turn) == ("second.react", 1)
    assert (error.where.model, error.where.request_id) == ("fake/agent", "req_7")
    assert len(notes_of(error)) == 1


@every_way
async def test_stopped_agent_is_named_as_a_whole(call: Call) -> None:
    agent = ReAct("n -> m: int", tools=[len], max_iters=0, extract=False)
    agent.set_lm(failing())
    error = await error_of(call, Double(agent), n="2")
    assert isinstance(error, AgentStopped)
    assert error.where == Where("second", "ReAct 'n -> m'")


@every_way
async def test_foreign_exception_of_a_tool_gets_a_note_with_the_tool(call: Call) -> None:
    def rate(currency: str) -> float:
        return {"EUR": 1.0}[currency]

    agent = ReAct("n -> m: int", tools=[rate], on_tool_error="abort")
    agent.set_lm(FakeLM([ToolCall("", "rate", {"currency": "USD"})] * 2))
    error = await error_of(call, Double(agent), n="2")
    assert type(error) is KeyError
    assert not hasattr(error, "where")
    assert notes_of(error) == ["at second (ReAct 'n -> m') · turn 0 · tool rate"]


@every_way
async def test_foreign_exception_of_a_program_gets_a_note(call: Call) -> None:
    class Fails(Module):
        def forward(self, n: str) -> None:
            raise ZeroDivisionError(n)

    assert notes_of(await error_of(call, Double(Fails()), n="2")) == ["at second (Fails)"]


@every_way
async def test_module_outside_the_program_has_the_path_of_its_caller(call: Call) -> None:
    class Makes(Module):
        def forward(self, n: str) -> Any:
            return Predict("n -> m: int", lm=failing())(n=n)

    error = await error_of(call, Double(Makes()), n="2")
    assert error.where == Where("second", "Predict 'n -> m'", model="fake/words")


@every_way
async def test_wrong_inputs_are_located(call: Call) -> None:
    class Wrong(Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Predict("n -> m", lm=failing())

        def forward(self, n: str) -> Any:
            return self.inner(n)  # type: ignore[misc]

    error = await error_of(call, Double(Wrong()), n="2")
    assert isinstance(error, InputError)
    assert error.where.path == "second.inner"


@pytest.mark.parametrize("awaits", [False, True])
@pytest.mark.parametrize("keep", [False, True])
async def test_error_of_a_batch_names_its_example(awaits: bool, keep: bool) -> None:
    program = Double(Predict("n -> m: int", lm=FakeLM([{"m": 3}, "bad"], model="fake/x")))
    examples = [{"n": "1"}, {"n": "2"}]

    async def results() -> Any:
        if awaits:
            return await program.abatch(examples, 1, return_exceptions=keep)
        return program.batch(examples, 1, return_exceptions=keep)

    if keep:
        error = (await results())[1]
    else:
        with pytest.raises(AdapterParseError) as caught:
            await results()
        error = caught.value
        assert BatchRun.of(error).failures[0].error is error
    assert error.where == Where("second", "Predict 'n -> m'", model="fake/x", example=1)
    assert notes_of(error) == ["at second (Predict 'n -> m') · model fake/x · example 1"]


def test_exception_object_that_is_raised_again_has_the_latest_place() -> None:
    broken = LMServerError("down")
    programs = [
        Double(Predict("n -> m: int", lm=FakeLM([broken]))),
        Predict("x -> y", lm=FakeLM([broken], model="fake/b")),
    ]
    for program in programs:
        with pytest.raises(LMServerError):
            program(**{"n" if program is programs[0] else "x": "1"})
    assert notes_of(broken) == ["at Predict 'x -> y' · model fake/b"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_interrupt_gets_no_note(interrupt: type[BaseException]) -> None:
    class Interrupted(Module):
        def forward(self, n: str) -> None:
            raise interrupt

    with pytest.raises(interrupt) as caught:
        Double(Interrupted())(n="1")
    assert notes_of(caught.value) == []


def test_exception_of_a_toolbox_without_an_agent_names_the_tool() -> None:
    def fail() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError) as caught:
        Toolbox([fail], on_error="abort")([ToolCall("a", "fail", {})])
    assert notes_of(caught.value) == ["at tool fail"]


def test_exception_class_that_refuses_attributes_is_raised_unchanged() -> None:
    class Frozen(SigwireError):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

        def add_note(self, note: str) -> None:
            raise AttributeError(note)

    class Fails(Module):
        def forward(self, n: str) -> None:
            raise Frozen("x")

    with pytest.raises(Frozen, match=r"^x$"):
        Double(Fails())(n="1")


def test_error_of_a_program_whose_attributes_raise_is_raised_unchanged() -> None:
    class Odd(Module):
        @property
        def signature(self) -> Any:
            raise LookupError("odd")

        def forward(self, n: str) -> None:
            raise ZeroDivisionError(n)

    with pytest.raises(ZeroDivisionError):
        Odd()(n="1")


def test_error_that_the_program_handles_has_the_path_inside_its_module() -> None:
    class Handles(Double):
        def forward(self, n: str) -> Any:
            try:
                return super().forward(n)
            except AdapterParseError as error:
                return error.where

    program = Handles(Predict("n -> m: int", lm=failing(Choice("x"))))
    assert program(n="1").path == "self"


def test_where_survives_a_pickle() -> None:
    error = LMServerError("down")
    program = Double(Predict("n -> m: int", lm=FakeLM([error])))
    with pytest.raises(LMServerError):
        program(n="1")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.where, notes_of(copy)) == (error.where, notes_of(error))


@every_way
async def test_traceback_of_an_input_error_ends_at_the_line_of_the_user(call: Call) -> None:
    class Misspelt(Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Predict("question -> answer", lm=failing())

        def forward(self, n: str) -> Any:
            return self.inner(qestion=n)

    error = await error_of(call, Double(Misspelt()), n="2")
    with shortened(error):
        assert traceback.extract_tb(error.__traceback__)[-1].line == "return self.inner(qestion=n)"
    assert error.where.path == "second.inner"


def test_traceback_of_an_input_error_has_the_lines_of_the_user_only() -> None:
    with pytest.raises(InputError) as direct:
        Predict("n -> m", lm=failing())(m="2")
    with pytest.raises(InputError) as inside:
        Double(Predict("x -> m", lm=failing()))(n="2")
    with shortened(direct.value), shortened(inside.value):
        assert len(traceback.extract_tb(direct.value.__traceback__)) == 1
        names = [frame.name for frame in traceback.extract_tb(inside.value.__traceback__)]
    assert names == ["test_traceback_of_an_input_error_has_the_lines_of_the_user_only", "forward"]
