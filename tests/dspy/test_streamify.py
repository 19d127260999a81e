"""``streamify``: listeners, messages about progress, chunks of a user's model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import AskStart, FieldDelta
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.dspy.lm import BaseLM
from sigwire.dspy.settings import settings as dspy_settings
from sigwire.dspy.streamify import (
    StatusMessage,
    StatusMessageProvider,
    StreamListener,
    StreamResponse,
    apply_sync_streaming,
    streamify,
    streaming_response,
    sync_send_to_stream,
)
from sigwire.errors import ConfigurationError, LMServerError
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.observe.callbacks import BaseCallback

Read = Callable[..., list[Any]]


def _blocking(program: Any, **options: Any) -> Callable[..., list[Any]]:
    stream = streamify(program, async_streaming=False, **options)
    return lambda **inputs: list(stream(**inputs))


def _awaited(program: Any, **options: Any) -> Callable[..., list[Any]]:
    stream = streamify(program, **options)

    async def read(**inputs: Any) -> list[Any]:
        return [item async for item in stream(**inputs)]

    return lambda **inputs: asyncio.run(read(**inputs))


@pytest.fixture(params=[_blocking, _awaited], ids=["blocking", "awaited"])
def streamed(request: pytest.FixtureRequest) -> Callable[..., Read]:
    make: Callable[..., Read] = request.param
    return make


def asker(*answers: str) -> Predict[..., Any]:
    return Predict("question -> answer, score: float", lm=FakeLM([{"answer": each, "score": 1.5} for each in answers]))


class Program(Module):
    """Two predictors, one field name in both."""

    def __init__(self, *answers: str) -> None:
        self.ask = asker(*answers)
        self.judge = Predict(
            "answer -> verdict, score: int", lm=FakeLM([{"verdict": "good", "score": 3}] * len(answers))
        )

    def forward(self, question: str) -> Any:
        return self.judge(answer=self.ask(question=question).answer)


def chunks(items: Iterable[Any], field: str = "answer") -> list[StreamResponse]:
    return [item for item in items if isinstance(item, StreamResponse) and item.signature_field_name == field]


def text(items: Iterable[Any], field: str = "answer") -> str:
    return "".join(item.chunk for item in chunks(items, field))


def statuses(items: Iterable[Any]) -> list[str]:
    return [item.message for item in items if isinstance(item, StatusMessage)]


# --- listeners -----------------------------------------------------------------------------------------------


def test_chunks_put_together_are_the_field_and_the_last_one_is_flagged(streamed: Callable[..., Read]) -> None:
    items = streamed(asker("In Oslo, by the fjord."), stream_listeners=[StreamListener("answer")])(question="Where?")
    received = chunks(items)
    assert text(items) == "In Oslo, by the fjord."
    assert [item.is_last_chunk for item in received] == [False] * (len(received) - 1) + [True]
    assert len(received) > 3
    assert {item.predict_name for item in received} == {"self"}
    assert items[-1].answer == "In Oslo, by the fjord."
    assert len(items) == len(received) + 1


def test_a_listener_names_its_predictor(streamed: Callable[..., Read]) -> None:
    items = streamed(Program("In Oslo."), stream_listeners=[StreamListener("answer"), StreamListener("verdict")])(
        question="?"
    )
    assert {item.predict_name for item in chunks(items)} == {"ask"}
    assert {item.predict_name for item in chunks(items, "verdict")} == {"judge"}
    assert text(items, "verdict") == "good"
    assert items[-1].verdict == "good"


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        (StreamListener("nothing"), "They write: ask: answer, score; judge: verdict, score"),
        (StreamListener("score"), r"Several predictors write 'score': ask, judge.*predict_name='ask'"),
        (StreamListener("score", predict_name="ask"), "is not a text, and a listener takes text only"),
        (StreamListener("answer", predict_name="judge"), "No predictor of the program writes 'answer'"),
    ],
)
def test_a_listener_that_fits_nothing_is_refused_at_once(listener: StreamListener, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        streamify(Program(), stream_listeners=[listener])


def test_a_name_or_the_predictor_itself_settles_which_one_is_meant(streamed: Callable[..., Read]) -> None:
    class Twins(Module):
        def __init__(self) -> None:
            self.first, self.second = asker("one"), asker("two")

        def forward(self, question: str) -> Any:
            self.first(question=question)
            return self.second(question=question)

    program = Twins()
    by_name = streamed(program, stream_listeners=[StreamListener("answer", predict_name="second")])(question="?")
    assert text(by_name) == "two"
    program = Twins()
    by_object = streamed(program, stream_listeners=[StreamListener("answer", predict=program.first)])(question="?")
    assert text(by_object) == "one"


def test_the_second_run_streams_as_the_first_and_so_do_many_at_once(streamed: Callable[..., Read]) -> None:
    stream = streamed(Program("In Oslo.", "In Oslo."), stream_listeners=[StreamListener("answer")])
    assert text(stream(question="?")) == text(stream(question="?")) == "In Oslo."

    lm = FakeLM(lambda request: {"answer": request.messages[-1].text.splitlines()[1]})
    many = streamify(Predict("question -> answer", lm=lm), stream_listeners=[StreamListener("answer")])

    async def one(number: int) -> str:
        return text([item async for item in many(question=f"number {number}")])

    async def together() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(5)))

    assert asyncio.run(together()) == [f"number {number}" for number in range(5)]


@pytest.mark.parametrize(
    "adapter", [dspy.ChatAdapter(), dspy.JSONAdapter(), dspy.XMLAdapter()], ids=lambda a: type(a).__name__
)
def test_listeners_work_with_every_adapter(streamed: Callable[..., Read], adapter: Any) -> None:
    said = 'A "quoted" line\n[[ ## verdict ## ]]? <answer> \\ no.'
    written = adapter.plan(asker().signature, Capabilities()).layout.write({"answer": said, "score": 1.0})
    program = Predict("question -> answer, score: float", lm=FakeLM([written]))
    with dspy.context(adapter=adapter):
        items = streamed(program, stream_listeners=[StreamListener("answer")])(question="?")
    assert text(items) == said == items[-1].answer
    assert len(chunks(items)) > 3


BY_AGENTS: list[tuple[str, list[Any], list[str]]] = [
    ("handed in", [ToolCall("b", "submit", {"answer": "In Oslo."})], ["In Oslo.", ""]),
    ("answered plainly", ["In Oslo."], ["In Oslo.", ""]),
    ("extracted", [ToolCall("b", "nothing", {}), {"reasoning": "", "answer": "In Oslo."}], ["In", " Oslo.", ""]),
    (
        "handed in again",
        [ToolCall("b", "submit", {"answer": "Rome.", "n": 1}), ToolCall("b", "submit", {"answer": "Oslo."})],
        ["Rome.", "", "Oslo.", ""],
    ),
]


@pytest.mark.parametrize(("how", "answers", "heard"), BY_AGENTS)
def test_an_agents_output_can_be_listened_to_however_it_came(
    streamed: Callable[..., Read], how: str, answers: list[Any], heard: list[str]
) -> None:
    made: ReAct[..., Any] = ReAct("question -> answer", tools=[double], max_iters=1 if how == "extracted" else 2)
    made.set_lm(FakeLM(answers))
    items = streamed(made, stream_listeners=[StreamListener("answer")])(question="?")
    pieces = chunks(items)
    assert "".join(item.chunk for item in pieces) == "".join(heard)
    assert [item.is_last_chunk for item in pieces].count(True) == heard.count("")
    assert pieces[-1].is_last_chunk
    assert {item.predict_name for item in pieces} == {"extract.predict"}
    assert "".join(heard).endswith(items[-1].answer)


def test_an_answer_that_is_asked_for_again_comes_again_and_a_second_call_does_not(
    streamed: Callable[..., Read],
) -> None:
    class Twice(Module):
        def __init__(self) -> None:
            answers = [
                {"answer": "bad", "score": "none"},
                {"answer": "good", "score": 1},
                {"answer": "second", "score": 2},
            ]
            self.ask: Predict[..., Any] = Predict("question -> answer, score: float", lm=FakeLM(answers), max_reasks=1)

        def forward(self, question: str) -> Any:
            first = self.ask(question=question)
            self.ask(question=question)
            return first

    items = streamed(Twice(), stream_listeners=[StreamListener("answer")])(question="?")
    assert [item.chunk for item in chunks(items)] == ["bad", "", "good", ""]
    assert items[-1].answer == "good"


def test_reasoning_can_be_listened_to_written_or_native(streamed: Callable[..., Read]) -> None:
    for lm in (
        FakeLM([{"reasoning": "One and one.", "answer": "two"}]),
        FakeLM(
            [Choice("[[ ## answer ## ]]\ntwo", reasoning="One and one.")],
            capabilities=Capabilities(reasoning=True),
        ),
    ):
        program: Any = Predict(
            dspy.Signature("question -> answer").prepend("reasoning", dspy.OutputField(), dspy.Reasoning), lm=lm
        )
        items = streamed(program, stream_listeners=[StreamListener("reasoning"), StreamListener("answer")])(
            question="?"
        )
        assert text(items, "reasoning") == "One and one."
        assert text(items) == "two"


def test_without_listeners_the_stream_is_the_programs_own(streamed: Callable[..., Read]) -> None:
    items = streamed(asker("In Oslo."))(question="?")
    assert isinstance(items[0], AskStart)
    assert "".join(item.text for item in items if isinstance(item, FieldDelta)) == "In Oslo."
    assert items[-1].answer == "In Oslo."


def test_an_error_of_the_program_is_raised(streamed: Callable[..., Read]) -> None:
    program = Predict("question -> answer", lm=FakeLM([LMServerError("busy")]))
    with pytest.raises(LMServerError, match="busy"):
        streamed(program, stream_listeners=[StreamListener("answer")])(question="?")


def test_streamify_runs_a_program_with_aforward_only(streamed: Callable[..., Read]) -> None:
    class Awaiting(Module):
        def __init__(self) -> None:
            self.ask = asker("In Oslo.")

        async def aforward(self, question: str) -> Any:
            return await self.ask.acall(question=question)

    items = streamed(Awaiting(), stream_listeners=[StreamListener("answer")], is_async_program=True)(question="?")
    assert text(items) == "In Oslo."


# --- progress ------------------------------------------------------------------------------------------------


def double(n: int) -> int:
    """Twice the number."""
    return 2 * n


def agent() -> ReAct[..., Any]:
    made: ReAct[..., Any] = ReAct("question -> answer: int", tools=[double])
    made.set_lm(FakeLM([ToolCall("a", "double", {"n": 21}), ToolCall("b", "submit", {"answer": 42})]))
    return made


class Talkative(StatusMessageProvider):
    """Has a message for every event."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def tool_start_status_message(self, instance: Any, inputs: Any) -> str:
        return f"{self.name}tool {instance.name} {inputs['kwargs'].get('n', '')}".strip()

    def tool_end_status_message(self, outputs: Any) -> str:
        return f"{self.name}tool gave {outputs}"

    def module_start_status_message(self, instance: Any, inputs: Any) -> str:
        return f"{self.name}module {type(instance).__name__}"

    def module_end_status_message(self, outputs: Any) -> str:
        return f"{self.name}module done"

    def lm_start_status_message(self, instance: Any, inputs: Any) -> str:
        return f"{self.name}asking {instance.model}"

    def lm_end_status_message(self, outputs: Any) -> str:
        return f"{self.name}answered"


