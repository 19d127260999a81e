"""The probes as a table. Each row has its request, and a function that reads from an answer whether the feature is there.

A ``Finding`` is (holds, seen): ``None`` decides nothing. The names in ``needs`` are capabilities that promise the feature;
``lacks`` is one that takes the promise back. A row with ``only`` is asked if the model has that capability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from sigwire.adapters.chat import ChatAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import ResponseEnd, StreamEvent, TextDelta, ToolCallEnd
from sigwire.core.json import JsonObject, loads
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.schema import validator
from sigwire.core.tools.calls import ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import LMAuthenticationError, LMError, LMInvalidRequestError, LMUnsupportedModelError
from sigwire.lm.client import LM
from sigwire.lm.codecs.shared.choices import is_synthetic_id
from sigwire.lm.policy.money.prices import Price
from sigwire.probes import questions as ask
from sigwire.signatures.signature import make_signature

__all__ = ["NOT_REFUSED", "PROBES", "Finding", "Probe", "text_request", "whole_stream"]


class Finding(NamedTuple):
    """Whether an answer shows the feature, and what was seen, for people."""

    holds: bool | None
    seen: str


Judge: TypeAlias = Callable[[Response], Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question to a model. ``feature``: what it decides, for people.

    ``instead``: the request of models to which the encoder cannot send the other. ``then`` returns the request after the
    answer, which is judged in its place. ``streamed``: the answer is read as a stream and must be whole. ``error``: the
    class of the error that the request must have. ``change`` returns the model to ask: with a wrong key, of a wrong name.
    ``is_behaviour``: the model may choose; its answers are counted, not compared.
    """

    feature: str
    judge: Judge
    request: Request = Request((ask.hello,))
    instead: Request | None = None
    then: Callable[[Request, Response], Request] | None = None
    streamed: bool = False
    error: type[LMError] | None = None
    change: Callable[[LM], LM] | None = None
    needs: tuple[str, ...] = ()
    lacks: str = ""
    only: str = ""
    is_behaviour: bool = False

    @property
    def requests(self) -> int:
        """How many requests it takes once."""
        return 1 if self.then is None else 2

    def applies(self, capabilities: Capabilities, *, over_http: bool) -> bool:
        """Return True if the model can be asked: it has the input, and a server that can refuse."""
        return (not self.only or bool(getattr(capabilities, self.only))) and (over_http or self.error is None)


# --- what an answer shows


def _choice(response: Response) -> Choice:
    return response.choices[0] if response.choices else Choice()


def _text(response: Response) -> Finding:
    has_text = bool(_choice(response).text.strip())
    return Finding(has_text, "a text" if has_text else "no text")


def _accepted(response: Response) -> Finding:
    return Finding(True, "accepted")


def _usage(response: Response) -> Finding:
    known = bool(response.usage.input_tokens and response.usage.output_tokens)
    return Finding(known, "both counts" if known else "no counts of tokens")


def _called(response: Response) -> list[str]:
    """Return the names of the calls; that of a call with invalid arguments has a mark."""
    calls = _choice(response).tool_calls
    problems = {tool.name: validator(tool.parameters) for tool in ask.HELD}
    return [
        call.name
        + ("" if call.name in problems and not problems[call.name](call.arguments) else " with invalid arguments")
        for call in calls
    ]


def _calls(holds: Callable[[list[str]], bool]) -> Judge:
    """Judge the names of the calls of an answer."""

    def judge(response: Response) -> Finding:
        names = _called(response)
        return Finding(holds(names), ", ".join(names) or "no call")

    return judge


_VALID = {ask.WEATHER, ask.CLOCK}
_some = _calls(lambda names: bool(names) and _VALID.issuperset(names))
_named = _calls(lambda names: bool(names) and set(names) == {ask.CLOCK})
_none = _calls(lambda names: not names)
_two = _calls(lambda names: len(names) > 1 and _VALID.issuperset(names))
_at_most_one = _calls(lambda names: len(names) <= 1)


def _instance(schema: JsonObject) -> Judge:
    """Judge whether the text is an instance of a schema, and nothing else."""
    problems = validator(schema)

    def judge(response: Response) -> Finding:
        choice = _choice(response)
        if choice.tool_calls:
            return Finding(False, "a call")
        try:
            found = problems(loads(choice.text))
        except ValueError:
            return Finding(False, "a text that is no JSON")
        return Finding(not found, "an instance" if not found else "JSON of another shape")

    return judge


def _thinks(response: Response) -> Finding:
    shown = bool(_choice(response).reasoning)
    return Finding(shown, "shown" if shown else "not shown")


def _thinks_not(response: Response) -> Finding:
    thought = bool(_choice(response).reasoning or response.usage.reasoning_tokens)
    return Finding(not thought, "thought" if thought else "absent")


