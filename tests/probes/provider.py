"""A fake provider that does what the provider table promises of a model, and one lie at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from sigwire.core.json import JsonObject, dumps
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider
from sigwire.testing.answers import Answer, Events, Fault, Streamed
from sigwire.testing.wire import FakeWire, ParsedRequest, ReceivedRequest, Rejected

__all__ = ["KEY", "LIES", "WIRES", "Honest", "Lie", "Provider", "model_at"]


KEY = "sk-canary-verify-51Qz"
WIRES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "openai": ("openai/gpt-4.1", {}),
    "openai-responses": ("openai/gpt-5.5", {"wire": "responses"}),
    "anthropic": ("anthropic/claude-opus-5", {}),
    "gemini": ("gemini/gemini-3-flash", {}),
    "ollama": ("ollama/qwen3", {}),
    "bedrock": ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", {}),
}
SHOWS_THINKING = ("anthropic", "gemini", "ollama", "bedrock")

_ARGUMENTS: Mapping[str, list[JsonObject]] = {
    "get_weather": [{"city": "Oslo"}, {"city": "Lima"}],
    "get_time": [{"zone": "UTC"}, {"zone": "PET"}],
}


@dataclass(frozen=True)
class Honest:
    """A model that keeps every promise. Its fields are its lies."""

    shows_thinking: bool = True
    is_parallel: bool = True
    obeys_name: bool = True
    obeys_none: bool = True
    obeys_schema: bool = True
    sees: bool = True
    caches: bool = True
    reports_length: bool = True
    takes_results: bool = True
    takes_system: bool = True

    def __call__(self, request: Request) -> Answer:
        parts = [part for message in request.messages for part in message.parts]
        roles = [message.role for message in request.messages]
        # Answers in the forms that the probes do not ask for have system messages, too.
        asks_in_latin = "Latin" in request.messages[0].text
        refused = (
            (not self.sees and any(isinstance(part, ImagePart) for part in parts))
            or (not self.takes_results and "tool" in roles and len(roles) == 3)
            or (not self.takes_system and "system" in roles and asks_in_latin)
        )
        return Fault("bad_request", "This input is not supported.") if refused else self._answer(request)

    def _answer(self, request: Request) -> Response:
        thinks = request.options.get("reasoning") not in (None, "off")
        reasoning = "Let me think." if thinks and self.shows_thinking else None
        is_repeated = self.caches and "Rule 7:" in dumps(request.to_json())
        usage = Usage(cached_tokens=1024 if is_repeated else 0, reasoning_tokens=3 if thinks else 0)
        choice = self._choice(request)
        return Response((replace(choice, reasoning=reasoning),), usage)

    def _choice(self, request: Request) -> Choice:
        last = request.messages[-1]
        if request.response_format is not None and request.response_format.schema is not None:
            return Choice(dumps(instance(request.response_format.schema)) if self.obeys_schema else "Hello there!")
        if calls := self._calls(request):
            return Choice("", tuple(calls), finish_reason="tool_calls")
        if "You can call tools" in request.messages[0].text:
            return Choice('~~~tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n~~~')
        if "one hundred" in last.text:
            return Choice("one two", finish_reason="length" if self.reports_length else "stop")
        return Choice("Hello! A seven.")

    def _calls(self, request: Request) -> list[ToolCall]:
        choice, asked = request.tool_choice, request.messages[-1].text
        mode = choice.mode if choice else "auto"
        wants = "Call the tool" in asked or mode == "required"
        if not request.tools or not wants or (mode == "none" and self.obeys_none):
            return []
        name = choice.allowed[0] if choice and choice.allowed and self.obeys_name else "get_weather"
        offered = [str(tool["function"]["name"]) for tool in request.tools if isinstance(tool["function"], dict)]
        name = name if name in offered else offered[0]
        two = "both" in asked and self.is_parallel and request.parallel_tool_calls is not False
        return [ToolCall("", name, each) for each in _ARGUMENTS[name][: 2 if two else 1]]


def instance(schema: Any) -> Any:
    """Return a value that fits a schema of the probes."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: instance(inner) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [instance(schema["items"])]
    return {"string": "hello", "integer": 3, "boolean": True}[schema["type"]]