def test_default_provider_has_messages_for_tools(streamed: Callable[..., Read]) -> None:
    said = statuses(streamed(agent())(question="?"))
    assert said[0] == "Running the tool double..."
    assert statuses(streamed(asker("Oslo"))(question="?")) == []


def test_provider_has_messages_for_start_and_end(streamed: Callable[..., Read]) -> None:
    said = statuses(streamed(asker("Oslo"), status_message_provider=Talkative())(question="?"))
    assert said == ["module Predict", "asking fake", "answered", "module done"]
    said = statuses(streamed(agent(), status_message_provider=Talkative())(question="?"))
    assert said.index("tool double 21") + 1 == said.index("tool gave 42")


class Asking(Module):
    """A program that calls a tool itself, as it likes."""

    def __init__(self) -> None:
        self.tool = Tool(double)

    def forward(self, n: int) -> int:
        return int(self.tool(n=n))


class AwaitedAsking(Module):
    """The same, awaited."""

    def __init__(self) -> None:
        self.tool = Tool(double)

    async def aforward(self, n: int) -> int:
        return int(await self.tool.acall(n=n))


@pytest.mark.parametrize("program", [Asking, AwaitedAsking])
def test_tool_called_by_the_program_has_messages(streamed: Callable[..., Read], program: Callable[[], Module]) -> None:
    said = statuses(streamed(program(), status_message_provider=Talkative())(n=21))
    assert said[1:-1] == ["tool double 21", "tool gave 42"]