def _reads_digit(response: Response) -> Finding:
    read = "7" in _choice(response).text or "seven" in _choice(response).text.lower()
    return Finding(True, f"accepted; the digit was {'read' if read else 'not read'}")


def _text_and_usage(response: Response) -> Finding:
    found = _text(response)
    return _usage(response) if found.holds else found


def _cached(response: Response) -> Finding:
    count = response.usage.cached_tokens
    return Finding(bool(count), "cached tokens reported" if count else "no cached tokens reported")


def _truncated(response: Response) -> Finding:
    reason = _choice(response).finish_reason
    return Finding(reason == "length", f"finish reason {reason}")


NOT_REFUSED = Finding(None, "not refused")
"""The host does not check: there is no error whose class could be wrong."""


def _not_refused(response: Response) -> Finding:
    return NOT_REFUSED


def whole_stream(response: Response, events: Sequence[StreamEvent]) -> str:
    """Return what a stream lacks, "" if it is whole: its end, its usage, deltas of its text, ids and ends of its calls."""
    choice = _choice(response)
    ids = [event.call.id for event in events if isinstance(event, ToolCallEnd)]
    made = [is_synthetic_id(each) for each in ids]
    if not any(isinstance(event, ResponseEnd) for event in events):
        return "no end"
    if ids != [call.id for call in choice.tool_calls]:
        return "calls without an end"
    if any(made) and not all(made):  # sigwire replaces an id that is repeated, or missing
        return "calls with repeated ids"
    if choice.text and "".join(event.text for event in events if isinstance(event, TextDelta)) != choice.text:
        return "deltas that are not the text"
    return ""


# --- requests


def text_request(*messages: Message, **rest: Any) -> Request:
    """Return a request of these messages, by default of the greeting."""
    return Request(messages or (ask.hello,), **rest)


def _tools(message: Message, choice: ToolChoice | None = None, parallel: bool | None = None) -> Request:
    return Request((message,), ask.TOOLS, choice, parallel)


def _schema(schema: JsonObject, **rest: Any) -> Request:
    return text_request(response_format=ResponseFormat(schema, "greeting", required=True), **rest)


def _thinking(effort: Literal["low", "off"], *messages: Message) -> Request:
    # Thinking counts against the limit, and the least budget of some models is 1,024 tokens.
    return text_request(*messages, options={"reasoning": effort, "max_tokens": 2048})


_TURN = replace(_tools(ask.weather), options={"reasoning": "low", "max_tokens": 2048})


def _next_turn(request: Request, response: Response) -> Request:
    """Return the request with the answer, its thinking included, and the results of its calls or another question."""
    choice = _choice(response)
    results = [ToolResult(call.id, call.name, "rain, 7 degrees") for call in choice.tool_calls]
    following = Message.tool(*results) if results else Message.user("And in Lima?")
    return replace(request, messages=(*request.messages, choice.message(), following))


def _same(request: Request, response: Response) -> Request:
    return request


# --- the fallback protocol: the prompt for models without tools, and what its adapter reads


_TEXT_TOOLS = ChatAdapter().plan(make_signature("question, tools: list[Tool] -> calls: ToolCalls"), Capabilities())


def _text_calls(response: Response) -> Finding:
    return _some(_TEXT_TOOLS.normalize(response, ask.HELD))


# --- the table

_REQUIRED, _NONE = ToolChoice.REQUIRED, ToolChoice.NONE
_NO_NAME = "sigwire-no-such-model"


def _wrong_model(lm: LM) -> LM:
    prefix = lm.model.partition("/")[0]
    # A price, or a budget of money would refuse the model; a refused request costs nothing.
    return lm.copy(model=f"{prefix}/{_NO_NAME}", price=Price(input=0, output=0))


def _wrong_key(lm: LM) -> LM:
    return lm.copy(api_key="sk-sigwire-verify-no-such-key")


