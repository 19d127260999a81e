"""Properties of all wires: the provider accepts what a codec encodes, and reads back its own answers from history.

The provider's side is ``FakeProvider``'s: its readers refuse what the provider would refuse, and share no code with the codecs.
Whole bodies, dialects and rare parts are each codec's own tests.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import MemoTuple, Request, ResponseFormat, memoized
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import InputError, UnsupportedFeature
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import object_of
from sigwire.lm.providers.registry import find_provider
from sigwire.testing.places import WIRES
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import FakeWire, IdSequence, ParsedRequest, ReceivedRequest


@dataclass(frozen=True, repr=False)
class Pair:
    """One wire: the codec for a model, and the provider's side. ``thinks``: whether thinking is sent back."""

    codec: Codec[Any]
    target: Target[Any]
    provider: FakeWire
    thinks: bool

    @classmethod
    def of(cls, wire: str, model: str, name: str, thinks: bool) -> Pair:
        row, own = find_provider(model)
        codec, dialect = row.wires[name].load()
        capabilities, facts = row.capabilities_of(own), row.rule_for(own).facts
        return cls(codec, Target(row.prefix, own, dialect, capabilities, facts), WIRES[wire], thinks)

    def __repr__(self) -> str:
        return f"{self.target.provider}/{self.target.model}"

    def read(self, sent: EncodedRequest) -> ParsedRequest:
        """Return the request as the provider reads it, through bytes."""
        body = json.loads(json.dumps(sent.body).encode())
        exchange = ReceivedRequest("POST", self.provider.base + unquote(sent.path), sent.query, sent.headers)
        return self.provider.read(RequestNode(body), exchange)


PAIRS: Mapping[str, Pair] = {
    "openai": Pair.of("openai", "openai/gpt-4.1", "chat", thinks=False),
    "openai, reasoning": Pair.of("openai", "openai/gpt-5-mini", "chat", thinks=False),
    "openai-responses": Pair.of("openai-responses", "openai/gpt-5.5", "responses", thinks=True),
    "anthropic": Pair.of("anthropic", "anthropic/claude-opus-5", "messages", thinks=True),
    "anthropic, older": Pair.of("anthropic", "anthropic/claude-sonnet-4-5", "messages", thinks=True),
    "gemini": Pair.of("gemini", "gemini/gemini-3-flash", "generate", thinks=True),
    "gemini, older": Pair.of("gemini", "gemini/gemini-2.5-flash", "generate", thinks=True),
    "ollama": Pair.of("ollama", "ollama/qwen3", "chat", thinks=True),
    "bedrock": Pair.of("bedrock", "bedrock/amazon.nova-lite-v1:0", "converse", thinks=False),
    "bedrock, Claude": Pair.of("bedrock", "bedrock/us.anthropic.claude-sonnet-4-5-v1:0", "claude", thinks=True),
    "bedrock, newer Claude": Pair.of("bedrock", "bedrock/anthropic.claude-opus-5", "claude", thinks=True),
}
EVERY_WIRE = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


# --- what every codec refuses, and what it passes on ----------------------------------------------------------------------

ASKED = Message.user("q")
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


OTHER: JsonObject = {
    "type": "function",
    "function": {"name": "g.h", "description": "D.", "parameters": {"type": "object"}},
}


@EVERY_WIRE
@pytest.mark.parametrize("choice", [None, ToolChoice.AUTO, ToolChoice.named("f"), ToolChoice("auto", ("g.h",))])
def test_codec_encodes_the_same_body_from_a_memo_tuple_of_tools(pair: Pair, choice: ToolChoice | None) -> None:
    tools = MemoTuple([TOOL, OTHER])
    called = (
        ASKED,
        Message.assistant(tool_calls=[ToolCall("c_1", "old.f", {})]),
        Message.tool(ToolResult("c_1", "f", "")),
    )
    for messages in ((ASKED,), called, (ASKED,)):
        memo, plain = Request(messages, tools, choice), Request(messages, (TOOL, OTHER), choice)
        sent, expected = pair.codec.encode(memo, pair.target), pair.codec.encode(plain, pair.target)
        assert (sent.body, sent.warnings) == (expected.body, expected.warnings)
        for name in ("f", "g.h", "old.f"):
            assert sent.names.encode(name) == expected.names.encode(name)