def test_callbacks_of_the_settings_are_called_in_a_stream(streamed: Callable[..., Read]) -> None:
    heard: list[str] = []

    class Hearing(BaseCallback):
        def on_lm_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            heard.append(instance.model)

    with dspy.context(callbacks=[Hearing()]):
        streamed(asker("Oslo"), status_message_provider=Talkative())(question="?")
    assert heard == ["fake"]


# --- chunks of a model of one's own --------------------------------------------------------------------------


class Chatty(BaseLM):
    """A model that sends a chunk to the consumer of the stream."""

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Response:
        if (stream := dspy_settings.send_stream) is not None:
            sync_send_to_stream(stream, {"token": "half"})
        return Response((Choice("[[ ## answer ## ]]\nOslo"),))

    async def aforward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Response:
        if (stream := dspy_settings.send_stream) is not None:
            await stream.send({"token": "half"})
        return Response((Choice("[[ ## answer ## ]]\nOslo"),))


def test_chunks_of_a_users_model_come_as_they_are(streamed: Callable[..., Read]) -> None:
    program = Predict("question -> answer", lm=Chatty("chatty", capabilities=Capabilities()))
    items = streamed(program, stream_listeners=[StreamListener("answer")])(question="?")
    assert {"token": "half"} in items
    assert text(items) == "Oslo"
    assert program(question="?").answer == "Oslo"


