"""``Compaction``: when a conversation is folded, and the strategies that decide what a request leaves out.

A strategy is a function ``Draft -> Draft``, or one that returns steps of a draft if it asks a model. It gets the draft of a
fold and returns one that leaves out more. The turns themselves are never changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from inspect import isgenerator
from typing import Any, Protocol, TypeAlias, cast

from sigwire.core.fold import Fold
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, StateError
from sigwire.keywords import ChecksKeywords
from sigwire.modules.module import Module
from sigwire.show.card import BoundedRepr
from sigwire.signatures.types.history import History

__all__ = ["DEFAULT", "Compaction", "Draft", "Strategy", "clear_results", "drafted", "drop_oldest", "summarize"]

_TEXT_OF_NOTE = 60  # tokens around a summary


class SummarySource(Protocol):
    """Asks for summaries of what a draft leaves out."""

    def summary(self, draft: Draft, upto: int, program: Module | None, tokens: int) -> Steps[str | None]: ...


@dataclass(frozen=True, slots=True)
class Draft(BoundedRepr):
    """A fold that is being made. ``tokens(fold)`` estimates the request with a fold; ``target``: the most it should have.

    ``cuts`` has the numbers of the turns in front of which the fold may end, lowest first. ``least``: the tokens that a fold
    must free to be worth a new prefix; 0 after a refusal.
    """

    history: History
    fold: Fold
    target: int
    cuts: tuple[int, ...]
    tokens: Callable[[Fold], int] = field(compare=False)
    least: int = 0
    summarizer: SummarySource | None = field(default=None, repr=False, compare=False)

    def with_fold(self, **changes: Any) -> Draft:
        """Return the draft with other attributes of its fold: ``upto``, ``cleared``, ``summary``."""
        return replace(self, fold=replace(self.fold, **changes))

    @property
    def fits(self) -> bool:
        """Whether the request has at most ``target`` tokens."""
        return self.tokens(self.fold) <= self.target


Strategy: TypeAlias = Callable[[Draft], "Draft | Steps[Draft]"]
"""Returns a draft that leaves out more; steps of one if it asks a model."""


@dataclass(frozen=True, slots=True)
class _ClearResults:
    keep: int

    def __call__(self, draft: Draft) -> Draft:
        turns = draft.history.messages
        results = [at for at, turn in enumerate(turns) if isinstance(turn, Message) and turn.role == "tool"]
        cleared = results[-self.keep] if len(results) > self.keep else 0
        return draft.with_fold(cleared=max(cleared, draft.fold.cleared))


def clear_results(keep: int = 2) -> Strategy:
    """Send tool results that are older than the latest ``keep`` turns of results as references, which a tool reads."""
    if type(keep) is not int or keep < 1:
        raise ConfigurationError(
            f"keep is a number of turns, above 0, not {keep!r:.80} (clear_results). Write clear_results(2)."
        )
    return _ClearResults(keep)


@dataclass(frozen=True, slots=True)
class _DropOldest:
    def __call__(self, draft: Draft) -> Draft:
        return _dropped(draft, 0) or draft


def drop_oldest() -> Strategy:
    """Leave out whole turns, the oldest first, until the request has its target size."""
    return _DropOldest()


@dataclass(frozen=True, slots=True)
class _Summarize:
    program: Module | None
    tokens: int

    def __call__(self, draft: Draft) -> Steps[Draft]:
        dropped = _dropped(draft, self.tokens)
        if dropped is None and draft.least == 0:  # it must fit, and a summary would be as long as the turns
            return _dropped(draft, 0) or draft
        if dropped is None or draft.summarizer is None:
            return dropped or draft
        summary = yield from draft.summarizer.summary(draft, dropped.fold.upto, self.program, self.tokens)
        return dropped if summary is None else dropped.with_fold(summary=summary)


def summarize(program: Module | None = None, *, tokens: int = 500) -> Strategy:
    """Leave out whole turns as ``drop_oldest`` does, with a summary of about ``tokens`` tokens in their place.

    ``program``: a module of ``earlier, summary_so_far -> summary``; by default the predictor ``summary`` of the agent.
    """
    if type(tokens) is not int or tokens < 1:
        raise ConfigurationError(
            f"tokens is a number above 0, not {tokens!r:.80} (summarize). Write summarize(tokens=500)."
        )
    if program is not None and not isinstance(program, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"summarize takes a module, not {type(program).__name__}. Write summarize(Predict(ConversationSummary))."
        )
    return _Summarize(program, tokens)


def _dropped(draft: Draft, room: int) -> Draft | None:
    """Return the draft that ends at the first cut from which on the request has its target size, with ``room`` for a summary.

    ``None`` if the fold would end where it ends, or would free too little.
    """
    cuts = [cut for cut in draft.cuts if cut > draft.fold.upto]
    if not cuts:
        return None
    extra = room + _TEXT_OF_NOTE if room else 0
    bare = draft.with_fold(summary="") if room else draft  # a new summary replaces the old one

    def excess(cut: int) -> int:
        return bare.tokens(replace(bare.fold, upto=cut)) + extra - draft.target

    at = bisect_left(cuts, True, key=lambda cut: excess(cut) <= 0)
    best = cuts[min(at, len(cuts) - 1)]
    latest = draft.history.folds[-1] if draft.history.folds else Fold(0)
    if draft.tokens(latest) - draft.target - excess(best) < draft.least:
        return None
    return draft.with_fold(upto=best)


def drafted(strategy: Strategy, draft: Draft) -> Steps[Draft]:
    """Return the checked draft of a strategy. Raises ``ConfigurationError`` for one that is no fold of the conversation."""
    given: object = strategy(draft)
    made: object = (yield from cast("Steps[object]", given)) if isgenerator(given) else given
    if not isinstance(made, Draft):
        raise _wrong(
            strategy, f"returned {type(made).__name__}", "a Draft, such as draft.with_fold(upto=draft.cuts[0])"
        )
    fold, before = made.fold, draft.fold
    if fold.upto != before.upto and (fold.upto not in draft.cuts or fold.upto < before.upto):
        raise _wrong(strategy, f"ended a fold at turn {fold.upto!r:.20}", "one of draft.cuts, not before the latest")
    if type(fold.cleared) is not int or not before.cleared <= fold.cleared <= len(draft.history):
        raise _wrong(
            strategy, f"cleared results before turn {fold.cleared!r:.20}", "a number of turns, not below the latest"
        )
    if not isinstance(fold.summary, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong(strategy, f"made a summary of type {type(fold.summary).__name__}", "a text")
    return replace(draft, fold=replace(before, upto=fold.upto, cleared=fold.cleared, summary=fold.summary))


def _wrong(strategy: object, what: str, wanted: str) -> ConfigurationError:
    name = getattr(strategy, "__qualname__", None) or type(strategy).__qualname__
    return ConfigurationError(f"The strategy {name} {what} (folding a conversation). It returns {wanted}.")


class Compaction(ChecksKeywords):
    """When a conversation is folded, and how. Immutable; equal settings are equal.

    ``steps``: strategies in order, each until the request fits; by default ``clear_results()``, then ``summarize()``.
    ``window``: tokens of the model, if no table knows it. A fold starts above ``at`` of the window and ends at ``to``.
    ``price``: the most dollars for the input of one request without the provider's cache; lowers the window. ``search``:
    offer the tools that find what is left out. ``recall``: passages of what is left out in each request of a program without
    tools.

    Raises ``ConfigurationError`` unless ``0 < to < at <= 1``, and for a window or price that is not above 0.

    >>> Compaction(window=8000) == Compaction(window=8000), Compaction(to=0.3).at
    (True, 0.85)
    """

    __slots__ = ("at", "price", "recall", "search", "steps", "to", "window")
    steps: tuple[Strategy, ...]
    window: int | None
    at: float
    to: float
    price: float | None
    search: bool
    recall: int

    def __init__(
        self,
        steps: Iterable[Strategy] | None = None,
        *,
        window: int | None = None,
        at: float = 0.85,
        to: float = 0.2,
        price: float | None = None,
        search: bool = True,
        recall: int = 5,
    ) -> None:
        made = (clear_results(), summarize()) if steps is None else tuple(steps)
        if (wrong := next((step for step in made if not callable(step)), None)) is not None:
            raise ConfigurationError(
                f"A step of a Compaction is a strategy, not {type(wrong).__name__} (making it). Write "
                "Compaction([sigwire.compaction.drop_oldest()])."
            )
        if not (_is_number(at) and _is_number(to) and 0 < to < at <= 1):
            raise ConfigurationError(
                f"A fold starts at a share of the window and ends at a smaller one, not at={at!r:.20}, to={to!r:.20} (making a "
                "Compaction). Write at=0.85, to=0.2."
            )
        for name, value in (("window", window), ("price", price)):
            if value is not None and not (_is_number(value) and value > 0):
                raise ConfigurationError(
                    f"{name} is a number above 0, not {value!r:.40} (making a Compaction). Leave it out."
                )
        if type(recall) is not int or recall < 0:
            raise ConfigurationError(
                f"recall is a number of passages, not {recall!r:.40} (making a Compaction). Write recall=5."
            )
        values = (made, window, at, to, price, search, recall)
        for name, each in zip(("steps", "window", "at", "to", "price", "search", "recall"), values, strict=True):
            object.__setattr__(self, name, each)

    @property
    def has_summary(self) -> bool:
        """Whether a step asks the predictor ``summary`` of the agent."""
        return any(isinstance(step, _Summarize) and step.program is None for step in self.steps)

    def _values(self) -> tuple[object, ...]:
        return (self.steps, self.window, self.at, self.to, self.price, self.search, self.recall)

    def to_json(self) -> JsonObject:
        """Return the options that are not defaults, as arguments of ``Compaction``. Raises ``StateError`` for other steps."""
        if self.steps != DEFAULT.steps:
            raise StateError(
                "The steps of a Compaction are code (saving a program). Save the state with save('program.json'), and load it "
                "into a program with these steps."
            )
        names = ("window", "at", "to", "price", "search", "recall")
        return {name: value for name in names if (value := getattr(self, name)) != getattr(DEFAULT, name)}

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Compaction) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A Compaction is immutable. Make another one.")

    def __deepcopy__(self, memo: object) -> Compaction:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        steps, *rest = self._values()
        return _made, (steps, *rest)

    def __repr__(self) -> str:
        return f"Compaction(window={self.window}, at={self.at}, to={self.to})"


def _made(steps: Any, window: Any, at: Any, to: Any, price: Any, search: Any, recall: Any) -> Compaction:
    return Compaction(steps, window=window, at=at, to=to, price=price, search=search, recall=recall)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


DEFAULT = Compaction()
