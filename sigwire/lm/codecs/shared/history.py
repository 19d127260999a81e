"""Normalize a message history to what a wire accepts.

``normalize_history(messages, rules)`` returns messages that an encoder can write one by one:

    text         lone surrogates are replaced; empty text parts and empty turns are dropped
    foreign      thinking and opaque items of another provider (not ``rules.family``) are dropped; a warning names the loss,
                 but not that of ids, signatures and citations, whose text is kept
    answers      exactly one tool turn follows an assistant turn with calls. It answers every call, in call order: a call
                 without a result gets an error result, a result without a call is dropped. Assistant turns that directly
                 follow a turn with calls become one turn with it
    ids          call ids that the wire refuses, or that repeat, are rewritten, for the call and its result
    media        if results of the wire are text only, their images move to a user turn behind them; then all fit (lm.media)
    turns        by the rules: system turns gathered, neighbours of one role merged, a user turn put first

Everything that changes what the model sees is a warning. Rewritten ids are not mapped back: a provider answers with new
ids, and the caller's messages are never changed. A part in a turn that cannot hold it (a call in a user turn) is an
``InputError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.call_ids import CallIdRules, are_valid_ids, rewrite_call_ids
from sigwire.lm.codecs.shared.unicode import is_unicode, replace_surrogates, to_unicode
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of

__all__ = ["NOT_EXECUTED", "HistoryRules", "NormalizedHistory", "error_text", "normalize_history"]

NOT_EXECUTED = "tool was not executed"
"""The content of the error result that answers a call without a result."""


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """The form of history that a wire accepts.

    ``family``: the provider family whose thinking and opaque items are kept. ``untagged_thinking``: whether thinking of no
    provider is kept. ``ids``: ``None`` accepts any id that is not empty. ``system``: "keep" system turns in place, or
    "front": one turn, first. ``merge``: roles whose neighbouring turns become one. ``first_user``: the text of a user turn
    to put first if another role would be. ``result_media``: "keep" in the result, or "user": in a user turn behind it.
    """

    family: str = ""
    untagged_thinking: bool = True
    ids: CallIdRules | None = None
    system: Literal["keep", "front"] = "keep"
    merge: frozenset[Role] = frozenset()
    first_user: str | None = None
    result_media: Literal["keep", "user"] = "keep"


class NormalizedHistory(NamedTuple):
    """The messages to encode, the warnings, and the ids and names of all calls as the caller wrote them."""

    messages: tuple[Message, ...]
    warnings: tuple[LMWarning, ...] = ()
    call_ids: frozenset[str] = frozenset()
    call_names: frozenset[str] = frozenset()


def normalize_history(messages: Sequence[Message], rules: HistoryRules) -> NormalizedHistory:
    """Return the history in the form of a wire. Raises ``InputError`` for a part that its turn cannot hold.

    >>> call = ToolCall("call_0", "f", {})
    >>> given = [Message.user("q"), Message.assistant(tool_calls=[call]), Message.user("and?")]
    >>> history = normalize_history(given, HistoryRules())
    >>> [message.role for message in history.messages], history.messages[2].tool_results[0].content
    (['user', 'assistant', 'tool', 'user'], 'tool was not executed')
    """
    turns, calls, warnings, is_normal, has_media = _scan(messages, rules)
    ids = [id for id, _ in calls]
    if not (is_normal and (not ids or are_valid_ids(ids, rules.ids))):
        turns = _answer_calls(_merge_call_turns(turns), warnings)
        turns = rewrite_call_ids(turns, rules.ids)
        if rules.result_media == "user":
            turns = _move_media(turns, warnings)
    if has_media:
        from sigwire.lm.media.fitting import fit_media  # lazy: most requests have no media

        turns = fit_media(turns, rules.family, warnings)
    if rules.system == "front":
        turns = _move_system(turns, warnings)
    if rules.merge:
        turns = _merge_roles(turns, rules.merge)
    if rules.first_user is not None:
        turns = _start_with_user(turns, rules.first_user, warnings)
    return NormalizedHistory(
        tuple(turns), tuple(dict.fromkeys(warnings)), frozenset(ids), frozenset([name for _, name in calls])
    )


# --- the parts of a turn -----------------------------------------------------------------------------------

_CallKey: TypeAlias = tuple[str, str]  # the id and the name of a call or of a result
_NO_CALLS: tuple[_CallKey, ...] = ()


def _scan(
    messages: Iterable[Message], rules: HistoryRules
) -> tuple[list[Message], list[_CallKey], list[LMWarning], bool, bool]:
    """Return the turns as the family sees them, their calls, the warnings, whether calls and results are normal, and media.

    They are normal if every call is answered directly behind its turn, in order and by its own id. The modules
    of this package write history so. The passes over calls and results would then change nothing and are skipped.
    """
    turns: list[Message] = []
    calls: list[_CallKey] = []
    warnings: list[LMWarning] = []
    is_normal, unanswered, has_media = True, _NO_CALLS, False
    for message in messages:
        if _is_plain(message):
            turns.append(message)
            is_normal, unanswered = is_normal and not unanswered, _NO_CALLS
            continue
        view = _view_of(message, rules)
        warnings += view.warnings
        if view.parts == ():
            continue
        turns.append(message if view.parts is None else Message(message.role, view.parts))
        calls += view.calls
        has_media |= view.has_media
        is_moved = view.has_media and view.answers != () and rules.result_media == "user"
        is_normal = is_normal and view.answers == unanswered and view.is_tidy and not is_moved
        unanswered = view.calls
    return turns, calls, warnings, is_normal and not unanswered, has_media


class _FamilyView(NamedTuple):
    """A turn as one family may see it.

    ``parts``: those that are kept, ``None`` if all are. ``is_tidy``: a tool turn holds results only, and no other turn
    holds one. ``has_media``: the turn or a result holds media.
    """

    parts: tuple[Part, ...] | None = None
    warnings: tuple[LMWarning, ...] = ()
    calls: tuple[_CallKey, ...] = ()
    answers: tuple[_CallKey, ...] = ()
    is_tidy: bool = True
    has_media: bool = False


def _is_plain(message: Message) -> bool:
    """Return True if a turn is one ASCII text, as most are."""
    if len(message.parts) != 1 or message.role == "tool":
        return False
    part = message.parts[0]
    return isinstance(part, TextPart) and part.text.isascii() and part.text != ""


def _view_of(message: Message, rules: HistoryRules) -> _FamilyView:
    """Return the view of a turn, cached on the message: a conversation repeats its turns in every request."""
    views, key = message.derived(_views), (rules.family, rules.untagged_thinking)
    view = views.get(key)
    if view is None:
        view = views[key] = _make_view(message, rules)
    return view


def _views(message: Message) -> dict[tuple[str, bool], _FamilyView]:
    return {}


def _make_view(message: Message, rules: HistoryRules) -> _FamilyView:
    warnings: list[LMWarning] = []
    parts = tuple(_kept_parts(message, rules, warnings))
    kept = Message(message.role, parts)
    results = kept.tool_results
    if not parts and message.role not in ("assistant", "tool"):
        warnings.append(LMWarning("messages", f"An empty {message.role} turn was left out."))
    return _FamilyView(
        None if parts and parts == message.parts else parts,
        tuple(warnings),
        tuple([(call.id, call.name) for call in kept.tool_calls]),
        tuple([(result.id, result.name) for result in results]),
        len(results) == (len(parts) if message.role == "tool" else 0),
        any(result.media for result in results) or any(isinstance(part, _MEDIA) for part in parts),
    )


def _kept_parts(message: Message, rules: HistoryRules, warnings: list[LMWarning]) -> Iterator[Part]:
    misplaced = _MISPLACED[message.role]
    for part in message.parts:
        if isinstance(part, misplaced):
            raise _misplaced_error(part, message.role)
        if _is_kept(part, rules, warnings):
            yield _with_unicode(part)


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


def _is_kept(part: Part, rules: HistoryRules, warnings: list[LMWarning]) -> bool:
    match part:
        case TextPart(text):
            return bool(text)
        case ThinkingPart(provider=None) if rules.untagged_thinking:
            return True
        case ThinkingPart(provider=provider) | OpaquePart(provider=provider) if provider != rules.family:
            if feature := _lost_feature(part):
                what = "Thinking" if feature == "thinking" else "An item"
                source = f"that only {provider} understands" if provider else "without a provider"
                warnings.append(LMWarning(feature, f"{what} {source} was left out."))
            return False
        case _:
            return True


def _lost_feature(part: ThinkingPart | OpaquePart) -> str:
    """Return the feature that a foreign part has; ``""`` for data about texts that are kept (ids, signatures, citations)."""
    if isinstance(part, ThinkingPart):
        return "thinking" if part.text or part.redacted else ""
    data = object_of(part.data)
    if data.get("type") == "reasoning" or not _THOUGHTS.isdisjoint(data):
        return "thinking"
    return "" if _is_shell(data) else "opaque"


def _is_shell(data: JsonObject) -> bool:
    """Return True for a message without its texts, or for notes to a text; both stand beside their ``TextPart``."""
    if "type" in data or "role" in data:
        parts = objects_of(data.get("content"))
        return data.get("type", "message") == "message" and all(part.get("type") == "output_text" for part in parts)
    return data != {} and data.keys() <= _NOTES


_THOUGHTS = frozenset({"reasoning_details", "thinking_blocks"})
_NOTES = frozenset({"annotations", "audio", "cache_control", "citations", "provider_specific_fields"})


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


# --- calls and their results ---------------------------------------------------------------------------------


def _merge_call_turns(messages: Iterable[Message]) -> list[Message]:
    """Merge an assistant turn with calls and the assistant turns directly behind it: one tool turn answers them."""
    turns: list[Message] = []
    for message in messages:
        if turns and message.role == "assistant" == turns[-1].role and turns[-1].tool_calls:
            turns[-1] = Message("assistant", turns[-1].parts + message.parts)
        else:
            turns.append(message)
    return turns


def _answer_calls(messages: Sequence[Message], warnings: list[LMWarning]) -> list[Message]:
    """Put the results of each assistant turn behind it. They may be in any turn before the next assistant turn."""
    turns: list[Message] = []
    start = 0
    while start < len(messages):
        message = messages[start]
        end = start + 1
        while end < len(messages) and messages[end].role != "assistant":
            end += 1
        calls: tuple[ToolCall, ...] = ()
        if message.role == "assistant":
            turns.append(message)
            calls, start = message.tool_calls, start + 1
        turns.extend(_answer_turn(calls, messages[start:end], warnings))
        start = end
    return turns


def _answer_turn(calls: Sequence[ToolCall], following: Sequence[Message], warnings: list[LMWarning]) -> list[Message]:
    """Return one tool turn with the results of the calls, then the other parts of the turns that follow."""
    results = [result for message in following for result in message.tool_results]
    others = [
        message if not message.tool_results else replace(message, parts=rest)
        for message in following
        if (rest := _without_results(message.parts))
    ]
    answers = [_answer_of(call, results, warnings) for call in calls]
    for result in results:
        warnings.append(
            LMWarning("tool_results", f"The result {result.id!r} of {result.name!r} answers no call and was left out.")
        )
    return [Message.tool(*answers), *others] if answers else others


def _without_results(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(part for part in parts if not isinstance(part, ToolResult))


def _answer_of(call: ToolCall, results: list[ToolResult], warnings: list[LMWarning]) -> ToolResult:
    """Take the call's result off the list: the one with its id, else one without an id that has its name."""
    by_id = (result for result in results if result.id == call.id)
    by_name = (result for result in results if not result.id and result.name in ("", call.name))
    found = next(by_id, None) or next(by_name, None)
    if found is None:
        detail = f"The call {call.id!r} of {call.name!r} has no result; an error result answers it."
        warnings.append(LMWarning("tool_results", detail))
        return ToolResult(call.id, call.name, NOT_EXECUTED, True)
    results.remove(found)
    return found if (found.id, found.name) == (call.id, call.name) else replace(found, id=call.id, name=call.name)


