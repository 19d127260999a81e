"""Outputs of type ``Reasoning``: they switch the model's own reasoning on, as in DSPy."""

from __future__ import annotations

from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.record import FieldValues
from sigwire.core.request import Request
from sigwire.dspy.types import Reasoning
from sigwire.lm.base import LanguageModel
from sigwire.lm.option_aliases import OPTION_NAMES
from sigwire.modules import predict
from sigwire.signatures.signature import SignatureMeta

__all__ = ["prompted_capabilities", "takes_effort", "with_thinking"]

_OPTIONS = frozenset({"reasoning", "reasoning_effort", "thinking"})


def with_thinking(signature: SignatureMeta, lm: LanguageModel, options: FieldValues) -> FieldValues:
    """Return the options of a call; ``reasoning_effort="low"`` is added for an output of type ``Reasoning``.

    Nothing is added if the options or those of the model have an effort (``None`` too), if the model does not show its
    reasoning, and if it does not take a low effort with these options. Sampling options that exclude reasoning give way, with
    a warning of the call.
    """
    if not any(spec.annotation is Reasoning for spec in signature.spec.outputs):
        return options
    capabilities = lm.capabilities
    if not capabilities.reasoning or capabilities.reasoning_hidden:
        return options
    if not _OPTIONS.isdisjoint({*options, *(getattr(lm, "kwargs", None) or ())}):
        return options
    low = {**options, "reasoning_effort": "low"}
    return low if takes_effort(lm, low) else options


def takes_effort(lm: LanguageModel, options: FieldValues) -> bool:
    """Return False if the model refuses the options, or reasons with another effort."""
    known: dict[str, Any] = {name: value for name, value in options.items() if name in OPTION_NAMES}
    preview = getattr(lm, "preview", None)
    if preview is None:
        return True
    found = preview(Request((Message.user("Hi"),), options=known))
    return not found.errors and all(warning.feature != "reasoning" for warning in found.warnings)


def prompted_capabilities(lm: LanguageModel, options: FieldValues) -> Capabilities:
    """Return what a prompt may rely on: a model that reasons by no option is asked for a written reasoning."""
    capabilities = lm.capabilities
    if not capabilities.reasoning or predict.is_thinking(lm, options):
        return capabilities
    return predict.without_thinking(capabilities)
