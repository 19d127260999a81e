"""The option ``reasoning``: fit the requested effort or token budget to a model, its limit of tokens and its history."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.options import require_feature, target_warning
from sigwire.lm.histories.thinking import is_reasoning_item

__all__ = [
    "BUDGETS", "EFFORTS", "ReasoningRequest", "budget_for", "budget_within", "can_start_thinking", "effort_for_budget",
    "fit_effort", "requested_reasoning",
]  # fmt: skip


EFFORTS: tuple[str, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
BUDGETS: Mapping[str, int] = {
    "minimal": 1024, "low": 1024, "medium": 4096, "high": 16384, "xhigh": 24576, "max": 32768,
}  # fmt: skip
"""Thinking tokens of an effort, for models with budgets only; read backwards for models with efforts only."""


@dataclass(frozen=True, slots=True)
class ReasoningRequest:
    """The requested reasoning: an effort of ``EFFORTS`` or a budget in tokens; the other is ``None``."""

    effort: str | None = None
    budget: int | None = None

    @property
    def is_off(self) -> bool:
        return self.effort == "off"


def requested_reasoning(request: Request) -> ReasoningRequest | None:
    """Return the option ``reasoning``; ``None`` if not given. Raises ``InputError`` for any other value.

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
    """Return the nearest effort of the model, the stronger of two equally near, and a warning if it is another.

    ``efforts`` is a subset of ``EFFORTS``. "off" is chosen only on request; a model that cannot be switched off gets its
    weakest effort. Raises ``UnsupportedFeature`` if there is no effort to choose.
    """
    wanted = asked.effort or effort_for_budget(asked.budget or 0)
    order = {name: number for number, name in enumerate(EFFORTS)}
    able = [effort for effort in efforts if effort != "off" or asked.is_off]
    require_feature(
        bool(able), f"reasoning effort {wanted!r}", target, "Leave the option out or use a model that has efforts."
    )
    chosen = min(able, key=lambda effort: (abs(order[effort] - order[wanted]), -order[effort]))
    if asked.budget is None and chosen == wanted:
        return chosen, ()
    detail = f"does not take {wanted!r}; {chosen!r} was requested instead."
    if asked.budget is not None:
        detail = f"takes no budget of {asked.budget} tokens; effort {chosen!r} was requested instead."
    return chosen, (target_warning("reasoning", target, detail),)


def effort_for_budget(budget: int) -> str:
    """Return the effort with the nearest budget.

    >>> effort_for_budget(2000), effort_for_budget(20000)
    ('low', 'high')
    """
    return min((name for name in BUDGETS if name != "minimal"), key=lambda name: abs(BUDGETS[name] - budget))


def budget_for(asked: ReasoningRequest, target: Target[WireProfile]) -> tuple[int, tuple[LMWarning, ...]]:
    """Return the thinking budget within the limits of the model, and a warning if a given budget was changed."""
    least, greatest = target.facts.budgets
    if asked.budget is None:
        return min(max(BUDGETS[asked.effort or "medium"], least), greatest), ()
    budget = min(max(asked.budget, least), greatest)
    if budget == asked.budget:
        return budget, ()
    detail = f"takes budgets of {least} to {greatest} tokens; {budget} was requested instead."
    return budget, (target_warning("reasoning", target, detail),)


def budget_within(budget: int, limit: JsonValue, target: Target[WireProfile], warnings: list[LMWarning]) -> int | None:
    """Return the thinking budget below the token limit, against which it counts; ``None`` if the least one has no room."""
    least, fitting = target.facts.budgets[0], budget
    if isinstance(limit, int) and budget >= limit:
        fitting = min(max(limit // 2, least), limit - 1)  # the other half is for the answer
    if fitting < least:
        detail = f"has no room to think within {limit} tokens; thinking was switched off."
        warnings.append(target_warning("reasoning", target, detail))
        return None
    if fitting < budget:
        detail = f"has {limit} tokens in all; a thinking budget of {fitting} was requested instead."
        warnings.append(target_warning("reasoning", target, detail))
    return fitting


def can_start_thinking(messages: Sequence[Message], target: Target[WireProfile], warnings: list[LMWarning]) -> bool:
    """Return False, with a warning, if results end the history and its loop of calls started without thinking.

    Claude refuses a thinking budget then, on every host: "a final `assistant` message must start with a thinking block".
    """
    if not target.facts.thinks_first:
        return True
    backwards = itertools.dropwhile(lambda turn: turn.role == "user", reversed(messages))
    loop = list(itertools.takewhile(lambda turn: turn.role in ("assistant", "tool"), backwards))
    if not loop or loop[0].role != "tool":
        return True
    # Hosts of chat completions keep thinking in items beside the parts, without an order.
    rules, first = target.history_rules, loop[-1].parts
    if isinstance(first[0], ThinkingPart) or any(is_reasoning_item(part, rules) for part in first):
        return True
    detail = "cannot start to think inside a loop of calls; thinking was switched off."
    warnings.append(target_warning("reasoning", target, detail))
    return False
