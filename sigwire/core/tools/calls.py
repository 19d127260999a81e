"""Calls of tools and their results: ToolCall (the model's request), ToolCalls, ToolResult (the answer), WebSearch.

A ``ToolCall`` keeps the argument text of the model: arguments that are not an object have a tagged ``error``, are never
guessed, and the call is never lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from json import JSONDecoder
from math import isfinite
from typing import Any, ClassVar, Literal, TypeAlias, TypeGuard, cast, overload

from sigwire.core.json import JsonObject, JsonValue, Value, decoding, dumps, is_too_deep, loads_once
from sigwire.core.parts import MediaPart
from sigwire.errors import InputError
from sigwire.keywords import ChecksKeywords
from sigwire.show.card import HasCard

__all__ = [
    "CallError", "CallErrorKind", "CallIds", "ToolCall", "ToolCalls", "ToolResult", "WebSearch", "number_calls",
    "with_call_id",
]  # fmt: skip

CallErrorKind: TypeAlias = Literal["malformed_json", "not_an_object", "unknown_tool", "schema_mismatch"]


@dataclass(frozen=True, slots=True)
class CallError(Value):
    """The reason why a call cannot be run. ``message`` is for the model."""

    code: CallErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class ToolCall(Value):
    """A model's request to run a tool. Only modules run tools.

    ``arguments`` is a dict, or ``None`` if the model's text was not an object: then ``error`` has the reason and
    ``raw_arguments`` the text. ``provider_data`` (a thought signature) is sent back unchanged.

    >>> ToolCall.read("call_0", "add", '{"a": 1}').arguments
    {'a': 1}
    >>> ToolCall.read("call_0", "add", '{"a": ').error.code
    'malformed_json'
    """

    kind: ClassVar[str] = "tool_call"
    id: str
    name: str
    arguments: JsonObject | None
    raw_arguments: str | None = None
    error: CallError | None = None
    provider_data: JsonValue = None

    @classmethod
    def read(cls, id: str, name: str, arguments: object, *, provider_data: JsonValue = None) -> ToolCall:
        """Return a call from the arguments of a provider or text: an object, JSON text, ``""`` or ``None``.

        ``""``, ``None`` and JSON ``null`` mean no arguments. Text that was encoded twice is decoded twice. Other values make
        a call with an ``error``; nothing is repaired and nothing is raised.
        """
        raw = arguments if isinstance(arguments, str) else None
        value, error = _read_arguments(arguments)
        if error and raw is None:
            raw = _text_of(arguments)
        return cls(id, name, value, raw, error, provider_data)

    @property
    def args(self) -> JsonObject | None:
        """Alias of ``arguments``."""
        return self.arguments

    @property
    def arguments_text(self) -> str:
        """The arguments as the text of a history: compact JSON, or the model's text if it is not an object."""
        return self.raw_arguments or "" if self.arguments is None else dumps(self.arguments)


def _read_arguments(arguments: object) -> tuple[JsonObject | None, CallError | None]:
    if isinstance(arguments, str):
        try:
            arguments = _decode_text(arguments)
            if isinstance(arguments, str):  # it was encoded twice
                arguments = _decode_text(arguments)
        except ValueError as error:
            several = isinstance(arguments, str) and _is_several_objects(arguments)
            why = _SEVERAL if several else f"The arguments are not valid JSON: {error}"
            return None, CallError("malformed_json", why)
        if isinstance(arguments, dict):  # fresh from JSON: no copy needed, and its keys are strings
            return cast("JsonObject", arguments), None
    if arguments is None:
        return {}, None
    if _is_json_object(arguments):
        return _checked_object(arguments)
    known = _JSON_TYPES.get(type(arguments), f"a {type(arguments).__name__}")
    found = "an object with keys that are not strings" if isinstance(arguments, Mapping) else known
    return None, CallError("not_an_object", f"The arguments must be a JSON object, not {found}.")


_SPACE = re.compile(r"\s*")
_SEVERAL = (
    "The arguments are several JSON objects in a row, and nothing ran. Call the tool once for each object, with its "
    "arguments."
)


def _is_several_objects(text: str) -> bool:
    """Return True for JSON objects one after the other, as a model or a proxy joins parallel calls."""
    read, at, count = JSONDecoder().raw_decode, 0, 0
    with suppress(ValueError, RecursionError):
        while text.startswith("{", at):
            end, count = read(text, at)[1], count + 1
            at = end + len(_SPACE.match(text, end)[0])  # type: ignore[index]  # it matches anywhere
    return count > 1 and at == len(text)


def _decode_text(text: str) -> object:
    return None if not text or text.isspace() else loads_once(text)  # blank text means no arguments


def _is_json_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in cast("Mapping[object, Any]", value))


def _checked_object(arguments: Mapping[str, Any]) -> tuple[JsonObject | None, CallError | None]:
    """Check decoded arguments. Decoders of whole replies are less strict: ``1e999`` is infinity there, which is not JSON."""
    given = dict(arguments)
    if is_too_deep(given):
        return None, CallError("malformed_json", "The arguments are nested too deeply.")
    if not _is_finite(given):
        return None, CallError("malformed_json", "The arguments are not valid JSON: a number is too large.")
    return given, None


def _is_finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, cast("dict[str, object]", value).values()))
    if isinstance(value, list):
        return all(map(_is_finite, cast("list[object]", value)))
    return not isinstance(value, float) or isfinite(value)


