"""The chat of docs/streaming.md: what it shows at the end of every kind of answer, blocking and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from sigwire import (
    Choice,
    FakeLM,
    FieldDelta,
    Finished,
    LMTransportError,
    Predict,
    ReAct,
    SigwireError,
    ToolCall,
)
from sigwire.core.capabilities import Capabilities
from tests.test_docs import ROOT, blocks

NATIVE = Capabilities(native_tools=True, parallel_tool_calls=True, tool_choice=True)
TEXT = Capabilities()
ANSWER = "It is sunny."
OSLO, SUBMIT = ToolCall("", "weather", {"city": "Oslo"}), ToolCall("", "submit", {"answer": ANSWER})


@pytest.fixture(scope="module")
def page() -> SimpleNamespace:
    """Return the names that the chat's block of the page defines."""
    source = next(block.source for block in blocks(ROOT / "docs/streaming.md") if "class AnswerView" in block.source)
    names: dict[str, Any] = {"__name__": "page"}
    exec("from sigwire import *\n" + source.partition("\n\ndef weather")[0], names)
    return SimpleNamespace(**names)


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def agent(script: list[Any], capabilities: Capabilities = NATIVE) -> ReAct:
    made = ReAct("question -> answer", tools=[weather])
    made.set_lm(FakeLM(script, capabilities=capabilities))
    return made


def as_text(name: str, arguments: str) -> str:
    return f'~~~tool_call\n{{"name": "{name}", "arguments": {arguments}}}\n~~~'


ASK, GIVE = as_text("weather", '{"city": "Oslo"}'), as_text("submit", f'{{"answer": "{ANSWER}"}}')
SECTION = f"[[ ## answer ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]"
TWO = Choice("I look both up.", (OSLO, ToolCall("", "weather", {"city": "Rome"})), finish_reason="tool_calls")

ANSWERED: dict[str, tuple[list[Any], Capabilities, list[tuple[str, str]]]] = {
    "submitted": ([OSLO, SUBMIT], NATIVE, [("weather", "done"), ("submit", "done")]),
    "in plain text": ([OSLO, ANSWER], NATIVE, [("weather", "done")]),
    "submitted by a model without native tools": (
        [f"Let me look.\n{ASK}", GIVE], TEXT, [("weather", "done"), ("submit", "done")],
    ),
    "in plain text by a model without native tools": ([ASK, ANSWER], TEXT, [("weather", "done")]),
    "in the layout of the adapter": ([SECTION], NATIVE, []),
    "as a JSON object": ([f'{{"answer": "{ANSWER}"}}'], NATIVE, []),
    "with parallel calls after a sentence": (
        [TWO, SUBMIT], NATIVE, [("weather", "done"), ("weather", "done"), ("submit", "done")],
    ),
    "submitted again after a rejection": (
        [ToolCall("", "submit", {"wrong": 1}), SUBMIT], NATIVE, [("submit", "failed"), ("submit", "done")],
    ),
    "after a tool that failed": (
        [ToolCall("", "weather", {"town": "Oslo"}), SUBMIT], NATIVE, [("weather", "failed"), ("submit", "done")],
    ),
    "with one id for every call": (
        [ToolCall("call_0", "weather", {"city": "Oslo"}), ToolCall("call_0", "submit", {"answer": ANSWER})],
        NATIVE, [("weather", "done"), ("submit", "done")],
    ),
}  # fmt: skip


def blocking(page: SimpleNamespace, program: Any, **inputs: Any) -> Any:
    view = page.AnswerView()
    page.chat(program, view, **inputs)
    return view


def awaited(page: SimpleNamespace, program: Any, **inputs: Any) -> Any:
    async def read() -> Any:
        view = page.AnswerView()
        try:
            async with program.astream(**inputs) as events:
                async for event in events:
                    view.feed(event)
        except SigwireError as error:
            view.fail(error)
        return view

    return asyncio.run(read())


