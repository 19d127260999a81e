"""``RecordedCall``: the messages that a program sent to a model on one row, and those that it received, as JSON for a record.

Secrets are masked, by their form and those that the models were given. Media are references: type, size, SHA-256. Texts and
rows are bounded. A conversation is sent again and again, longer each time: a call has the messages that the last call from
the same module did not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import cast

from sigwire.cassettes.packing import masked_text
from sigwire.core.json import JsonObject, JsonValue, Value
from sigwire.core.messages import Message, Part
from sigwire.core.narrow import is_array, is_object
from sigwire.core.response import Choice
from sigwire.lm.preview.call_log import CallRecord, recording_calls
from sigwire.lm.secrets import redact_url, storable_options
from sigwire.modules.module import Module
from sigwire.settings import current

__all__ = ["RecordedCall", "RowCalls", "whole_calls", "written_messages"]

MOST_CALLS = 200  # of a row: the last ones
MOST_IN_TEXT = 20_000
MOST_IN_ROW = 400_000  # characters


@dataclass(frozen=True, slots=True)
class RecordedCall(Value):
    """One call of a model: what was sent and received.

    ``path``: the module that asked, "" for a direct call. ``messages``: role and parts of each, as ``Message.to_json`` with
    media by reference. ``like``: an earlier call of the row, by its place; the first ``shared`` messages, tools and options
    are those of that call. ``choices``: the answers with their ``finish_reason``. ``error``: class and text of a failed call.
    ``is_hit``: the answer was read from the cache. ``is_cut``: a text is not whole.

    >>> call = RecordedCall("self", "m", ({"role": "user", "parts": []},), error="LMServerError: overloaded")
    >>> RecordedCall.from_json(call.to_json()) == call
    True
    """

    path: str = ""
    model: str = ""
    messages: tuple[JsonObject, ...] = ()
    choices: tuple[JsonObject, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    options: JsonObject = field(default_factory=dict[str, JsonValue])
    like: int | None = None
    shared: int = 0
    error: str = ""
    is_hit: bool = False
    is_cut: bool = False


def whole_calls(calls: Sequence[RecordedCall]) -> list[RecordedCall]:
    """Return the calls of a row with all of their messages, tools and options.

    >>> first = RecordedCall(messages=({"role": "user"},), options={"n": 1})
    >>> whole_calls([first, RecordedCall(messages=({"role": "tool"},), like=0, shared=1)])[1].messages
    ({'role': 'user'}, {'role': 'tool'})
    """
    found: list[RecordedCall] = []
    for call in calls:
        if call.like is not None and 0 <= call.like < len(found):
            earlier = found[call.like]
            messages = (*earlier.messages[: call.shared], *call.messages)
            call = replace(call, messages=messages, tools=earlier.tools, options=earlier.options, like=None, shared=0)
        found.append(call)
    return found


class RowCalls:
    """Gets the calls of a row while it runs: a listener of ``recording_calls``. ``to_json`` is made for rows that keep them."""

    def __init__(self) -> None:
        self._records: deque[tuple[CallRecord, str]] = deque(maxlen=MOST_CALLS)

    def recording(self) -> AbstractContextManager[None]:
        """Get the calls inside the block."""
        return recording_calls(self)

    def add(self, record: CallRecord) -> None:
        """Keep an answered call."""
        self._records.append((record, ""))

    def add_failure(self, record: CallRecord, error: Exception) -> None:
        """Keep a failed call."""
        self._records.append((record, f"{type(error).__name__}: {error}"))

    def recorded(self, program: object) -> tuple[RecordedCall, ...]:
        """Return the calls. ``program``: its models have the secrets to mask."""
        writer, last = _Writer(_masks(program)), dict[str, int]()
        found: list[RecordedCall] = []
        records = list(self._records)
        for place, (record, error) in enumerate(records):
            path = record.path or ""
            like = last.get(path)
            earlier = None if like is None else records[like][0]
            found.append(writer.call(record, path, error, earlier, like))
            last[path] = place
        return tuple(found)


def written_messages(program: object, messages: Iterable[Message]) -> tuple[JsonObject, ...]:
    """Return messages as a record keeps them: masked, media by reference, bounded.

    >>> written_messages(None, [Message.user("send Bearer abcdefghijklmnop")])
    ({'role': 'user', 'parts': [{'type': 'text', 'text': 'send Bearer ***'}]},)
    """
    return tuple(map(_Writer(_masks(program)).message, messages))


def _masks(program: object) -> list[Callable[[str], str]]:
    """Return the functions of the models of a program that mask their secrets."""
    predictors = program.named_predictors() if isinstance(program, Module) else []
    lms = {id(lm): lm for lm in (current().lm, *(predictor.lm for _, predictor in predictors)) if lm is not None}
    masks = (getattr(lm, "masked", None) for lm in lms.values())
    return [masked_text, *(cast("Callable[[str], str]", mask) for mask in masks if callable(mask))]


class _Writer:
    """Writes the calls of one row as JSON: masked, and bounded in all."""

    def __init__(self, masks: Iterable[Callable[[str], str]]) -> None:
        self._masks, self._room, self._is_cut = tuple(masks), MOST_IN_ROW, False

    def call(
        self, record: CallRecord, path: str, error: str, earlier: CallRecord | None, like: int | None
    ) -> RecordedCall:
        self._is_cut = False
        request, response = record.request, record.response
        options = storable_options(request.options)
        is_like = (
            earlier is not None
            and earlier.request.tools == request.tools
            and storable_options(earlier.request.options) == options
        )
        shared = _common(earlier.request.messages, request.messages) if earlier is not None and is_like else 0
        made = RecordedCall(
            path,
            record.model,
            tuple(self.message(message) for message in request.messages[shared:]),
            tuple(map(self._choice, response.choices)),
            () if is_like else tuple(cast(JsonObject, self._json(tool)) for tool in request.tools),
            {} if is_like else cast(JsonObject, self._json(options)),
            like if is_like else None,
            shared,
            self._text(error),
            response.cache == "hit",
        )
        return replace(made, is_cut=True) if self._is_cut else made

    def message(self, message: Message) -> JsonObject:
        return {"role": message.role, "parts": list(map(self._part, message.parts))}

    def _choice(self, choice: Choice) -> JsonObject:
        refusal: JsonObject = {"refusal": self._text(choice.refusal)} if choice.refusal else {}
        return {**self.message(choice.message()), "finish_reason": str(choice.finish_reason), **refusal}

    def _part(self, part: Part) -> JsonValue:
        return self._part_json(cast(JsonObject, _by_reference(part.to_json())))

    def _part_json(self, plain: JsonObject) -> JsonObject:
        """Write a part. Its type and id are never cut: they are what connects a result with its call."""
        written: JsonObject = {}
        for name, value in plain.items():
            if name in ("type", "id"):
                written[name] = value
            elif name == "media" and is_array(value):
                written[name] = [self._part_json(item) for item in value if is_object(item)]
            else:
                written[name] = self._json(value)
        return written

    def _json(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self._text(value)
        if is_object(value):
            return {name: self._json(item) for name, item in value.items()}
        return [self._json(item) for item in value] if is_array(value) else value

    def _text(self, text: str) -> str:
        for mask in self._masks:
            text = mask(text)
        most = min(MOST_IN_TEXT, self._room)
        self._room -= min(len(text), most)
        if len(text) <= most:
            return text
        self._is_cut = True
        return f"{text[:most]}… {len(text) - most:,} more characters"


def _common(earlier: Sequence[Message], later: Sequence[Message]) -> int:
    """Return how many of the first messages are equal."""
    found = 0
    for one, other in zip(earlier, later, strict=False):
        if one is not other and one != other:
            break
        found += 1
    return found


def _by_reference(value: JsonValue) -> JsonValue:
    """Return the JSON of a part with data of media, its own and of a result, as size and SHA-256, and URLs without secrets."""
    if is_array(value):
        return list(map(_by_reference, value))
    if not is_object(value) or value.get("type") == "tool_call":
        return value
    is_media = value.get("type") in ("image", "audio", "file")
    if not is_media:
        return {name: _by_reference(item) if name == "media" else item for name, item in value.items()}
    return dict(_media_member(name, item) for name, item in value.items())


def _media_member(name: str, value: JsonValue) -> tuple[str, JsonValue]:
    if isinstance(value, str) and (name == "data" or value.startswith("data:")):
        return "content", {"bytes": len(value) * 3 // 4, "sha256": sha256(value.encode()).hexdigest()}
    return name, redact_url(value) if name == "url" and isinstance(value, str) else value
