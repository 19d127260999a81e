"""Thinking and opaque items: those that a provider takes back, and the others as losses."""

from __future__ import annotations

from typing import TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.lm.histories.losses import PartLoss, Severity
from sigwire.lm.histories.rules import HistoryRules

__all__ = ["fit_thinking", "has_sound_item", "is_block_field", "is_reasoning_item", "unsent_reasoning"]

_Fitted: TypeAlias = tuple[Part | None, tuple[PartLoss, ...]]


def fit_thinking(part: ThinkingPart | OpaquePart, number: int, rules: HistoryRules, *, has_item: bool) -> _Fitted:
    """Return a part as the provider takes it, ``None`` if not at all. ``has_item``: its turn keeps an item of reasoning."""
    if part.provider == rules.family or (part.provider is None and rules.untagged_thinking):
        return _fit_own(part, number, rules, has_item)
    if isinstance(part, ThinkingPart) and rules.thinking_as_text and part.text:
        return TextPart(part.text), (PartLoss(number, "thinking", _AS_TEXT, "form"),)
    source = f"that only {part.provider} understands" if part.provider else "without a provider"
    feature = _lost_feature(part)
    if not feature:
        why = f"Data {source}, about a text that is kept, were left out."
        return None, (PartLoss(number, "opaque", why, "none"),)
    what = "Thinking" if feature == "thinking" else "An item"
    return None, (PartLoss(number, feature, f"{what} {source} was left out.", "content"),)


_AS_TEXT = "Thinking was sent as text."


def _fit_own(part: ThinkingPart | OpaquePart, number: int, rules: HistoryRules, has_item: bool) -> _Fitted:
    """Return a part of the provider itself. Thinking without a signature is that of a truncated stream, or unsigned."""
    is_kept = {"any": True, "items": has_item, "none": False}.get(rules.thinking)
    if isinstance(part, OpaquePart) or (_is_signed(part) if is_kept is None else is_kept):
        return part, ()
    if rules.thinking_as_text and part.text:
        return TextPart(part.text), (PartLoss(number, "thinking", _AS_TEXT, "form"),)
    if rules.thinking == "signed":
        why = "Thinking without its signature was left out; the provider refuses it."
        return None, (PartLoss(number, "thinking", why, "content" if part.text else "none"),)
    # Converse: without a signature it is the model's own, and the provider would not show it to the model again.
    is_lost = bool(part.text) if rules.thinking == "items" else _is_signed(part)
    severity: Severity = "content" if is_lost else "none"
    return None, (PartLoss(number, "thinking", "Thinking that the model does not take back was left out.", severity),)


def _is_signed(part: ThinkingPart) -> bool:
    return bool(part.signature) or part.redacted is not None


def unsent_reasoning(message: Message, rules: HistoryRules) -> frozenset[int]:
    """Return the numbers of the reasoning items at the end of a turn, if the provider refuses those."""
    numbers: list[int] = []
    for number in () if rules.last_reasoning else reversed(range(len(message.parts))):
        part = message.parts[number]
        data = _object_of(part.data) if isinstance(part, OpaquePart) and part.provider == rules.family else {}
        if data.get("type") == "reasoning":
            numbers.append(number)
        elif _is_sent(part, data):
            break
    return frozenset(numbers)


def _is_sent(part: Part, data: JsonObject) -> bool:
    """Return True for a part that becomes an item behind the reasoning: a message without text is one."""
    if data:
        return "type" in data or not _is_shell(data)
    return not isinstance(part, ThinkingPart | OpaquePart) and part != TextPart("")


def is_reasoning_item(part: Part, rules: HistoryRules) -> bool:
    """Return True for an item of the provider that holds the reasoning of its turn."""
    return isinstance(part, OpaquePart) and part.provider == rules.family and _lost_feature(part) == "thinking"


def is_block_field(part: Part, rules: HistoryRules) -> bool:
    """Return True for fields that belong to the part before them."""
    return rules.block_fields and isinstance(part, OpaquePart) and "type" not in _object_of(part.data)


def has_sound_item(message: Message, rules: HistoryRules) -> bool:
    """Return True if the provider keeps the sound of a turn: an item beside it has its id."""
    items = (part.data for part in message.parts if isinstance(part, OpaquePart) and part.provider == rules.family)
    return any("audio" in _object_of(data) for data in items)


def _lost_feature(part: ThinkingPart | OpaquePart) -> str:
    """Return the feature that a foreign part has; ``""`` for data about texts that are kept (ids, signatures, citations)."""
    if isinstance(part, ThinkingPart):
        return "thinking" if part.text or part.redacted else ""
    data = _object_of(part.data)
    if data.get("type") == "reasoning" or not _THOUGHTS.isdisjoint(data):
        return "thinking"
    return "" if _is_shell(data) else "opaque"


def _object_of(data: JsonValue) -> JsonObject:
    return data if isinstance(data, dict) else {}


def _is_shell(data: JsonObject) -> bool:
    """Return True for a message without its texts, or for notes to a text; both stand beside their ``TextPart``."""
    if "type" in data or "role" in data:
        content = data.get("content")
        parts = content if isinstance(content, list) else []
        texts = [_object_of(part).get("type") == "output_text" for part in parts if isinstance(part, dict)]
        return data.get("type", "message") == "message" and all(texts)
    return data != {} and data.keys() <= _NOTES


_THOUGHTS = frozenset({"reasoning_details", "thinking_blocks"})
_NOTES = frozenset({"annotations", "audio", "cache_control", "citations", "provider_specific_fields"})
