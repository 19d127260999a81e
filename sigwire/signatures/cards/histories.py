"""The repr and card of a history: turns of fields, and messages role by role."""

from __future__ import annotations

from sigwire.core.cards.messages import message_cards, unanswered_rows
from sigwire.core.messages import Message
from sigwire.show.card import Card
from sigwire.show.numbers import count
from sigwire.signatures.types.history import History

__all__ = ["history_card", "history_line"]


def history_line(history: History) -> str:
    """Return ``History(1 turn, 5 messages)``."""
    return f"History({_counts(history)})"


def history_card(history: History) -> Card:
    """Return the card of a history."""
    return Card(
        "History", _counts(history), unanswered_rows(history.messages), children=message_cards(history.messages)
    )


def _counts(history: History) -> str:
    messages = sum(isinstance(turn, Message) for turn in history.messages)
    turns = len(history.messages) - messages
    return ", ".join(
        count(number, noun) for number, noun in ((turns, "turn"), (messages, "message")) if number or noun == "turn"
    )
