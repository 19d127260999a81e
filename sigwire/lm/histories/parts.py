"""The parts of a turn that one provider understands, and the others as losses."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias, cast

from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError
from sigwire.lm.histories.losses import PartLoss, Severity
from sigwire.lm.histories.media import fit_media_part, fit_result
from sigwire.lm.histories.rules import HistoryRules
from sigwire.lm.histories.thinking import (
    fit_thinking,
    has_sound_item,
    is_block_field,
    is_reasoning_item,
    unsent_reasoning,
)
from sigwire.lm.histories.unicode import is_unicode, replace_surrogates, to_unicode

__all__ = ["CallKey", "MessageView", "is_plain", "view_of"]

CallKey: TypeAlias = tuple[str, str]
"""The id and the name of a call or of a result."""


class MessageView(NamedTuple):
    """A turn as one provider may see it.

    ``message``: the turn, ``None`` if nothing changes. ``is_tidy``: a tool turn holds results only, and no other turn
    holds one. ``has_media``: a result holds media.
    """

    message: Message | None = None
    losses: tuple[PartLoss, ...] = ()
    calls: tuple[CallKey, ...] = ()
    answers: tuple[CallKey, ...] = ()
    is_tidy: bool = True
    has_media: bool = False


def is_plain(message: Message) -> bool:
    """Return True if a turn is one ASCII text, as most are."""
    if len(message.parts) != 1 or message.role == "tool":
        return False
    part = message.parts[0]
    return isinstance(part, TextPart) and part.text.isascii() and part.text != "" and not part.text.isspace()


def view_of(message: Message, rules: HistoryRules) -> MessageView:
    """Return the view of a turn, cached on the message: a conversation repeats its turns in every request."""
    views = message.derived(_views)
    key = _RULES_OF_PARTS(rules)
    view = views.get(key)
    if view is None:
        view = views[key] = _make_view(message, rules)
    return view


_RULES_OF_PARTS = operator.attrgetter(
    "family",
    "media",
    "untagged_thinking",
    "thinking",
    "thinking_as_text",
    "last_reasoning",
    "block_fields",
    "blank_text",
    "media_roles",
    "detail",
    "filenames",
)
"""The rules that decide a view, as its key."""


def _views(message: Message) -> dict[object, MessageView]:
    return {}


def _make_view(message: Message, rules: HistoryRules) -> MessageView:
    losses: list[PartLoss] = []
    parts = tuple(_kept_parts(message, rules, losses))
    kept = Message(message.role, parts)
    results = kept.tool_results
    if not parts:
        severity: Severity = "none" if message.role in ("assistant", "tool") else "form"
        losses.append(PartLoss(None, "messages", f"An empty {message.role} turn was left out.", severity))
    return MessageView(
        None if parts and parts == message.parts else kept,
        tuple(losses),
        tuple([(call.id, call.name) for call in kept.tool_calls]),
        tuple([(result.id, result.name) for result in results]),
        len(results) == (len(parts) if message.role == "tool" else 0),
        any(result.media for result in results),
    )


def _kept_parts(message: Message, rules: HistoryRules, losses: list[PartLoss]) -> Iterator[Part]:
    fit = _PartRules(message, rules)
    is_kept = False
    for number, part in enumerate(message.parts):
        if isinstance(part, _MISPLACED[message.role]):
            raise _misplaced_error(part, message.role)
        kept, lost = fit.part(part, number)
        if kept is part and is_block_field(part, rules) and not is_kept:
            kept, lost = None, (PartLoss(number, "opaque", "Data about a part that was left out.", "none"),)
        losses += lost
        is_kept = kept is not None
        if kept is not None:
            yield _clean(kept, number, losses)


def _clean(part: Part, number: int, losses: list[PartLoss]) -> Part:
    clean = _with_unicode(part)
    if clean is not part:
        losses.append(PartLoss(number, "text", "Half of a surrogate pair became U+FFFD.", "none"))
    return clean


class _PartRules:
    """The rules for the parts of one turn."""

    def __init__(self, message: Message, rules: HistoryRules) -> None:
        self._rules, self._unsent = rules, unsent_reasoning(message, rules)
        kept = (part for number, part in enumerate(message.parts) if number not in self._unsent)
        self._has_item = rules.thinking == "items" and any(is_reasoning_item(part, rules) for part in kept)
        self._kinds = rules.media
        if rules.media is not None and message.role not in rules.media_roles:  # the provider keeps sound of its own
            self._kinds = frozenset({"audio"} if has_sound_item(message, rules) else ())

    def part(self, part: Part, number: int) -> tuple[Part | None, tuple[PartLoss, ...]]:
        """Return the part as the provider takes it, ``None`` if not at all, and the losses."""
        match part:
            case OpaquePart() if number in self._unsent:
                why = "Reasoning at the end of a turn was left out; the provider refuses it without an item behind it."
                return None, (PartLoss(number, "thinking", why, "content"),)
            case ThinkingPart() | OpaquePart():
                return fit_thinking(part, number, self._rules, has_item=self._has_item)
            case ImagePart() | AudioPart() | FilePart():
                return fit_media_part(part, number, self._kinds, self._rules)
            case ToolResult():
                return fit_result(part, number, self._rules)
            case TextPart() if not (part.text if self._rules.blank_text else part.text.strip()):
                return None, (PartLoss(number, "text", "An empty text was left out.", "none"),)
            case _:
                return part, ()


_MISPLACED: Mapping[Role, tuple[type, ...]] = {
    "system": (ToolCall, ToolResult, ThinkingPart),
    "user": (ToolCall, ThinkingPart),
    "assistant": (ToolResult,),
    "tool": (ToolCall, ThinkingPart, TextPart, ImagePart, AudioPart, FilePart),
}


def _misplaced_error(part: Part, role: Role) -> InputError:
    return InputError(
        f"A {role!r} message cannot hold a {type(part).__name__}. "
        "Calls and thinking belong to assistant messages, results to tool messages."
    )


# --- text


def _with_unicode(part: Part) -> Part:
    match part:
        case TextPart(text):
            return part if is_unicode(text) else TextPart(to_unicode(text))
        case FilePart(filename=str(name)) if not is_unicode(name):
            return replace(part, filename=to_unicode(name))
        case ToolResult(content=content, media=media):
            clean, parts = replace_surrogates(content), tuple(map(_with_unicode, media))
            is_same = clean is content and all(map(operator.is_, parts, media))
            return part if is_same else replace(part, content=clean, media=cast("tuple[MediaPart, ...]", parts))
        case ToolCall():
            return _call_with_unicode(part)
        case _:
            return part


def _call_with_unicode(call: ToolCall) -> ToolCall:
    raw = call.raw_arguments
    clean = replace_surrogates(call.arguments)
    if clean is call.arguments and (raw is None or is_unicode(raw)):
        return call
    arguments = clean if isinstance(clean, dict) else None
    return replace(call, arguments=arguments, raw_arguments=None if raw is None else to_unicode(raw))
