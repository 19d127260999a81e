"""Program streams: events, module paths, and the state of a stream that is closed early."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, field_validator

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import (
    AskStart,
    Finished,
    ProgramEvent,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolDone,
    UsageUpdate,
)
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import AdapterParseError, ConfigurationError, LMServerError, RetryTool
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.observe.callbacks import ACTIVE_CALL_ID, BaseCallback
from sigwire.settings import context
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature

Read = Callable[..., list[ProgramEvent]]


def _blocking(module: Module, **inputs: Any) -> list[ProgramEvent]:
    return list(module.stream(**inputs))


def _awaited(module: Module, **inputs: Any) -> list[ProgramEvent]:
    async def read() -> list[ProgramEvent]:
        return [event async for event in module.astream(**inputs)]

    return asyncio.run(read())


@pytest.fixture(params=[_blocking, _awaited], ids=["blocking", "awaited"])
def read(request: pytest.FixtureRequest) -> Read:
    reader: Read = request.param
    return reader


def predictor(*answers: str) -> Predict[..., Any]:
    return Predict("question -> answer", lm=FakeLM([{"answer": answer} for answer in answers]))


def double(n: int) -> int:
    """Double the number."""
    return 2 * n


def agent(*answers: Any, tools: Iterable[Any] = (double,)) -> ReAct[..., Any]:
    made: ReAct[..., Any] = ReAct("question -> answer: int", tools=list(tools))
    made.react.lm = FakeLM(list(answers))
    return made


DOUBLE = ToolCall("a", "double", {"n": 21})
SUBMIT = ToolCall("b", "submit", {"answer": 42})


class Outer(Module):
    """A user's program: two predictors, one of them inside another module."""

    def __init__(self) -> None:
        self.first = predictor("one", "one")
        self.inner = Inner()

    def forward(self, question: str) -> str:
        return f"{self.first(question=question).answer} {self.inner(question=question)}"


class Inner(Module):
    def __init__(self) -> None:
        self.parts = [predictor("two", "two")]

    async def aforward(self, question: str) -> str:
        prediction = await self.parts[0].acall(question=question)
        return str(prediction.answer)


def asked(events: Iterable[ProgramEvent]) -> list[str]:
    return [event.path for event in events if isinstance(event, AskStart)]


def test_stream_ends_with_value_of_the_call(read: Read) -> None:
    *_, last = read(predictor("Paris"), question="Capital of France?")
    assert isinstance(last, Finished)
    assert last.value == predictor("Paris")(question="Capital of France?")


def test_events_have_path_of_their_module(read: Read) -> None:
    program = Outer()
    events = read(program, question="?")
    assert asked(events) == ["first", "inner.parts[0]"]
    assert {event.path for event in events} == {"first", "inner.parts[0]", "self"}
    assert isinstance(events[-1], Finished)
    assert events[-1].value == "one two"


def test_second_stream_equals_the_first(read: Read) -> None:
    program = Outer()
    assert read(program, question="?") == read(program, question="?")


def test_events_of_module_outside_the_program_have_name_of_its_class(read: Read) -> None:
    class Making(Module):
        def forward(self, question: str) -> str:
            return str(predictor("made")(question=question).answer)

    assert asked(read(Making(), question="?")) == ["Predict"]


def test_stream_of_agent_emits_turns_and_tool_results(read: Read) -> None:
    events = read(agent(DOUBLE, SUBMIT), question="21 doubled?")
    places = [(event.path, event.turn) for event in events if isinstance(event, AskStart)]
    assert places == [("react", 0), ("react", 1)]
    done = [(event.path, event.turn, event.result.content) for event in events if isinstance(event, ToolDone)]
    assert done == [("self", 0, 42), ("self", 1, "Completed.")]
    kinds = [type(event) for event in events if isinstance(event, ToolCallStart | ToolCallEnd | ToolDone)]
    assert kinds == [ToolCallStart, ToolCallEnd, ToolDone] * 2


def test_stream_emits_tool_failure_as_the_model_sees_the_failure(read: Read) -> None:
    def fail(n: int) -> int:
        raise RetryTool("try another number")

    events = read(agent(ToolCall("a", "fail", {"n": 1}), SUBMIT, tools=[fail]), question="?")
    first = next(event for event in events if isinstance(event, ToolDone))
    assert first.result.is_error
    assert "try another number" in first.result.text


def test_stream_emits_results_of_calls_that_cannot_run(read: Read) -> None:
    events = read(agent(ToolCall("a", "nothing", {}), SUBMIT), question="?")
    first = next(event for event in events if isinstance(event, ToolDone))
    assert "Unknown tool 'nothing'" in first.result.text


