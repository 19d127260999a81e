"""Messages: encode the requested reasoning, and the token limit that it counts against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import fit_max_tokens
from sigwire.lm.codecs.shared.reasoning import (
    budget_for,
    budget_within,
    can_start_thinking,
    fit_effort,
    requested_reasoning,
)

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
    given = fit_max_tokens(request.options, target, warnings)
    limit, forces = _max_tokens(given, target), facts.forced_choice_with_reasoning
    efforts = facts.known_efforts(target.profile.efforts)
    by_budget = facts.thinking == "budget"
    if asked is None:
        return ThinkingParameters(limit, {}, facts.default_effort not in (None, "off"), forces)
    if asked.is_off and facts.thinking == "none":
        return ThinkingParameters(limit, {}, False)
    if asked.is_off and (by_budget or "off" in efforts):
        return ThinkingParameters(limit, _DISABLED, False)
    if not can_start_thinking(messages, target, warnings):
        return ThinkingParameters(limit, _DISABLED, False)
    if by_budget:
        budget, lost = budget_for(asked, target)
        warnings.extend(lost)
        limit = _max_tokens(given, target, budget)
        fitting = budget_within(budget, limit, target, warnings)
        if fitting is None:
            return ThinkingParameters(limit, _DISABLED, False)
        enabled: JsonObject = {"thinking": {"type": "enabled", "budget_tokens": fitting}}
        return ThinkingParameters(limit, enabled, True, forces=False)
    effort, lost = fit_effort(asked, efforts, target)
    warnings.extend(lost)
    # Without ``display``, models since Opus 4.7 send thinking blocks without text.
    thinking: JsonObject = {"type": "adaptive", "display": "summarized"}
    return ThinkingParameters(limit, {"thinking": thinking, "output_config": {"effort": effort}}, True, forces)


def _max_tokens(given: JsonValue, target: Target[MessagesProfile], budget: int = 0) -> JsonValue:
    """Return the caller's limit, or the model's default plus the thinking budget."""
    if given is not None:
        return given
    wanted, most = target.facts.default_max_tokens + budget, target.max_output
    return wanted if most is None else min(wanted, most)


def forces_call(thinking: ThinkingParameters, target: Target[MessagesProfile]) -> bool:
    return target.facts.forced_choice and (thinking.forces or not thinking.on)
