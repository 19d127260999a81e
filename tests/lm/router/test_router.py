"""The router: the target that answers, and the log, over all wires, blocking, awaited and streamed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import sigwire
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import ResponseStart, collect
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.emitting import astream, stream
from sigwire.effects.steps import arun, run
from sigwire.errors import (
    BudgetSpent,
    ConfigurationError,
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedModelError,
    UnsupportedFeature,
)
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.router import Router
from sigwire.testing import FakeProvider, Fault, Raw, Streamed
from tests.grids import grid
from tests.lm.calls import HELLO, KEY, TOOL, Clock, forget_keys, patient

WIRES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "openai": ("openai/gpt-4.1", {}),
    "openai-responses": ("openai/gpt-4.1", {"wire": "responses"}),
    "anthropic": ("anthropic/claude-opus-5", {}),
    "gemini": ("gemini/gemini-3-flash", {}),
    "ollama": ("ollama/qwen3", {}),
}
EVERY_DRIVER = ("blocking", "awaited", "blocking stream", "awaited stream")
DRIVERS = pytest.mark.parametrize("driver", EVERY_DRIVER)
BUSY = Raw({}, 503)
CALM = Health(jitter=0.0)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # a PNG


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def answer(driver: str, lm: BaseLM, request: Request = HELLO) -> Response:
    """Answer in one of four ways. The events of a streamed answer have the same answer."""
    how, _, streamed = driver.partition(" ")
    steps = partial(lm.steps, request, streamed=bool(streamed))
    if not streamed:
        return run(steps()) if how == "blocking" else await arun(steps())
    if how == "blocking":
        events: list[Any] = []
        response = kept(stream(steps()), events)
    else:
        events = [event async for event in astream(steps())]
        response = events.pop().value
    last = max(number for number, event in enumerate(events) if isinstance(event, ResponseStart))
    assert collect(events[last:]) == response
    return response


def kept(events: Any, into: list[Any]) -> Response:
    """Read a stream to its end; return its value."""
    while True:
        try:
            into.append(next(events))
        except StopIteration as stop:
            response: Response = stop.value
            return response


def model(wire: str, url: str, **rest: Any) -> LM:
    name, options = WIRES[wire]
    given = {"api_key": KEY, "limit": False, "retry": patient(), **options, **rest}
    return LM(name, base_url=url, **given)


def log(attempts: Any) -> list[tuple[str, str | None]]:
    return [(attempt.purpose, attempt.error or attempt.why) for attempt in attempts]


# --- the rows of the table of failures ---------------------------------------------------------------------


@grid("wire, driver", WIRES, EVERY_DRIVER)
async def test_row_22_next_target_answers_while_the_first_fails_and_the_first_when_it_is_well(
    wire: str, driver: str
) -> None:
    with FakeProvider([BUSY, BUSY, "A"]) as first, FakeProvider(["B"]) as second:
        router = Router([model(wire, first.url(wire)), model("openai", second.url("openai"), limit=False)])
        one = await answer(driver, router)
        two = await answer(driver, router)
        router.close()
    assert [each.choices[0].text for each in (one, two)] == ["B", "A"]
    assert log(one.attempts) == [("ask", "server"), ("retry", "server"), ("fallback", None)]
    assert [each.model for each in one.attempts] == [WIRES[wire][0]] * 2 + ["openai/gpt-4.1"]
    assert [each.at for each in one.attempts] == sorted(each.at or 0.0 for each in one.attempts)
    assert log(two.attempts) == [("ask", None)]
    assert one.model == "gpt-4.1"


@grid("wire, driver", WIRES, EVERY_DRIVER)
async def test_row_23_target_that_takes_no_image_is_skipped_without_a_penalty(wire: str, driver: str) -> None:
    image = Request((Message("user", (ImagePart(data=PIXEL, media_type="image/png"),)),))
    with FakeProvider(["A"]) as first, FakeProvider(["B"]) as second:
        blind = model(wire, first.url(wire))
        blind = blind.copy(capabilities=replace(blind.capabilities, images=False))
        router = Router([blind, model("openai", second.url("openai"))])
        response = await answer(driver, router, image)
        router.close()
        assert (len(first.requests), len(second.requests)) == (0, 1)
    assert response.choices[0].text == "B"
    assert log(response.attempts) == [("skip", "image"), ("fallback", None)]
    assert router.health()[0].penalty == 0.0


@grid("wire, driver", WIRES, EVERY_DRIVER)
async def test_row_24_open_circuit_is_skipped_until_it_is_due(wire: str, driver: str) -> None:
    time, down = Time(), [("ask", "server"), ("retry", "server"), ("fallback", None)]
    with FakeProvider(lambda request: BUSY) as dead, FakeProvider(lambda request: "B") as second:
        targets = [model(wire, dead.url(wire)), model("openai", second.url("openai"))]
        router = Router(targets, clock=time, health=CALM)
        for _ in range(3):
            assert log((await answer(driver, router)).attempts) == down
        time.now += 0.8
        response = await answer(driver, router)
        assert log(response.attempts) == [("skip", "open 4.2 s"), ("fallback", None)]
        assert len(dead.requests) == 6
        time.now += 4.2
        assert log((await answer(driver, router)).attempts) == down
        assert log((await answer(driver, router)).attempts) == [("skip", "open 10 s"), ("fallback", None)]
        router.close()


@grid("wire, how", WIRES, ["blocking", "awaited"])
async def test_row_25_stream_that_breaks_after_an_event_goes_to_no_other_target(wire: str, how: str) -> None:
    with FakeProvider([Streamed("Hello there", cut=1, stop_after=7)]) as first, FakeProvider(["B"]) as second:
        router = Router([model(wire, first.url(wire)), model(wire, second.url(wire))])
        with pytest.raises(LMError) as caught:
            await answer(f"{how} stream", router)
        router.close()
        assert (len(first.requests), len(second.requests)) == (1, 0)
    assert caught.value.partial is not None
    assert [each.purpose for each in caught.value.attempts] == ["ask"]
    assert router.health()[0].failures == 1


@grid("wire, driver", WIRES, EVERY_DRIVER)
async def test_row_31_request_that_is_too_long_for_one_target_goes_to_the_next_without_a_penalty(
    wire: str, driver: str
) -> None:
    with FakeProvider([Fault("context_length")]) as first, FakeProvider(["B"]) as second:
        router = Router([model(wire, first.url(wire)), model(wire, second.url(wire))])
        response = await answer(driver, router)
        router.close()
    assert log(response.attempts) == [("ask", "context_length"), ("fallback", None)]
    assert router.health()[0].penalty == 0.0


@pytest.mark.parametrize("driver", EVERY_DRIVER[2:])
async def test_stream_of_any_model_that_breaks_after_an_event_goes_to_no_other_target(driver: str) -> None:
    def break_off(text: str) -> Iterator[str]:
        yield text[:3]
        raise LMServerError

    second = FakeLM(["B"], model="b")
    router = Router([FakeLM(["Hello"], model="a", cut=break_off), second])
    with pytest.raises(LMServerError):
        await answer(driver, router)
    assert second.requests == []


# --- which failure leads where -----------------------------------------------------------------------------

NEXT: Mapping[str, tuple[Callable[[], BaseException], float]] = {
    "server": (lambda: LMServerError(), 1.0),
    "connection": (lambda: LMTransportError(), 1.0),
    "timeout": (lambda: LMTimeoutError(), 2.0),
    "rate limit": (lambda: LMRateLimitError(), 0.5),
    "auth": (lambda: LMAuthenticationError(), 20.0),
    "billing": (lambda: LMBillingError(), 20.0),
    "not found": (lambda: LMUnsupportedModelError(), 20.0),
    "refused connection": (lambda: ConnectionRefusedError("no"), 1.0),
    "context": (lambda: ContextWindowExceededError(), 0.0),
    "too large": (lambda: LMInvalidRequestError(status=413), 0.0),
    "unsupported": (lambda: UnsupportedFeature("no schema"), 0.0),
}
RAISED: Mapping[str, Callable[[], BaseException]] = {
    "invalid": lambda: LMInvalidRequestError(),
    "filter": lambda: LMContentFilteredError(),
    "refusal": lambda: sigwire.Refused("no"),
    "budget": lambda: BudgetSpent("spent"),
    "bug": lambda: ValueError("a bug"),
}


@grid("failure, driver", NEXT, EVERY_DRIVER)
async def test_failure_of_one_target_leads_to_the_next_with_its_penalty(failure: str, driver: str) -> None:
    make, penalty = NEXT[failure]
    router = Router([FakeLM([make()], model="a"), FakeLM(["B"], model="b")], clock=Time(), health=CALM)
    response = await answer(driver, router)
    assert (response.choices[0].text, response.model) == ("B", "b")
    assert [each.purpose for each in response.attempts[-1:]] == ["fallback"]
    assert len(response.attempts) == 2
    row = router.health()[0]
    assert row.penalty == penalty
    assert (row.opens_in == 600.0) == (penalty == 20.0)


@grid("failure, driver", RAISED, EVERY_DRIVER)
async def test_failure_that_no_target_can_answer_is_raised_at_once(failure: str, driver: str) -> None:
    error = RAISED[failure]()
    second = FakeLM(["B"], model="b")
    router = Router([FakeLM([error], model="a"), second])
    with pytest.raises(type(error)) as caught:
        await answer(driver, router)
    assert caught.value is error
    assert second.requests == []
    assert router.health()[0].failures == 0


@DRIVERS
async def test_error_after_the_last_target_has_every_attempt_and_names_each_target(driver: str) -> None:
    router = Router([FakeLM([LMServerError("down")], model="a"), FakeLM([LMTimeoutError("slow")], model="b")])
    with pytest.raises(LMTimeoutError, match=r"slow No other model is left: a server, b timeout\.") as caught:
        await answer(driver, router)
    assert log(caught.value.attempts) == [("ask", "server"), ("fallback", "timeout")]


@DRIVERS
async def test_failure_is_raised_and_not_the_request_that_the_last_target_cannot_take(driver: str) -> None:
    router = Router([FakeLM([LMServerError()], model="a"), FakeLM([UnsupportedFeature("no")], model="b")])
    with pytest.raises(LMServerError) as caught:
        await answer(driver, router)
    assert log(caught.value.attempts) == [("ask", "server"), ("skip", "no")]


@DRIVERS
async def test_first_target_is_asked_when_no_target_seems_to_take_the_request(driver: str) -> None:
    request = replace(HELLO, tools=(TOOL,), response_format=ResponseFormat({"type": "object"}))
    router = Router([FakeLM(["A"], model="a"), FakeLM(["B"], model="b", capabilities=Capabilities())])
    response = await answer(driver, router, request)
    assert response.choices[0].text == "A"
    assert log(response.attempts) == [("skip", "tools with JSON"), ("skip", "tools"), ("ask", None)]


@DRIVERS
async def test_target_that_is_due_soonest_is_asked_when_all_are_open(driver: str) -> None:
    time = Time()
    first, second = (FakeLM([LMServerError()] * 3 + [name], model=name) for name in ("a", "b"))
    router = Router([first, second], clock=time, health=CALM)
    for number in range(3):
        time.now += number  # the second one opens with the first
        with pytest.raises(LMServerError):
            await answer(driver, router)
    assert [row.state for row in router.health()] == ["closed", "closed"]  # 2.9: earlier failures weigh less
    first._queue.appendleft(LMServerError())  # type: ignore[union-attr]
    second._queue.appendleft(LMTimeoutError(retry_after=60.0))  # type: ignore[union-attr]
    with pytest.raises(LMTimeoutError):
        await answer(driver, router)
    assert [row.opens_in for row in router.health()] == [5.0, 60.0]
    response = await answer(driver, router)
    assert log(response.attempts) == [("skip", "open 5.0 s"), ("skip", "open 1:00"), ("ask", None)]
    assert router.health()[0].state == "closed"


@pytest.mark.parametrize("driver", ["blocking", "awaited stream"])
async def test_retries_and_waits_are_short_while_a_healthy_target_is_left(driver: str) -> None:
    clock = Clock()
    limits = [Fault("rate_limit", retry_after=1.0)] * 3
    with FakeProvider([*limits, BUSY, BUSY, BUSY, BUSY]) as first, FakeProvider(["B", *[BUSY] * 4]) as second:
        one = model("openai", first.url("openai"), retry=patient(clock))
        time = Time()
        router = Router([one, model("anthropic", second.url("anthropic"), retry=patient(clock))], clock=time)
        response = await answer(driver, router)
        assert log(response.attempts) == [
            ("ask", "rate_limit"),
            ("retry", "rate_limit"),
            ("retry", "rate_limit"),
            ("fallback", None),
        ]
        assert response.attempts[2].why == "another model is asked"
        assert clock.slept == [1.0, 1.0]
        time.now += 60.0
        with pytest.raises(LMServerError) as caught:
            await answer(driver, router)
        router.close()
    assert log(caught.value.attempts) == _busy("ask", 2) + _busy("fallback", 4)


def _busy(first: str, count: int) -> list[tuple[str, str | None]]:
    return [(first, "server"), *[("retry", "server")] * (count - 1)]


# --- conversations -----------------------------------------------------------------------------------------


@DRIVERS
async def test_conversation_stays_with_the_target_that_answered_until_it_fails(driver: str) -> None:
    first = FakeLM([LMServerError(), "A1", "A2"], model="a")
    second = FakeLM(["B1", "B2", LMServerError()], model="b")
    router = Router([first, second], health=CALM)
    turn = HELLO
    for expected in ("B1", "B2", "A1", "A2"):
        response = await answer(driver, router, turn)
        assert response.choices[0].text == expected
        if expected == "B2":
            assert log(response.attempts) == [("ask", None)]
        if expected == "A1":
            assert log(response.attempts) == [("ask", "server"), ("fallback", None)]
        turn = Request((*turn.messages, response.choices[0].message(), Message.user("Go on")))
    first._queue.append("A3")  # type: ignore[union-attr]
    assert (await answer(driver, router)).choices[0].text == "A3"


@DRIVERS
async def test_conversation_goes_on_in_a_copy_without_the_target_that_answered(driver: str) -> None:
    with FakeProvider([BUSY, BUSY, "A"]) as first, FakeProvider(["B"]) as second:
        one = model("openai", first.url("openai"), fallbacks=[model("anthropic", second.url("anthropic"))])
        router = Router([one])
        response = await answer(driver, router)
        assert response.choices[0].text == "B"
        turn = Request((*HELLO.messages, response.choices[0].message(), Message.user("Go on")))
        assert (await answer(driver, router.copy(fallbacks=[]), turn)).choices[0].text == "A"
        router.close()


# --- models with fallbacks ---------------------------------------------------------------------------------


@grid("wire, driver", WIRES, EVERY_DRIVER)
async def test_fallbacks_answer_when_their_model_fails(wire: str, driver: str) -> None:
    with FakeProvider([BUSY, BUSY]) as first, FakeProvider(["B"]) as second:
        lm = model(wire, first.url(wire), fallbacks=[model("ollama", second.url("ollama"))])
        response = await answer(driver, lm)
        lm.close()
    assert log(response.attempts) == [*_busy("ask", 2), ("fallback", None)]
    assert [row.model for row in lm.health()] == [WIRES[wire][0], "ollama/qwen3"]
    assert [row.failures for row in lm.health()] == [1, 0]
    assert len(lm.history.records) == 1


def test_fallback_given_as_text_inherits_the_options_that_it_knows() -> None:
    lm = LM(
        "openai/gpt-5-mini", api_key=KEY, temperature=0.5, frequency_penalty=0.5, timeout=9, limit=False,
        fallbacks=["anthropic/claude-haiku-4-5", "openai/gpt-4.1"],
    )  # fmt: skip
    _, other, same = lm.targets()
    assert [warning.feature for warning in other.warnings] == ["frequency_penalty"]
    assert isinstance(other.lm, LM)
    assert isinstance(same.lm, LM)
    assert repr(other.lm) == "LM('anthropic/claude-haiku-4-5', temperature=0.5, timeout=9)"
    assert repr(same.lm) == "LM('openai/gpt-4.1', temperature=0.5, frequency_penalty=0.5, timeout=9, api_key=***)"


@DRIVERS
async def test_dropped_option_is_a_warning_of_the_answer(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider([BUSY, BUSY]) as first, FakeProvider(["B"]) as second:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", second.url("anthropic"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        lm = model("openai", first.url("openai"), frequency_penalty=0.5, fallbacks=["anthropic/claude-opus-5"])
        response = await answer(driver, lm)
        lm.close()
    assert [warning.feature for warning in response.warnings] == ["frequency_penalty"]


@DRIVERS
async def test_option_of_a_call_that_a_target_does_not_know_is_a_skip(driver: str) -> None:
    with FakeProvider(["B"]) as second:
        router = Router([model("anthropic", "http://127.0.0.1:9"), model("openai", second.url("openai"))])
        response = await answer(driver, router, replace(HELLO, options={"frequency_penalty": 0.5}))
        router.close()
    assert log(response.attempts) == [("skip", "option frequency_penalty"), ("fallback", None)]


def test_nested_routers_flatten() -> None:
    inner = Router([FakeLM(model="a"), LM("openai/gpt-4.1", fallbacks=["anthropic/claude-opus-5"])])
    outer = Router([inner, FakeLM(model="c")])
    assert [target.lm.model for target in outer.targets()] == ["a", "openai/gpt-4.1", "anthropic/claude-opus-5", "c"]


def test_router_takes_any_language_model() -> None:
    class Echo:
        model, capabilities = "echo", Capabilities()

        def respond(self, request: Request) -> Response:
            return Response((Choice(request.messages[-1].text),), Usage(1, 1))

        async def arespond(self, request: Request) -> Response:
            return self.respond(request)

    router = Router([FakeLM([LMServerError()], model="a"), Echo()])
    for driver in EVERY_DRIVER:
        response = asyncio.run(answer(driver, router))
        assert (response.model, response.choices[0].text) == ("echo", "hello")
        router.targets()[0].lm._queue.append(LMServerError())  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match="StringIO"):
        __import__("io").StringIO and Router([__import__("io").StringIO()])


@DRIVERS
async def test_overridden_forward_of_a_target_is_called(driver: str) -> None:
    class Shout(LM):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            response = super().forward(*args, **kwargs)
            return replace(response, choices=(Choice(response.choices[0].text.upper()),))

    with FakeProvider(["a", "b"]) as provider:
        lm = Shout(
            "openai/gpt-4.1", base_url=provider.url("openai"), api_key=KEY, limit=False, fallbacks=["ollama/qwen3"]
        )
        assert (await answer(driver, Router([lm]))).choices[0].text == "A"
        assert (await answer(driver, lm)).choices[0].text == "B"
        lm.close()


# --- programs ----------------------------------------------------------------------------------------------


def fields(text: str) -> str:
    return f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"


@DRIVERS
async def test_program_over_a_router_has_the_fields_of_the_second_target(driver: str) -> None:
    down: Any = Streamed("", fault=Fault("overloaded")) if "stream" in driver else BUSY
    with FakeProvider([down, BUSY]) as first, FakeProvider([fields("Oslo")]) as second:
        router = Router([model("anthropic", first.url("anthropic")), model("openai", second.url("openai"))])
        program = sigwire.Predict("question -> answer", lm=router)
        how, _, streamed = driver.partition(" ")
        if not streamed:
            found = program(question="Where?") if how == "blocking" else await program.acall(question="Where?")
            assert found.answer == "Oslo"
        else:
            events: list[Any] = (
                list(program.stream(question="Where?"))
                if how == "blocking"
                else [event async for event in program.astream(question="Where?")]
            )
            deltas = [event.text for event in events if isinstance(event, sigwire.FieldDelta)]
            assert "".join(deltas) == "Oslo"
            assert isinstance(events[-1], sigwire.Finished)
        router.close()


@pytest.mark.parametrize("how", ["blocking", "awaited"])
async def test_agent_stays_with_the_target_that_answered_its_first_turn(how: str) -> None:
    calls: list[Any] = [
        [ToolCall("call_0", "look", {"place": "Oslo"})],
        [ToolCall("call_1", "submit", {"answer": "Here"})],
    ]
    first = FakeLM([LMServerError(), *calls], model="a")
    second = FakeLM(calls, model="b")

    def look(place: str) -> str:
        """Look for a place."""
        return f"{place} is here"

    agent = sigwire.ReAct("question -> answer", tools=[look])
    with sigwire.context(lm=Router([first, second])):
        for _ in range(2):  # a second run is another conversation
            found = agent(question="Where?") if how == "blocking" else await agent.acall(question="Where?")
            assert found.answer == "Here"
    assert (len(first.requests), len(second.requests)) == (3, 2)


def test_failure_that_another_target_answered_keeps_no_call_alive() -> None:
    class Down:
        model, capabilities = "down", Capabilities()

        def respond(self, request: Request) -> Response:
            raise LMServerError

        async def arespond(self, request: Request) -> Response:
            raise LMServerError

    router = Router([Down(), FakeLM(["B"], model="b")])
    gc.collect()
    gc.disable()
    try:
        router.respond(HELLO)
        assert [each for each in gc.get_objects() if type(each).__name__ == "_RoutedCall"] == []
    finally:
        gc.enable()


# --- reasoning, images


@DRIVERS
@pytest.mark.parametrize("where", ["model", "request"])
async def test_fallback_drops_reasoning_that_it_does_not_take(driver: str, where: str) -> None:
    asked = {"reasoning": "high"}
    with FakeProvider([BUSY, "yes"]) as provider:
        lm = LM(
            "openai/gpt-5", base_url=provider.url("openai"), api_key=KEY, num_retries=0,
            fallbacks=["openai/gpt-4.1"], **(asked if where == "model" else {}),
        )  # fmt: skip
        request = replace(HELLO, options={} if where == "model" else asked)
        response = await answer(driver, lm, request)
    assert [sent.body.get("reasoning_effort") for sent in provider.requests] == ["high", None]
    assert [warning.feature for warning in response.warnings] == ["reasoning"]
    assert [each.purpose for each in response.attempts] == ["ask", "fallback"]


def test_model_without_reasoning_refuses_it_if_it_is_the_first() -> None:
    with FakeProvider(["yes"]) as provider:
        url = provider.url("openai")
        lm = LM("openai/gpt-4.1", base_url=url, api_key=KEY, reasoning="high", fallbacks=["openai/gpt-5"])
        assert lm.respond(HELLO).attempts[-1].model == "openai/gpt-5"
        assert [sent.body["model"] for sent in provider.requests] == ["gpt-5"]
