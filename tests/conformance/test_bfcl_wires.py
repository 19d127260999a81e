"""Every reference call of the BFCL files survives every wire, and the text protocol, with its own name.

The conversation of a case, its calls made and answered, goes out and its calls come back:

    calls ─▶ codec.encode ─▶ JSON ─▶ the fake provider reads, and refuses what the provider would refuse
    calls ◀─ codec.decode ◀─ JSON ◀─ the fake provider writes the calls that it read

The fake provider's readers and writers share no code with the codecs. On the text protocol the calls stand in a model's text.
``python -m tests.conformance.test_bfcl_wires`` prints the counts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import pytest

from sigwire.adapters.text_tools import read_calls
from sigwire.adapters.text_tools.styles import TAUGHT
from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.fake import FakeLM
from sigwire.lm.openai_dicts import decode_messages
from sigwire.lm.providers.registry import find_provider
from sigwire.modules.predict import Predict
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.testing.places import WIRES
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import IdSequence, ParsedRequest, ReceivedRequest
from tests.conformance.bfcl_cases import calls_of, read_all, tools_of
from tests.conformance.bfcl_grader import fixtures as bfcl_folder

Case: TypeAlias = "dict[str, Any]"
Step: TypeAlias = "tuple[list[ToolCall], list[ToolResult]]"

# The wire of the fake provider, a model of a provider with that wire, and the row's name for the wire.
MODELS: Mapping[str, tuple[str, str]] = {
    "openai": ("openai/gpt-4.1", "chat"),
    "openai-responses": ("openai/gpt-5.5", "responses"),
    "anthropic": ("anthropic/claude-opus-5", "messages"),
    "gemini": ("gemini/gemini-3-flash", "generate"),
    "ollama": ("ollama/qwen3", "chat"),
    "bedrock": ("bedrock/us.amazon.nova-lite-v1:0", "converse"),
}
TEXT = "the text protocol"
EXCEPTIONS: Mapping[str, Mapping[str, str]] = {}  # by wire, then by case: why a call of it does not survive
REFERENCE_CALLS = 869  # in the single-turn files; the episodes bring more


class Count(NamedTuple):
    """How many calls there were, and the cases whose calls did not come back, with what became of them."""

    calls: int
    lost: Mapping[str, str]


# --- a case as a conversation ---------------------------------------------------------------------------------


def conversation(case: Case) -> tuple[Message, ...]:
    """The case with its reference calls made and answered, as a program that goes on would send it."""
    numbers = itertools.count()
    if "turns" not in case:
        return (*decode_messages(case["messages"]), *_exchange(_step(calls_of(case), itertools.repeat("ok"), numbers)))
    messages: list[Message] = []
    for turn in case["turns"]:
        messages += decode_messages(turn["messages"])
        for step in turn["steps"]:
            calls = ((call["name"], call["arguments"]) for call in step["calls"])
            messages += _exchange(_step(calls, (str(result) for result in step["results"]), numbers))
    return tuple(messages)


def _step(calls: Iterator[tuple[str, Any]], results: Iterator[str], numbers: Iterator[int]) -> Step:
    made = [ToolCall(f"call_{next(numbers)}", name, arguments) for name, arguments in calls]
    return made, [ToolResult(call.id, call.name, result) for call, result in zip(made, results, strict=False)]


def _exchange(step: Step) -> tuple[Message, ...]:
    calls, results = step
    return (Message.assistant("", calls), Message.tool(*results)) if calls else ()


def made(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


def plain(calls: Sequence[ToolCall]) -> list[str]:
    """Names and arguments, exactly: 4 is not 4.0, and True is not 1."""
    return [f"{call.name} {json.dumps(call.arguments, sort_keys=True)}" for call in calls]


# --- over a wire ------------------------------------------------------------------------------------------------


class RoundTrip:
    """One wire between the package's codec and the fake provider."""

    def __init__(self, wire: str) -> None:
        model, name = MODELS[wire]
        row, own = find_provider(model)
        self.codec, dialect = row.wires[name].load()
        rule = row.rule_for(own)
        self.target: Target[Any] = Target(row.prefix, own, dialect, row.capabilities_of(own), rule.facts)
        self.other = WIRES[wire]

    def __call__(self, case: Case) -> None:
        messages = conversation(case)
        calls = made(messages)
        sent = self.codec.encode(Request(messages, tuple(case["tools"])), self.target)
        asked = self.other.read(
            RequestNode(over(sent.body)), ReceivedRequest("POST", self._path(sent), sent.query, sent.headers)
        )
        self.arrived(asked, messages, case)
        again = [ToolCall("", call.name, call.arguments) for call in made(asked.request.messages)]
        answer = self.other.write(Response((Choice(tool_calls=tuple(again)),)), asked, IdSequence())
        (choice,) = self.codec.decode(over(answer), sent, self.target).choices
        assert plain(choice.tool_calls) == plain(calls)
        assert choice.finish_reason == "tool_calls"

    def arrived(self, asked: ParsedRequest, messages: Sequence[Message], case: Case) -> None:
        """The provider sees the same calls of the tools that it was offered, each with its answer."""
        offered: list[Any] = [tool["function"] for tool in asked.request.tools]
        names = dict(
            zip((spec["function"]["name"] for spec in case["tools"]), (f["name"] for f in offered), strict=True)
        )
        ours, theirs = made(messages), made(asked.request.messages)
        assert plain(theirs) == plain([ToolCall("", names[call.name], call.arguments) for call in ours])
        results = [result for message in asked.request.messages for result in message.tool_results]
        assert [result.id for result in results] == [call.id for call in theirs]
        expected = [result.text for message in messages for result in message.tool_results]
        assert [result.text for result in results] == expected

    def _path(self, sent: EncodedRequest) -> str:
        return self.other.base + sent.path


