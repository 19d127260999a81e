"""History: the past turns of a conversation. Immutable, and lossless to and from JSON.

A turn is a mapping of field names to values, rendered like a demo, or a ``Message``, sent unchanged (tool turns). In JSON,
``kinds`` records which turns are messages and which values are of sigwire's types. The shape of a user's data never decides
how the data are decoded.

A fold leaves turns out of what is sent (``view``) and removes none. What it shows is computed once; ``append`` passes it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from reprlib import repr as short
from typing import Any, NoReturn, Self, TypeAlias, cast

from sigwire.core.fold import Fold
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart
from sigwire.core.record import FieldValue, FieldValues, Record, to_plain
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.errors import InputError
from sigwire.show.card import HasCard
from sigwire.signatures.types.base import FieldType
from sigwire.signatures.types.media import Audio, File, Image
from sigwire.signatures.types.text import Code, Reasoning

__all__ = ["History", "Turn", "changed_turns", "folded", "regrouped", "shown_as"]


class Turn(Mapping[str, FieldValue]):
    """The field values of one turn; an immutable mapping.

    >>> turn = Turn({"question": "2+2?", "answer": "4"})
    >>> turn["answer"], dict(turn)
    ('4', {'question': '2+2?', 'answer': '4'})
    """

    __slots__ = ("__weakref__", "_fields")
    _fields: dict[str, FieldValue]

    def __init__(self, fields: FieldValues) -> None:
        if stray := next((name for name in cast("Mapping[object, object]", fields) if not isinstance(name, str)), None):
            raise InputError(f"A turn maps field names to values; {stray!r} is not a field name.")
        object.__setattr__(self, "_fields", dict(fields))

    def __getitem__(self, name: str) -> FieldValue:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A turn is immutable. Make a new one: Turn({**turn, 'field': value}).")

    def __reduce__(self) -> tuple[type[Turn], tuple[dict[str, FieldValue]]]:
        return type(self), (self._fields,)

    def __repr__(self) -> str:
        return f"Turn({self._fields!r})"


AnyTurn: TypeAlias = Turn | Message


class _Turns(tuple[AnyTurn, ...]):
    """The turns of a history: a tuple whose ``append`` raises with advice."""

    __slots__ = ()

    def append(self, turn: object) -> NoReturn:
        """Raise ``TypeError`` with the way to add a turn."""
        raise TypeError("A History is immutable. Write history = history.append({...}), which returns a new one.")

    extend = insert = append


class History(FieldType, HasCard):
    """The past turns of a conversation: field mappings, or messages with tool calls and results.

    ``messages`` is any iterable of turns. Every change returns a new history.

    >>> history = History([{"question": "2+2?", "answer": "4"}])
    >>> longer = history.append({"question": "And 3+3?", "answer": "6"})
    >>> len(history), len(longer), History.from_json(longer.to_json()) == longer
    (1, 2, True)
    """

    __slots__ = ("__weakref__", "_shown", "derived", "folds", "messages")
    _shown_by = "sigwire.signatures.cards.histories:history"
    messages: tuple[AnyTurn, ...]
    folds: tuple[Fold, ...]
    """The turns that were left out of requests, in the order of the folds. The latest fold counts."""
    derived: dict[str, Any]
    """Results that are computed of the turns. Longer histories with the same folds share it."""
    _shown: History | None

    def __init__(self, messages: Iterable[FieldValues | Message] = ()) -> None:
        folds: tuple[Fold, ...] = ()
        if isinstance(messages, History):
            turns, folds = messages.messages, messages.folds
        elif isinstance(messages, (str, bytes, Mapping)):
            raise InputError("A History is made of a list of turns: History([{'question': ..., 'answer': ...}]).")
        else:
            turns = _Turns(_turn(turn) for turn in messages)
        _set(self, turns, folds, {})

    def append(self, *turns: FieldValues | Message, **fields: object) -> History:
        """Return a longer history. Keywords are the fields of one turn.

        >>> History().append(question="Hi", answer="Hello").messages[0]["answer"]
        'Hello'
        """
        added = (*turns, fields) if fields else turns
        return _from_turns((*self.messages, *map(_turn, added)), self.folds, self.derived)

    def view(self) -> History:
        """Return the turns that a request sends: this history, unless it has folds.

        >>> history = folded(History([{"question": "2+2?", "answer": "4"}, {"question": "3+3?", "answer": "6"}]), Fold(1))
        >>> len(history.messages), history.view().messages[0].text
        (2, '[Note: the 1 earliest turns of this conversation were left out to save space.]')
        """
        if self._shown is not None:
            return self._shown
        if not self.folds:
            return self
        fold = self.folds[-1]
        known = self.derived.get("view")
        if known is None or known[0] is not fold:
            from sigwire.signatures.types.views import folded_start  # few conversations have folds

            known = self.derived["view"] = (fold, folded_start(self.messages, fold))
        return _from_turns((*known[1], *self.messages[max(fold.upto, fold.cleared) :]))

    def without_tools(self) -> History:
        """Return the history without calls of tools (``submit`` too) and their results; fields and texts stay.

        For another agent, which has other tools.

        >>> from sigwire.core.tools.calls import ToolCall, ToolResult
        >>> call, result = ToolCall("call_0", "find", {}), ToolResult("call_0", "find", "here")
        >>> asked, answer = {"question": "Where?"}, Message.assistant("I look.", [call])
        >>> [turn for turn in History([asked, answer, Message.tool(result)]).without_tools()]
        [Turn({'question': 'Where?'}), Message(role='assistant', parts=(TextPart(text='I look.'),))]
        """
        kept = [_without_tools(turn) for turn in self.messages]
        return regrouped(self, [() if turn is None else (turn,) for turn in kept])

    def __add__(self, other: Iterable[FieldValues | Message]) -> History:
        return self.append(*other)

    def __getitem__(self, index: slice | object) -> History:
        """Return a part of the history, as in ``history[-10:]``. Single turns are in ``messages``."""
        if not isinstance(index, slice):
            raise TypeError("history[a:b] returns a shorter History; a single turn is history.messages[i].")
        return _from_turns(self.messages[index])

    def __iter__(self) -> Iterator[AnyTurn]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self.messages == other.messages and self.folds == other.folds

    def __hash__(self) -> int:
        return hash(len(self.messages))  # turns may contain values without a hash

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A History is immutable. Write history = history.append({...}).")

    def __reduce__(self) -> tuple[object, ...]:
        made = type(self), (list(self.messages),)
        return (_with_folds, (*made[1], self.folds)) if self.folds else made

    def to_json(self) -> JsonObject:
        """Return plain JSON. Values of sigwire's types are decoded to their class, pydantic values to plain data.

        >>> History([{"q": "a"}]).to_json()
        {'messages': [{'q': 'a'}]}
        """
        data: JsonObject = {"messages": [_encode(turn) for turn in self.messages]}
        if kinds := {str(at): kind for at, turn in enumerate(self.messages) if (kind := _kind(turn))}:
            data["kinds"] = cast("JsonObject", kinds)
        if self.folds:
            data["folds"] = [fold.to_json() for fold in self.folds]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Decode the result of ``to_json``, or ``{"messages": [...]}``. Raises ``InputError`` for anything else."""
        if not (is_mapping(data) and is_items(turns := data.get("messages"))):
            raise InputError(
                f'This is no JSON of a History (decoding {short(data)}). Pass {{"messages": [...]}}, as to_json returns it.'
            )
        kinds: Mapping[str, Any] = found if is_mapping(found := data.get("kinds")) else {}
        decoded: list[AnyTurn] = []
        for at, turn in enumerate(turns):
            try:
                decoded.append(_decode(turn, kinds.get(str(at))))
            except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
                raise InputError(
                    f"A turn of a History cannot be decoded: {error!s:.200} (decoding turn {at}). Pass what to_json returned."
                ) from error
        made = cls(decoded)
        if folds := data.get("folds"):
            object.__setattr__(made, "folds", _read_folds(folds, made.messages))
        return made

    @classmethod
    def read(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if is_mapping(value) and is_items(turns := value.get("messages")):
            return cls.from_json(value) if {"kinds", "folds"} & value.keys() else cls(turns)
        if is_items(value):
            return cls(value)
        raise InputError(f"{type(value).__name__} is no History (reading it). Pass its JSON, or a list of turns.")

    @classmethod
    def json_schema(cls) -> JsonObject:
        return {
            "type": "object",
            "description": "The past turns of the conversation.",
            "properties": {
                "messages": {"type": "array", "items": {"type": "object"}},
                "kinds": {"type": "object"},
                "folds": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["messages"],
        }


def _without_tools(turn: AnyTurn) -> AnyTurn | None:
    """Return a turn without calls and results, ``None`` if nothing is left."""
    if isinstance(turn, Turn):
        fields = {name: value for name, value in turn.items() if not isinstance(value, ToolCalls)}
        return turn if len(fields) == len(turn) else Turn(fields) if fields else None
    if not any(isinstance(part, ToolCall | ToolResult) for part in turn.parts):
        return None if turn.role == "tool" else turn
    # Thoughts before calls go with them: OpenAI's Responses refuses a reasoning item without the item that followed it.
    parts = tuple(part for part in turn.parts if isinstance(part, TextPart | ImagePart | AudioPart | FilePart))
    return Message(turn.role, parts) if parts and turn.role != "tool" else None


def _from_turns(
    turns: Iterable[AnyTurn], folds: tuple[Fold, ...] = (), derived: dict[str, Any] | None = None
) -> History:
    history = History.__new__(History)
    _set(history, _Turns(turns), folds, {} if derived is None else derived)
    return history


_assign = object.__setattr__


def _set(history: History, turns: tuple[AnyTurn, ...], folds: tuple[Fold, ...], derived: dict[str, Any]) -> None:
    _assign(history, "messages", turns)
    _assign(history, "folds", folds)
    _assign(history, "derived", derived)
    _assign(history, "_shown", None)


def _with_folds(turns: list[AnyTurn], folds: tuple[Fold, ...]) -> History:
    return _from_turns(turns, folds)


def folded(history: History, fold: Fold) -> History:
    """Return the history with one more fold."""
    return _from_turns(history.messages, (*history.folds, fold), history.derived)


def shown_as(history: History, view: History) -> History:
    """Return the history whose next request sends another view. A longer history has its own view again."""
    made = _from_turns(history.messages, history.folds, history.derived)
    _assign(made, "_shown", view)
    return made


def regrouped(history: History, groups: Iterable[Sequence[AnyTurn]]) -> History:
    """Return the history of other turns: one group for each turn of ``history``. Folds end where they ended.

    >>> history = folded(History([{"q": "a"}, {"q": "b"}]), Fold(1))
    >>> regrouped(history, [({"q": "a"}, {"q": "c"}), ({"q": "b"},)]).folds[0].upto
    2
    """
    groups = list(groups)
    turns = [_turn(turn) for group in groups for turn in group]
    if not history.folds:
        return _from_turns(turns)
    starts = list(accumulate(map(len, groups), initial=0))
    folds = [replace(fold, upto=starts[fold.upto], cleared=starts[fold.cleared]) for fold in history.folds]
    return _from_turns(turns, tuple(folds))


def _read_folds(data: object, turns: Sequence[AnyTurn]) -> tuple[Fold, ...]:
    from sigwire.signatures.types.views import is_cut

    try:
        folds = tuple(map(Fold.from_json, cast("Iterable[Mapping[str, Any]]", data)))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"The folds of a History cannot be decoded: {error!s:.200} (decoding its JSON). Pass what to_json returned."
        ) from error
    for fold in folds:
        numbers: tuple[object, ...] = (fold.upto, fold.cleared)
        if not all(type(each) is int for each in numbers) or not (
            is_cut(turns, fold.upto) and 0 <= fold.cleared <= len(turns)
        ):
            raise InputError(
                f"A fold of a History ends at turn {fold.upto!r:.20}, which is no place between turns (decoding its JSON). "
                "Pass what to_json returned."
            )
    return folds


def _turn(turn: object) -> AnyTurn:
    if isinstance(turn, (Message, Turn)):
        return turn
    if is_mapping(turn):
        return Turn(turn)
    if isinstance(turn, Record):
        signature = cast(Any, turn)._meta.signature
        if signature is not None and turn.__dict__.keys().isdisjoint(field.name for field in signature.spec.inputs):
            raise InputError(
                "A prediction has no inputs, so the user's turn would be lost. Add the inputs: "
                "history.append(question=..., **prediction)."
            )
        return Turn(turn.__dict__)
    raise InputError(
        f"{type(turn).__name__} is no turn (reading a History). A turn is a mapping of field names to values, or a Message."
    )


def changed_turns(history: History, change: Callable[[FieldValues], FieldValues]) -> History:
    """Return a history with the fields that ``change`` returns for each turn of fields. Messages are unchanged."""
    turns = (turn if isinstance(turn, Message) else Turn(change(turn)) for turn in history.messages)
    return _from_turns(turns, history.folds)


# Values of these classes, directly in a turn, are decoded to their class.
_RESTORED: Mapping[str, Any] = {kind.__name__: kind for kind in (ToolCalls, Image, Audio, File, Code, Reasoning)}


def _class_name(value: object) -> str | None:
    if isinstance(value, Code) and value.language != Code.language:
        return f"Code.{value.language}"
    name = type(value).__name__
    return name if isinstance(value, _RESTORED.get(name, ())) else None


def _kind(turn: AnyTurn) -> str | dict[str, str] | None:
    """Return the type information of a turn for ``kinds``: "message", or the classes of values by field."""
    if isinstance(turn, Message):
        return "message"
    return {name: found for name, value in turn.items() if (found := _class_name(value))} or None


def _encode(turn: AnyTurn) -> JsonObject:
    return turn.to_json() if isinstance(turn, Message) else {name: to_plain(value) for name, value in turn.items()}


def _decode(turn: Mapping[str, Any], kind: object) -> AnyTurn:
    if kind == "message":
        return Message.from_json(turn)
    kinds: Mapping[str, Any] = kind if is_mapping(kind) else {}
    return Turn({name: _restore(value, kinds.get(name)) for name, value in turn.items()})


def _restore(value: object, kind: str | None) -> object:
    name, _, language = (kind or "").partition(".")
    restored = _RESTORED.get(name)
    if restored is None:
        return value
    restored = restored[language] if language else restored
    return restored.from_json(value) if hasattr(restored, "from_json") else restored.read(value)
