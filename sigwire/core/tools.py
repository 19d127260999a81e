"""Tools and the traffic about them: Tool (what is offered), ToolCall (the model's ask), ToolResult (the answer).

Nothing here runs a tool on a model's behalf; ``sigwire.modules.toolbox`` does, and it alone. A ``Tool`` knows its name,
its JSON Schema and how arguments fit its Python function (``bind``). A ``ToolCall`` keeps the model's argument text
whatever it is: arguments that are not an object give a tagged ``error``, never a guess and never a lost call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, overload

from sigwire.core.json import JsonObject, JsonValue, Value, dumps, loads
from sigwire.core.parts import MediaPart
from sigwire.errors import ToolDefinitionError

__all__ = ["CallError", "CallErrorKind", "Tool", "ToolCall", "ToolCalls", "ToolResult", "WebSearch", "number_calls"]

CallErrorKind: TypeAlias = Literal["malformed_json", "not_an_object", "unknown_tool", "schema_mismatch"]


@dataclass(frozen=True, slots=True)
class CallError(Value):
    """Why a call cannot be run as it stands; ``message`` is written for the model to read."""

    code: CallErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class ToolCall(Value):
    """The model's wish to run a tool. Only a module may grant it.

    ``arguments`` is a dict, or ``None`` when the model's text was not an object: then ``error`` says why and
    ``raw_arguments`` has the text. ``provider_data`` is the provider's own (a thought signature) and goes back unread.

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
        """A call from whatever a provider or a text gave as arguments: an object, JSON text, ``""``, ``None``.

        ``""``, ``None`` and JSON ``null`` mean no arguments. Text that was encoded twice is decoded twice. Anything else
        that is not an object becomes a call with an ``error``; nothing is repaired and nothing is raised.
        """
        raw = arguments if isinstance(arguments, str) else None
        value, error = _read_arguments(arguments)
        if error and raw is None:
            raw = _as_text(arguments)
        return cls(id, name, value, raw, error, provider_data)

    @property
    def args(self) -> JsonObject | None:
        """The same as ``arguments``."""
        return self.arguments

    @property
    def arguments_text(self) -> str:
        """The arguments as the JSON text to send back: what the model wrote when it is known, else compact JSON."""
        if self.arguments is None:
            return self.raw_arguments or ""
        return dumps(self.arguments)


def _read_arguments(arguments: object) -> tuple[JsonObject | None, CallError | None]:
    for _ in range(2):
        if not isinstance(arguments, str):
            break
        if not arguments.strip():
            return {}, None
        try:
            arguments = loads(arguments)
        except ValueError as fault:
            return None, CallError("malformed_json", f"The arguments are not valid JSON: {fault}")
    if arguments is None:
        return {}, None
    if isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments):
        return dict(arguments), None
    return None, CallError("not_an_object", f"The arguments must be a JSON object, not {_json_type(arguments)}.")


_JSON_TYPES: Mapping[type, str] = {
    bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array",
}  # fmt: skip


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), f"a {type(value).__name__}")


def _as_text(value: object) -> str:
    try:
        return dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def number_calls(calls: Iterable[ToolCall], taken: Iterable[str] = ()) -> tuple[ToolCall, ...]:
    """Give every call without an id the first free ``call_<n>``, unique among these calls and the ids ``taken``.

    >>> [call.id for call in number_calls([ToolCall("", "f", {}), ToolCall("x", "f", {})], taken=["call_0"])]
    ['call_1', 'x']
    """
    calls = tuple(calls)
    used = set(taken) | {call.id for call in calls}
    numbered: list[ToolCall] = []
    n = 0
    for call in calls:
        if not call.id:
            while f"call_{n}" in used:
                n += 1
            used.add(f"call_{n}")
            call = ToolCall(
                f"call_{n}", call.name, call.arguments, call.raw_arguments, call.error, call.provider_data
            )
        numbered.append(call)
    return tuple(numbered)


