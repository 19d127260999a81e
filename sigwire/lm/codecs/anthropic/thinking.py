"""Messages: encode the requested reasoning, and the token limit that it counts against."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import target_warning
from sigwire.lm.codecs.shared.reasoning import budget_for, fit_effort, requested_reasoning

__all__ = ["ThinkingParameters", "encode_reasoning", "forces_call"]


@dataclass(frozen=True, slots=True)
class ThinkingParameters:
    """The members of the body that request thinking, the token limit, and whether the model will think.

    ``forces``: whether tool_choice can force a call of a thinking model.
    """

    max_tokens: JsonValue
    fields: JsonObject
    on: bool
    forces: bool = True


_DISABLED: JsonObject = {"thinking": {"type": "disabled"}}


def encode_reasoning(
    request: Request, messages: Sequence[Message], target: Target[MessagesProfile], warnings: list[LMWarning]
) -> ThinkingParameters:
    facts, asked = target.facts, requested_reasoning(request)
    limit, forces = _max_tokens(request, target), facts.forced_choice_with_reasoning
    efforts = facts.known_efforts(target.profile.efforts)
    by_budget = facts.thinking == "budget"
    if asked is None:
        return ThinkingParameters(limit, {}, facts.default_effort not in (None, "off"), forces)
    if asked.is_off and facts.thinking == "none":
        return ThinkingParameters(limit, {}, False)
    if asked.is_off and (by_budget or "off" in efforts):
        return ThinkingParameters(limit, _DISABLED, False)
    if by_budget and _continues_without_thinking(messages):
        detail = "cannot start to think inside a loop of calls; thinking was switched off."
        warnings.append(target_warning("reasoning", target, detail))
        return ThinkingParameters(limit, _DISABLED, False)
    if by_budget:
        budget, lost = budget_for(asked, target)
        warnings.extend(lost)
        return _within_limit(budget, request, target, warnings)
    effort, lost = fit_effort(asked, efforts, target)
    warnings.extend(lost)
    # Without ``display``, models since Opus 4.7 send thinking blocks without text.
    thinking: JsonObject = {"type": "adaptive", "display": "summarized"}
    return ThinkingParameters(limit, {"thinking": thinking, "output_config": {"effort": effort}}, True, forces)


def _continues_without_thinking(messages: Sequence[Message]) -> bool:
    """Return True if results end the history, and its loop of calls starts with a turn without thinking."""
    # The provider refuses a thinking budget then: "a final `assistant` message must start with a thinking block".
    backwards = itertools.dropwhile(lambda turn: turn.role == "user", reversed(messages))
    loop = list(itertools.takewhile(lambda turn: turn.role in ("assistant", "tool"), backwards))
    if not loop or loop[0].role != "tool":
        return False
    return not isinstance(loop[-1].parts[0], ThinkingPart)


def _max_tokens(request: Request, target: Target[MessagesProfile], budget: int = 0) -> JsonValue:
    """Return the caller's limit, or the model's default plus the thinking budget."""
    given = request.options.get("max_tokens")
    if given is not None:
        return given
    wanted, most = target.facts.default_max_tokens + budget, target.capabilities.max_output_tokens
    return wanted if most is None else min(wanted, most)


def _within_limit(
    budget: int, request: Request, target: Target[MessagesProfile], warnings: list[LMWarning]
) -> ThinkingParameters:
    """Fit the thinking budget below the token limit; request no thinking if the least budget does not fit."""
    limit = _max_tokens(request, target, budget)
    least = target.facts.budgets[0]
    fitting = budget
    if isinstance(limit, int) and budget >= limit:
        fitting = min(max(limit // 2, least), limit - 1)  # the other half is for the answer
    if fitting < least:
        detail = f"has no room to think within {limit} tokens; thinking was switched off."
        warnings.append(target_warning("reasoning", target, detail))
        return ThinkingParameters(limit, _DISABLED, False)
    if fitting < budget:
        detail = f"has {limit} tokens in all; a thinking budget of {fitting} was requested instead."
        warnings.append(target_warning("reasoning", target, detail))
    return ThinkingParameters(limit, {"thinking": {"type": "enabled", "budget_tokens": fitting}}, True, forces=False)


def forces_call(thinking: ThinkingParameters, target: Target[MessagesProfile]) -> bool:
    return target.facts.forced_choice and (thinking.forces or not thinking.on)
