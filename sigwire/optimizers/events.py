"""Events of a search: for callbacks, streams, progress, the journal and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sigwire.core.json import Value
from sigwire.evaluate.costs import add_cost, cost_text
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.certificate import Certificate
from sigwire.show.card import BoundedRepr

__all__ = ["Certified", "Dropped", "Kept", "Measured", "Proposed", "RefusedText", "SearchEvent", "Spent", "Warned"]


@dataclass(frozen=True, slots=True)
class Proposed(BoundedRepr):
    """A rule made a candidate. ``origin``: how, in a few words; ``changes`` are the slots that differ from the parent."""

    candidate: Candidate
    origin: str = ""
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedText(Value):
    """A text of the writing model is not used, and no run is paid for it. ``why`` in a few words."""

    slot: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Measured(BoundedRepr):
    """A candidate was run: its mean score on the validation rows that it has, and their number."""

    candidate: Candidate
    mean: float
    rows: int


@dataclass(frozen=True, slots=True)
class Dropped(BoundedRepr):
    """A candidate left the search. ``why`` has the evidence in a few words."""

    candidate: Candidate
    why: str


@dataclass(frozen=True, slots=True)
class Kept(BoundedRepr):
    """A candidate is the new leader of the search, or joined the pool of parents."""

    candidate: Candidate
    why: str


@dataclass(frozen=True, slots=True)
class Spent(Value):
    """The amounts that a search has spent. ``calls``: requests to models.

    ``money``: what is known in US dollars, at least that if ``is_partial``; ``None`` if nothing is known.
    """

    runs: int = 0
    calls: int = 0
    writing_calls: int = 0
    tokens: int = 0
    money: float | None = 0.0
    seconds: float = 0.0
    is_partial: bool = False

    def plus(self, other: Spent) -> Spent:
        """Return the sum. Money to a trillionth of a dollar: runs end in any order, which decides the last digit of a sum."""
        known = other.money or 0.0, not (other.is_partial or other.money is None)
        money, is_partial = add_cost(self.money, self.is_partial or self.money is None, known)
        return Spent(
            self.runs + other.runs,
            self.calls + other.calls,
            self.writing_calls + other.writing_calls,
            self.tokens + other.tokens,
            None if money is None else round(money, 12),
            self.seconds + other.seconds,
            is_partial,
        )

    @property
    def money_text(self) -> str:
        """The money for people.

        >>> Spent(money=0.06).plus(Spent(calls=1, money=None)).money_text
        '≥ $0.06'
        """
        return cost_text(self.money, self.is_partial)


@dataclass(frozen=True, slots=True)
class Warned(BoundedRepr):
    """A sentence for the warnings of the report."""

    text: str


@dataclass(frozen=True, slots=True)
class Certified(BoundedRepr):
    """The bound of the program that the search returns."""

    certificate: Certificate


SearchEvent: TypeAlias = "Certified | Proposed | RefusedText | Measured | Dropped | Kept | Spent | Warned"
