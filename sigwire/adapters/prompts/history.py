"""Past turns as messages. A history is extended at its end, so each written turn is cached.

Turns are immutable and are found by identity. The cache is bounded: when it is full, it is cleared.
"""

from __future__ import annotations

from typing import Any, cast

from sigwire.adapters.prompts.turns import TurnWriter
from sigwire.core.messages import Message, Role
from sigwire.core.narrow import is_mapping
from sigwire.core.record import FieldValues
from sigwire.errors import InputError
from sigwire.signatures.types.history import Turn

__all__ = ["HistoryWriter"]

_MAX_TURNS = 2048


class HistoryWriter:
    """Writes histories for one plan."""

    __slots__ = ("_cache", "_fields", "_turns")

    def __init__(self, turns: TurnWriter, fields: frozenset[str]) -> None:
        self._turns = turns
        self._fields = fields
        self._cache: dict[int, tuple[object, tuple[Message, ...]]] = {}

    def extend(self, messages: list[Message], history: Any) -> None:
        """Append the view of a ``History``, or a list of turns, to the messages. Raises ``InputError``."""
        view = getattr(history, "view", None)
        if view is None:
            for turn in history:
                messages.extend(self._write(turn))
            return
        turns = view().messages
        cache, native = self._cache, self._turns.native
        for turn in turns:
            if native and type(turn) is Message:
                messages.append(turn)
                continue
            entry = cache.get(id(turn))
            messages.extend(entry[1] if entry is not None and entry[0] is turn else self._write_and_cache(turn))

    def _write_and_cache(self, turn: object) -> tuple[Message, ...]:
        written = self._write(turn)
        if len(self._cache) >= _MAX_TURNS:
            self._cache.clear()
        self._cache[id(turn)] = (turn, written)
        return written

    def _write(self, turn: object) -> tuple[Message, ...]:
        if isinstance(turn, Message):
            return (self._turns.message(turn),)
        values = _fields_of(turn)
        if not self._fields.isdisjoint(values):
            return self._turns.turn(values)
        role, content = values.get("role"), values.get("content")
        if isinstance(role, str) and isinstance(content, str):
            return (Message(cast("Role", role), Message.user(content).parts),)
        raise InputError(
            f"A turn of the history has none of the signature's fields ({', '.join(sorted(self._fields))}); "
            f"it has {', '.join(map(str, values)) or 'nothing'}."
        )


def _fields_of(turn: object) -> FieldValues:
    """Return a turn's values as a dict: reading another mapping key by key costs more than writing the turn."""
    if isinstance(turn, Turn):
        return turn._fields  # pyright: ignore[reportPrivateUsage]  # the library's own record, read in place
    if is_mapping(turn):
        return dict(turn)
    raise InputError(f"A history holds mappings of fields and messages, not {type(turn).__name__}.")
