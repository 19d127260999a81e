"""History: the turns before this one. Immutable, and JSON in and out without loss.

A turn is either a mapping of a signature's field names to values (an adapter renders it like a demo), or a ``Message``
of the canonical conversation (tool turns, replayed as they are). Which of the two a turn in JSON is, and which values
are of sigwire's own types, is written *beside* the turns: what a user's data looks like never decides how it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, Self, TypeAlias, cast

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.record import Record, to_plain
from sigwire.core.tools.tool import ToolCalls
from sigwire.errors import InputError
from sigwire.signatures.types.base import FieldType, as_items, as_mapping
from sigwire.signatures.types.media import Audio, File, Image
from sigwire.signatures.types.text import Code, Reasoning

__all__ = ["History", "Turn"]


class Turn(Mapping[str, Any]):
    """One exchange as field values; a mapping that cannot be changed.

    >>> turn = Turn({"question": "2+2?", "answer": "4"})
    >>> turn["answer"], dict(turn)
    ('4', {'question': '2+2?', 'answer': '4'})
    """

    __slots__ = ("__weakref__", "_fields")
    _fields: dict[str, Any]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        if stray := _stray(fields):
            raise InputError(f"A turn maps field names to values; {stray!r} is not a field name.")
        object.__setattr__(self, "_fields", dict(fields))

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("A turn does not change. Make a new one: Turn({**turn, 'field': value}).")

    def __reduce__(self) -> tuple[type[Turn], tuple[dict[str, Any]]]:
        return type(self), (self._fields,)

    def __repr__(self) -> str:
        return f"Turn({self._fields!r})"


AnyTurn: TypeAlias = Turn | Message


def _stray(names: Iterable[object]) -> object:
    return next((name for name in names if not isinstance(name, str)), None)


class _Turns(tuple[AnyTurn, ...]):
    """The turns of a history. A tuple that answers the habit of appending to it."""

    __slots__ = ()

    def append(self, turn: object) -> NoReturn:
        """Histories do not change; says how to get one turn more."""
        raise TypeError("A History does not change. Write history = history.append({...}), which gives a new one.")

    extend = insert = append


class History(FieldType):
    """The conversation so far: field mappings, or messages with tool calls and results.

    ``messages`` is any iterable of turns. Every change gives a new history and leaves this one as it is.

    >>> history = History([{"question": "2+2?", "answer": "4"}])
    >>> longer = history.append({"question": "And 3+3?", "answer": "6"})
    >>> len(history), len(longer), History.from_json(longer.to_json()) == longer
    (1, 2, True)
    """

    __slots__ = ("__weakref__", "messages")
    messages: tuple[AnyTurn, ...]

    def __init__(self, messages: Iterable[Mapping[str, Any] | Message] = ()) -> None:
        if isinstance(messages, History):
            turns = messages.messages
        elif isinstance(messages, (str, bytes, Mapping)):
            raise InputError("A History is made of a list of turns: History([{'question': ..., 'answer': ...}]).")
        else:
            turns = _Turns(_turn(turn) for turn in messages)
        object.__setattr__(self, "messages", turns)

    def append(self, *turns: Mapping[str, Any] | Message, **fields: Any) -> History:
        """A longer history; one turn may be given as keywords.

        >>> History().append(question="Hi", answer="Hello").messages[0]["answer"]
        'Hello'
        """
        added = (*turns, fields) if fields else turns
        return _from_turns((*self.messages, *map(_turn, added)))

    def __add__(self, other: Iterable[Mapping[str, Any] | Message]) -> History:
        return self.append(*other)

    def __getitem__(self, index: slice | object) -> History:
        """Part of the history, as in ``history[-10:]``. Single turns are in ``messages``."""
        if not isinstance(index, slice):
            raise TypeError("history[a:b] gives a shorter History; a single turn is history.messages[i].")
        return _from_turns(self.messages[index])

    def __iter__(self) -> Iterator[AnyTurn]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __eq__(self, other: object) -> bool:
        return self.messages == other.messages if isinstance(other, History) else NotImplemented

    def __hash__(self) -> int:
        return hash(len(self.messages))  # turns may hold values that have no hash

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("A History does not change. Write history = history.append({...}).")

    def __reduce__(self) -> tuple[type[History], tuple[list[AnyTurn]]]:
        return type(self), (list(self.messages),)

    def __repr__(self) -> str:
        return f"History({list(self.messages)!r})"

    # --- JSON ---

    def to_json(self) -> JsonObject:
        """Plain JSON. Values of sigwire's types come back as such; pydantic values come back as plain data.

        >>> History([{"q": "a"}]).to_json()
        {'messages': [{'q': 'a'}]}
        """
        data: JsonObject = {"messages": [_write(turn) for turn in self.messages]}
        if kinds := {str(at): kind for at, turn in enumerate(self.messages) if (kind := _kind(turn))}:
            data["kinds"] = cast("JsonObject", kinds)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` wrote, or DSPy's ``{"messages": [...]}``."""
        kinds = as_mapping(data.get("kinds")) or {}
        return cls([_read(turn, kinds.get(str(at))) for at, turn in enumerate(data["messages"])])

    @classmethod
    def read(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        if (data := as_mapping(value)) is not None and (turns := as_items(data.get("messages"))) is not None:
            return cls.from_json(data) if "kinds" in data else cls(turns)
        if (turns := as_items(value)) is not None:
            return cls(turns)
        raise InputError(f"A History is read from its JSON or from a list of turns, not {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {
            "type": "object",
            "description": "The conversation so far.",
            "properties": {"messages": {"type": "array", "items": {"type": "object"}}, "kinds": {"type": "object"}},
            "required": ["messages"],
        }


def _from_turns(turns: Iterable[AnyTurn]) -> History:
    history = History.__new__(History)
    object.__setattr__(history, "messages", _Turns(turns))
    return history


def _turn(turn: Any) -> AnyTurn:
    if isinstance(turn, (Message, Turn)):
        return turn
    if (fields := as_mapping(turn)) is not None:
        return Turn(fields)
    if isinstance(turn, Record):
        return Turn(turn.__dict__)
    raise InputError(f"A turn is a mapping of field names to values, or a Message, not {type(turn).__name__}.")


# Only values of these classes, directly in a turn, are restored to their class.
_OWN: Mapping[str, Any] = {kind.__name__: kind for kind in (ToolCalls, Image, Audio, File, Code, Reasoning)}


def _own_name(value: Any) -> str | None:
    if isinstance(value, Code) and type(value) is not Code:
        return f"Code.{value.language}"
    name = type(value).__name__
    return name if _OWN.get(name) is type(value) else None


def _kind(turn: AnyTurn) -> str | dict[str, str] | None:
    """What the JSON of a turn does not say: that it is a message, or which values are of our own types."""
    if isinstance(turn, Message):
        return "message"
    return {name: own for name, value in turn.items() if (own := _own_name(value))} or None


def _write(turn: AnyTurn) -> JsonObject:
    return turn.to_json() if isinstance(turn, Message) else {name: to_plain(value) for name, value in turn.items()}


def _read(turn: Any, kind: Any) -> AnyTurn:
    if kind == "message":
        return Message.from_json(turn)
    kinds = as_mapping(kind) or {}
    return Turn({name: _restore(value, kinds.get(name)) for name, value in turn.items()})


def _restore(value: Any, kind: str | None) -> Any:
    name, _, language = (kind or "").partition(".")
    own = _OWN.get(name)
    if own is None:
        return value
    own = own[language] if language else own
    return own.from_json(value) if hasattr(own, "from_json") else own.read(value)
