"""Cards of reports: the calls inside a call, as an indented tree in text and as cards in cards."""

from __future__ import annotations

from collections.abc import Iterator

from sigwire.core.cards.messages import warning_rows
from sigwire.core.cards.values import report_facts
from sigwire.core.report import CallReport
from sigwire.show.card import MOST_CHILDREN, MOST_DEPTH, Card
from sigwire.show.cleaning import display_width, inline
from sigwire.show.layout import cut_at
from sigwire.show.lines import CardTag
from sigwire.show.numbers import count
from sigwire.show.values import call_line

__all__ = ["report_card", "report_line", "report_tree"]

_WIDTH, _MOST_LINES, _LEAST_NAME = 80, 200, 20


def report_line(report: CallReport) -> str:
    """Return ``CallReport(Team, 4 requests, 1,200 in, 90 out, $0.0021)``."""
    return call_line("CallReport", [_name(report), *report_facts(report)])


def report_tree(report: CallReport) -> str:
    """Return a line for each call: name, path inside the call around, turn, and what it took; at most 80 columns.

    >>> print(report_tree(CallReport(name="Team", inner=(CallReport(name="Predict", path="first", seconds=0.5),))))
    Team                                                           0 requests · 0 ms
      Predict first                                              0 requests · 500 ms
    """
    lines: list[str] = []
    stack = [(0, "self", report)]
    while stack and len(lines) < _MOST_LINES:
        depth, around, each = stack.pop()
        path = "self" if each.path == around else each.path.removeprefix(f"{around}.")
        lines.append(_line(each, path, depth))
        stack.extend((depth + 1, each.path, inner) for inner in reversed(each.inner))
    if stack:
        lines.append(f"… {count(sum(1 for _ in report) - len(lines), 'more call')}")
    return "\n".join(lines)


def _line(report: CallReport, path: str, depth: int) -> str:
    facts = inline(" · ".join(report_facts(report)), _WIDTH - _LEAST_NAME - 2)
    indent = " " * min(2 * depth, _WIDTH - _LEAST_NAME - 2 - len(facts))
    room = _WIDTH - len(indent) - len(facts) - 2
    name = _named(report, path)
    if display_width(name) > room:
        name = f"{name[: cut_at(name, room - 1)]}…"
    blanks = _WIDTH - len(indent) - display_width(name) - len(facts)
    return f"{indent}{name}{' ' * max(blanks, 2)}{facts}"


def report_card(report: CallReport) -> Card:
    """Return the card of a call, with a card for each call inside."""
    return _card(report, 1)


def _card(report: CallReport, depth: int) -> Card:
    children = [_card(each, depth + 1) for each in report.inner[: MOST_CHILDREN - 1]] if depth < MOST_DEPTH else []
    if left := len(report.inner) - len(children):
        children.append(Card(f"… {count(left, 'more call')}", is_open=True))
    tags = [CardTag(inline(report.error, 60), "wrong")] if report.error else []
    if report.cache == "hit" and not report.inner:
        tags.append(CardTag("cache hit", "call"))
    rows = warning_rows(report.own_warnings)
    subtitle = " · ".join([*_place(report, report.path), *report_facts(report)])
    return Card(_name(report), subtitle, rows, children=children, tags=tags, is_open=True)


def _named(report: CallReport, path: str) -> str:
    facts = [*_place(report, path), *([f"({report.error})"] if report.error else [])]
    hit = ["cache hit"] if report.cache == "hit" and not report.inner else []
    return " ".join([_name(report), *facts, *hit])


def _name(report: CallReport) -> str:
    return inline(report.name, 60) or "call"


def _place(report: CallReport, path: str) -> Iterator[str]:
    if path != "self":
        yield inline(path, 60)
    if report.turn is not None:
        yield f"turn {report.turn + 1}"
