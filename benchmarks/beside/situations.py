"""The situations: what the provider answers, what the library is asked, and what is observed.

An observation is a short text. "error" names the class that the caller gets; nothing is judged here.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from benchmarks.beside.libraries import Library
from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import FakeProvider
from sigwire.testing.answers import Answer
from sigwire.testing.rate_limit import RateLimit

__all__ = ["SITUATIONS", "observe"]

TICKET = "Order 1042 was charged twice."
FACTS: JsonObject = {"topic": "billing", "order": 1042}
CALLS_AT_ONCE, CALLS_A_SECOND = 100, 20


def observe(name: str, library: type[Library]) -> str:
    """Return the observation of a situation, or "-" if the library has no such call."""
    situation = SITUATIONS[name]
    return situation(library)


# --- one typed answer ------------------------------------------------------------------------------------


def typed_answer(request: Request, facts: JsonObject) -> Answer:
    """Return an answer in the form that the request asks for: a call, JSON, or sections."""
    if request.tools:
        return [ToolCall("call_1", names_of(request)[0], dict(facts))]
    if request.response_format is not None:
        return json.dumps(facts)
    return written(request, facts)


def written(request: Request, fields: Mapping[str, object]) -> str:
    """Return fields as text in the form that the prompt teaches: labels or sections."""
    if "<output_fields>" in str(request.to_json()):
        return "\n".join(f"{name.title()}: {value}" for name, value in fields.items())
    return "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items()) + "[[ ## completed ## ]]"


def requests_of_a_typed_answer(library: type[Library]) -> str:
    with provided(lambda request: typed_answer(request, FACTS)) as provider:
        assert library(provider.url("openai")).typed(TICKET) == ("billing", 1042)
        return str(len(provider.requests))


def requests_of_an_equal_call(library: type[Library]) -> str:
    with provided(lambda request: typed_answer(request, FACTS)) as provider:
        for _ in range(2):
            library(provider.url("openai")).typed(TICKET)
        return str(len(provider.requests))


def unreadable_answer(library: type[Library]) -> str:
    with provided(lambda request: typed_answer(request, {"topic": "billing", "order": "many"})) as provider:
        outcome = outcome_of(lambda: library(provider.url("openai")).typed(TICKET))
        return counted(provider, outcome)


def wrapped_answer(library: type[Library]) -> str:
    """A model writes its JSON in a code fence, after a sentence."""
    text = f"Here you are:\n```json\n{json.dumps(FACTS)}\n```"
    with provided(lambda request: text) as provider:
        outcome = outcome_of(lambda: library(provider.url("openai")).typed(TICKET))
        return counted(provider, outcome)


# --- a text ----------------------------------------------------------------------------------------------


def text_answer(request: Request, text: str) -> Choice:
    """Return a text in the form that the request asks for."""
    if request.tools:
        arguments: JsonObject = dict.fromkeys(function_of(request.tools[0])["parameters"]["properties"], text)
        return Choice(tool_calls=(ToolCall("call_1", names_of(request)[0], arguments),))
    if any("[[ ## " in message.text for message in request.messages):
        return Choice(text=f"[[ ## answer ## ]]\n{text}")
    return Choice(text=f"Answer: {text}" if "<output_fields>" in str(request.to_json()) else text)


def truncated_text(library: type[Library]) -> str:
    """The token limit cuts the answer; the finish reason is length."""

    def answer(request: Request) -> Answer:
        return replace(text_answer(request, "The parcel leaves on"), finish_reason="length")

    with provided(answer) as provider:
        return outcome_of(lambda: library(provider.url("openai")).text("When?"))


def refused_text(library: type[Library]) -> str:
    with provided(lambda request: Choice(refusal="I can't help with that.")) as provider:
        return outcome_of(lambda: library(provider.url("openai")).text("When?"))


def calls_over_a_limit(library: type[Library]) -> str:
    limit = RateLimit(requests=CALLS_A_SECOND, per=1, burst=1)
    with FakeProvider(lambda request: text_answer(request, "Yes"), limit=limit) as provider:
        return f"{library(provider.url('openai')).many(CALLS_AT_ONCE)} of {CALLS_AT_ONCE} answered"


# --- an agent --------------------------------------------------------------------------------------------


@dataclass
class Stock:
    """A tool that records its calls."""

    seen: list[str] = field(default_factory=list[str])

    def check_stock(self, product: str) -> int:
        """Look up how many units of a product are in stock."""
        self.seen.append(product)
        return 61


def call_as_text(library: type[Library]) -> str:
    """A model without native calls writes its call as many open models do."""
    stock = Stock()

    def answer(request: Request) -> Answer:
        if stock.seen:
            return "There are 61 oak shelves." if not takes_submit(request) else submitted(request)
        return '<tool_call>\n{"name": "check_stock", "arguments": {"product": "oak shelf"}}\n</tool_call>'

    with provided(answer) as provider:
        outcome = outcome_of(lambda: library(provider.url("openai")).agent("How many shelves?", stock.check_stock))
    return "the tool runs" if stock.seen else outcome


def fault_of_a_tool(library: type[Library]) -> str:
    """A tool raises; its file and lines are not the model's business, the class and message are."""

    def check_stock(product: str) -> int:
        """Look up how many units of a product are in stock."""
        raise KeyError(product)

    def answer(request: Request) -> Answer:
        if any("KeyError" in str(message.to_json()) for message in request.messages):
            return "There are none." if not takes_submit(request) else submitted(request)
        return call_or_section(request)

    with provided(answer) as provider:
        outcome = outcome_of(lambda: library(provider.url("openai")).agent("How many shelves?", check_stock))
        sent = json.dumps([each.body for each in provider.requests])
    if "KeyError" not in sent:
        return outcome
    here = inspect.getsourcefile(fault_of_a_tool) or ""
    return "the model sees the class and the message" + (", and files and lines" if here in sent else "")


