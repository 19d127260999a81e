"""Content filters and ``on_filter``: refused requests, stopped answers and refusals; over all wires, in every driver."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

import sigwire
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import (
    ConfigurationError,
    ContentFiltered,
    LMContentFilteredError,
    LMServerError,
    UnsupportedOption,
)
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.router import Router
from sigwire.testing import FakeProvider, Fault
from tests.grids import grid
from tests.lm.calls import HELLO, forget_keys
from tests.lm.router.test_router import DRIVERS, EVERY_DRIVER, WIRES, answer, log, model

STOPPED = Choice(finish_reason="content_filter")
FILTERING = [wire for wire in WIRES if wire != "ollama"]  # Ollama has no filter
PASSED = [("ask", "content_filter"), ("fallback", None)]
REFUSED: dict[str, Any] = {
    "request": Fault("content_filter"),
    "answer": STOPPED,
    "refusal": Choice(finish_reason="content_filter", refusal="I cannot help with that."),
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


@grid("what, wire, driver", REFUSED, FILTERING, EVERY_DRIVER)
async def test_filter_leads_to_the_next_target_without_a_penalty_when_on_filter_is_next(
    what: str, wire: str, driver: str
) -> None:
    refused = (
        STOPPED if (what, wire) == ("request", "gemini") else REFUSED[what]
    )  # Gemini refuses a request by an answer
    with FakeProvider([refused]) as first, FakeProvider(["B"]) as second:
        router = Router([model(wire, first.url(wire)), model("ollama", second.url("ollama"))], on_filter="next")
        response = await answer(driver, router)
        router.close()
    assert (response.choices[0].text, response.model) == ("B", "qwen3")
    assert log(response.attempts) == PASSED
    assert [(row.failures, row.penalty) for row in router.health()] == [(0, 0.0), (0, 0.0)]


@DRIVERS
async def test_answer_of_the_last_target_is_returned_when_every_filter_stops(driver: str) -> None:
    router = Router([FakeLM([STOPPED], model="a"), FakeLM([STOPPED], model="b")], on_filter="next")
    response = await answer(driver, router)
    assert (response.choices, response.model) == ((STOPPED,), "b")
    assert log(response.attempts) == PASSED


@DRIVERS
async def test_failure_after_a_stopped_answer_is_raised_with_the_attempts_of_both(driver: str) -> None:
    router = Router([FakeLM([STOPPED], model="a"), FakeLM([LMServerError()], model="b")], on_filter="next")
    with pytest.raises(LMServerError, match=r"a content_filter, b server") as caught:
        await answer(driver, router)
    assert log(caught.value.attempts) == [("ask", "content_filter"), ("fallback", "server")]


@DRIVERS
async def test_stream_with_emitted_content_stays_with_its_target(driver: str) -> None:
    cut = Choice("Half of it", finish_reason="content_filter")
    router = Router([FakeLM([cut], model="a"), FakeLM(["B"], model="b")], on_filter="next")
    response = await answer(driver, router)
    assert response.choices[0].text == ("Half of it" if "stream" in driver else "B")


@DRIVERS
async def test_answer_with_one_whole_choice_is_no_stopped_answer(driver: str) -> None:
    router = Router([FakeLM([STOPPED, "A"], model="a"), FakeLM(["B"], model="b")], on_filter="next")
    response = await answer(driver, router, replace(HELLO, options={"n": 2}))
    assert {choice.text for choice in response.choices} == {"", "A"}


@DRIVERS
async def test_stored_refusal_leads_to_the_next_target_and_costs_nothing(driver: str) -> None:
    sigwire.configure_cache(enable_disk_cache=False)
    with FakeProvider([REFUSED["refusal"]]) as first, FakeProvider(["B"]) as second:
        targets = [model("openai", first.url("openai")), model("ollama", second.url("ollama"))]
        assert (await answer(driver, Router(targets))).choices[0].refusal
        router = Router(targets, on_filter="next")
        response = await answer(driver, router)
        assert log(response.attempts) == [("skip", "content_filter"), ("fallback", None)]
        assert (await answer(driver, router)).cache == "hit"
        assert (len(first.requests), len(second.requests)) == (1, 1)
        router.close()


@DRIVERS
async def test_stopped_answer_of_a_model_without_attempts_has_its_usage_in_the_log(driver: str) -> None:
    class Filtered(FakeLM):
        def _steps(self, request: Any, *, streamed: bool) -> Any:
            response: Response = yield from super()._steps(request, streamed=streamed)
            return replace(response, attempts=(), usage=Usage(7, 0))

    router = Router([Filtered([STOPPED], model="a"), FakeLM(["B"], model="b")], on_filter="next")
    response = await answer(driver, router)
    assert log(response.attempts) == PASSED
    assert response.attempts[0].usage == Usage(7, 0)


@pytest.mark.parametrize("on_filter", ["raise", "next"])
def test_program_has_the_fields_of_the_target_without_a_filter(on_filter: Any) -> None:
    router = Router([FakeLM([STOPPED], model="a"), FakeLM([{"answer": "B"}], model="b")], on_filter=on_filter)
    program = sigwire.Predict("question -> answer", lm=router)
    if on_filter == "next":
        with sigwire.track_usage() as usage:
            assert program(question="Where?").answer == "B"
        assert [len(attempts) for attempts in usage.attempts.values()] == [1, 1]
        return
    with pytest.raises(ContentFiltered):
        program(question="Where?")


# --- models with fallbacks ---------------------------------------------------------------------------------


@grid("what, driver", REFUSED, EVERY_DRIVER)
@pytest.mark.parametrize("on_filter", ["raise", "next"])
async def test_fallback_answers_what_a_filter_stops_if_on_filter_is_next(
    on_filter: Any, what: str, driver: str
) -> None:
    with FakeProvider([REFUSED[what]]) as first, FakeProvider(["B"]) as second:
        fallbacks = [model("ollama", second.url("ollama"))]
        lm = model("openai", first.url("openai"), fallbacks=fallbacks, on_filter=on_filter)
        if on_filter == "next":
            response = await answer(driver, lm)
            assert (response.choices[0].text, log(response.attempts)) == ("B", PASSED)
        elif what == "request":
            with pytest.raises(LMContentFilteredError):
                await answer(driver, lm)
        else:
            assert (await answer(driver, lm)).choices[0].finish_reason == "content_filter"
        lm.close()
    assert len(second.requests) == (on_filter == "next")


def test_on_filter_is_kept_by_copies_and_saved_state_and_not_by_siblings() -> None:
    lm = LM("openai/gpt-5-mini", fallbacks=["ollama/qwen3"], on_filter="next")
    shown = "LM('openai/gpt-5-mini', fallbacks=['ollama/qwen3'], on_filter='next')"
    assert (
        repr(lm)
        == repr(lm.copy())
        == repr(LM.load_state(lm.dump_state()))
        == repr(pickle.loads(pickle.dumps(lm)))
        == shown
    )
    assert "on_filter" not in repr(lm.sibling("ollama/qwen3")) + repr(lm.copy(on_filter="raise"))
    assert "on_filter" not in LM("openai/gpt-5-mini", fallbacks=["ollama/qwen3"]).dump_state()


@pytest.mark.parametrize("fallbacks", [[], ["ollama/qwen3"]])
def test_unknown_on_filter_is_refused(fallbacks: list[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"not 'pass' \(making an LM\)"):
        LM("openai/gpt-5-mini", fallbacks=fallbacks, on_filter="pass")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="no option of one request"):
        LM("offline/lexical")("Hi", on_filter="next")
    with pytest.raises(UnsupportedOption):
        Router(["openai/gpt-5-mini"]).copy(on_filter="next")