def _move_media(turns: Iterable[Message], warnings: list[LMWarning]) -> list[Message]:
    """Move the media of results to one user turn behind them; each result's text names its media."""
    moved: list[Message] = []
    for turn in turns:
        media = tuple(part for result in turn.tool_results for part in result.media if not isinstance(part, TextPart))
        if not media:
            moved.append(turn)
            continue
        moved.append(Message.tool(*map(_without_media, turn.tool_results)))
        moved.append(Message("user", media))
        warnings.append(LMWarning("result_media", "Results are text only here; their media follow in a user turn."))
    return moved


def _without_media(result: ToolResult) -> ToolResult:
    if not result.media:
        return result
    texts = [
        part.text if isinstance(part, TextPart) else f"[{_MEDIA_NAMES[type(part)]} attached below]"
        for part in result.media
    ]
    return replace(result, content="\n".join(filter(None, (result.text, *texts))), media=())


_MEDIA = (ImagePart, AudioPart, FilePart)
_MEDIA_NAMES: Mapping[type, str] = {ImagePart: "image", AudioPart: "audio", FilePart: "file"}


# --- turns ---------------------------------------------------------------------------------------------------


def _move_system(turns: list[Message], warnings: list[LMWarning]) -> list[Message]:
    system = [turn for turn in turns if turn.role == "system"]
    if not system:
        return turns
    if turns[: len(system)] != system:
        warnings.append(LMWarning("system", "A later system turn was moved to the front, its only place on this wire."))
    first = system[0] if len(system) == 1 else _merge_system(system)
    return [first, *(turn for turn in turns if turn.role != "system")]


