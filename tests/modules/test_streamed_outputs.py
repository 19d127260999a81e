"""A program streams the outputs that it returns: every kind of output, through every adapter, over every wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.events import AskStart, FieldDelta, FieldEnd, FieldPartial, Finished, ProgramEvent, UsageUpdate
from sigwire.core.request import Request
from sigwire.core.response import Usage
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.testing import FakeProvider, Streamed

WIRES = {
    "openai": ("openai/gpt-4.1-mini", None),
    "openai-responses": ("openai/gpt-4.1-mini", "responses"),
    "anthropic": ("anthropic/claude-haiku-4-5", None),
    "gemini": ("gemini/gemini-3-flash", None),
    "ollama": ("ollama/qwen3", None),
}
ADAPTERS = [ChatAdapter(), JSONAdapter(), XMLAdapter()]
Read = Callable[[Predict[..., Any]], list[ProgramEvent]]


class Person(BaseModel):
    name: str
    home: dict[str, str | None] = {}
    tags: list[str] = []


class Everything(Signature):
    """Answer in all kinds of outputs."""

    question: str = InputField()
    answer: str = OutputField()
    people: list[Person] = OutputField()
    kind: Literal["yes", "no or maybe"] = OutputField()
    count: int | None = OutputField()
    note: str | None = OutputField()
    scores: dict[str, list[float]] = OutputField()
    last: str = OutputField()


ADA = {
    "name": 'Ada "L" <b>&amp;</b> [[ ## answer ## ]]',
    "home": {"street": "1\n2", "zip": None},
    "tags": ["</people>", "]]"],
}
VALUES: dict[str, Any] = {
    "answer": "He said: [[ ## answer ## ]]\n```json\n{}\n```\n<last>x</last> \\ [[ ##",
    "people": [ADA, {**ADA, "tags": []}],
    "kind": "no or maybe",
    "count": None,
    "note": "null, or so",
    "scores": {"é": [0.5, 1e-3], "": []},
    "last": "<tool_call>{}</tool_call> ~~~tool_call\n{}\n~~~",
}


def _blocking(program: Predict[..., Any]) -> list[ProgramEvent]:
    return list(program.stream(question="?"))


def _awaited(program: Predict[..., Any]) -> list[ProgramEvent]:
    async def read() -> list[ProgramEvent]:
        return [event async for event in program.astream(question="?")]

    return asyncio.run(read())


@pytest.fixture(params=[_blocking, _awaited], ids=["blocking", "awaited"])
def read(request: pytest.FixtureRequest) -> Read:
    reader: Read = request.param
    return reader


def model(provider: FakeProvider, wire: str) -> LM:
    name, own_wire = WIRES[wire]
    return LM(name, base_url=provider.url(wire), api_key="any", wire=own_wire)


def streamed_outputs(events: Iterable[ProgramEvent], choice: int = 0) -> dict[str, Any]:
    """Return the complete outputs in the events since the last ``AskStart``."""
    growing: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    for event in events:
        if isinstance(event, AskStart):
            growing, whole = {}, {}
        elif isinstance(event, FieldDelta | FieldPartial | FieldEnd) and event.choice == choice:
            assert event.field not in whole
            if isinstance(event, FieldDelta):
                growing[event.field] = growing.get(event.field, "") + event.text
            elif isinstance(event, FieldPartial):
                growing[event.field] = event.value
            else:
                whole[event.field] = growing.pop(event.field, None)
    assert not growing
    return whole


def tokens(events: Iterable[ProgramEvent]) -> Usage:
    """Return the tokens of all answers: the last usage of each."""
    asked: list[Usage] = []
    for event in events:
        if isinstance(event, AskStart):
            asked.append(Usage())
        elif isinstance(event, UsageUpdate):
            asked[-1] = event.usage
    return sum(asked, Usage())


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
@pytest.mark.parametrize("wire", WIRES)
def test_stream_emits_the_outputs_that_the_call_returns(wire: str, adapter: Adapter, read: Read) -> None:
    writer = FakeLM(lambda request: VALUES, adapter=adapter)
    with FakeProvider(writer, streamed=Streamed(cut=4)) as provider, context(adapter=adapter):
        program: Predict[..., Any] = Predict(Everything, lm=model(provider, wire))
        whole, events = program(question="?"), read(program)
    last = events[-1]
    assert isinstance(events[0], AskStart)
    assert isinstance(last, Finished)
    assert last.value == whole
    assert streamed_outputs(events) == VALUES
    assert tokens(events) == last.value.attempts[-1].usage
    assert len([event for event in events if isinstance(event, FieldDelta)]) > 10


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
@pytest.mark.parametrize("wire", WIRES)
def test_stream_emits_every_choice_as_returned(wire: str, adapter: Adapter, read: Read) -> None:
    answers = [{"answer": "one two\nthree", "score": 1}, {"answer": "vier fünf", "score": 2}]
    singly = iter(answers)  # a provider without choices gets one request for each

    def write(request: Request) -> Any:
        wanted = answers if request.options.get("n") == 2 else [next(singly)]
        return FakeLM(wanted, adapter=adapter).respond(request)

    with FakeProvider(write, streamed=Streamed(cut=4)) as provider, context(adapter=adapter):
        program: Predict[..., Any] = Predict("question -> answer, score: int", lm=model(provider, wire), n=2)
        events = read(program)
    last = events[-1]
    assert isinstance(last, Finished)
    completions = [dict(completion.items()) for completion in last.value.completions]
    assert [streamed_outputs(events, number) for number in range(2)] == completions
    assert sorted(completions, key=lambda values: values["score"]) == answers


@pytest.mark.parametrize("wire", WIRES)
def test_stream_restarts_outputs_after_reask_and_counts_all_tokens(wire: str, read: Read) -> None:
    answers = [{"answer": "first", "score": "many"}, {"answer": "second", "score": 2}]
    writer = FakeLM(answers)
    with FakeProvider(writer, streamed=Streamed(cut=4)) as provider:
        program: Predict[..., Any] = Predict("question -> answer, score: int", lm=model(provider, wire), max_reasks=1)
        events = read(program)
    last = events[-1]
    assert isinstance(last, Finished)
    assert streamed_outputs(events) == answers[1] == dict(last.value.items())
    assert "first" in "".join(event.text for event in events if isinstance(event, FieldDelta))
    assert tokens(events) == sum((attempt.usage for attempt in last.value.attempts), Usage())
    assert len(last.value.attempts) == 2
