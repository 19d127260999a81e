"""``/api/chat``, streamed: a line of JSON for each piece of the answer, the last one with ``done`` and the counts.

Texts come in fragments, calls whole, on one line or several. An error may come as a line of its own, under status 200.
"""

from __future__ import annotations

from collections.abc import Iterator

from sigwire.core.events import StreamEvent
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import ThinkingPart
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


def decoder(sent: EncodedRequest, target: Target[OllamaProfile]) -> OllamaDecoder:
    """A decoder for one streamed reply.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.ollama import OLLAMA, encode
    >>> target = Target("ollama", "m", OLLAMA)
    >>> reading = decoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> [type(event).__name__ for event in reading.feed({"message": {"content": "Hi"}, "done": False})]
    ['ResponseStart', 'TextDelta']
    >>> [type(event).__name__ for event in reading.feed({"done": True, "done_reason": "stop"}) + reading.close()]
    ['ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """
    return OllamaDecoder(sent, target)


class OllamaDecoder(StreamDecoder[OllamaProfile]):
    """Lines of one answer -> events; raises ``LMError`` for an error on a line and for an end without ``done``."""

    def __init__(self, sent: EncodedRequest, target: Target[OllamaProfile]) -> None:
        super().__init__(sent, target)
        self._choice = ChoiceEvents(0, calls_last=True)  # decode() puts them behind the text, wherever they came
        self._body: JsonObject = {}
        self._message: JsonObject = {}
        self._thought: list[str] = []  # not told as a part yet
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
        yield from self._read_thinking(string_of(message, "thinking") or "")
        yield from self._read_text(string_of(message, "content") or "")
        for wire in objects_of(message.get("tool_calls")):
            yield from self._read_call(wire)

    def _read_thinking(self, piece: str) -> Iterator[StreamEvent]:
        self._thought += [piece] if piece else []
        yield from self._choice.emit_reasoning(piece)

    def _read_text(self, piece: str) -> Iterator[StreamEvent]:
        yield from self._end_thought() if piece else ()
        yield from self._choice.emit_text(piece)

    def _end_thought(self) -> Iterator[StreamEvent]:
        if self._thought:
            yield from self._choice.emit_part(ThinkingPart("".join(self._thought), provider=self.target.profile.family))
            self._thought = []

    def _read_call(self, wire: JsonObject) -> Iterator[StreamEvent]:
        """A call begins; it ends with the answer, as decode() will have numbered it."""
        yield from self._end_thought()
        call = decode_call(wire, self.sent.names, self.target.profile.family)
        yield from self._choice.start_call(self._assign_call_id(call.id), call.name)
        yield from self._choice.emit_arguments(call.raw_arguments or dumps(call.arguments))

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def _end(self) -> Iterator[StreamEvent]:
        if self._body.get("done") is not True:
            raise self._truncation_error()
        body = self._whole()
        response = decode(body, self.sent, self.target)
        yield from self._end_thought()
        for call in response.choices[0].tool_calls:
            self._choice.end_call(call)
        yield from self._choice.end(len(response.choices[0].tool_calls))
        for part in decode_extras(object_of(body["message"]), self.target.profile.family):
            yield from self._choice.emit_part(part)
        yield from self._end_response(response, [self._choice])

    def _whole(self) -> JsonObject:
        texts: JsonObject = {name: "".join(pieces) for name, pieces in self._texts.items()}
        logprobs: JsonObject = {"logprobs": self._logprobs} if self._logprobs else {}
        return {**self._body, **logprobs, "message": {**self._message, **texts, **self._lists}}
