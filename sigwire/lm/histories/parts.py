"""The parts of a turn that one provider understands, and the others as losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError
from sigwire.lm.histories.losses import PartLoss, Severity
from sigwire.lm.histories.rules import HistoryRules
from sigwire.lm.histories.unicode import is_unicode, replace_surrogates, to_unicode

__all__ = ["CallKey", "MessageView", "is_plain", "media_kind", "view_of"]

CallKey: TypeAlias = tuple[str, str]
"""The id and the name of a call or of a result."""


class MessageView(NamedTuple):
    """A turn as one provider may see it.

    ``parts``: those that are kept, ``None`` if all are. ``is_tidy``: a tool turn holds results only, and no other turn
    holds one. ``has_media``: a result holds media.
    """

    parts: tuple[Part, ...] | None = None
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
    return isinstance(part, TextPart) and part.text.isascii() and part.text != ""


def view_of(message: Message, rules: HistoryRules) -> MessageView:
    """Return the view of a turn, cached on the message: a conversation repeats its turns in every request."""
    views = message.derived(_views)
    flags = rules.untagged_thinking, rules.signed_thinking, rules.thinking_as_text, rules.assistant_media
    key = (rules.family, rules.media, flags)
    view = views.get(key)
    if view is None:
        view = views[key] = _make_view(message, rules)
    return view


_ViewKey: TypeAlias = tuple[str, frozenset[str] | None, tuple[bool, ...]]


def _views(message: Message) -> dict[_ViewKey, MessageView]:
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
        None if parts and parts == message.parts else parts,
        tuple(losses),
        tuple([(call.id, call.name) for call in kept.tool_calls]),
        tuple([(result.id, result.name) for result in results]),
        len(results) == (len(parts) if message.role == "tool" else 0),
        any(result.media for result in results),
    )


def _kept_parts(message: Message, rules: HistoryRules, losses: list[PartLoss]) -> Iterator[Part]:
    misplaced = _MISPLACED[message.role]
    takes_media = _takes_media(message, rules)
    for number, part in enumerate(message.parts):
        if isinstance(part, misplaced):
            raise _misplaced_error(part, message.role)
        kept, loss = _fit(part, number, rules, takes_media)
        if loss is not None:
            losses.append(loss)
        if kept is not None:
            yield _clean(kept, number, losses)


def _clean(part: Part, number: int, losses: list[PartLoss]) -> Part:
    clean = _with_unicode(part)
    if clean is not part:
        losses.append(PartLoss(number, "text", "Half of a surrogate pair became U+FFFD.", "none"))
    return clean


def _fit(part: Part, number: int, rules: HistoryRules, takes_media: frozenset[str] | None) -> _Fitted:
    if isinstance(part, ThinkingPart | OpaquePart):
        return _fit_foreign(part, number, rules)
    if isinstance(part, ImagePart | AudioPart | FilePart):
        return _fit_media(part, number, takes_media)
    if isinstance(part, ToolResult) and part.media:
        return _fit_result(part, number, rules.media)
    return (None, PartLoss(number, "text", "An empty text was left out.", "none")) if part == _EMPTY else (part, None)


_Fitted: TypeAlias = tuple[Part | None, PartLoss | None]
_EMPTY = TextPart("")
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


# --- thinking and items of a provider


def _fit_foreign(part: ThinkingPart | OpaquePart, number: int, rules: HistoryRules) -> _Fitted:
    if part.provider == rules.family or (part.provider is None and rules.untagged_thinking):
        return _fit_own(part, number, rules)
    if isinstance(part, ThinkingPart) and rules.thinking_as_text and part.text:
        return TextPart(part.text), PartLoss(number, "thinking", "Thinking was sent as text.", "form")
    source = f"that only {part.provider} understands" if part.provider else "without a provider"
    feature = _lost_feature(part)
    if not feature:
        return None, PartLoss(number, "opaque", f"Data {source}, about a text that is kept, were left out.", "none")
    what = "Thinking" if feature == "thinking" else "An item"
    return None, PartLoss(number, feature, f"{what} {source} was left out.", "content")


def _fit_own(part: ThinkingPart | OpaquePart, number: int, rules: HistoryRules) -> _Fitted:
    """Return a part of the provider itself. Thinking without a signature is that of a truncated stream."""
    if not rules.signed_thinking or isinstance(part, OpaquePart) or part.signature or part.redacted is not None:
        return part, None
    if rules.thinking_as_text and part.text:
        return TextPart(part.text), PartLoss(number, "thinking", "Thinking was sent as text.", "form")
    severity: Severity = "content" if part.text else "none"
    why = "Thinking without its signature was left out; the provider refuses it."
    return None, PartLoss(number, "thinking", why, severity)


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


# --- media


def _takes_media(message: Message, rules: HistoryRules) -> frozenset[str] | None:
    """Return the kinds of media that a turn may hold, ``None`` for all."""
    if rules.media is None or message.role == "user" or (message.role == "assistant" and rules.assistant_media):
        return rules.media
    # The provider keeps sound of its own: its id is in an item beside it.
    items = (part.data for part in message.parts if isinstance(part, OpaquePart) and part.provider == rules.family)
    return frozenset({"audio"} if any("audio" in _object_of(data) for data in items) else ())


def _fit_media(
    part: ImagePart | AudioPart | FilePart, number: int, kinds: frozenset[str] | None
) -> tuple[MediaPart, PartLoss | None]:
    is_text = isinstance(part, FilePart) and (part.media_type or "").startswith("text/") and part.data is not None
    if kinds is None or media_kind(part) in kinds or (is_text and kinds):
        return part, None
    name = media_kind(part)
    title = f": {part.filename}" if isinstance(part, FilePart) and part.filename else ""
    note = TextPart(f"[{name} left out{title}]")
    return note, PartLoss(number, "media", f"An input of kind {name} became the note {note.text!r}.", "content")


def media_kind(part: MediaPart) -> str:
    """Return "image", "audio" or "file".

    >>> media_kind(ImagePart(url="https://a.example/b.png"))
    'image'
    """
    return _KINDS.get(type(part), "text")


_KINDS: Mapping[type, str] = {ImagePart: "image", AudioPart: "audio", FilePart: "file"}


def _fit_result(result: ToolResult, number: int, kinds: frozenset[str] | None) -> tuple[ToolResult, PartLoss | None]:
    media: list[MediaPart] = []
    loss: PartLoss | None = None
    for part in result.media:
        fitted, lost = (part, None) if isinstance(part, TextPart) else _fit_media(part, number, kinds)
        media.append(fitted)
        loss = loss or lost
    return (result, None) if loss is None else (replace(result, media=tuple(media)), loss)


# --- text


def _with_unicode(part: Part) -> Part:
    match part:
        case TextPart(text):
            return part if is_unicode(text) else TextPart(to_unicode(text))
        case ToolResult(content=content):
            clean = replace_surrogates(content)
            return part if clean is content else replace(part, content=clean)
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
