"""An agent whose answer is streamed: `python examples/stream_agent.py`, also the second part of `make demo`.

1. Native calls     the agent streamed over each provider's wire: partial calls, results, the answer
2. Calls as text    over one wire, by a model without tools that writes its calls in three dialects, streamed as text

A provider on this machine (`sigwire.testing.FakeProvider`) streams real HTTP, with other chunk boundaries
in each run. Every run must make the same calls and give the answer that SQL gives; the exit code is 1 otherwise.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialects import DialectModel
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from shop import Shop
from wires import ENDPOINTS

import sigwire
from sigwire import AgentRun, InputField, OutputField, Signature
from sigwire.core.events import (
    AskStart,
    Finished,
    ProgramEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolDone,
)
from sigwire.testing import FakeProvider, Recorded, Streamed

QUESTION = "What is the weight of one oak shelf in pounds?"
EXPECTED = "SELECT round(weight_kg / 0.45359237, 3) AS pounds FROM stock WHERE product = 'oak shelf'"
DIALECTS = ("hermes", "mistral", "qwen3_coder")

console = Console(highlight=False)


class AskShop(Signature):
    """Answer the question about the shop with the help of the tools."""

    question: str = InputField()
    answer: str = OutputField(desc="the value asked for, and nothing else")


# --- the runs -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Streaming:
    """One run: the model, its wire, and the model behind the provider."""

    title: str
    model: str
    wire: str
    answers: Any
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dialect: str | None = None

    def lm(self, provider: FakeProvider) -> sigwire.LM:
        """Return the model; a model that writes its calls as text has no native tools."""
        lm = sigwire.LM(self.model, base_url=provider.url(self.wire), api_key="any key", cache=False, **self.options)
        if self.dialect is None:
            return lm
        return lm.copy(capabilities=replace(lm.capabilities, native_tools=False))

    def adapter(self) -> sigwire.ChatAdapter:
        """Return the adapter, with the dialect of the calls if they are text."""
        return sigwire.ChatAdapter() if self.dialect is None else sigwire.ChatAdapter(text_tools=self.dialect)


def over_every_wire() -> Iterator[Streaming]:
    """Yield runs of one model with native calls, one run a wire."""
    for to in ENDPOINTS:
        if to.needs is None:
            yield Streaming(f"{to.model} over {to.wire}", to.model, to.wire, sigwire.LM("offline/lexical"), to.options)


def in_dialects() -> Iterator[Streaming]:
    """Yield runs of one model without native calls, one run a dialect."""
    for dialect in DIALECTS:
        yield Streaming(f"calls as text: {dialect}", "ollama/qwen3", "ollama", DialectModel(dialect), dialect=dialect)


# --- one run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The result of a run: the answer, the calls made, the streamed text and calls, the requests."""

    answer: str
    calls: tuple[tuple[str, Any], ...]
    text: str
    streamed_calls: tuple[tuple[str, Any], ...]
    requests: tuple[Recorded, ...]


def run(streaming: Streaming, shop: Shop, number: int) -> Outcome:
    """Stream the agent and show each event."""
    agent = sigwire.ReAct(AskShop, tools=shop.tools(), max_iters=8)
    screen = Screen()
    with FakeProvider(streaming.answers, streamed=Streamed(seed=number)) as provider:
        with sigwire.context(lm=streaming.lm(provider), adapter=streaming.adapter()):
            events = agent.stream(question=QUESTION)
            for event in events:
                screen.show(event)
        calls = tuple((call.name, call.arguments) for step in AgentRun.of(events.value).steps for call in step.calls)
        return Outcome(events.value.answer, calls, screen.text, tuple(screen.calls), provider.requests)


class Screen:
    """Shows a stream in the terminal and records the model's text and calls."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: list[tuple[str, Any]] = []
        self._open = False

    def show(self, event: ProgramEvent) -> None:
        """Show one event; other event types are skipped."""
        match event:
            case AskStart():
                self._line(f"  [dim]turn {(event.turn or 0) + 1}[/]")
            case TextDelta():
                self.text += event.text
                self._add(event.text, "italic")
            case ToolCallStart():
                self._line(f"    [cyan]{escape(event.name)}[/] ", open=True)
            case ToolCallDelta():
                self._add(event.arguments, "cyan dim")
            case ToolCallEnd():
                self.calls.append((event.call.name, event.call.arguments))
            case ToolDone():
                self._line(f"      [{'red' if event.result.is_error else 'dim'}]{escape(event.result.text)}[/]")
            case Finished():
                self._line(f"  [bold]{escape(event.value.answer)}[/]")
            case _:
                pass

    def _line(self, text: str, *, open: bool = False) -> None:
        if self._open:
            console.print()
        console.print(text, end="" if open else "\n")
        self._open = open

    def _add(self, text: str, style: str) -> None:
        if not self._open:
            console.print("    ", end="")
        console.print(text, style=style, markup=False, end="", soft_wrap=True)
        self._open = True


# --- the checks -----------------------------------------------------------------------------------------


def faults(streaming: Streaming, outcome: Outcome, reference: Outcome, expected: str) -> Iterator[str]:
    """Yield the differences of a run from the expected outcome."""
    if outcome.answer != expected:
        yield f"the answer is {outcome.answer!r}, and SQL says {expected!r}"
    if outcome.calls != reference.calls:
        yield f"the calls are {outcome.calls}, and were {reference.calls}"
    if outcome.streamed_calls != outcome.calls:
        yield f"the stream emitted {outcome.streamed_calls}, and the run made {outcome.calls}"
    streams = {(sent.wire, sent.stream is not None and sent.stream.ended) for sent in outcome.requests}
    if streams != {(streaming.wire, "complete")}:
        yield f"not every answer was a whole stream over {streaming.wire}: {streams}"
    offered = any(sent.request is not None and sent.request.tools for sent in outcome.requests)
    if offered is (streaming.dialect is not None):
        yield "tools were offered natively" if offered else "no tools were offered natively"
    words = "".join(f"I use {name}." for name, _ in outcome.calls) if streaming.dialect is not None else ""
    if outcome.text.replace("\n", "") != words:
        yield f"the streamed text is {outcome.text!r}, and the model's is {words!r}"


def stream_all(runs: Callable[[], Iterator[Streaming]], shop: Shop, reference: Outcome | None) -> tuple[Outcome, int]:
    """Compare each run with the reference (default: the first run). Return the reference and the number of wrong runs."""
    (row,) = shop.sql(EXPECTED)
    wrong = 0
    first = reference
    for number, streaming in enumerate(runs()):
        console.print(f"[bold]{escape(streaming.title)}[/]")
        outcome = run(streaming, shop, number)
        first = first or outcome
        found = list(faults(streaming, outcome, first, str(row["pounds"])))
        for fault in found:
            console.print(f"  [red]FAILED[/] {escape(fault)}")
        if not found:
            console.print("  [green]ok[/]")
        wrong += bool(found)
    assert first is not None
    return first, wrong


def main() -> int:
    console.print(f"[bold]{QUESTION}[/]")
    with tempfile.TemporaryDirectory() as directory:
        shop = Shop(Path(directory) / "shop.sqlite")
        console.print(Rule("5. Streamed over every wire, with native calls"))
        reference, wrong = stream_all(over_every_wire, shop, None)
        console.print(Rule("6. Streamed over one wire, calls written as text in three dialects"))
        _, more = stream_all(in_dialects, shop, reference)
    console.print(Rule())
    failed = wrong + more
    console.print(f"[red]{failed} runs differ[/]" if failed else "[green]Every stream came to the same answer.[/]")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