def _merge_system(turns: Sequence[Message]) -> Message:
    if all(isinstance(part, TextPart) for turn in turns for part in turn.parts):
        return Message.system("\n\n".join(turn.text for turn in turns))
    return Message("system", tuple(part for turn in turns for part in turn.parts))


def _merge_roles(turns: Iterable[Message], roles: frozenset[Role]) -> list[Message]:
    merged: list[Message] = []
    for turn in turns:
        if merged and turn.role in roles and merged[-1].role == turn.role:
            merged[-1] = Message(turn.role, _join_parts(merged[-1].parts, turn.parts))
        else:
            merged.append(turn)
    return merged


def _join_parts(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of both turns; a blank line separates two texts."""
    match first, second:
        case (*before, TextPart(end)), (TextPart(start), *after):
            return (*before, TextPart(f"{end}\n\n{start}"), *after)
        case _:
            return first + second


def _start_with_user(turns: list[Message], text: str, warnings: list[LMWarning]) -> list[Message]:
    first = next((number for number, turn in enumerate(turns) if turn.role != "system"), None)
    if first is None or turns[first].role == "user":
        return turns
    warnings.append(
        LMWarning("messages", "The conversation did not start with a user turn; a short one was put first.")
    )
    return [*turns[:first], Message.user(text), *turns[first:]]


# --- results as text -------------------------------------------------------------------------------------------


def error_text(result: ToolResult) -> str:
    """Return the result as text, for wires without an error flag: a failure starts with ``ERROR: ``.

    >>> error_text(ToolResult("call_0", "f", "boom", is_error=True))
    'ERROR: boom'
    """
    return f"ERROR: {result.text}" if result.is_error else result.text
