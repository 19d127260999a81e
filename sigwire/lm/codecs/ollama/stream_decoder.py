"""``/api/chat``, streamed: lines of JSON with deltas -> events. The last line has ``done`` and the counts.

Texts arrive as deltas, calls complete, in one line or several. An error may be a line, with status 200.
"""

from __future__ import annotations

from collections.abc import Iterator

from sigwire.core.events import StreamEvent
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.parts import ThinkingPart
from sigwire.errors import LMError
from sigwire.lm.codecs.ollama.decoding import decode, decode_call, decode_extras, error_in_success
from sigwire.lm.codecs.ollama.tables import OllamaProfile
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["FRAMING", "OllamaDecoder", "decoder"]

FRAMING: Framing = "ndjson"

_TEXTS = ("content", "thinking")
_LISTS = ("tool_calls", "images")


class OllamaDecoder(StreamDecoder[OllamaProfile]):
    """Lines of one reply -> events. Raises ``LMError`` for an error in a line and for an end without ``done``.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.ollama import OLLAMA, encode
    >>> target = Target("ollama", "m", OLLAMA)
    >>> decoding = OllamaDecoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> [type(event).__name__ for event in decoding.feed({"message": {"content": "Hi"}, "done": False})]
    ['ResponseStart', 'TextDelta']
    >>> [type(event).__name__ for event in decoding.feed({"done": True, "done_reason": "stop"}) + decoding.close()]
    ['ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """

    def __init__(self, sent: EncodedRequest, target: Target[OllamaProfile]) -> None:
        super().__init__(sent, target)
        # decode() puts calls after the text, at any position in the stream.
        self._choice = ChoiceEvents(0, calls_last=True)
        self._body: JsonObject = {}
        self._message: JsonObject = {}
        self._reasoning: list[str] = []  # not in a part yet
        self._texts: dict[str, list[str]] = {}
        self._lists: dict[str, list[JsonValue]] = {}
        self._logprobs: list[JsonValue] = []

    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        yield from self._start_response(None, string_of(event, "model"))
        logprobs = event.get("logprobs")
        self._logprobs.extend(logprobs if isinstance(logprobs, list) else ())
        self._body |= {name: value for name, value in event.items() if name not in ("message", "logprobs")}
        yield from self._read_message(object_of(event.get("message")))

    def _read_message(self, message: JsonObject) -> Iterator[StreamEvent]:
        for name, value in message.items():
            if name in _TEXTS and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif name in _LISTS and isinstance(value, list):
                self._lists.setdefault(name, []).extend(value)
            elif value is not None:
                self._message[name] = value
        yield from self._read_reasoning(string_of(message, "thinking") or "")
        yield from self._read_text(string_of(message, "content") or "")
        for wire in objects_of(message.get("tool_calls")):
            yield from self._read_call(wire)

    def _read_reasoning(self, delta: str) -> Iterator[StreamEvent]:
        self._reasoning += [delta] if delta else []
        yield from self._choice.emit_reasoning(delta)

    def _read_text(self, delta: str) -> Iterator[StreamEvent]:
        yield from self._end_reasoning() if delta else ()
        yield from self._choice.emit_text(delta)

    def _end_reasoning(self) -> Iterator[StreamEvent]:
        if self._reasoning:
            yield from self._choice.emit_part(
                ThinkingPart("".join(self._reasoning), provider=self.target.profile.family)
            )
            self._reasoning = []

    def _read_call(self, wire: JsonObject) -> Iterator[StreamEvent]:
        """Start a call. It ends with the response, because decode() numbers the calls."""
        yield from self._end_reasoning()
        call = decode_call(wire, self.sent.names, self.target.profile.family)
        yield from self._choice.start_call(self._assign_call_id(call.id), call.name)
        yield from self._choice.emit_arguments(call.raw_arguments or dumps(call.arguments))

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def _end(self) -> Iterator[StreamEvent]:
        if self._body.get("done") is not True:
            raise self._truncation_error()
        body = self._joined_body()
        response = decode(body, self.sent, self.target)
        yield from self._end_reasoning()
        for call in response.choices[0].tool_calls:
            self._choice.end_call(call)
        yield from self._choice.end(len(response.choices[0].tool_calls))
        for part in decode_extras(object_of(body["message"]), self.target.profile.family):
            yield from self._choice.emit_part(part)
        yield from self._end_response(response, [self._choice])

    def _joined_body(self) -> JsonObject:
        texts: JsonObject = {name: "".join(deltas) for name, deltas in self._texts.items()}
        logprobs: JsonObject = {"logprobs": self._logprobs} if self._logprobs else {}
        return {**self._body, **logprobs, "message": {**self._message, **texts, **self._lists}}


decoder = OllamaDecoder
