"""Models on Bedrock at the fake provider: agents, streams, failures and retries, through the whole backend."""

from __future__ import annotations

import pytest

import sigwire
from sigwire.core.events import ToolCallEnd, collect
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMAuthenticationError, LMRateLimitError, LMServerError, LMTransportError
from sigwire.lm.client import LM
from sigwire.testing import Answer, FakeProvider, Fault, Raw, Streamed
from tests.lm.calls import HELLO, HOWS, TOOL, WITH_TOOLS, ask, patient, stream

MODEL = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def model(provider: FakeProvider, retries: int = 3) -> LM:
    return LM(
        MODEL, base_url=provider.url("bedrock"), api_key="k", cache=False, limit=False, retry=patient(retries=retries)
    )


@HOWS
async def test_agent_calls_its_tool_over_converse(how: str) -> None:
    seen: list[int] = []

    def half(n: int) -> int:
        """Halve a number."""
        seen.append(n)
        return n // 2

    script = [ToolCall("", "half", {"n": 8}), ToolCall("", "submit", {"answer": "4"})]
    async with FakeProvider(script) as provider:
        agent = sigwire.ReAct("question -> answer", tools=[half])
        agent.set_lm(model(provider))
        run = agent(question="Half of 8?") if how == "blocking" else await agent.acall(question="Half of 8?")
        bodies = [str(request.body) for request in provider.requests]
    assert (run.answer, seen) == ("4", [8])
    assert "toolResult" not in bodies[0]
    assert "'toolResult': {'toolUseId': 'tooluse_" in bodies[1]


@HOWS
@pytest.mark.parametrize("packets", [None, 1, 7])
async def test_stream_is_equal_to_the_whole_answer_wherever_it_is_cut(how: str, packets: int | None) -> None:
    async with FakeProvider(lambda request: ToolCall("t_1", "f", {"a": "é" * 20})) as provider:
        lm = model(provider)
        whole = await ask(how, lm, WITH_TOOLS)
        async with FakeProvider(
            lambda request: ToolCall("t_1", "f", {"a": "é" * 20}), streamed=Streamed(packets=packets)
        ) as other:
            events = await stream(how, model(other), WITH_TOOLS)
    assert any(isinstance(event, ToolCallEnd) for event in events)
    assert collect(events).choices == whole.choices
    assert provider.requests[0].body["toolConfig"]["tools"][0]["toolSpec"]["name"] == TOOL["function"]["name"]  # type: ignore[index,call-overload]


@HOWS
async def test_transient_failures_are_retried_before_and_in_a_stream(how: str) -> None:
    script: list[Answer] = [Fault("overloaded"), Streamed("never", stop_after=0, fault=Fault("server")), "hi you"]
    async with FakeProvider(script) as provider:
        events = await stream(how, model(provider))
        answer = collect(events)
    assert (answer.choices[0].text, len(answer.attempts)) == ("hi you", 3)


@HOWS
async def test_exception_in_the_middle_of_a_stream_keeps_the_partial_answer(how: str) -> None:
    script = [Streamed("one two three", stop_after=3, fault=Fault("rate_limit"))]
    async with FakeProvider(script) as provider:
        with pytest.raises(LMRateLimitError, match="Too many requests") as caught:
            await stream(how, model(provider, retries=0))
    assert caught.value.partial is not None
    assert caught.value.partial.choices[0].text == "one two"


@HOWS
async def test_stream_that_breaks_off_is_a_transport_error(how: str) -> None:
    async with FakeProvider([Streamed("one two three", stop_after=3, clean=True)]) as provider:
        with pytest.raises(LMTransportError, match="before the end of the answer"):
            await stream(how, model(provider, retries=0))


@HOWS
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("permission"), LMAuthenticationError),
        (Fault("server"), LMServerError),
        (Fault("rate_limit"), LMRateLimitError),
    ],
)
async def test_error_reply_is_an_error_of_its_kind(how: str, fault: Fault, kind: type[Exception]) -> None:
    async with FakeProvider([fault, fault]) as provider:
        for call in (ask, stream):
            with pytest.raises(kind):
                await call(how, model(provider, retries=0))


@HOWS
async def test_page_in_place_of_a_stream_names_the_base_url(how: str) -> None:
    async with FakeProvider(
        [Raw("<html><title>Sign in</title></html>", headers={"content-type": "text/html"})]
    ) as provider:
        with pytest.raises(LMTransportError, match="check base_url"):
            await stream(how, model(provider, retries=0))


def test_hello_is_the_only_text_of_the_body() -> None:
    with FakeProvider(["hi"]) as provider:
        model(provider).respond(HELLO)
    assert provider.requests[0].body == {"messages": [{"role": "user", "content": [{"text": "hello"}]}]}
