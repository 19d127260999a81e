"""Converse: the requested reasoning, in the fields of the model's vendor.

Claude has ``thinking`` with a budget, or adaptive with ``outputConfig.effort``; Nova 2 has ``reasoningConfig``, other
models ``reasoning_effort``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.bedrock_converse.tables import EXTRA, ConverseProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import fit_max_tokens, target_warning
from sigwire.lm.codecs.shared.reasoning import (
    ReasoningRequest,
    budget_for,
    budget_within,
    can_start_thinking,
    fit_effort,
    requested_reasoning,
)

__all__ = ["ReasoningFields", "encode_reasoning"]


class ReasoningFields(NamedTuple):
    """The members of the body that request reasoning. ``thinks``: whether the model will reason."""

    fields: JsonObject
    thinks: bool


_OFF = ReasoningFields({EXTRA: {"thinking": {"type": "disabled"}}}, False)


def encode_reasoning(
    request: Request, messages: Sequence[Message], target: Target[ConverseProfile], warnings: list[LMWarning]
) -> ReasoningFields:
    """Return the fields for the option ``reasoning``. Raises ``UnsupportedFeature`` for a model without reasoning."""
    facts, asked = target.facts, requested_reasoning(request)
    if asked is None or (asked.is_off and facts.thinking == "none"):
        return ReasoningFields({}, asked is None and facts.default_effort not in (None, "off"))
    if facts.thinking != "budget":
        return _encode_effort(asked, "max_tokens" in request.options, target, warnings)
    if asked.is_off or not can_start_thinking(messages, target, warnings):
        return _OFF
    budget, lost = budget_for(asked, target)
    warnings.extend(lost)
    fitting = budget_within(budget, fit_max_tokens(request.options, target, []), target, warnings)
    if fitting is None:
        return _OFF
    return ReasoningFields({EXTRA: {"thinking": {"type": "enabled", "budget_tokens": fitting}}}, True)


def _encode_effort(
    asked: ReasoningRequest, has_limit: bool, target: Target[ConverseProfile], warnings: list[LMWarning]
) -> ReasoningFields:
    facts = target.facts
    effort, lost = fit_effort(asked, () if facts.thinking == "none" else facts.efforts or (), target)
    warnings.extend(lost)
    if target.profile.thinking == "reasoningConfig":
        return _nova_reasoning(effort, has_limit, target, warnings)
    if target.profile.thinking == "reasoning_effort":
        return ReasoningFields({EXTRA: {"reasoning_effort": effort}}, effort != "off")
    if effort == "off":
        return _OFF
    # Without ``display``, models since Opus 4.7 send thinking blocks without text.
    adaptive: JsonObject = {"thinking": {"type": "adaptive", "display": "summarized"}}
    return ReasoningFields({EXTRA: adaptive, "outputConfig": {"effort": effort}}, True)


def _nova_reasoning(
    effort: str, has_limit: bool, target: Target[ConverseProfile], warnings: list[LMWarning]
) -> ReasoningFields:
    # https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html: with high effort, maxTokens, temperature
    # and topP must not be set.
    if effort == "off":
        return ReasoningFields({}, False)  # the default
    if effort == "high" and has_limit:
        effort = "medium"
        warnings.append(
            target_warning("reasoning", target, "takes no max_tokens with effort 'high'; 'medium' was sent.")
        )
    return ReasoningFields({EXTRA: {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}}, True)