each_way = pytest.mark.parametrize("show", [blocking, awaited])


def cards_of(view: Any) -> list[tuple[str, str]]:
    return [(card["name"], card["state"]) for card in view.cards.values()]


@each_way
@pytest.mark.parametrize("kind", ANSWERED)
def test_chat_shows_the_answer_once_and_every_card_ends(
    page: SimpleNamespace, show: Callable[..., Any], kind: str
) -> None:
    script, capabilities, cards = ANSWERED[kind]
    view = show(page, agent(script, capabilities), question="How is Oslo?")
    assert (view.answer, view.draft, view.state) == (ANSWER, "", "done")
    assert cards_of(view) == cards


@pytest.mark.parametrize("kind", ANSWERED)
def test_chat_shows_the_answer_before_the_stream_ends(page: SimpleNamespace, kind: str) -> None:
    script, capabilities, _ = ANSWERED[kind]
    view, shown = page.AnswerView(), ""
    for event in agent(script, capabilities).stream(question="How is Oslo?"):
        if isinstance(event, Finished):
            shown = view.answer
        view.feed(event)
    assert shown == ANSWER


@each_way
def test_chat_starts_again_when_the_model_is_asked_again(page: SimpleNamespace, show: Callable[..., Any]) -> None:
    replies = [
        "[[ ## answer ## ]]\nOne.\n\n[[ ## score ## ]]\nmany",
        f"[[ ## answer ## ]]\n{ANSWER}\n\n[[ ## score ## ]]\n1",
    ]
    ask = Predict("question -> answer, score: int", lm=FakeLM(replies), max_reasks=1)
    view = show(page, ask, question="How is Oslo?")
    assert (view.answer, view.state) == (ANSWER, "done")


@each_way
@pytest.mark.parametrize(
    ("reply", "state", "answer"),
    [
        (Choice("", refusal="I must not."), "Refused", ""),
        (Choice("[[ ## answer ## ]]\nIt is", finish_reason="length"), "OutputTruncated", "It is"),
        (LMTransportError("the connection was lost"), "LMTransportError", ""),
    ],
    ids=["refused", "truncated", "disconnected"],
)
def test_chat_shows_how_an_answer_failed(
    page: SimpleNamespace, show: Callable[..., Any], reply: Any, state: str, answer: str
) -> None:
    view = show(page, Predict("question -> answer", lm=FakeLM([reply])), question="How is Oslo?")
    assert view.state.startswith(f"{state}: ")
    assert view.answer == answer


def test_chat_keeps_what_was_shown_when_it_is_cancelled(page: SimpleNamespace) -> None:
    class Interrupted(page.AnswerView):  # type: ignore[name-defined,misc]
        def feed(self, event: Any) -> None:
            super().feed(event)
            if isinstance(event, FieldDelta):
                raise KeyboardInterrupt

    view = Interrupted()
    page.chat(Predict("question -> answer", lm=FakeLM([{"answer": "one two"}])), view, question="Count.")
    assert (view.answer, view.state) == ("one", "cancelled")


def test_chat_shows_thinking_apart_from_the_answer(page: SimpleNamespace) -> None:
    lm = FakeLM([Choice(SECTION, reasoning="Oslo, then.")], capabilities=NATIVE)
    view = blocking(page, Predict("question -> answer", lm=lm), question="How is Oslo?")
    assert (view.thinking, view.answer) == ("Oslo, then.", ANSWER)


def test_chat_draws_hostile_text_as_plain_text(page: SimpleNamespace) -> None:
    lm = FakeLM([{"answer": "[red]x[/] \x1b[31m[link=http://e]y"}])
    view = blocking(page, Predict("question -> answer", lm=lm), question="?")
    console = Console(width=80, record=True, force_terminal=True)
    console.print(view)
    shown = console.export_text(styles=True)
    assert "[red]x[/]" in shown
    assert "\x1b[31m" not in shown
    assert "\x1b]8" not in shown