# --- for a browser -------------------------------------------------------------------------------------------


def test_a_stream_becomes_server_sent_events() -> None:
    async def read() -> list[str]:
        stream = streamify(agent(), status_message_provider=Talkative())
        listened = streamify(asker("Oslo"), stream_listeners=[StreamListener("answer")])
        lines = [line async for line in streaming_response(listened(question="?"))]
        return lines + [line async for line in streaming_response(stream(question="?"))]

    lines = asyncio.run(read())
    assert all(line.startswith("data: ") and line.endswith("\n\n") for line in lines)
    assert lines.count("data: [DONE]\n\n") == 2
    parsed = [json.loads(line[6:]) for line in lines if "[DONE]" not in line]
    assert {
        "chunk": {"predict_name": "self", "signature_field_name": "answer", "chunk": "Oslo", "is_last_chunk": False}
    } in parsed
    assert {"prediction": {"answer": "Oslo", "score": 1.5}} in parsed
    assert {"status": "tool gave 42"} in parsed
    assert {next(iter(item)) for item in parsed} == {"chunk", "event", "prediction", "status"}


def test_an_awaited_stream_can_be_read_by_blocking_code() -> None:
    stream = streamify(asker("In Oslo."), stream_listeners=[StreamListener("answer")])
    assert text(apply_sync_streaming(stream(question="?"))) == "In Oslo."

    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("halfway")

    items = apply_sync_streaming(failing())
    assert next(items) == 1
    with pytest.raises(ValueError, match="halfway"):
        next(items)


async def test_closing_the_stream_early_stops_the_program() -> None:
    lm = FakeLM([{"answer": "one two three four", "score": 1.0}])
    stream = streamify(Predict("question -> answer, score: float", lm=lm), stream_listeners=[StreamListener("answer")])
    items = stream(question="?")
    first = await anext(items)
    await items.aclose()
    assert first.chunk == "one"
    assert [item async for item in items] == []


# --- as DSPy's users know it -----------------------------------------------------------------------------------


async def test_a_tutorial_of_dspy_runs_unchanged() -> None:
    class MyStatusMessageProvider(dspy.streaming.StatusMessageProvider):
        def lm_start_status_message(self, instance: Any, inputs: Any) -> str:
            return "asking"

    with dspy.context(lm=FakeLM([{"answer": "Because he did."}])):
        predict: Any = dspy.Predict("question->answer")
        stream_predict = dspy.streamify(
            predict,
            stream_listeners=[dspy.streaming.StreamListener(signature_field_name="answer")],
            status_message_provider=MyStatusMessageProvider(),
        )
        said, shown, prediction = "", [], None
        async for chunk in stream_predict(question="Why did the chicken cross the kitchen?"):
            if isinstance(chunk, dspy.streaming.StreamResponse):
                said += chunk.chunk
            elif isinstance(chunk, dspy.streaming.StatusMessage):
                shown.append(chunk.message)
            elif isinstance(chunk, dspy.Prediction):
                prediction = chunk
    assert prediction is not None
    assert said == prediction.answer == "Because he did."
    assert shown == ["asking"]