def over(body: Any) -> JsonValue:
    """Through bytes."""
    value: JsonValue = json.loads(json.dumps(body).encode())
    return value


# --- as text ------------------------------------------------------------------------------------------------------


class Choose(Signature):
    """Choose the calls that answer the request."""

    request: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


def as_text(case: Case) -> None:
    """A model without native tools reads the tools in the prompt and answers in blocks; rendered calls parse to equal calls."""
    tools = tools_of(case)
    calls = made(conversation(case))
    blocks = [json.dumps({"name": call.name, "arguments": call.arguments}) for call in calls]
    lm = FakeLM(["\n".join(f"~~~tool_call\n{block}\n~~~" for block in blocks)], capabilities=Capabilities())
    choose = Predict(Choose)
    choose.set_lm(lm)
    prediction = choose(request="Go on.", tools=list(tools.values()))
    assert plain(list(prediction.calls)) == plain(calls)
    (request,) = lm.requests
    assert all(json.dumps(name) in request.messages[0].text for name in tools)
    shown = read_calls(TAUGHT.calls(calls), tools)
    assert plain(shown.calls) == plain(calls)


# --- all of them ---------------------------------------------------------------------------------------------------


def count(wire: str, cases: Sequence[Case]) -> Count:
    """Send every case with reference calls over a wire."""
    round_trip: Callable[[Case], None] = as_text if wire == TEXT else RoundTrip(wire)
    lost: dict[str, str] = {}
    calls = 0
    for case in cases:
        if found := len(made(conversation(case))):
            calls += found
            try:
                round_trip(case)
            except Exception as error:  # every kind of loss is counted and shown
                lost[case["id"]] = f"{type(error).__name__}: {error}"
    return Count(calls, lost)


def line(wire: str, counted: Count) -> str:
    return f"{wire}: {counted.calls} reference calls, {len(counted.lost)} cases lost"


@pytest.fixture(scope="session")
def cases(fixtures: Path) -> list[Case]:
    return read_all(fixtures)


@pytest.mark.long
@pytest.mark.parametrize("wire", [*MODELS, TEXT])
def test_every_reference_call_survives(wire: str, cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    counted = count(wire, cases)
    with capsys.disabled():
        print(f"\n{line(wire, counted)}", end=" ")
    assert counted.calls > REFERENCE_CALLS
    assert counted.lost.keys() == EXCEPTIONS.get(wire, {}).keys(), counted.lost


def test_there_is_a_wire_for_every_wire_of_the_fake_provider() -> None:
    assert MODELS.keys() == WIRES.keys()


def test_a_lost_call_is_noticed(cases: list[Case]) -> None:
    dotted = next(case for case in cases if case.get("ground_truth") and "." in case["tools"][0]["function"]["name"])
    round_trip = RoundTrip("openai")
    decode = round_trip.codec.decode

    class Forgetful:
        encode = staticmethod(round_trip.codec.encode)

        @staticmethod
        def decode(body: Any, sent: EncodedRequest, target: Target[Any]) -> Response:
            body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = "{}"
            return decode(body, sent, target)

    round_trip.codec = cast(Any, Forgetful)
    with pytest.raises(AssertionError):
        round_trip(dotted)


if __name__ == "__main__":
    if (folder := bfcl_folder()) is None:
        raise SystemExit("There are no BFCL files: set SIGWIRE_FIXTURES.")
    everything = read_all(folder.parent)
    for each in (*MODELS, TEXT):
        print(line(each, count(each, everything)))
