"""The conversation so far as messages. A history grows at its end, so each turn is written once and kept.

Turns are immutable and known by identity. The store is bounded: past its size it starts afresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.adapters.prompts.turns import TurnWriter
from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping
from sigwire.errors import InputError
from sigwire.signatures.types.history import Turn

__all__ = ["HistoryWriter"]

_KEPT = 2048


class HistoryWriter:
    """Writes histories for one plan."""

    __slots__ = ("_fields", "_kept", "_speaker")

    def __init__(self, speaker: TurnWriter, fields: frozenset[str]) -> None:
        self._speaker = speaker
        self._fields = fields
        self._kept: dict[int, tuple[object, tuple[Message, ...]]] = {}

    def extend(self, messages: list[Message], history: Any) -> None:
        """Add the turns of a ``History``, or of a list of turns, to the messages."""
        turns = getattr(history, "messages", None)
        if turns is None:
            for turn in history:
                messages.extend(self._write(turn))
            return
        kept, native = self._kept, self._speaker.native
        for turn in turns:
            if native and type(turn) is Message:
                messages.append(turn)
                continue
            entry = kept.get(id(turn))
            messages.extend(entry[1] if entry is not None and entry[0] is turn else self._keep(turn))

    def _keep(self, turn: object) -> tuple[Message, ...]:
        written = self._write(turn)
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[id(turn)] = (turn, written)
        return written

    def _write(self, turn: Any) -> tuple[Message, ...]:
        if isinstance(turn, Message):
            return (self._speaker.message(turn),)
        values = _fields(turn)
        if not self._fields.isdisjoint(values):
            return self._speaker.turn(values)
        if isinstance(values.get("role"), str) and isinstance(values.get("content"), str):
            return (Message(values["role"], Message.user(values["content"]).parts),)
        raise InputError(
            f"A turn of the history has none of the signature's fields ({', '.join(sorted(self._fields))}); "
            f"it has {', '.join(map(str, values)) or 'nothing'}."
        )


def _fields(turn: Any) -> Mapping[str, Any]:
    """A turn's values as a dict: reading a mapping of another kind key by key would cost more than writing the turn."""
    if isinstance(turn, Turn):
        return turn._fields  # pyright: ignore[reportPrivateUsage]  # the library's own record, read in place
    if is_mapping(turn):
        return dict(turn)
    raise InputError(f"A history holds mappings of fields and messages, not {type(turn).__name__}.")