def call_or_section(request: Request) -> Answer:
    arguments: JsonObject = {"product": "oak shelf"}
    if "check_stock" in names_of(request):
        return [ToolCall("call_1", "check_stock", arguments)]
    return written(
        request, {"next_thought": "Look.", "next_tool_name": "check_stock", "next_tool_args": json.dumps(arguments)}
    )


def takes_submit(request: Request) -> bool:
    return "submit" in names_of(request) or any(
        mark in str(request.to_json()) for mark in ("[[ ## ", "<output_fields>")
    )


def submitted(request: Request) -> Answer:
    if "submit" in names_of(request):
        return [ToolCall("call_2", "submit", {"answer": "There are 61."})]
    fields = {
        "next_thought": "Done.",
        "next_tool_name": "finish",
        "next_tool_args": "{}",
        "reasoning": "Known.",
        "answer": "61",
    }
    return written(request, fields if "[[ ## " in str(request.to_json()) else {"answer": "There are 61."})


def names_of(request: Request) -> list[str]:
    return [function_of(tool)["name"] for tool in request.tools]


def function_of(tool: JsonObject) -> Any:
    return cast("Any", tool)["function"]


# --- helpers ---------------------------------------------------------------------------------------------


@contextmanager
def provided(answer: Callable[[Request], Answer]) -> Generator[FakeProvider]:
    with FakeProvider(answer) as provider:
        yield provider


def outcome_of(call: Callable[[], object]) -> str:
    try:
        value = call()
    except Exception as error:
        return f"`{type(error).__name__}`"
    return f"gives {short(value)}"


def short(value: object) -> str:
    text = repr(value)
    return f"`{text if len(text) <= 30 else f'{text[:29]}…'}`"


def counted(provider: FakeProvider, outcome: str) -> str:
    number = len(provider.requests)
    return f"{outcome}, {number} request{'s' if number != 1 else ''}"


def with_agent(situation: Callable[[type[Library]], str]) -> Callable[[type[Library]], str]:
    return lambda library: situation(library) if library.has_agent else "-"


SITUATIONS: Mapping[str, Callable[[type[Library]], str]] = {
    "requests for one typed answer": requests_of_a_typed_answer,
    "requests for two equal calls": requests_of_an_equal_call,
    "an answer whose number is no number": unreadable_answer,
    "JSON in a code fence after a sentence": wrapped_answer,
    "a text that the token limit cut": truncated_text,
    "a refusal": refused_text,
    f"{CALLS_AT_ONCE} calls at once where {CALLS_A_SECOND} a second are allowed": calls_over_a_limit,
    "a tool call written as text": with_agent(call_as_text),
    "a tool that raises `KeyError`": with_agent(fault_of_a_tool),
}