class Provider(FakeProvider):
    """Serves an honest model, and may lie in streams, or in the error of an unknown model."""

    def __init__(self, wire: str, lie: str = "", **options: Any) -> None:
        model, _ = WIRES[wire]
        honest = Honest(shows_thinking=wire in SHOWS_THINKING)
        fields = honest.__dataclass_fields__
        answers = replace(honest, **{lie: False}) if lie in fields else honest
        super().__init__(answers, key=KEY, models={model.partition("/")[2]}, **options)
        self.lie = lie

    def _read(self, wire: FakeWire, exchange: ReceivedRequest) -> ParsedRequest:
        try:
            return super()._read(wire, exchange)
        except Rejected as refusal:
            if self.lie == "error class" and refusal.fault.kind == "not_found":
                raise Rejected(Fault("permission", "Go away.")) from None
            raise

    def _events(
        self, wire: FakeWire, parsed: ParsedRequest, reply: Response | Events, how: Streamed
    ) -> list[JsonObject | str | bytes]:
        if self.lie in ("ids", "arguments") and isinstance(reply, Response):
            calls = tuple(self._changed(wire, call) for call in reply.choices[0].tool_calls)
            reply = replace(reply, choices=(replace(reply.choices[0], tool_calls=calls),))
        events: list[JsonObject | str | bytes] = super()._events(wire, parsed, reply, how)
        if self.lie == "usage":
            events[:] = [cast("JsonObject", _without(event, _USAGE)) for event in events]
        if self.lie == "arguments" and wire.name not in _TEXTS:
            places = [
                place for place, event in enumerate(events) if any(mark in str(event) for mark in _ARGUMENT_DELTAS)
            ]
            for place in places[-1:]:
                del events[place]
        return events

    def _changed(self, wire: FakeWire, call: ToolCall) -> ToolCall:
        if self.lie == "ids":
            return replace(call, id="call_same0001")
        return ToolCall.read(call.id, call.name, call.arguments_text[:-2]) if wire.name in _TEXTS else call


_TEXTS = ("openai", "openai-responses")  # arguments are texts, also broken ones
_USAGE = frozenset("usage usageMetadata prompt_eval_count eval_count".split())
_ARGUMENT_DELTAS = ("partial_json", "'toolUse': {'input'")


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: _without(each, names) for name, each in members.items() if name not in names}
    return [_without(each, names) for each in cast("Any", value)] if isinstance(value, list) else value


class Lie(NamedTuple):
    """``rows``: the probes that find it, space-separated; ``wires``: those that can show it."""

    rows: str
    wires: tuple[str, ...] = tuple(WIRES)


_TEXT_ARGUMENTS = ("openai", "openai-responses", "anthropic", "bedrock")
_CHOICES = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")

LIES: Mapping[str, Lie] = {
    "is_parallel": Lie("parallel"),
    "obeys_name": Lie("named", _CHOICES),
    "obeys_none": Lie("none", ("openai", "openai-responses", "anthropic", "gemini")),
    "obeys_schema": Lie("schema enum nested schema_tools stream_schema"),
    "usage": Lie("stream_text"),
    "ids": Lie("stream_calls"),
    "arguments": Lie("stream_calls", _TEXT_ARGUMENTS),
    "shows_thinking": Lie("thinking", SHOWS_THINKING),
    "sees": Lie("image"),
    "caches": Lie("cache", _CHOICES),
    "reports_length": Lie("length"),
    "error class": Lie("bad_model"),
    "takes_results": Lie("tool_result thinking_turn"),
    "takes_system": Lie("system"),
}


def model_at(provider: FakeProvider, wire: str, **options: Any) -> LM:
    """Return the model of a wire at the provider."""
    model, own = WIRES[wire]
    given: dict[str, Any] = {"api_key": KEY, "limit": False, **own, **options}
    return LM(model, base_url=provider.url(wire), **given)
