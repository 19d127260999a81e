"""sigwire against llama.cpp's ``llama-server``, over its chat, Responses and Messages endpoints.

The model is random (``tiny_model``): a test asserts the form of an answer, which a grammar of the server ensures, never its
content. Its texts hold stray quotes, brackets and ``<tool_call>`` tags, which are no calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar

import pytest
from pydantic import BaseModel

import sigwire
from sigwire.core.events import collect
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import (
    AgentStopped,
    ContextWindowExceededError,
    LMAuthenticationError,
    LMInvalidRequestError,
    ModelError,
)
from tests.interop.conftest import LlamaServer

T = TypeVar("T")
WIRES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "chat": ("llamacpp", "/v1", {}),
    "responses": ("openai", "/v1", {"wire": "responses"}),
    "messages": ("anthropic", "", {}),
}
HI = (Message.user("Hi"),)


def weather(city: str, days: int = 1) -> str:
    """The weather forecast for a city."""
    return f"rain in {city}"


def clock() -> str:
    """The time of day."""
    return "12:00"


TOOLS = tuple(sigwire.Tool(function).spec for function in (weather, clock))
FORCED = Request(HI, TOOLS, ToolChoice.REQUIRED)


def model_at(server: LlamaServer, wire: str, **options: Any) -> sigwire.LM:
    provider, path, more = WIRES[wire]
    return sigwire.LM(
        f"{provider}/{server.model}",
        base_url=server.root + path,
        **{"api_key": server.key, "max_tokens": 2000, "num_retries": 0, **more, **options},
    )


async def answer(lm: sigwire.LM, request: Request, how: str) -> Response:
    if how == "called":
        return lm.respond(request)
    if how == "awaited":
        return await lm.arespond(request)
    if how == "streamed":
        return collect(lm.stream(request))
    return collect([event async for event in lm.astream(request)])


def first_of(make: Callable[[int], T | None]) -> T:
    """Return the first result that is not ``None``. About one in three is one: 100 attempts find it."""
    return next(found for number in range(100) if (found := make(number)) is not None)


each_wire = pytest.mark.parametrize("wire", WIRES)
each_way = pytest.mark.parametrize("how", ["called", "awaited", "streamed", "awaited stream"])


def check_warnings(response: Response) -> None:
    """A random model ends some answers before the first word, which can be a warning; there is no other."""
    choice = response.choices[0]
    allowed = set() if choice.text or choice.tool_calls else {"content"}
    assert {warning.feature for warning in response.warnings} <= allowed


def check_calls(choice: Choice) -> None:
    assert choice.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert len({call.id for call in choice.tool_calls}) == len(choice.tool_calls)
    for call in choice.tool_calls:
        assert call.error is None
        assert call.name in ("weather", "clock")
        assert isinstance((call.arguments or {}).get("city"), str) == (call.name == "weather")


@each_wire
@each_way
async def test_text_arrives_with_usage(llama_server: LlamaServer, wire: str, how: str) -> None:
    response = await answer(model_at(llama_server, wire), Request(HI), how)
    (choice,) = response.choices
    assert (choice.finish_reason, choice.tool_calls) == ("stop", ())
    check_warnings(response)
    assert response.usage.input_tokens == 21
    assert response.usage.output_tokens


@pytest.mark.parametrize("wire", ["chat", "messages"])  # the server marks every answer of Responses as completed
@each_way
async def test_answer_that_reaches_the_limit_is_truncated(llama_server: LlamaServer, wire: str, how: str) -> None:
    lm = model_at(llama_server, wire, max_tokens=16)
    responses = [await answer(lm, Request(HI), how) for _ in range(40)]
    for response in responses:
        cut = response.choices[0].finish_reason == "length"
        assert response.usage.output_tokens == 16 if cut else (response.usage.output_tokens or 0) <= 16
    assert {response.choices[0].finish_reason for response in responses} == {"stop", "length"}


@each_wire
@each_way
async def test_forced_calls_fit_their_schemas(llama_server: LlamaServer, wire: str, how: str) -> None:
    for _ in range(3):
        check_calls((await answer(model_at(llama_server, wire), FORCED, how)).choices[0])


@each_wire
def test_parallel_calls_and_their_results_make_a_turn(llama_server: LlamaServer, wire: str) -> None:
    lm = model_at(llama_server, wire)
    parallel = replace(FORCED, parallel_tool_calls=True)

    def several(attempt: int) -> Choice | None:
        choice = (collect(lm.stream(parallel)) if attempt % 2 else lm.respond(parallel)).choices[0]
        return choice if len(choice.tool_calls) > 1 else None

    choice = first_of(several)
    check_calls(choice)
    results = Message.tool(*(ToolResult(call.id, call.name, "fine") for call in choice.tool_calls))
    second = lm.respond(Request((*HI, choice.message(), results), TOOLS))
    check_warnings(second)
    assert (second.usage.input_tokens or 0) > 100


@each_wire
def test_tags_of_calls_inside_texts_are_not_calls(llama_server: LlamaServer, wire: str) -> None:
    lm = model_at(llama_server, wire)

    def with_tag(attempt: int) -> Choice | None:
        choice = (collect(lm.stream(Request(HI))) if attempt % 2 else lm.respond(Request(HI))).choices[0]
        return choice if "<tool_call>" in choice.text else None

    assert first_of(with_tag).tool_calls == ()


class City(BaseModel):
    """A city."""

    name: str
    people: int
    kind: Literal["big", "small"]


SIGNATURE = sigwire.make_signature("question -> city: City, sure: bool, tags: list[str]", custom_types={"City": City})


@each_wire
@each_way
async def test_thinking_is_reasoning_and_can_be_sent_again(
    thinking_llama_server: LlamaServer, wire: str, how: str
) -> None:
    lm = model_at(thinking_llama_server, wire)
    choices = [(await answer(lm, FORCED, how)).choices[0] for _ in range(6)]
    choice = next(choice for choice in choices if choice.reasoning)  # a random thought can be empty
    check_calls(choice)
    assert "</think>" not in (choice.reasoning or "")
    results = Message.tool(*(ToolResult(call.id, call.name, "fine") for call in choice.tool_calls))
    check_calls((await answer(lm, replace(FORCED, messages=(*HI, choice.message(), results)), how)).choices[0])


@pytest.mark.parametrize("wire", ["chat", "responses"])  # Messages has no such switch on this server
def test_reasoning_is_switched_off(thinking_llama_server: LlamaServer, wire: str) -> None:
    lm = model_at(thinking_llama_server, wire)
    assert lm.respond(Request(HI, options={"reasoning": "off"})).choices[0].reasoning is None


# The server takes a schema over chat only: it ignores those of Responses and Messages.
@pytest.mark.parametrize("how", ["called", "awaited", "streamed"])
async def test_structured_output_is_typed(llama_server: LlamaServer, how: str) -> None:
    program = sigwire.Predict(SIGNATURE)
    with sigwire.context(lm=model_at(llama_server, "chat"), adapter=sigwire.JSONAdapter()):
        for _ in range(3):
            if how == "called":
                prediction = program(question="Where?")
            elif how == "awaited":
                prediction = await program.acall(question="Where?")
            else:
                *_, last = program.stream(question="Where?")
                prediction = last.value
            assert isinstance(prediction.city, City)
            assert isinstance(prediction.sure, bool)
            assert all(isinstance(tag, str) for tag in prediction.tags)


@each_wire
@pytest.mark.parametrize("how", ["called", "awaited", "streamed"])
async def test_agent_runs_its_tools_and_submits_typed_outputs(llama_server: LlamaServer, wire: str, how: str) -> None:
    agent = sigwire.ReAct(
        "question -> answer, number: int", [weather, clock], max_iters=25, extract=False, tool_choice="required"
    )
    agent.set_lm(model_at(llama_server, wire))
    for _ in range(8):
        try:
            if how == "called":
                result = agent(question="Oslo?")
            elif how == "awaited":
                result = await agent.acall(question="Oslo?")
            else:
                *_, last = agent.stream(question="Oslo?")
                result = last.value
        except AgentStopped:  # a random model can miss submit in all its turns
            continue
        assert result.termination_reason == "submit"
        assert isinstance(result.answer, str)
        assert isinstance(result.number, int)
        for step in result.steps:
            assert [outcome.id for outcome in step.results] == [call.id for call in step.calls]
        return
    raise AssertionError("no run submitted")


@each_wire
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_errors_have_their_class_and_status(llama_server: LlamaServer, wire: str, streamed: bool) -> None:
    def ask(lm: sigwire.LM, request: Request) -> Any:
        return list(lm.stream(request)) if streamed else lm.respond(request)

    with pytest.raises(LMAuthenticationError) as refused:
        ask(model_at(llama_server, wire, api_key="wrong"), Request(HI))
    assert refused.value.status == 401
    with pytest.raises(ContextWindowExceededError) as overflow:
        ask(model_at(llama_server, wire), Request((Message.user("x" * 40_000),)))
    assert overflow.value.status == 400


@each_wire
def test_turns_that_the_server_did_not_write_are_read(llama_server: LlamaServer, wire: str) -> None:
    lm = model_at(llama_server, wire)
    turns = (Message.system("S"), *HI, Message("assistant", (TextPart("Hello"), TextPart("."))), *HI)
    response = lm.respond(Request(turns, TOOLS))
    check_warnings(response)
    program = sigwire.Predict("question -> answer")
    program.demos = [sigwire.Example(question="a", answer="b").with_inputs("question")]
    program.set_lm(lm)
    with pytest.raises(ModelError):  # the answer of a random model, not the demo
        program(question="x")


@each_wire
def test_image_for_a_model_without_images_is_an_invalid_request(llama_server: LlamaServer, wire: str) -> None:
    image = Message("user", (ImagePart(data="iVBORw0KGgo=", media_type="image/png"),))
    with pytest.raises(LMInvalidRequestError, match="image input is not supported") as caught:
        model_at(llama_server, wire).respond(Request((image,)))
    assert not caught.value.retryable


def test_structured_output_does_not_silence_forced_calls(llama_server: LlamaServer) -> None:
    schema: Any = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    response = model_at(llama_server, "chat").respond(replace(FORCED, response_format=ResponseFormat(schema)))
    check_calls(response.choices[0])
    assert [warning.feature for warning in response.warnings] == ["response_format"]


def test_schema_that_the_server_refuses_is_an_invalid_request(llama_server: LlamaServer) -> None:
    impossible = ResponseFormat({"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}})
    with pytest.raises(LMInvalidRequestError):
        model_at(llama_server, "chat").respond(Request(HI, response_format=impossible))


def test_named_call_is_of_that_tool(llama_server: LlamaServer) -> None:
    for _ in range(3):
        choice = (
            model_at(llama_server, "chat").respond(replace(FORCED, tool_choice=ToolChoice.named("clock"))).choices[0]
        )
        assert {call.name for call in choice.tool_calls} == {"clock"}


def test_turns_with_calls_fit_the_template_of_the_family(strict_llama_server: LlamaServer) -> None:
    lm = model_at(strict_llama_server, "chat")
    for _ in range(5):
        choice = lm.respond(FORCED).choices[0]
        results = Message.tool(*(ToolResult(call.id, call.name, "fine") for call in choice.tool_calls))
        lm.respond(Request((*HI, choice.message(), results), TOOLS))


def test_calls_of_another_provider_fit_the_template_of_the_family(strict_llama_server: LlamaServer) -> None:
    call = ToolCall("toolu_01A09q90qw90lq917835lq9", "clock", {})
    turns = (*HI, Message("assistant", (call,)), Message.tool(ToolResult(call.id, "clock", "12:00")), *HI, *HI)
    assert model_at(strict_llama_server, "chat").respond(Request(turns, TOOLS)).usage.input_tokens


@pytest.mark.parametrize("how", ["called", "awaited"])
async def test_verification_agrees_where_a_grammar_decides(llama_server: LlamaServer, how: str) -> None:
    lm = model_at(llama_server, "chat")
    names = [
        "usage",
        "system",
        "history",
        "tool_result",
        "forced",
        "named",
        "none",
        "schema",
        "enum",
        "stream_schema",
        "bad_key",
    ]
    if how == "called":
        found = sigwire.verify(lm, probes=names, budget=sigwire.Budget())
    else:
        found = await sigwire.averify(lm, probes=names, budget=sigwire.Budget())
    # A random model fills its limit at times, which decides nothing.
    assert {row.probe: row.verdict for row in found.rows if row.verdict not in ("agrees", "unclear")} == {}
    assert any(row.verdict == "agrees" for row in found.rows if row.probe in ("forced", "named", "schema"))
