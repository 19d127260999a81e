"""Converse: the requested reasoning, in the fields of the model's vendor.

Claude has ``thinking`` with a budget, or adaptive with ``outputConfig.effort``; other models have ``reasoning_effort``.
"""

from __future__ import annotations

from typing import NamedTuple

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.bedrock_converse.tables import EXTRA, ConverseProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import target_warning
from sigwire.lm.codecs.shared.reasoning import ReasoningRequest, budget_for, fit_effort, requested_reasoning

__all__ = ["ReasoningFields", "encode_reasoning"]


class ReasoningFields(NamedTuple):
    """The members of the body that request reasoning. ``thinks``: whether the model will reason."""

    fields: JsonObject
    thinks: bool


_OFF = ReasoningFields({EXTRA: {"thinking": {"type": "disabled"}}}, False)


def encode_reasoning(request: Request, target: Target[ConverseProfile], warnings: list[LMWarning]) -> ReasoningFields:
    """Return the fields for the option ``reasoning``. Raises ``UnsupportedFeature`` for a model without reasoning."""
    facts, asked = target.facts, requested_reasoning(request)
    if asked is None or (asked.is_off and facts.thinking == "none"):
        return ReasoningFields({}, asked is None and facts.default_effort not in (None, "off"))
    if facts.thinking == "budget":
        return _OFF if asked.is_off else _encode_budget(asked, request, target, warnings)
    return _encode_effort(asked, target, warnings)


def _encode_effort(
    asked: ReasoningRequest, target: Target[ConverseProfile], warnings: list[LMWarning]
) -> ReasoningFields:
    facts = target.facts
    effort, lost = fit_effort(asked, () if facts.thinking == "none" else facts.efforts or (), target)
    warnings.extend(lost)
    if not target.profile.thinking:
        return ReasoningFields({EXTRA: {"reasoning_effort": effort}}, effort != "off")
    if effort == "off":
        return _OFF
    adaptive: JsonObject = {"thinking": {"type": "adaptive"}}
    return ReasoningFields({EXTRA: adaptive, "outputConfig": {"effort": effort}}, True)


def _encode_budget(
    asked: ReasoningRequest, request: Request, target: Target[ConverseProfile], warnings: list[LMWarning]
) -> ReasoningFields:
    """Return a thinking budget below the token limit; no thinking if the least budget does not fit below it."""
    budget, lost = budget_for(asked, target)
    warnings.extend(lost)
    limit, least = request.options.get("max_tokens"), target.facts.budgets[0]
    if isinstance(limit, int) and budget >= limit:
        fitting = min(max(limit // 2, least), limit - 1)  # the other half is for the answer
        if fitting < least:
            detail = f"has no room to think within {limit} tokens; thinking was switched off."
            warnings.append(target_warning("reasoning", target, detail))
            return _OFF
        detail = f"has {limit} tokens in all; a thinking budget of {fitting} was requested instead."
        warnings.append(target_warning("reasoning", target, detail))
        budget = fitting
    return ReasoningFields({EXTRA: {"thinking": {"type": "enabled", "budget_tokens": budget}}}, True)