def test_stream_emits_turns_of_agent_inside_a_tool(read: Read) -> None:
    inner = agent(DOUBLE, SUBMIT)

    class Team(Module):
        def __init__(self) -> None:
            self.helper = inner

            def ask_helper(question: str) -> int:
                return int(inner(question=question).answer)

            self.lead = agent(ToolCall("a", "ask_helper", {"question": "?"}), SUBMIT, tools=[ask_helper])

        def forward(self, question: str) -> int:
            return int(self.lead(question=question).answer)

    events = read(Team(), question="?")
    places = [(event.path, event.turn) for event in events if isinstance(event, AskStart)]
    assert places == [("lead.react", 0), ("helper.react", 0), ("helper.react", 1), ("lead.react", 1)]


def test_stream_emits_events_of_parallel_calls(read: Read) -> None:
    class Many(Module):
        def __init__(self) -> None:
            self.answer = Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "same"}))

        def forward(self, questions: list[str]) -> list[str]:
            results = self.answer.batch([{"question": question} for question in questions], num_threads=3)
            return [result.answer for result in results]

    events = read(Many(), questions=["a", "b", "c", "d"])
    assert asked(events) == ["answer"] * 4
    assert isinstance(events[-1], Finished)
    assert events[-1].value == ["same"] * 4


async def test_streams_of_one_program_are_separate() -> None:
    program = Predict(
        "question -> answer", lm=FakeLM(lambda request: {"answer": request.messages[-1].text.splitlines()[1]})
    )

    async def one(number: int) -> str:
        events = [event async for event in program.astream(question=f"number {number}")]
        assert len(asked(events)) == 1
        assert isinstance(events[-1], Finished)
        return str(events[-1].value.answer)

    answers = await asyncio.gather(*(one(number) for number in range(5)))
    assert answers == [f"number {number}" for number in range(5)]


def test_reask_emits_another_ask_start(read: Read) -> None:
    program = Predict("question -> number: int", lm=FakeLM([{"number": "many"}, {"number": 3}]), max_reasks=1)
    events = read(program, question="?")
    assert asked(events) == ["self", "self"]
    assert isinstance(events[-1], Finished)
    assert [attempt.purpose for attempt in events[-1].value.attempts] == ["ask", "repair"]


def test_model_without_streaming_is_streamed_in_one_delta(read: Read) -> None:
    class Echo:
        model = "echo"
        capabilities = FakeLM().capabilities

        def respond(self, request: Request) -> Response:
            return Response((Choice("[[ ## answer ## ]]\nyes"),), Usage(output_tokens=3))

        async def arespond(self, request: Request) -> Response:
            return self.respond(request)

    events = read(Predict("question -> answer", lm=Echo()), question="?")
    assert [event.usage.output_tokens for event in events if isinstance(event, UsageUpdate)] == [3]
    assert isinstance(events[-1], Finished)
    assert events[-1].value.answer == "yes"


class Checked(BaseModel):
    """A value with a user's validator next to members without."""

    name: str
    size: int

    @field_validator("size")
    @classmethod
    def is_known(cls, size: int) -> int:
        return seen(size)


checked: list[Any] = []


def seen(value: Any) -> Any:
    checked.append(value)
    if value == 13:
        raise ValueError("13 is not taken")
    return value


class Everything(Signature):
    """Outputs of each kind with a user's validators."""

    question: str = InputField()
    plain: str = OutputField()
    word: Annotated[str, AfterValidator(seen)] = OutputField()
    number: Annotated[int, BeforeValidator(lambda value: value), AfterValidator(seen)] = OutputField()
    whole: Checked = OutputField()
    many: list[Annotated[int, AfterValidator(seen)]] = OutputField()
    last: str = OutputField()


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter()], ids=lambda made: type(made).__name__)
@pytest.mark.parametrize("number", [4, 13])
def test_stream_runs_user_validators_as_often_as_a_call(read: Read, adapter: Any, number: int) -> None:
    whole = {"name": "a", "size": 2}
    answer = {"plain": "x", "word": "y", "number": number, "whole": whole, "many": [7, 8], "last": "z"}
    text = adapter.plan(Everything, Capabilities()).layout.write(answer)
    runs: list[list[Any]] = []
    for ask in (lambda program: program(question="?"), lambda program: read(program, question="?")):
        checked.clear()
        with context(adapter=adapter):
            program: Predict[..., Any] = Predict(Everything, lm=FakeLM([text]), max_reasks=0)
            with nullcontext() if number == 4 else pytest.raises(AdapterParseError, match="13 is not taken") as caught:
                ask(program)
        if number == 13:
            assert caught is not None
            assert caught.value.choice.text == text
        runs.append([*checked])
    assert runs[0] == runs[1]
    assert runs[0]


def test_stream_raises_error_of_program_instead_of_finished(read: Read) -> None:
    with pytest.raises(LMServerError):
        read(Predict("question -> answer", lm=FakeLM([LMServerError("busy")])), question="?")


