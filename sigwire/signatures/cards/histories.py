"""The repr and card of a history: turns of fields, and messages role by role."""

from __future__ import annotations

from sigwire.core.cards.messages import message_cards, unanswered_rows
from sigwire.core.fold import Fold
from sigwire.core.messages import Message
from sigwire.show.card import Card
from sigwire.show.lines import CardLine
from sigwire.show.numbers import count
from sigwire.signatures.types.history import History

__all__ = ["history_card", "history_line"]


def history_line(history: History) -> str:
    """Return ``History(1 turn, 5 messages)``."""
    return f"History({_counts(history)})"


def history_card(history: History) -> Card:
    """Return the card of a history. Turns that requests leave out are folded, under a bar with the tokens of both."""
    turns = history.messages
    upto = history.folds[-1].upto if history.folds else 0
    rows, children = list(unanswered_rows(turns)), message_cards(turns[upto:])
    if history.folds:
        rows.append(("left out", [_bar(history.folds[-1])]))
    if upto:
        children = [Card(_numbers(upto), "left out", children=message_cards(turns[:upto])), *children]
    return Card("History", _counts(history), rows, children=children)


def _bar(fold: Fold) -> CardLine:
    """Return ``turns 0-41: 6,820 → 1,590 tokens``."""
    return f"{_numbers(fold.upto) or 'results'}: {fold.tokens_before:,} → {fold.tokens_after:,} tokens"


def _numbers(upto: int) -> str:
    return f"turns 0-{upto - 1}" if upto > 1 else "turn 0" if upto else ""


def _counts(history: History) -> str:
    messages = sum(isinstance(turn, Message) for turn in history.messages)
    turns = len(history.messages) - messages
    return ", ".join(
        count(number, noun) for number, noun in ((turns, "turn"), (messages, "message")) if number or noun == "turn"
    )