_JSON_TYPES: Mapping[type, str] = {
    bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array",
}  # fmt: skip


def _text_of(value: object) -> str:
    try:
        return dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


class CallIds:
    """Makes the ids of calls unique in their order: a missing id, and one that is in use, becomes ``call_<n>``.

    Streams and whole answers number their calls by this class, so one call has one id in all events and results.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken: Iterable[str] = taken  # read at the first call: it may be the history of a long conversation
        self._used: set[str] | None = None
        self._number = 0

    def unique(self, call_id: str) -> str:
        """Return the id for the next call, and use it."""
        used = self._used = set(self._taken) if self._used is None else self._used
        while not call_id or call_id in used:
            call_id, self._number = f"call_{self._number}", self._number + 1
        used.add(call_id)
        return call_id


def number_calls(calls: Iterable[ToolCall], taken: Iterable[str] = ()) -> tuple[ToolCall, ...]:
    """Return the calls with ids that are unique among them and among the ids ``taken`` (``CallIds``).

    >>> [call.id for call in number_calls([ToolCall(id, "f", {}) for id in ("", "x", "x")], taken=["call_0"])]
    ['call_1', 'x', 'call_2']
    """
    calls = tuple(calls)
    if not calls:
        return calls
    given = [call.id for call in calls]
    if not taken and all(given) and len(set(given)) == len(given):
        return calls
    ids = CallIds(taken)
    unique = [ids.unique(call_id) for call_id in given]
    return calls if unique == given else tuple(map(with_call_id, calls, unique))


def with_call_id(call: ToolCall, call_id: str) -> ToolCall:
    """Return the call with this id. (``replace`` is slow.)"""
    if call.id == call_id:
        return call
    return ToolCall(call_id, call.name, call.arguments, call.raw_arguments, call.error, call.provider_data)


class ToolCalls(Sequence[ToolCall], HasCard):
    """The calls of one turn, in order: the type of a signature's tool-calls output.

    An immutable sequence of ``ToolCall``. ``text`` is the model's text in that turn. A call may be given as
    ``{"name", "args"}``, ``{"name", "arguments"}`` or OpenAI's ``{"id", "function": {...}}``.

    >>> calls = ToolCalls([ToolCall("call_0", "add", {"a": 1})])
    >>> len(calls), calls[0].name, bool(ToolCalls())
    (1, 'add', False)
    """

    __slots__ = ("_calls", "_text")
    _shown_by = "sigwire.core.cards.tools:tool_calls"

    def __init__(self, tool_calls: Iterable[ToolCall | Mapping[str, Any]] = (), text: str = "") -> None:
        self._calls = number_calls([_as_call(call) for call in tool_calls])
        self._text = text

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls as a list."""
        return list(self._calls)

    @property
    def text(self) -> str:
        """The text of the model in the same turn."""
        return self._text

    @overload
    def __getitem__(self, index: int) -> ToolCall: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolCall, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolCall | tuple[ToolCall, ...]:
        return self._calls[index]

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self._calls)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ToolCalls):
            return self._calls == other._calls and self.text == other.text
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple((call.id, call.name) for call in self._calls))

    def to_json(self) -> JsonObject:
        """Return plain JSON with ids, raw arguments, errors and provider data."""
        return {"tool_calls": [call.to_json() for call in self._calls], **({"text": self.text} if self.text else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolCalls:
        """Decode the result of ``to_json``."""
        with decoding("ToolCalls", data):
            return cls([ToolCall.from_json(call) for call in data["tool_calls"]], str(data.get("text", "")))


def _as_call(call: object) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, Mapping):
        raise InputError(f"A tool call is an object with a name, not {type(call).__name__}.")
    return _call_from_dict(cast("Mapping[str, Any]", call))


def _call_from_dict(data: Mapping[str, Any]) -> ToolCall:
    if data.get("type") == ToolCall.kind:
        return ToolCall.from_json(data)
    body = data.get("function") if isinstance(data.get("function"), Mapping) else data
    name = body.get("name") if body else None
    if not body or not isinstance(name, str) or not name:
        raise InputError(f"A tool call needs a name; got {data!r:.120}. Write {{'name': ..., 'args': {{...}}}}.")
    arguments = next((body[key] for key in ("arguments", "args", "parameters") if key in body), None)
    return ToolCall.read(str(data.get("id") or ""), name, arguments)


@dataclass(frozen=True, slots=True)
class ToolResult(Value):
    """The result of a call. ``content`` is text or any JSON value; ``is_error`` marks a failure for the model.

    ``media`` has the images, sounds or files of the result. ``exception``: the tool's exception with its traceback, for the
    author of the tool. It is no part of comparisons, JSON and pickles.

    >>> ToolResult("call_0", "stock", {"left": 3}).text
    '{"left":3}'
    """

    kind: ClassVar[str] = "tool_result"
    id: str
    name: str
    content: JsonValue = ""
    is_error: bool = False
    media: tuple[MediaPart, ...] = ()
    exception: BaseException | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.id, self.name, self.content, self.is_error, self.media)

    @property
    def text(self) -> str:
        """The content as text: strings unchanged, other values as compact JSON."""
        return self.content if isinstance(self.content, str) else dumps(self.content)


@dataclass(frozen=True, slots=True)
class WebSearch(Value, ChecksKeywords):
    """A provider's built-in web search. The wire refuses limits that the provider does not support, or warns."""

    kind: ClassVar[str] = "web_search"
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    user_location: JsonObject | None = None
