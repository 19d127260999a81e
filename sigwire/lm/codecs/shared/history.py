"""Normalize a message history to what a wire accepts: ``lm.histories`` with its losses as warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.histories.calls import NOT_EXECUTED, error_text
from sigwire.lm.histories.conversion import convert_history
from sigwire.lm.histories.losses import refuse_losses
from sigwire.lm.histories.rules import HistoryRules

__all__ = ["NOT_EXECUTED", "HistoryRules", "NormalizedHistory", "error_text", "has_media", "normalize_history"]

_NO_OPTIONS: Mapping[str, JsonValue] = {}


class NormalizedHistory(NamedTuple):
    """The messages to encode, the warnings, and the ids and names of all calls as the caller wrote them."""

    messages: tuple[Message, ...]
    warnings: tuple[LMWarning, ...] = ()
    call_ids: frozenset[str] = frozenset()
    call_names: frozenset[str] = frozenset()


def normalize_history(
    messages: Sequence[Message], rules: HistoryRules, options: Mapping[str, JsonValue] = _NO_OPTIONS
) -> NormalizedHistory:
    """Return the history in the form of a wire, with media that fit. What changes what the model reads is a warning.

    Raises ``InputError`` for a part that its turn cannot hold, and ``HistoryLoss`` for lost content if the option
    ``strict_history`` is set.
    """
    if rules.system == "keep" and not rules.merge and rules.first_user is None and _are_plain(messages):
        return NormalizedHistory(tuple(messages))
    converted, losses, calls, _ = convert_history(messages, rules)
    if losses and options.get("strict_history"):
        refuse_losses(losses)
    warnings = [LMWarning(loss.what, loss.why) for loss in losses if loss.severity != "none"]
    if has_media(converted):
        from sigwire.lm.media.fitting import fit_media  # lazy: most requests have no media
        from sigwire.lm.media.limits import limits_name

        converted = tuple(fit_media(converted, limits_name(rules.family, rules.model_family), warnings))
    return NormalizedHistory(
        converted,
        tuple(dict.fromkeys(warnings)),
        frozenset([id for id, _ in calls]),
        frozenset([name for _, name in calls]),
    )


def _are_plain(messages: Iterable[Message]) -> bool:
    """Return True if each turn is one ASCII text, as in most requests: no rule about parts changes such a turn."""
    for message in messages:
        part = message.parts[0] if len(message.parts) == 1 and message.role != "tool" else None
        if type(part) is not TextPart or not part.text.isascii() or not part.text or part.text.isspace():
            return False
    return True


_MEDIA: tuple[type, ...] = (ImagePart, AudioPart, FilePart)


def has_media(messages: Iterable[Message], kinds: tuple[type, ...] = _MEDIA) -> bool:
    """Return True if a message holds an image, a sound or a file (or one of ``kinds``), also inside a result."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                if any(isinstance(each, kinds) for each in part.media):
                    return True
            elif isinstance(part, kinds):
                return True
    return False