@EVERY_WIRE
def test_codec_compiles_the_tools_of_a_memo_tuple_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    def counted(tool: Any) -> JsonObject:
        read.append(tool)
        return object_of(tool)

    monkeypatch.setattr("sigwire.lm.codecs.shared.tools.object_of", counted)
    tools = MemoTuple([TOOL, OTHER])
    bodies = [pair.codec.encode(Request((ASKED,), tools), pair.target).body for _ in range(3)]
    assert len(read) == 2
    assert bodies[0] == bodies[2]
    first, last = (body.get("tools") or object_of(body["toolConfig"])["tools"] for body in (bodies[0], bodies[2]))
    assert first is not last


@EVERY_WIRE
def test_codec_sees_a_spec_that_the_caller_changed_in_place(pair: Pair) -> None:
    function: JsonObject = {"name": "f", "description": "before"}
    tools: tuple[JsonObject, ...] = ({"type": "function", "function": function},)
    assert "before" in str(pair.codec.encode(Request((ASKED,), tools), pair.target).body)
    function["description"] = "after"
    assert "after" in str(pair.codec.encode(Request((ASKED,), tools), pair.target).body)


def test_copies_and_pickles_of_a_memo_tuple_are_plain_tuples() -> None:
    tools = MemoTuple([TOOL])
    for other in (pickle.loads(pickle.dumps(tools)), copy.copy(tools), copy.deepcopy(tools)):
        assert type(other) is tuple
        assert other == tools
    request = Request((ASKED,), tools)
    assert Request.from_json(request.to_json()) == request


def test_memo_tuple_bounds_the_results_that_it_keeps() -> None:
    numbers = MemoTuple([1, 2])
    assert [memoized(numbers, lambda items, n: sum(items) + n, n) for n in range(100)] == list(range(3, 103))
    assert len(numbers.results) <= 32


@EVERY_WIRE
def test_a_choice_of_a_tool_that_is_not_offered_is_an_input_error(pair: Pair) -> None:
    with pytest.raises(InputError, match=r"allows 'x'.*Offered: f"):
        pair.codec.encode(Request((ASKED,), (TOOL,), ToolChoice.named("x")), pair.target)


@EVERY_WIRE
def test_an_image_of_nothing_is_an_input_error(pair: Pair) -> None:
    seeing = replace(pair.target, capabilities=replace(pair.target.capabilities, images=True))
    with pytest.raises(InputError, match=r"url.*data"):
        pair.codec.encode(Request((Message("user", (ImagePart(),)),)), seeing)


@EVERY_WIRE
def test_limit_of_one_call_is_sent_or_a_warning(pair: Pair) -> None:
    plain, single = Request((ASKED,), (TOOL,)), Request((ASKED,), (TOOL,), parallel_tool_calls=False)
    sent = pair.codec.encode(single, pair.target)
    is_sent = sent.body != pair.codec.encode(plain, pair.target).body
    assert is_sent or "parallel_tool_calls" in {warning.feature for warning in sent.warnings}


@EVERY_WIRE
def test_row_50_extra_headers_are_sent(pair: Pair) -> None:
    usual = pair.codec.encode(Request((ASKED,)), pair.target).headers
    sent = pair.codec.encode(Request((ASKED,), options={"extra_headers": {"X-A": "1"}}), pair.target)
    assert sent.headers == {**usual, "X-A": "1"}


@EVERY_WIRE
@pytest.mark.parametrize("name", ["extra_body", "extra_headers"])
def test_extras_that_are_no_objects_are_input_errors(pair: Pair, name: str) -> None:
    with pytest.raises(InputError, match=name):
        pair.codec.encode(Request((ASKED,), options={name: "x"}), pair.target)


# --- any valid request -------------------------------------------------------------------------------------------------

