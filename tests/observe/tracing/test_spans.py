"""Spans of programs: names, kinds, parents and attributes, whichever way a program runs."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

import sigwire
from sigwire import FakeLM, ToolCall
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import LMRateLimitError
from sigwire.lm.http.messages import HttpReply, HttpRequest


class Desk(sigwire.Module):
    """Sorts a message, then answers."""

    def __init__(self) -> None:
        self.sort = sigwire.Predict("message -> topic")
        self.reply = sigwire.ChainOfThought("message, topic -> answer")

    def forward(self, message: str) -> sigwire.Prediction:
        return self.reply(message=message, topic=self.sort(message=message).topic)


class AsyncDesk(Desk):
    """``Desk``, awaited."""

    def forward(self, message: str) -> Any:
        raise NotImplementedError

    async def aforward(self, message: str) -> sigwire.Prediction:
        topic = (await self.sort.acall(message=message)).topic
        return await self.reply.acall(message=message, topic=topic)


DESK_TREE = [
    "invoke_workflow Desk",
    "  predict sort",
    "    chat fake",
    "  predict reply",
    "    chat fake",
]


def desk_lm() -> FakeLM:
    return FakeLM(lambda request: {"topic": "delivery", "reasoning": "Late.", "answer": "Tomorrow."})


def desk() -> Desk:
    program = Desk()
    program.set_lm(desk_lm())
    return program


def run_blocking(program: sigwire.Module) -> None:
    program(message="Where is it?")


def run_awaited(program: sigwire.Module) -> None:
    asyncio.run(program.acall(message="Where is it?"))


def run_streamed(program: sigwire.Module) -> None:
    list(program.stream(message="Where is it?"))


def run_awaited_stream(program: sigwire.Module) -> None:
    async def read() -> None:
        async for _ in program.astream(message="Where is it?"):
            assert not trace.get_current_span().is_recording()

    asyncio.run(read())


def run_in_a_thread(program: sigwire.Module) -> None:
    thread = threading.Thread(target=run_blocking, args=(program,))
    thread.start()
    thread.join()


WAYS = [run_blocking, run_awaited, run_streamed, run_awaited_stream, run_in_a_thread]


@pytest.mark.parametrize("run", WAYS)
def test_spans_of_a_program_have_the_tree_of_its_calls(telemetry: Any, run: Callable[[Any], None]) -> None:
    run(desk())
    assert telemetry.tree == DESK_TREE
    assert not trace.get_current_span().is_recording()


def test_spans_of_an_async_program_have_the_tree_of_its_calls(telemetry: Any) -> None:
    program = AsyncDesk()
    program.set_lm(desk_lm())
    asyncio.run(program.acall(message="Where is it?"))
    assert telemetry.tree == ["invoke_workflow AsyncDesk", *DESK_TREE[1:]]


def test_programs_are_traced_below_the_span_of_the_user_and_in_contexts_with_other_callbacks(telemetry: Any) -> None:
    with telemetry.user_span("request"), sigwire.context(callbacks=[]):
        run_blocking(desk())
    assert telemetry.tree == ["request", *["  " + line for line in DESK_TREE]]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("is_awaited", [False, True], ids=["blocking", "awaited"])
def test_spans_of_a_batch_are_children_of_the_span_around_the_batch(
    telemetry: Any, threads: int, is_awaited: bool
) -> None:
    program, examples = desk(), [{"message": str(number)} for number in range(5)]
    with telemetry.user_span("batch"):
        if is_awaited:
            asyncio.run(program.abatch(examples, threads))
        else:
            program.batch(examples, threads)
    assert telemetry.tree == ["batch", *["  " + line for line in DESK_TREE * 5]]


def test_parallel_programs_of_one_task_group_do_not_mix_their_spans(telemetry: Any) -> None:
    async def both() -> None:
        await asyncio.gather(*(desk().acall(message=str(number)) for number in range(3)))

    asyncio.run(both())
    assert telemetry.tree == DESK_TREE * 3


def test_module_whose_attributes_raise_is_traced(telemetry: Any) -> None:
    class Odd(Desk):
        def named_sub_modules(self, *args: Any, **options: Any) -> Any:
            raise LookupError("no parts")

    program = Odd()
    program.sort.lm = program.reply.predict.lm = desk_lm()
    program(message="x")
    assert telemetry.tree[0] == "invoke_workflow Odd"


# --- tools -------------------------------------------------------------------------------------------


def agent_of(*tools: Any, calls: list[Any]) -> sigwire.ReAct[..., Any]:
    agent = sigwire.ReAct("message -> answer", tools=list(tools))
    agent.react.lm = FakeLM([*calls, ToolCall("z", "submit", {"answer": "42"})])
    return agent


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("run", WAYS)
def test_tool_span_is_the_parent_of_spans_of_the_tools_code(
    telemetry: Any, is_async: bool, run: Callable[[Any], None]
) -> None:
    def look(item: str) -> str:
        """Look an item up."""
        with telemetry.user_span("database"):
            return f"{item}: 3"

    async def alook(item: str) -> str:
        """Look an item up."""
        return await asyncio.to_thread(look, item)

    tool = sigwire.Tool(alook if is_async else look, name="look")
    agent = agent_of(tool, calls=[[ToolCall("a", "look", {"item": "bolt"}), ToolCall("b", "look", {"item": "nut"})]])
    run(agent)
    assert telemetry.tree == [
        "invoke_agent ReAct",
        "  predict react",
        "    chat fake",
        "  execute_tool look",
        "    database",
        "  execute_tool look",
        "    database",
        "  predict react",
        "    chat fake",
    ]
    tools = [dict(span.attributes or {}) for span in telemetry.spans if span.name == "execute_tool look"]
    assert {(tool["gen_ai.tool.call.id"], tool["sigwire.turn"]) for tool in tools} == {("a", 0), ("b", 0)}
    assert tools[0]["gen_ai.agent.name"] == "ReAct"
    assert tools[0]["gen_ai.tool.description"] == "Look an item up."


def test_program_inside_a_tool_is_a_program_of_its_own_below_the_tool(telemetry: Any) -> None:
    inner = desk()

    def ask_desk(message: str) -> str:
        return str(inner(message=message).answer)

    agent_of(ask_desk, calls=[ToolCall("a", "ask_desk", {"message": "Late"})])(message="?")
    below = telemetry.tree.index("  execute_tool ask_desk")
    assert telemetry.tree[below + 1 : below + 6] == ["    " + line for line in DESK_TREE]


def test_agent_inside_a_program_is_named_by_its_path(telemetry: Any) -> None:
    class Shop(sigwire.Module):
        def __init__(self) -> None:
            self.clerk = agent_of(len, calls=[])

        def forward(self, message: str) -> Any:
            return self.clerk(message=message)

    Shop()(message="?")
    assert telemetry.tree[:2] == ["invoke_workflow Shop", "  invoke_agent clerk"]
    agent = telemetry.attributes("invoke_agent clerk")
    assert agent["gen_ai.operation.name"] == "invoke_agent"
    assert agent["gen_ai.agent.name"] == "clerk"
    assert (agent["sigwire.turns"], agent["sigwire.termination"]) == (1, "submit")
    assert telemetry.attributes("predict clerk.react")["sigwire.turn"] == 0


def test_exception_of_a_tool_is_on_its_span_and_the_agents_span_is_fine(telemetry: Any) -> None:
    def rate(currency: str) -> float:
        return {"EUR": 1.0}[currency]

    with pytest.warns(sigwire.ToolWarning):
        agent_of(rate, calls=[ToolCall("a", "rate", {"currency": "USD"})])(message="?")
    span = telemetry.named("execute_tool rate")
    (event,) = span.events
    assert (span.attributes or {})["error.type"] == "KeyError"
    assert span.status.status_code is StatusCode.ERROR
    assert event.name == "exception"
    assert "return {" in str(event.attributes["exception.stacktrace"])
    assert telemetry.named("invoke_agent ReAct").status.status_code is StatusCode.UNSET


def test_result_that_a_tool_marks_as_an_error_is_an_error_of_its_span(telemetry: Any) -> None:
    def look(item: str) -> sigwire.ToolResult:
        return sigwire.ToolResult("", "", "no such item", is_error=True)

    agent_of(look, calls=[ToolCall("a", "look", {"item": "x"})])(message="?")
    assert telemetry.attributes("execute_tool look")["error.type"] == "tool_error"


# --- calls of models ---------------------------------------------------------------------------------


def test_span_of_a_model_has_the_attributes_of_request_and_response(telemetry: Any) -> None:
    usage = Usage(input_tokens=185, output_tokens=29, cached_tokens=100, cache_write_tokens=5, reasoning_tokens=7)
    answer = Response((Choice("Hi", finish_reason="length"), Choice("Ho")), usage, "gpt-5-mini-2025", "resp_1")
    lm = FakeLM([answer], model="azure/gpt-5-mini", temperature=0.5, max_tokens=99)
    request = Request(
        (Message.user("Hello"),),
        options={"top_p": 0.9, "top_k": 3, "seed": 1, "stop": "END", "n": 2, "reasoning_effort": "low"},
    )
    lm.respond(request)
    span = telemetry.named("chat gpt-5-mini")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.top_k": 3,
        "gen_ai.request.seed": 1,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.choice.count": 2,
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.model": "gpt-5-mini-2025",
        "gen_ai.response.finish_reasons": ("length", "stop"),
        "gen_ai.usage.input_tokens": 185,
        "gen_ai.usage.output_tokens": 29,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.usage.cache_write.input_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 7,
        "sigwire.cache": "off",
    }


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openai/gpt-5", "openai", "gpt-5"),
        ("gemini/gemini-2.5-pro", "gcp.gemini", "gemini-2.5-pro"),
        ("vertex/gemini-2.5-pro", "gcp.vertex_ai", "gemini-2.5-pro"),
        ("xai/grok-4", "x_ai", "grok-4"),
        ("mistral/small", "mistral_ai", "small"),
        ("litellm/bedrock/claude", "aws.bedrock", "claude"),
        ("openrouter/meta/llama", "openrouter", "meta/llama"),
    ],
)
def test_provider_has_its_name_in_the_conventions(telemetry: Any, model: str, provider: str, name: str) -> None:
    FakeLM(["x"], model=model)("Hello")
    assert telemetry.attributes(f"chat {name}")["gen_ai.provider.name"] == provider


def test_models_that_send_nothing_have_internal_spans(telemetry: Any) -> None:
    sigwire.LM("offline/lexical")("Hello")
    FakeLM(["x"])("Hello")
    assert [span.kind for span in telemetry.spans] == [SpanKind.INTERNAL, SpanKind.INTERNAL]


def test_predictor_span_has_signature_adapter_mode_and_repairs_and_no_operation(telemetry: Any) -> None:
    sigwire.Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))(question="2+2?")
    assert telemetry.attributes("predict Predict") == {
        "sigwire.path": "Predict",
        "sigwire.signature": "question -> answer",
        "sigwire.adapter": "ChatAdapter",
        "sigwire.repairs": 0,
        "sigwire.mode": "prompt",
    }
    assert telemetry.attributes("chat fake")["sigwire.path"] == "Predict"


@pytest.mark.parametrize("is_awaited", [False, True], ids=["blocking", "awaited"])
def test_spans_of_http_requests_and_their_retries_are_children_of_the_call(telemetry: Any, is_awaited: bool) -> None:
    replies = [(500, b"{}"), (200, b'{"choices": [{"message": {"content": "4"}}], "usage": {"prompt_tokens": 7}}')]

    class Instrumented:
        """A transport that opens a span for each request, as an instrumentation of an HTTP client does."""

        def send(self, request: HttpRequest) -> HttpReply:
            with telemetry.user_span("POST"):
                status, body = replies.pop(0)
                return HttpReply(status, {}, body)

        async def asend(self, request: HttpRequest) -> HttpReply:
            return self.send(request)

    retry = sigwire.RetryPolicy(first_wait=0.001)
    transport: Any = Instrumented()
    lm = sigwire.LM(
        "openai/gpt-5", api_key="k", base_url="https://llm.example:8443/v1", transport=transport, retry=retry
    )
    request = Request((Message.user("2+2?"),))
    assert (asyncio.run(lm.arespond(request)) if is_awaited else lm.respond(request)).choices[0].text == "4"
    assert telemetry.tree == ["chat gpt-5", "  POST", "  POST"]
    found = telemetry.attributes("chat gpt-5")
    assert (found["sigwire.attempts"], found["gen_ai.usage.input_tokens"]) == (2, 7)
    assert (found["server.address"], found["server.port"]) == ("llm.example", 8443)


def test_error_of_a_model_is_on_the_spans_it_passes(telemetry: Any) -> None:
    program = Desk()
    program.set_lm(FakeLM([LMRateLimitError("slow down", model="fake")]))
    with pytest.raises(LMRateLimitError):
        program(message="x")
    assert [(span.attributes or {})["error.type"] for span in telemetry.spans] == ["LMRateLimitError"] * 3
    assert {span.status.status_code for span in telemetry.spans} == {StatusCode.ERROR}


# --- streams -----------------------------------------------------------------------------------------


def test_closed_stream_ends_its_spans_as_cancelled_and_not_as_errors(telemetry: Any) -> None:
    stream = desk().stream(message="x")
    assert [next(stream).kind for _ in range(2)] == ["ask_start", "field_delta"]
    stream.close()
    assert telemetry.tree == DESK_TREE[:3]
    assert [(span.attributes or {}).get("sigwire.cancelled") for span in telemetry.spans] == [True] * 3
    assert {span.status.status_code for span in telemetry.spans} == {StatusCode.UNSET}


def lm_stream() -> Iterator[object]:
    return FakeLM(["one two three"]).stream(Request((Message.user("Hello"),)))


def test_stream_that_is_closed_in_another_context_changes_nothing_there(telemetry: Any) -> None:
    events = lm_stream()
    started = contextvars.copy_context()
    started.run(next, events)
    with telemetry.user_span("other"):
        around = trace.get_current_span()
        events.close()  # type: ignore[attr-defined]
        assert trace.get_current_span() is around
    assert sorted(telemetry.tree) == ["chat fake", "other"]


def test_streams_of_one_context_that_end_in_any_order_leave_the_context_of_the_user(telemetry: Any) -> None:
    with telemetry.user_span("request"):
        around = trace.get_current_span()
        first, second = lm_stream(), lm_stream()
        next(first)
        next(second)
        list(first)
        list(second)
        assert trace.get_current_span() is around
    assert len(telemetry.spans) == 3