# --- the consumer -----------------------------------------------------------------------------------------


def test_stream_runs_nothing_before_first_read() -> None:
    program = predictor("Paris")
    stream = program.stream(question="?")
    assert program.lm.requests == []
    next(stream)
    assert len(list(stream)) > 1


def test_stream_value_raises_before_the_end() -> None:
    stream = predictor("Paris").stream(question="?")
    with pytest.raises(ConfigurationError, match="before its end"):
        _ = stream.value
    for _ in stream:
        pass
    assert stream.value.answer == "Paris"


def test_agent_run_is_kept_when_stream_is_closed() -> None:
    program = agent(DOUBLE, SUBMIT)
    with program.stream(question="21 doubled?") as stream:
        for event in stream:
            if isinstance(event, ToolDone):
                break
    run = AgentRun.of(stream.error)
    assert [result.content for step in run.steps for result in step.results] == [42]
    assert program(history=run.history).answer == 42


async def test_agent_run_is_kept_when_async_stream_is_closed() -> None:
    program = agent(DOUBLE, SUBMIT)
    async with program.astream(question="21 doubled?") as stream:
        async for event in stream:
            if isinstance(event, ToolCallEnd):
                break
    run = AgentRun.of(stream.error)
    again = await program.acall(history=run.history)
    assert again.answer == 42


class Around(Module):
    """A user's module around an agent."""

    def __init__(self, agent: ReAct[..., Any]) -> None:
        self.agent = agent

    def forward(self, question: str) -> Any:
        return self.agent(question=question)


class AwaitedAround(Module):
    def __init__(self, agent: ReAct[..., Any]) -> None:
        self.agent = agent

    async def aforward(self, question: str) -> Any:
        return await self.agent.acall(question=question)


class _Waiting(FakeLM):
    """Emits one delta, then waits until it is cancelled."""

    def _steps(self, request: Request, *, streamed: bool) -> Steps[Response]:
        if streamed and len(self.requests) == 1:
            yield Emit(TextDelta("I think"), UsageUpdate(Usage(output_tokens=2)))
            while True:
                yield Emit(TextDelta("."))
        return (yield from super()._steps(request, streamed=streamed))


AROUND: list[Callable[[ReAct[..., Any]], Module]] = [lambda made: made, Around, AwaitedAround]


@pytest.mark.parametrize("around", AROUND, ids=["bare", "blocking code", "awaited code"])
@pytest.mark.parametrize("awaited", [False, True])
async def test_partial_and_run_are_kept_wherever_the_stream_is_closed(around: Any, awaited: bool) -> None:
    program = around(agent(tools=[double]))
    lm = _Waiting([DOUBLE, SUBMIT])
    program.set_lm(lm)
    stream: Any
    if awaited:
        async with program.astream(question="21 doubled?") as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
    else:
        with program.stream(question="21 doubled?") as stream:
            next(event for event in stream if isinstance(event, TextDelta))
    assert stream.partial.choices[0].text.startswith("I think")
    assert stream.partial.usage.output_tokens == 2
    run = AgentRun.of(stream.error)
    assert run.termination_reason == "cancelled"
    assert [result.content for step in run.steps for result in step.results] == [42]


def test_closed_stream_yields_nothing() -> None:
    stream = predictor("Paris").stream(question="?")
    next(stream)
    stream.close()
    stream.close()
    assert list(stream) == []


def test_consumer_does_not_see_context_of_the_program() -> None:
    seen: list[Any] = []

    def reading(events: Iterator[ProgramEvent]) -> None:
        for _ in events:
            seen.append(ACTIVE_CALL_ID.get())

    program = predictor("Paris")
    program.callbacks = [BaseCallback()]
    contextvars.copy_context().run(reading, program.stream(question="?"))
    assert set(seen) == {None}


async def test_async_consumer_does_not_see_context_of_the_program() -> None:
    program = predictor("Paris")
    program.callbacks = [BaseCallback()]
    async for _ in program.astream(question="?"):
        assert ACTIVE_CALL_ID.get() is None


def test_stream_uses_settings_of_its_creation() -> None:
    program: Predict[..., Any] = Predict("question -> answer")
    with context(lm=FakeLM([{"answer": "here"}])):
        stream = program.stream(question="?")
    *_, last = stream
    assert isinstance(last, Finished)
    assert last.value.answer == "here"


async def test_async_stream_can_be_read_with_timeout() -> None:
    class Slow(Module):
        async def aforward(self) -> None:
            await asyncio.Event().wait()

    async def read_all() -> list[ProgramEvent]:
        async with asyncio.timeout(0.05):
            return [event async for event in Slow().astream()]

    with pytest.raises(TimeoutError):
        await read_all()