NAMES = ("f", "math.add", "math_add", "a" * 70, "größe", "9lives")
words = st.text('abc é\n"\\{}<', min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
plain = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | words
arguments = st.dictionaries(st.sampled_from("xyz"), plain | st.lists(plain, max_size=2), max_size=2)
schemas: st.SearchStrategy[JsonObject] = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"x": {"type": ["integer", "null"], "minimum": 0}}, "required": ["x"]},
        {"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"enum": ["a", "b"]}}},
        {
            "type": "object",
            "properties": {"x": {"allOf": [{"$ref": "#/$defs/d"}], "default": 1}},
            "$defs": {"d": {"const": 1}},
        },
        {"type": "object", "properties": {"x": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True}}},
        {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]},
        {
            "type": "object",
            "properties": {"x": {"oneOf": [{"const": None}, {"pattern": "^a", "maxLength": 3}], "not": {}}},
        },
    ]
)


def spec(name: str, parameters: JsonObject) -> JsonObject:
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


tools = st.dictionaries(st.sampled_from(NAMES), schemas, max_size=3).map(
    lambda each: tuple(spec(name, schema) for name, schema in each.items())
)
choices_of_tools = st.sampled_from([None, ToolChoice.AUTO, ToolChoice.NONE, ToolChoice.REQUIRED])
formats = st.none() | schemas.map(ResponseFormat)
options: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 1),
        "max_tokens": st.integers(1100, 4000),
        "stop": st.lists(words, min_size=1, max_size=2),
        "seed": st.integers(0, 9),
        "n": st.integers(1, 3),
        "top_p": st.floats(0.1, 1),
        "reasoning": st.sampled_from(["low", "medium", "high"]),
    },
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns as a program makes them, and as it should not: calls without an answer, a system turn too late."""
    messages = [Message.system(draw(words))] if draw(st.booleans()) else []
    messages.append(Message.user(draw(words)))
    for turn in range(draw(st.integers(0, 3))):
        names = draw(st.lists(st.sampled_from(NAMES[:3]), max_size=2))
        calls = [ToolCall(f"call_{turn}_{n}", name, draw(arguments)) for n, name in enumerate(names)]
        messages.append(Message.assistant(draw(st.just("") | words) if calls else draw(words), calls))
        answered = calls[: draw(st.integers(0, 2))]
        if answered:
            results = [ToolResult(c.id, c.name, draw(plain), is_error=draw(st.booleans())) for c in answered]
            messages.append(Message.tool(*results))
        if draw(st.booleans()):
            messages.append(Message.system(draw(words)))
        if not answered or draw(st.booleans()):  # a model has the last word nowhere
            messages.append(Message.user(draw(words)))
    return tuple(messages)


requests = st.builds(
    Request, conversations(), tools, choices_of_tools, st.sampled_from([None, True, False]), formats, options
)


def attempt(pair: Pair, request: Request) -> EncodedRequest | str:
    """Return the encoded request, or the text of the error."""
    try:
        return pair.codec.encode(request, pair.target)
    except UnsupportedFeature as error:
        return str(error)


@EVERY_WIRE
@given(request=requests)
def test_any_valid_request_is_one_that_the_provider_takes_or_an_error_that_names_the_feature(
    pair: Pair, request: Request
) -> None:
    sent = attempt(pair, request)
    if isinstance(sent, str):
        features = {"tool", "reasoning", "response_format", "schema", *request.options}
        assert pair.target.provider in sent
        assert any(name in sent for name in features)
        return
    read = pair.read(sent).request
    called = {call.name for message in request.messages for call in message.tool_calls}
    # Converse requires the tools of a history's calls.
    declared = len(called) if pair.target.provider == "bedrock" and not request.tools else len(request.tools)
    assert len(read.tools) in (0, declared)
    warned = {warning.feature for warning in sent.warnings}
    assert len(read.tools) == len(request.tools) or warned or request.tool_choice == ToolChoice.NONE
    made = [call.arguments for message in request.messages for call in message.tool_calls]
    assert [call.arguments for message in read.messages for call in message.tool_calls] == made
    ids = [call.id for message in read.messages for call in message.tool_calls]
    assert [result.id for message in read.messages for result in message.tool_results] == ids


# --- answers in history ------------------------------------------------------------------------------------------------------

TOOLS = (spec("f", {"type": "object", "properties": {}}), spec("g", {"type": "object", "properties": {}}))
calls = st.builds(lambda name, given: ToolCall("", name, given), st.sampled_from("fg"), arguments)


@st.composite
def answers(draw: st.DrawFn, min_calls: int = 0) -> tuple[Part, ...]:
    """One answer of a model: thinking, text, calls, in the order in which every wire has them."""
    thought = [ThinkingPart(draw(words), signature="AAEC")] if draw(st.booleans()) else []
    made = draw(st.lists(calls, min_size=min_calls, max_size=3))
    said = [TextPart(draw(words))] if not made or draw(st.booleans()) else []
    return (*thought, *said, *made)


class Dialogue:
    """A program and a provider that talk over one wire; after every answer the history is stored and loaded."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.ids = IdSequence()
        self.history: list[Message] = [Message.user("q")]
        self.said: list[tuple[Part, ...]] = []

    def go_on(self, answer: tuple[Part, ...]) -> None:
        sent = self.pair.codec.encode(Request(tuple(self.history), TOOLS), self.pair.target)
        asked = self.pair.read(sent)
        body = self.pair.provider.write(Response((Choice.from_parts(answer),)), asked, self.ids)
        (choice,) = self.pair.codec.decode(json.loads(json.dumps(body)), sent, self.pair.target).choices
        self.said.append(answer)
        results = [ToolResult(call.id, call.name, "ok") for call in choice.tool_calls]
        following = Message.tool(*results) if results else Message.user("and?")
        self.history += [_stored(choice.message()), _stored(following)]

    def read_again(self) -> list[Message]:
        """The model's turns as the provider reads them at the end."""
        sent = self.pair.codec.encode(Request(tuple(self.history), TOOLS), self.pair.target)
        return [message for message in self.pair.read(sent).request.messages if message.role == "assistant"]


