"""The option ``reasoning``: what was asked for, fitted to what a model takes, in efforts or in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.options import require_feature

__all__ = [
    "BUDGETS",
    "EFFORTS",
    "ReasoningRequest",
    "budget_for",
    "effort_for_budget",
    "fit_effort",
    "requested_reasoning",
]


EFFORTS: tuple[str, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
BUDGETS: Mapping[str, int] = {
    "minimal": 1024, "low": 1024, "medium": 4096, "high": 16384, "xhigh": 24576, "max": 32768,
}  # fmt: skip
"""Thinking tokens that stand for an effort where a model takes only a budget, and the other way round."""


@dataclass(frozen=True, slots=True)
class ReasoningRequest:
    """What the caller asked for: a word of ``EFFORTS`` or a budget in tokens; the other one is ``None``."""

    effort: str | None = None
    budget: int | None = None

    @property
    def is_off(self) -> bool:
        return self.effort == "off"


def requested_reasoning(request: Request) -> ReasoningRequest | None:
    """The option ``reasoning``; ``None`` leaves it to the model. Raises ``InputError`` for what it cannot be.

    >>> requested_reasoning(Request(options={"reasoning": "high"}))
    ReasoningRequest(effort='high', budget=None)
    """
    asked = request.options.get("reasoning")
    if asked is None:
        return None
    if isinstance(asked, str) and asked in EFFORTS:
        return ReasoningRequest(asked)
    budget = asked.get("budget") if isinstance(asked, dict) and len(asked) == 1 else None
    if isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0:
        return ReasoningRequest(budget=budget) if budget else ReasoningRequest("off")
    raise InputError(f"reasoning must be one of {', '.join(EFFORTS)} or {{'budget': tokens}}, not {asked!r:.80}.")


def fit_effort(
    asked: ReasoningRequest, efforts: Sequence[str], target: Target[WireProfile]
) -> tuple[str, tuple[LMWarning, ...]]:
    """The nearest of the efforts that the model takes, the stronger of two as near; a warning when it is another.

    ``efforts`` are words of ``EFFORTS``. "off" is only chosen when it was asked for; where a model cannot be switched
    off its weakest effort is. Raises ``UnsupportedFeature`` where there is no effort to choose.
    """
    wanted = asked.effort or effort_for_budget(asked.budget or 0)
    order = {name: number for number, name in enumerate(EFFORTS)}
    able = [effort for effort in efforts if effort != "off" or asked.is_off]
    require_feature(
        bool(able), f"reasoning effort {wanted!r}", target, "Leave the option out or use a model that has efforts."
    )
    chosen = min(able, key=lambda effort: (abs(order[effort] - order[wanted]), -order[effort]))
    if asked.budget is not None:
        return chosen, (
            _note(target, f"takes no budget of {asked.budget} tokens; effort {chosen!r} was asked for instead."),
        )
    if chosen != wanted:
        return chosen, (_note(target, f"does not take {wanted!r}; {chosen!r} was asked for instead."),)
    return chosen, ()


def _note(target: Target[WireProfile], detail: str) -> LMWarning:
    return LMWarning("reasoning", f"{target.label} {detail}")


def effort_for_budget(budget: int) -> str:
    """The effort whose budget is nearest.

    >>> effort_for_budget(2000), effort_for_budget(20000)
    ('low', 'high')
    """
    return min((name for name in BUDGETS if name != "minimal"), key=lambda name: abs(BUDGETS[name] - budget))


def budget_for(asked: ReasoningRequest, target: Target[WireProfile]) -> tuple[int, tuple[LMWarning, ...]]:
    """The thinking budget for what was asked, within what the model takes; a warning when a given one was changed."""
    least, greatest = target.facts.budgets
    if asked.budget is None:
        return min(max(BUDGETS[asked.effort or "medium"], least), greatest), ()
    budget = min(max(asked.budget, least), greatest)
    if budget == asked.budget:
        return budget, ()
    return budget, (_note(target, f"takes budgets of {least} to {greatest} tokens; {budget} was asked for instead."),)