PROBES: Mapping[str, Probe] = {
    "text": Probe(feature="text", judge=_text),
    "usage": Probe(feature="token counts", judge=_usage),
    "system": Probe(
        feature="instructions", judge=_accepted, request=text_request(Message.system("Answer in Latin."), ask.hello)
    ),
    "history": Probe(
        feature="earlier turns",
        judge=_accepted,
        request=text_request(ask.hello, Message.assistant("Salve!"), Message.user("And in Greek?")),
    ),
    "tools": Probe(
        feature="a call of its own choice",
        judge=_some,
        request=_tools(ask.weather),
        needs=("native_tools",),
        is_behaviour=True,
    ),
    "tool_result": Probe(
        feature="results of calls",
        judge=_accepted,
        request=Request(ask.RESULT, ask.TOOLS),
        needs=("native_tools",),
    ),
    "forced": Probe(
        feature="a call is forced",
        judge=_some,
        request=_tools(ask.hello, _REQUIRED),
        needs=("native_tools", "tool_choice"),
    ),
    "named": Probe(
        feature="a call of one tool is forced",
        judge=_named,
        request=_tools(ask.weather, ToolChoice.named(ask.CLOCK)),
        needs=("native_tools", "tool_choice"),
    ),
    "none": Probe(
        feature="calls are forbidden", judge=_none, request=_tools(ask.weather, _NONE), needs=("native_tools",)
    ),
    "parallel": Probe(
        feature="several calls in a turn",
        judge=_two,
        request=_tools(ask.TWO_PLACES, parallel=True),
        needs=("native_tools", "parallel_tool_calls"),
    ),
    "single": Probe(
        feature="one call in a turn at most",
        judge=_at_most_one,
        request=_tools(ask.TWO_PLACES, parallel=False),
        needs=("native_tools",),
    ),
    "schema": Probe(
        feature="output by schema", judge=_instance(ask.SCHEMA), request=_schema(ask.SCHEMA), needs=("json_schema",)
    ),
    "enum": Probe(
        feature="an enum in a schema", judge=_instance(ask.ENUM), request=_schema(ask.ENUM), needs=("json_schema",)
    ),
    "nested": Probe(
        feature="a schema in a schema",
        judge=_instance(ask.NESTED),
        request=_schema(ask.NESTED),
        needs=("json_schema",),
    ),
    "schema_tools": Probe(
        feature="a schema beside tools",
        judge=_instance(ask.SCHEMA),
        request=_schema(ask.SCHEMA, tools=ask.TOOLS),
        needs=("native_tools", "json_schema", "tools_with_json_schema"),
    ),
    "stream_text": Probe(feature="a stream of text, with token counts", judge=_text_and_usage, streamed=True),
    "stream_calls": Probe(
        feature="a stream of calls",
        judge=_some,
        request=_tools(ask.TWO_PLACES, _REQUIRED),
        instead=_tools(ask.TWO_PLACES),
        streamed=True,
        needs=("native_tools",),
    ),
    "stream_schema": Probe(
        feature="a stream of output by schema",
        judge=_instance(ask.SCHEMA),
        request=_schema(ask.SCHEMA),
        streamed=True,
        needs=("json_schema",),
    ),
    "thinking": Probe(
        feature="thinking is shown",
        judge=_thinks,
        request=_thinking("low"),
        needs=("reasoning",),
        lacks="reasoning_hidden",
    ),
    "thinking_off": Probe(
        feature="thinking is switched off", judge=_thinks_not, request=_thinking("off"), only="reasoning"
    ),
    "thinking_turn": Probe(
        feature="a turn after thinking",
        judge=_accepted,
        request=_TURN,
        then=_next_turn,
        needs=("native_tools",),
        only="reasoning",
    ),
    "image": Probe(
        feature="images",
        judge=_reads_digit,
        request=text_request(Message.user("Which digit is this?", ask.digit())),
        only="images",
    ),
    "audio": Probe(
        feature="sound",
        judge=_accepted,
        request=text_request(Message.user("Is there a voice?", ask.silence())),
        only="audio",
    ),
    "file": Probe(
        feature="documents",
        judge=_accepted,
        request=text_request(Message.user("Which place is named?", ask.document())),
        only="files",
    ),
    "cache": Probe(
        feature="cached tokens of a repeated prompt",
        judge=_cached,
        request=text_request(
            ask.LONG, Message.user("What does article 7 cost?"), repeated=(1,), options={"prompt_cache": {"ttl": "5m"}}
        ),
        then=_same,
        is_behaviour=True,
    ),
    "length": Probe(
        feature="an answer that reaches the limit",
        judge=_truncated,
        # Some wires take no limit below 16.
        request=text_request(Message.user("Count from one to one hundred in words."), options={"max_tokens": 16}),
    ),
    "bad_option": Probe(
        feature="the error of a wrong option",
        judge=_not_refused,
        request=text_request(options={"max_tokens": "many"}),
        error=LMInvalidRequestError,
    ),
    "bad_model": Probe(
        feature="the error of an unknown model", judge=_not_refused, error=LMUnsupportedModelError, change=_wrong_model
    ),
    "bad_key": Probe(
        feature="the error of a wrong key", judge=_not_refused, error=LMAuthenticationError, change=_wrong_key
    ),
    "text_tools": Probe(
        feature="calls written as text",
        judge=_text_calls,
        request=_TEXT_TOOLS.format({"question": ask.weather.text, "tools": list(ask.HELD)}),
        is_behaviour=True,
    ),
}
"""The probes by name, in the order in which they are asked."""
