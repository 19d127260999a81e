"""Forks: a run that begins with the effects that another run had before a place.

``plan_fork`` decides which effects are kept and changes their rows: a kept row has no fingerprint, because it is given whatever
model, text or tool asks at its place now. The header of the new run has a ``Fork``, its origin. No I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from sigwire.core.json import JsonObject, Value
from sigwire.core.record import to_plain
from sigwire.errors import InputError
from sigwire.journal.packing import pack
from sigwire.journal.records import EffectRow

__all__ = ["KEPT", "Fork", "first_run", "fork_of", "next_name", "plan_fork", "with_fork"]

KEPT = ""
"""The fingerprint of a row that a fork keeps."""

_NUMBERED = re.compile(r"~(\d+)$")
_AT_ONCE = ("part", "tool")  # effects of these names may run at the same time, so their numbers are no order


@dataclass(frozen=True, slots=True)
class Fork(Value):
    """The origin of a run: the run ``of``, until the place ``at``; ``first`` is the run that is no fork.

    ``at`` is empty if the run was forked where the program had changed.
    """

    of: str
    first: str
    at: str = ""

    def is_missing(self, place: str) -> bool:
        """Return True if the program makes an effect at a place before the fork, where the first run had none."""
        if not self.at:
            return False
        is_same_program = place.split("/", 1)[0] == self.at.split("/", 1)[0]
        return not is_same_program or _is_before(place, self.at) is True


def first_run(run: str, fork: Fork | None) -> str:
    """Return the run whose name makes the keys of calls: forks of a run share its keys, so no service does work twice."""
    return fork.first if fork is not None else _NUMBERED.sub("", run)


def next_name(run: str, is_taken: Callable[[str], object] = lambda _: False) -> str:
    """Return the first free name of a fork.

    >>> next_name("order"), next_name("order~1"), next_name("order", {"order~1"}.__contains__)
    ('order~1', 'order~2', 'order~2')
    """
    found = _NUMBERED.search(run)
    number = int(found[1]) + 1 if found else 1
    while is_taken(name := f"{_NUMBERED.sub('', run)}~{number}"):
        number += 1
    return name


def plan_fork(
    run: str,
    rows: Sequence[EffectRow],
    at: int | str,
    results: Mapping[str, object],
    texts: dict[str, bytes],
) -> tuple[str, list[EffectRow]]:
    """Return the place of a fork and the rows that it keeps, with ``results`` in place of those of their calls."""
    place = _place_of(run, rows, at)
    start = min(row.started for row in rows if _is_inside(row.place, place))
    kept = [row for row in rows if _is_kept(row, place, start)]
    calls = {row.place for row in kept if row.kind == "tool" and row.state == "done"}
    if unknown := sorted(map(str, results.keys() - calls)):
        raise InputError(
            f"{', '.join(unknown)}: no call of the run {run!r} that ended before {place} (forking it). "
            f"The calls are: {', '.join(sorted(calls)) or 'none'}."
        )
    given = {name: _packed(name, value, texts) for name, value in results.items()}
    return place, [
        replace(row, fingerprint=KEPT, decision=given.get(row.place, row.decision))
        for row in kept
        if not any(_is_inside(row.place, name) and row.place != name for name in given)
    ]


def _packed(place: str, value: object, texts: dict[str, bytes]) -> bytes:
    try:
        return pack({"result": to_plain(value)}, texts.__setitem__)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"The result for {place} has no JSON form: {error} (forking a run). Pass JSON values."
        ) from error


def _place_of(run: str, rows: Iterable[EffectRow], at: object) -> str:
    places = [row.place for row in rows]
    if isinstance(at, int) and not isinstance(at, bool):
        agent = next((place.partition("/turn.")[0] for place in places if "/turn." in place), None)
        place, turns = f"{agent}/turn.{at}", _turns_of(agent, places)
        if agent is None or at not in turns:
            known = f"0 to {max(turns)}" if turns else "none: fork at a place"
            raise InputError(f"The run {run!r} has no turn {at} (forking it). Its turns are {known}.")
        return place
    if not isinstance(at, str) or not any(_is_inside(place, at) for place in places):
        raise InputError(
            f"The run {run!r} has no place {at!r:.80} (forking it). at= is the number of a turn, or a place of "
            f"journal.effects({run!r}), such as {max(places, default='ReAct.0/turn.0')!r}."
        )
    return at


def _turns_of(agent: str | None, places: Iterable[str]) -> set[int]:
    found = (re.match(rf"{re.escape(agent or '')}/turn\.(\d+)(?:/|$)", place) for place in places)
    return {int(each[1]) for each in found if each}


def _is_inside(place: str, outer: str) -> bool:
    return place == outer or place.startswith(f"{outer}/")


def _is_kept(row: EffectRow, place: str, start: float) -> bool:
    """Return True for an effect that began before ``place``, and is no call around it."""
    if _is_inside(row.place, place) or _is_inside(place, row.place):
        return False
    before = _is_before(row.place, place)
    return row.started < start if before is None else before


def _is_before(place: str, other: str) -> bool | None:
    """Return True if ``place`` is before ``other`` in the order of the program, ``None`` if the places are in no order.

    >>> _is_before("A.0/turn.1/tool.0", "A.0/turn.2"), _is_before("A.0/turn.2/ask.0", "A.0/turn.2/tool.0")
    (True, None)
    """
    for one, two in zip_longest(place.split("/"), other.split("/")):
        if one != two:
            return _is_smaller(one, two)
    return None


def _is_smaller(one: str | None, two: str | None) -> bool | None:
    (name, _, number), (other_name, _, other) = (one or "").rpartition("."), (two or "").rpartition(".")
    if name != other_name or name in _AT_ONCE or not (number.isdecimal() and other.isdecimal()):
        return None
    return int(number) < int(other)


def fork_of(header: Mapping[str, Any]) -> Fork | None:
    """Return where the run of a header comes from."""
    return Fork.from_json(header["fork"]) if "fork" in header else None


def with_fork(header: JsonObject, fork: Fork) -> JsonObject:
    """Return the header of a fork."""
    return {**header, "fork": fork.to_json()}
