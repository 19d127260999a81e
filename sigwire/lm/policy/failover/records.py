"""``HealthTable``: the health of each target of a model at one moment, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sigwire.core.json import Value
from sigwire.lm.policy.failover.health import Circuit, CircuitState
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import inline
from sigwire.show.numbers import count

__all__ = ["HealthTable", "TargetHealth", "health_row"]


@dataclass(frozen=True, slots=True)
class TargetHealth(Value):
    """One target at one moment.

    ``state``: "closed" (calls ask it), "open" (none does), or "half open" (one does). ``penalty``: the sum of its failures,
    decayed. ``opens_in``: seconds until a call may ask it, 0 if one may. ``answers`` and ``failures`` are counts since the
    start of the process, of calls and not of exchanges; ``last_failure`` is the short name of the latest one.
    """

    model: str
    state: CircuitState
    penalty: float
    opens_in: float
    answers: int
    failures: int
    last_failure: str | None = None


def health_row(model: str, circuit: Circuit, now: float) -> TargetHealth:
    """Return the row of a circuit."""
    wait, penalty = round(circuit.wait(now), 3), round(circuit.penalty(now), 3)
    return TargetHealth(model, circuit.state(now), penalty, wait, circuit.answers, circuit.failures, circuit.last)


@dataclass(frozen=True, slots=True, repr=False)
class HealthTable(HasCard):
    """``lm.health()``: a row for each target, in the order in which calls ask.

    >>> table = HealthTable((TargetHealth("acme/m", "open", 3.0, 4.2, 0, 3, "server"),))
    >>> table
    HealthTable(acme/m open 4.2 s)
    >>> [row.failures for row in table]
    [3]
    """

    rows: tuple[TargetHealth, ...]

    def __iter__(self) -> Iterator[TargetHealth]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> TargetHealth:
        return self.rows[index]

    def __repr__(self) -> str:
        shown = [f"{inline(row.model, 80)} {_state(row)}" for row in self.rows[:_MOST_SHOWN]]
        more = len(self.rows) - len(shown)
        return f"HealthTable({', '.join([*shown, *([f'{more} more'] if more > 0 else ())])})"

    def _card(self) -> Card:
        names = ("model", "state", "penalty", "answers", "failures", "last failure")
        cells = [
            (
                row.model,
                _state(row),
                f"{row.penalty:.1f}",
                f"{row.answers:,}",
                f"{row.failures:,}",
                row.last_failure or "",
            )
            for row in self.rows
        ]
        return Card("Health", count(len(cells), "target"), table=[names, *cells])


_MOST_SHOWN = 4  # targets in a line


def _state(row: TargetHealth) -> str:
    return f"{row.state} {row.opens_in:.1f} s" if row.state == "open" else row.state
