"""generateContent, streamed: each event has the shape of a whole reply and holds its next parts.

Text deltas are joined, except a signed part, whose signature is valid for that part alone. Calls are whole; on Vertex AI
they are fragments if the caller requests it (``partial_calls``). Token counts are repeated, and the last ones count. There
is no end marker: an answer is complete when each candidate has its finish reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from sigwire.core.events import StreamEvent
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.parts import TextPart
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMError
from sigwire.lm.codecs.gemini.decoding import decode, error_in_success
from sigwire.lm.codecs.gemini.merge import Seen, merge_members
from sigwire.lm.codecs.gemini.partial_calls import FragmentedCall, is_fragment
from sigwire.lm.codecs.gemini.parts import decode_part
from sigwire.lm.codecs.gemini.profiles import GeminiProfile
from sigwire.lm.codecs.gemini.tables import USAGE
from sigwire.lm.codecs.shared.choices import check_count
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import index_of, object_of, objects_of, remove_members, string_of
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["FRAMING", "ContentDecoder", "decoder"]

FRAMING: Framing = "sse"


class _PartialCandidate:
    """A partial candidate: its events, its parts, and its other members."""

    def __init__(self, number: int) -> None:
        self.events = ChoiceEvents(number)
        self.content: JsonObject = {}
        self.parts: list[JsonValue] = []
        self.members: JsonObject = {}
        self.seen: Seen = {}
        self.text_fields: JsonObject | None = None  # of an open text part, besides its text
        self.deltas: list[str] = []
        self.call: FragmentedCall | None = None
        self.functions: dict[str, JsonObject] = {}  # of calls, by id

    def body(self) -> JsonObject:
        content: JsonObject = {**self.content, "parts": self.parts} if self.parts else self.content
        return {**self.members, **({"content": content} if content else {})}


class ContentDecoder(StreamDecoder[GeminiProfile]):
    """Events of one answer -> stream events. Raises ``LMError`` for an error event, and if the reply is truncated.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.gemini import GEMINI, encode
    >>> target = Target("gemini", "m", GEMINI)
    >>> stream = ContentDecoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> event = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    >>> [type(event).__name__ for event in stream.feed(event) + stream.close()]
    ['ResponseStart', 'TextDelta', 'ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """

    def __init__(self, sent: EncodedRequest, target: Target[GeminiProfile]) -> None:
        super().__init__(sent, target)
        self._body: JsonObject = {}
        self._usage_counts: JsonObject = {}
        self._candidates: dict[int, _PartialCandidate] = {}

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        self._body |= remove_members(event, {"candidates", "usageMetadata"})
        yield from self._start_response(string_of(event, "responseId"), string_of(event, "modelVersion"))
        for wire in objects_of(event.get("candidates")):
            index = index_of(wire)
            candidate = self._candidates.setdefault(index, _PartialCandidate(index))
            check_count(len(self._candidates), self.target)
            yield from self._read_candidate(candidate, wire)
        if counts := remove_members(object_of(event.get("usageMetadata")), ()):
            self._usage_counts |= counts
            yield from self._update_usage(read_usage(self._usage_counts, USAGE).usage)

    def _read_candidate(self, candidate: _PartialCandidate, wire: JsonObject) -> Iterator[StreamEvent]:
        merge_members(candidate.members, remove_members(wire, {"content"}), candidate.seen)
        content = object_of(wire.get("content"))
        candidate.content |= remove_members(content, {"parts"})
        for part in objects_of(content.get("parts")):
            yield from self._read_part(candidate, remove_members(part, ()))

    # --- parts

    def _read_part(self, candidate: _PartialCandidate, wire: JsonObject) -> Iterator[StreamEvent]:
        function, text = wire.get("functionCall"), wire.get("text")
        if isinstance(function, dict):
            yield from self._read_call(candidate, wire, function)
        elif isinstance(text, str):
            yield from self._read_text(candidate, wire, text)
        else:
            yield from self._end_part(candidate)
            yield from self._whole_part(candidate, wire)

    def _read_text(self, candidate: _PartialCandidate, wire: JsonObject, text: str) -> Iterator[StreamEvent]:
        fields = remove_members(wire, {"text"})
        is_plain = fields.keys() <= {"thought"}
        if not text and is_plain:
            return
        if not is_plain or fields != candidate.text_fields:
            yield from self._end_part(candidate)
            candidate.text_fields = fields
        candidate.deltas.append(text)
        events = candidate.events
        yield from events.emit_reasoning(text) if wire.get("thought") is True else events.emit_text(text)
        if not is_plain:
            yield from self._end_part(candidate)

    def _end_part(self, candidate: _PartialCandidate) -> Iterator[StreamEvent]:
        if candidate.call is not None:
            candidate.events.end_call(self._call_of(candidate, candidate.call.wire(), candidate.call.call_id))
            candidate.call = None
        if candidate.text_fields is not None:
            wire: JsonObject = {"text": "".join(candidate.deltas), **candidate.text_fields}
            candidate.text_fields, candidate.deltas = None, []
            yield from self._whole_part(candidate, wire)

    def _whole_part(self, candidate: _PartialCandidate, wire: JsonObject) -> Iterator[StreamEvent]:
        candidate.parts.append(wire)
        for part in decode_part(wire, self.sent.names, self.target.profile.family):
            if isinstance(part, TextPart):
                candidate.events.end_text()
            else:
                yield from candidate.events.emit_part(part)

    # --- calls

    def _read_call(self, candidate: _PartialCandidate, wire: JsonObject, function: JsonObject) -> Iterator[StreamEvent]:
        if candidate.call is not None and candidate.call.accepts(function):
            yield from self._read_fragment(candidate, candidate.call, wire)
            return
        call_id = string_of(function, "id")
        if call_id is not None and candidate.functions.get(call_id) == function:
            return  # some proxies repeat calls
        candidate.functions |= {call_id: function} if call_id else {}
        yield from self._end_part(candidate)
        numbered = self._assign_call_id(call_id, candidate.events.number)
        name = self.sent.names.decode(string_of(function, "name") or "")
        yield from candidate.events.start_call(numbered, name)
        if is_fragment(function):
            candidate.call = FragmentedCall(numbered)
            yield from self._read_fragment(candidate, candidate.call, wire)
            return
        call = self._call_of(candidate, wire, numbered)
        yield from candidate.events.emit_arguments(call.raw_arguments or dumps(call.arguments))
        candidate.events.end_call(call)

    def _read_fragment(
        self, candidate: _PartialCandidate, call: FragmentedCall, wire: JsonObject
    ) -> Iterator[StreamEvent]:
        call.add(wire)
        if not call.is_open:
            yield from candidate.events.emit_arguments(dumps(call.arguments))
            yield from self._end_part(candidate)

    def _call_of(self, candidate: _PartialCandidate, wire: JsonObject, call_id: str) -> ToolCall:
        candidate.parts.append(wire)
        (part,) = decode_part(wire, self.sent.names, self.target.profile.family)
        assert isinstance(part, ToolCall)
        return ToolCall(call_id, part.name, part.arguments, part.raw_arguments, part.error, part.provider_data)

    # --- the end

    def _end(self) -> Iterator[StreamEvent]:
        ordered = [self._candidates[index] for index in sorted(self._candidates)]
        is_blocked = string_of(self._body.get("promptFeedback"), "blockReason") is not None
        is_complete = self._has_end_mark or all(string_of(each.members, "finishReason") for each in ordered)
        is_gapless = sorted(self._candidates) == list(range(len(ordered)))
        if not (is_complete and is_gapless if ordered else is_blocked):
            raise self._truncation_error()
        for candidate in ordered:
            yield from self._end_part(candidate)
        members: JsonObject = {
            "candidates": [candidate.body() for candidate in ordered],
            "usageMetadata": self._usage_counts,
        }
        response = decode(
            {**self._body, **{name: members[name] for name in members if members[name]}}, self.sent, self.target
        )
        yield from self._end_response(response, [candidate.events for candidate in ordered] or [ChoiceEvents(0)])


decoder = ContentDecoder