def _stored(message: Message) -> Message:
    return Message.from_json(json.loads(json.dumps(message.to_json())))


def spoken(parts: tuple[Part, ...], thinks: bool) -> list[object]:
    """Return the content of a turn without ids."""
    shown: list[object] = []
    for part in parts:
        if isinstance(part, ThinkingPart | OpaquePart):
            text = part.text if isinstance(part, ThinkingPart) else _summary(part)
            shown += [("thinking", text)] if thinks and text else []
        elif isinstance(part, ToolCall):
            shown.append((part.name, json.dumps(part.arguments, sort_keys=True)))
        elif isinstance(part, TextPart):
            shown += [part.text] if part.text else []
    return shown


def _summary(part: OpaquePart) -> str:
    """Return the summary of a reasoning item, on the wire that has items."""
    assert isinstance(part.data, dict)
    summary: Any = part.data["summary"]
    return "".join(piece["text"] for piece in summary)


def check(dialogue: Dialogue) -> None:
    thinks = dialogue.pair.thinks
    turns = dialogue.read_again()
    assert [spoken(turn.parts, thinks) for turn in turns] == [spoken(said, thinks) for said in dialogue.said]
    ours = [call.id for message in dialogue.history for call in message.tool_calls]
    assert len(set(ours)) == len(ours)
    theirs = [call.id for turn in turns for call in turn.tool_calls]
    assert theirs == ours


@EVERY_WIRE
@given(said=st.lists(answers(), min_size=1, max_size=3))
def test_answers_put_into_history_are_read_back_equal(pair: Pair, said: list[tuple[Part, ...]]) -> None:
    dialogue = Dialogue(pair)
    for answer in said:
        dialogue.go_on(answer)
    check(dialogue)


@EVERY_WIRE
def test_ten_turns_with_parallel_calls_text_and_thinking(pair: Pair) -> None:
    dialogue = Dialogue(pair)
    for turn in range(10):
        pair_of_calls = (ToolCall("", "f", {"x": turn}), ToolCall("", "f", {"x": turn}), ToolCall("", "g", {}))
        thought = ThinkingPart(f"hm {turn}", signature="AAEC")
        dialogue.go_on((thought, TextPart(f"t {turn}"), *pair_of_calls) if turn % 2 else (thought, *pair_of_calls))
    dialogue.go_on((TextPart("done"),))
    check(dialogue)
    assert len(dialogue.said) == 11
