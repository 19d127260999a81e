"""Cards of agents' runs: a card for each turn, with its thought, calls and results. A turn is known by its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, cast, runtime_checkable

from sigwire.core.cards.tools import shown_call
from sigwire.core.cards.values import call_facts, report_facts, usage_parts
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, LMWarning, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.show.card import MOST_CHILDREN, Card
from sigwire.show.cleaning import inline
from sigwire.show.lines import CallLine, CardLine, CardTag, ValueLine
from sigwire.show.numbers import count, seconds_text
from sigwire.show.values import fields_line

__all__ = [
    "AgentTurn",
    "ShownRun",
    "run_card",
    "run_line",
    "shown_run",
    "turn_card",
    "turn_cards",
    "turn_line",
]

RUN_FIELDS = ("steps", "history", "termination_reason")


@runtime_checkable
class AgentTurn(Protocol):
    """A turn of an agent, such as ``ReActStep``."""

    @property
    def thought(self) -> str: ...
    @property
    def calls(self) -> tuple[ToolCall, ...]: ...
    @property
    def results(self) -> tuple[ToolResult, ...]: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def seconds(self) -> float: ...
    @property
    def error(self) -> str | None: ...
    @property
    def warnings(self) -> tuple[LMWarning, ...]: ...


@dataclass(frozen=True, slots=True)
class ShownRun:
    """The run of an agent as found in a prediction. ``names``: the fields that hold it."""

    turns: Sequence[AgentTurn]
    reason: str
    names: frozenset[str]

    @property
    def summary(self) -> str:
        """The numbers of turns, calls and errors, and the reason of the end."""
        calls = sum(len(turn.calls) for turn in self.turns)
        return ", ".join(
            [
                count(len(self.turns), "turn"),
                count(calls, "call"),
                *self.errors,
                *([self.reason] if self.reason else []),
            ]
        )

    @property
    def errors(self) -> list[str]:
        """The number of failed calls, if there are some."""
        number = sum(result.is_error for turn in self.turns for result in turn.results)
        return [count(number, "tool error")] if number else []

    @property
    def tags(self) -> list[CardTag]:
        """The reason of the end, and the number of failed calls."""
        reason = [CardTag(self.reason, "right" if self.reason == "submit" else "attention")] if self.reason else []
        return [*reason, *(CardTag(error) for error in self.errors)]


def shown_run(fields: Mapping[str, object], declared: frozenset[str]) -> ShownRun | None:
    """Return the run that the fields of a prediction hold; ``None`` if they hold none.

    ``declared``: the outputs, which are no parts of a run, whatever their names.
    """
    names = [f"run_{name}" if f"run_{name}" in fields else name for name in RUN_FIELDS]
    turns, _, reason = (fields.get(name) for name in names)
    if not isinstance(turns, tuple | list) or not set(names) <= fields.keys() - declared:
        return None
    items = cast("Sequence[object]", turns)
    if not all(isinstance(each, AgentTurn) for each in items):
        return None
    return ShownRun(cast("Sequence[AgentTurn]", items), inline(reason or "", 60), frozenset(names))


class _RunLike(Protocol):
    """``AgentRun``."""

    @property
    def steps(self) -> Sequence[AgentTurn]: ...
    @property
    def termination_reason(self) -> str | None: ...
    @property
    def attempts(self) -> tuple[Attempt, ...]: ...
    @property
    def usage(self) -> Usage: ...


def turn_line(turn: Any) -> str:
    """Return the ``repr`` of a turn, as Python writes a dataclass."""
    return fields_line(type(turn).__qualname__, {each.name: getattr(turn, each.name) for each in fields(turn)})


def run_line(run: _RunLike) -> str:
    """Return ``AgentRun(2 turns, 3 calls, 1 tool error, submit)``."""
    return f"AgentRun({_shown(run).summary})"


def run_card(run: _RunLike) -> Card:
    """Return the card of a run."""
    rows = [("call", [" · ".join(call_facts(run.attempts, run.usage))])] if run.attempts else []
    shown = _shown(run)
    return Card("AgentRun", shown.summary, rows, children=turn_cards(shown.turns), tags=shown.tags)


def _shown(run: _RunLike) -> ShownRun:
    return ShownRun(run.steps, run.termination_reason or "", frozenset())


def turn_card(turn: AgentTurn) -> Card:
    """Return the card of one turn."""
    return turn_cards([turn])[0]


def turn_cards(turns: Sequence[AgentTurn]) -> list[Card]:
    """Return a card for each turn, numbered from 1."""
    cards = [_turn_card(turn, f"turn {number}") for number, turn in enumerate(turns[: MOST_CHILDREN - 1], 1)]
    more = len(turns) - len(cards)
    return [*cards, Card(f"… {count(more, 'more turn')}", is_open=True)] if more else cards


def _turn_card(turn: AgentTurn, title: str) -> Card:
    rows: list[tuple[str, list[CardLine]]] = [
        ("thought", [ValueLine(turn.thought)] if turn.thought else []),
        ("error", [ValueLine(turn.error, "wrong")] if turn.error else []),
        ("bug", [ValueLine(warning.detail, "wrong") for warning in turn.warnings]),
    ]
    facts = " · ".join([seconds_text(turn.seconds), *usage_parts(turn.usage)])
    return Card(title, facts, [(label, lines) for label, lines in rows if lines], calls=_calls(turn), is_open=True)


def _calls(turn: AgentTurn) -> list[CallLine]:
    results = {result.id: result for result in turn.results}
    reports: Sequence[CallReport] = getattr(turn, "reports", ())
    facts = {each.call.rpartition("/")[2]: " · ".join(report_facts(each)) for each in reports if each.kind == "tool"}
    return [replace(shown_call(call, results.get(call.id)), facts=facts.get(call.id, "")) for call in turn.calls]