class ToolCalls(Sequence[ToolCall]):
    """The calls a model made in one turn, in order: the type of a signature's tool-calls output.

    A sequence of ``ToolCall``. ``text`` is what the model said beside them.

    >>> calls = ToolCalls([ToolCall("call_0", "add", {"a": 1})])
    >>> len(calls), calls[0].name, bool(ToolCalls())
    (1, 'add', False)
    """

    __slots__ = ("_calls", "text")

    def __init__(self, tool_calls: Iterable[ToolCall | Mapping[str, Any]] = (), text: str = "") -> None:
        self._calls = number_calls(
            call if isinstance(call, ToolCall) else _call_from_dict(call) for call in tool_calls
        )
        self.text = text

    @classmethod
    def from_dict_list(cls, calls: Iterable[Mapping[str, Any]]) -> ToolCalls:
        """Calls from ``{"name", "args"}``, ``{"name", "arguments"}`` or OpenAI's ``{"id", "function": {...}}``.

        >>> ToolCalls.from_dict_list([{"name": "add", "args": {"a": 1}}])[0].arguments
        {'a': 1}
        """
        return cls(calls)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls as a list."""
        return list(self._calls)

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

    def __repr__(self) -> str:
        text = f", text={self.text!r}" if self.text else ""
        return f"ToolCalls({list(self._calls)!r}{text})"

    def to_json(self) -> JsonObject:
        """Plain JSON with ids, raw arguments, errors and provider data."""
        return {"tool_calls": [call.to_json() for call in self._calls], **({"text": self.text} if self.text else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolCalls:
        """Read what ``to_json`` wrote."""
        return cls([ToolCall.from_json(call) for call in data["tool_calls"]], data.get("text", ""))


def _call_from_dict(data: Mapping[str, Any]) -> ToolCall:
    if data.get("type") == ToolCall.kind:
        return ToolCall.from_json(data)
    body = data.get("function") if isinstance(data.get("function"), Mapping) else data
    name = body.get("name") if body else None
    if not body or not isinstance(name, str) or not name:
        raise ValueError(f"A tool call needs a name; got {data!r:.120}. Write {{'name': ..., 'args': {{...}}}}.")
    arguments = next((body[key] for key in ("arguments", "args", "parameters") if key in body), None)
    return ToolCall.read(str(data.get("id") or ""), name, arguments)


@dataclass(frozen=True, slots=True)
class ToolResult(Value):
    """What a call gave. ``content`` is text, or any JSON value; ``is_error`` tells the model that it failed.

    ``media`` holds images, sound or files that belong to the result.

    >>> ToolResult("call_0", "stock", {"left": 3}).text
    '{"left":3}'
    """

    kind: ClassVar[str] = "tool_result"
    id: str
    name: str
    content: JsonValue = ""
    is_error: bool = False
    media: tuple[MediaPart, ...] = ()

    @property
    def text(self) -> str:
        """The content as text: strings as they are, everything else as compact JSON."""
        return self.content if isinstance(self.content, str) else dumps(self.content)


@dataclass(frozen=True, slots=True)
class WebSearch(Value):
    """A provider's built-in web search. Limits that a provider does not know are refused or warned about by its wire."""

    kind: ClassVar[str] = "web_search"
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    user_location: JsonObject | None = None


class Tool:
    """Something a model may ask for: a name, a description, a JSON Schema for the arguments, and the function behind it.

    ``Tool(function)`` reads all of it from the function: type hints, docstring, defaults. ``Tool.from_schema`` takes a JSON
    Schema as it is. ``handler`` may be sync or async, or ``None`` for a tool that somebody else runs.

    ``timeout`` is in seconds and ``max_output`` in characters of the encoded result (``None``: no limit);
    ``parallel=False`` keeps the tool from running beside others. ``config`` holds a built-in tool's settings.
    Raises ``ToolDefinitionError`` when name, schema or function cannot be offered.

    >>> def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.
    ...
    ...     Args:
    ...         a: The first.
    ...     '''
    ...     return a + b
    >>> tool = Tool(add)
    >>> tool.name, tool.description, tool.parameters["required"]
    ('add', 'Add two numbers.', ['a'])
    >>> tool(a=2)
    3
    """
