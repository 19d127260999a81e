"""The probes as a table. Each row has its request, and a function that reads from an answer whether the feature is there.

A ``Sighting`` is (holds, seen): ``None`` decides nothing. The names in ``needs`` are capabilities that promise the feature;
``lacks`` is one that takes the promise back. A row with ``only`` is asked if the model has that capability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from sigwire.adapters.chat import ChatAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import ResponseEnd, StreamEvent, TextDelta, ToolCallEnd
from sigwire.core.json import JsonObject, loads
from sigwire.core.messages import MediaPart, Message
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

__all__ = ["NOT_REFUSED", "PROBES", "Judge", "Probe", "Sighting", "text_request", "whole_stream"]


class Sighting(NamedTuple):
    """Whether an answer shows the feature, and what was seen, for people."""

    holds: bool | None
    seen: str


Judge: TypeAlias = Callable[[Response], Sighting]


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to a model. ``feature``: what it decides, for people. ``needs``: capabilities, space-separated.

    ``instead``: the request of models to which the encoder cannot send the other. ``then`` returns the request after the
    answer, which is judged in its place. ``streamed``: the answer is read as a stream and must be whole. ``error``: the
    class of the error that the request must have. ``change`` returns the model to ask: with a wrong key, of a wrong name.
    ``is_behaviour``: the model may choose; its answers are counted, not compared.
    """

    feature: str
    judge: Judge
    request: Request = Request((ask.hello,))
    needs: str = ""
    _: KW_ONLY
    instead: Request | None = None
    then: Callable[[Request, Response], Request] | None = None
    streamed: bool = False
    error: type[LMError] | None = None
    change: Callable[[LM], LM] | None = None
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


def _text(response: Response) -> Sighting:
    has_text = bool(_choice(response).text.strip())
    return Sighting(has_text, "a text" if has_text else "no text")


def _accepted(response: Response) -> Sighting:
    return Sighting(True, "accepted")


def _usage(response: Response) -> Sighting:
    known = bool(response.usage.input_tokens and response.usage.output_tokens)
    return Sighting(known, "both counts" if known else "no counts of tokens")


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

    def judge(response: Response) -> Sighting:
        names = _called(response)
        return Sighting(holds(names), ", ".join(names) or "no call")

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

    def judge(response: Response) -> Sighting:
        choice = _choice(response)
        if choice.tool_calls:
            return Sighting(False, "a call")
        try:
            found = problems(loads(choice.text))
        except ValueError:
            return Sighting(False, "a text that is no JSON")
        return Sighting(not found, "an instance" if not found else "JSON of another shape")

    return judge


def _thinks(response: Response) -> Sighting:
    shown = bool(_choice(response).reasoning)
    return Sighting(shown, "shown" if shown else "not shown")


def _thinks_not(response: Response) -> Sighting:
    thought = bool(_choice(response).reasoning or response.usage.reasoning_tokens)
    return Sighting(not thought, "thought" if thought else "absent")


def _reads_digit(response: Response) -> Sighting:
    read = "7" in _choice(response).text or "seven" in _choice(response).text.lower()
    return Sighting(True, f"accepted; the digit was {'read' if read else 'not read'}")


def _text_and_usage(response: Response) -> Sighting:
    found = _text(response)
    return _usage(response) if found.holds else found


def _cached(response: Response) -> Sighting:
    count = response.usage.cached_tokens
    return Sighting(bool(count), "cached tokens reported" if count else "no cached tokens reported")


def _truncated(response: Response) -> Sighting:
    reason = _choice(response).finish_reason
    return Sighting(reason == "length", f"finish reason {reason}")


NOT_REFUSED = Sighting(None, "not refused")
"""The host does not check: there is no error whose class could be wrong."""


def _not_refused(response: Response) -> Sighting:
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


def _about(question: str, media: MediaPart) -> Request:
    return text_request(Message.user(question, media))


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


def _text_calls(response: Response) -> Sighting:
    return _some(_TEXT_TOOLS.normalize(response, ask.HELD))


# --- the table

_REQUIRED = ToolChoice.REQUIRED
_NO_NAME = "sigwire-no-such-model"


def _wrong_model(lm: LM) -> LM:
    prefix = lm.model.partition("/")[0]
    # A price, or a budget of money would refuse the model; a refused request costs nothing.
    return lm.copy(model=f"{prefix}/{_NO_NAME}", price=Price(input=0, output=0))


def _wrong_key(lm: LM) -> LM:
    return lm.copy(api_key="sk-sigwire-verify-no-such-key")


_LATIN = text_request(Message.system("Answer in Latin."), ask.hello)
_TURNS = text_request(ask.hello, Message.assistant("Salve!"), Message.user("And in Greek?"))
_CACHED = text_request(
    ask.LONG, Message.user("What does article 7 cost?"), repeated=(1,), options={"prompt_cache": {"ttl": "5m"}}
)
# Some wires take no limit below 16.
_LENGTH = text_request(Message.user("Count from one to one hundred in words."), options={"max_tokens": 16})
_WRONG_OPTION = text_request(options={"max_tokens": "many"})
_AS_TEXT = _TEXT_TOOLS.format({"question": ask.weather.text, "tools": list(ask.HELD)})
_CALLED, _BOTH = "native_tools", "native_tools json_schema tools_with_json_schema"
_FORCED, _PARALLEL = "native_tools tool_choice", "native_tools parallel_tool_calls"

PROBES: Mapping[str, Probe] = {
    "text": Probe("text", _text),
    "usage": Probe("token counts", _usage),
    "system": Probe("instructions", _accepted, _LATIN),
    "history": Probe("earlier turns", _accepted, _TURNS),
    "tools": Probe("a call of its own choice", _some, _tools(ask.weather), _CALLED, is_behaviour=True),
    "tool_result": Probe("results of calls", _accepted, Request(ask.RESULT, ask.TOOLS), _CALLED),
    "forced": Probe("a call is forced", _some, _tools(ask.hello, _REQUIRED), _FORCED),
    "named": Probe("a call of one tool is forced", _named, _tools(ask.weather, ToolChoice.named(ask.CLOCK)), _FORCED),
    "none": Probe("calls are forbidden", _none, _tools(ask.weather, ToolChoice.NONE), _CALLED),
    "parallel": Probe("several calls in a turn", _two, _tools(ask.TWO_PLACES, parallel=True), _PARALLEL),
    "single": Probe("one call in a turn at most", _at_most_one, _tools(ask.TWO_PLACES, parallel=False), _CALLED),
    "schema": Probe("output by schema", _instance(ask.SCHEMA), _schema(ask.SCHEMA), "json_schema"),
    "enum": Probe("an enum in a schema", _instance(ask.ENUM), _schema(ask.ENUM), "json_schema"),
    "nested": Probe("a schema in a schema", _instance(ask.NESTED), _schema(ask.NESTED), "json_schema"),
    "schema_tools": Probe("a schema beside tools", _instance(ask.SCHEMA), _schema(ask.SCHEMA, tools=ask.TOOLS), _BOTH),
    "stream_text": Probe("a stream of text, with token counts", _text_and_usage, streamed=True),
    "stream_calls": Probe(
        "a stream of calls",
        _some,
        _tools(ask.TWO_PLACES, _REQUIRED),
        _CALLED,
        instead=_tools(ask.TWO_PLACES),
        streamed=True,
    ),
    "stream_schema": Probe(
        "a stream of output by schema", _instance(ask.SCHEMA), _schema(ask.SCHEMA), "json_schema", streamed=True
    ),
    "thinking": Probe("thinking is shown", _thinks, _thinking("low"), "reasoning", lacks="reasoning_hidden"),
    "thinking_off": Probe("thinking is switched off", _thinks_not, _thinking("off"), only="reasoning"),
    "thinking_turn": Probe("a turn after thinking", _accepted, _TURN, _CALLED, then=_next_turn, only="reasoning"),
    "image": Probe("images", _reads_digit, _about("Which digit is this?", ask.DIGIT), only="images"),
    "audio": Probe("sound", _accepted, _about("Is there a voice?", ask.silence()), only="audio"),
    "file": Probe("documents", _accepted, _about("Which place is named?", ask.document()), only="files"),
    "cache": Probe("cached tokens of a repeated prompt", _cached, _CACHED, then=_same, is_behaviour=True),
    "length": Probe("an answer that reaches the limit", _truncated, _LENGTH),
    "bad_option": Probe("the error of a wrong option", _not_refused, _WRONG_OPTION, error=LMInvalidRequestError),
    "bad_model": Probe(
        "the error of an unknown model", _not_refused, error=LMUnsupportedModelError, change=_wrong_model
    ),
    "bad_key": Probe("the error of a wrong key", _not_refused, error=LMAuthenticationError, change=_wrong_key),
    "text_tools": Probe("calls written as text", _text_calls, _AS_TEXT, is_behaviour=True),
}
"""The probes by name, in the order in which they are asked."""
