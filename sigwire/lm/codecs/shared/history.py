"""History made fit for a wire: a conversation that providers refuse becomes one that they take. Shared by all wires.

``repair(messages, rules)`` gives messages an encoder can write down one by one:

    text         lone surrogates replaced, empty text parts and empty turns left out
    foreign      thinking and opaque items of another provider left out (``rules.family`` is whose are kept)
    answers      after an assistant turn with calls stands exactly one tool turn: every call answered, in call order;
                 a call nobody answered gets an error result, a result nobody asked for is left out. Calls of one turn
                 that were written down as neighbouring turns are one turn
    ids          call ids that the wire refuses, or that repeat, are rewritten, the same for the call and its result
    media        images in results moved to a user turn after them, where the wire's results are text only
    turns        system turns gathered, same-role neighbours merged, a user turn put first, each where the wire wants it

Everything that changes what the model sees is a warning. Rewritten ids are not mapped back: a provider answers with
new ids, and the caller's conversation keeps its own. Nothing is changed in place. A part that cannot stand in its
turn (a call in a user turn) is an ``InputError``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from sigwire.core.json import JsonValue
from sigwire.core.messages import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Role,
    TextPart,
    ThinkingPart,
)
from sigwire.core.response import LMWarning
from sigwire.core.tools.tool import ToolCall, ToolResult
from sigwire.errors import InputError

__all__ = [
    "NOT_EXECUTED",
    "CallIdRules",
    "HistoryRules",
    "NormalizedHistory",
    "error_text",
    "normalize_history",
    "read_error_text",
    "replace_surrogates",
]

NOT_EXECUTED = "tool was not executed"
"""The content of the error result that stands in for a missing one."""


@dataclass(frozen=True, slots=True)
class CallIdRules:
    """Which call ids a wire takes: ``allowed`` characters (inside a regular expression's brackets) and how many.

    With ``exact`` an id that does not fit is replaced by a digest of it, otherwise its forbidden characters become
    ``_``.
    """

    allowed: str = "A-Za-z0-9_-"
    max_length: int | None = None
    exact: int | None = None

    def fits(self, call_id: str) -> bool:
        length = f"{{{self.exact}}}" if self.exact else f"{{1,{self.max_length or ''}}}"
        return re.fullmatch(f"[{self.allowed}]{length}", call_id) is not None

    def rewrite(self, call_id: str, attempt: int = 0) -> str:
        """A fitting id made from this one; another one for each attempt.

        >>> CallIdRules().rewrite("call.1"), CallIdRules().rewrite("call.1", 1), len(CallIdRules(exact=9).rewrite("call_0"))
        ('call_1', 'call_1_2', 9)
        """
        if self.exact:
            alphabet = "".join(re.findall(f"[{self.allowed}]", _DIGITS))
            return _digest(f"{attempt}:{call_id}", alphabet)[: self.exact]
        clean = re.sub(f"[^{self.allowed}]", "_", call_id) or "call"
        suffix = f"_{attempt + 1}" if attempt else ""
        return (clean[: self.max_length - len(suffix)] if self.max_length else clean) + suffix


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _digest(text: str, alphabet: str) -> str:
    import hashlib  # slow to import, and most ids fit

    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest(), "big")
    digits: list[str] = []
    while number:
        number, digit = divmod(number, len(alphabet))
        digits.append(alphabet[digit])
    return "".join(digits)


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """How a wire wants its history.

    ``family``: whose thinking and opaque items are kept; untagged thinking is left to the encoder. ``ids``: ``None``
    takes any non-empty id. ``system``: "keep" system turns where they stand, or "front": all of them as one, first.
    ``merge``: roles whose neighbouring turns become one. ``first_user``: the text of a user turn to put first when
    another role would be. ``result_media``: "keep" in the result, or "user": in a user turn after the results.
    """

    family: str = ""
    ids: CallIdRules | None = None
    system: Literal["keep", "front"] = "keep"
    merge: frozenset[Role] = frozenset()
    first_user: str | None = None
    result_media: Literal["keep", "user"] = "keep"


class NormalizedHistory(NamedTuple):
    """The messages to encode, what was changed, and of all calls their ids, as the caller has them, and their names."""

    messages: tuple[Message, ...]
    warnings: tuple[LMWarning, ...] = ()
    call_ids: frozenset[str] = frozenset()
    call_names: frozenset[str] = frozenset()


def normalize_history(messages: Sequence[Message], rules: HistoryRules) -> NormalizedHistory:
    """Make a conversation fit for a wire.

    >>> call = ToolCall("call_0", "f", {})
    >>> asked = [Message.user("q"), Message.assistant(tool_calls=[call]), Message.user("and?")]
    >>> repaired = normalize_history(asked, HistoryRules())
    >>> [message.role for message in repaired.messages], repaired.messages[2].tool_results[0].content
    (['user', 'assistant', 'tool', 'user'], 'tool was not executed')
    """
    turns, calls, warnings, is_settled = _look_over(messages, rules)
    if not is_settled:
        turns = _answered(_one_turn_of_calls(turns), warnings)
        turns = _with_fitting_ids(turns, rules.ids)
        if rules.result_media == "user":
            turns = _media_after_results(turns, warnings)
    if rules.system == "front":
        turns = _system_first(turns, warnings)
    if rules.merge:
        turns = _merged(turns, rules.merge)
    if rules.first_user is not None:
        turns = _user_first(turns, rules.first_user, warnings)
    ids, names = frozenset([id for id, _ in calls]), frozenset([name for _, name in calls])
    return NormalizedHistory(tuple(turns), tuple(warnings), ids, names)


# --- what a part may be ------------------------------------------------------------------------------------


def _look_over(
    messages: Iterable[Message], rules: HistoryRules
) -> tuple[list[Message], list[_CallKey], list[LMWarning], bool]:
    """The family's own turns, the calls in them, what was left out; and whether that is settled.

    Settled is a conversation in which every call is answered right behind its turn, in order and by its own fitting id, as
    sigwire's own modules write it: the steps that follow, each a pass over the whole conversation, would change nothing.
    """
    turns: list[Message] = []
    calls: list[_CallKey] = []
    warnings: list[LMWarning] = []
    is_settled, unanswered = True, _NONE
    for message in messages:
        if _is_plain(message):
            turns.append(message)
            is_settled = is_settled and not unanswered
            continue
        parts, told, called, answers, is_tidy, has_media = _look_at(message, rules.family)
        warnings += told
        if parts == ():
            continue
        turns.append(message if parts is None else Message(message.role, parts))
        calls += called
        if answers != unanswered or not is_tidy or (has_media and rules.result_media == "user"):
            is_settled = False
        unanswered = called
    return turns, calls, warnings, is_settled and not unanswered and _are_fitting([id for id, _ in calls], rules.ids)


def _are_fitting(ids: list[str], rules: CallIdRules | None) -> bool:
    return len(set(ids)) == len(ids) and (all(ids) if rules is None else all(map(rules.fits, ids)))


_CallKey: TypeAlias = tuple[str, str]  # the id and the name of a call, or of a result
_NONE: tuple[_CallKey, ...] = ()


class _FamilyView(NamedTuple):
    """A turn as one family may see it: without what is not the family's.

    ``parts``: what is left, ``None`` for all of it. ``is_tidy``: results stand in a tool turn, and nothing else does.
    ``has_media``: in its results.
    """

    parts: tuple[Part, ...] | None = None
    warnings: tuple[LMWarning, ...] = ()
    calls: tuple[_CallKey, ...] = ()
    answers: tuple[_CallKey, ...] = ()
    is_tidy: bool = True
    has_media: bool = False


def _look_at(message: Message, family: str) -> _FamilyView:
    """A turn is looked at once for each family, and not again whenever the conversation goes on."""
    views = message.derived(_views)
    seen = views.get(family)
    if seen is None:
        seen = views[family] = _see(message, family)
    return seen


def _views(message: Message) -> dict[str, _FamilyView]:
    return {}


def _see(message: Message, family: str) -> _FamilyView:
    misplaced = _MISPLACED[message.role]
    parts: list[Part] = []
    calls: list[_CallKey] = []
    results: list[ToolResult] = []
    warnings: list[LMWarning] = []
    for part in message.parts:
        if isinstance(part, misplaced):
            raise _misplaced(part, message.role)
        part = _clean(part)
        if isinstance(part, ToolCall):
            calls.append((part.id, part.name))
        elif isinstance(part, ToolResult):
            results.append(part)
        elif not _belongs(part, family, warnings):
            continue
        parts.append(part)
    if not parts and message.role not in ("assistant", "tool"):
        warnings.append(LMWarning("messages", f"An empty {message.role} turn was left out."))
    left = tuple(parts)
    return _FamilyView(
        None if left and left == message.parts else left,
        tuple(warnings),
        tuple(calls),
        tuple([(result.id, result.name) for result in results]),
        len(results) == (len(parts) if message.role == "tool" else 0),
        any(result.media for result in results),
    )


def _is_plain(message: Message) -> bool:
    """Whether a turn is a text and nothing else, as most are; then there is nothing to look at more closely."""
    if len(message.parts) != 1 or message.role == "tool":
        return False
    part = message.parts[0]
    return isinstance(part, TextPart) and part.text.isascii() and part.text != ""


_MISPLACED: Mapping[Role, tuple[type, ...]] = {
    "system": (ToolCall, ToolResult, ThinkingPart),
    "user": (ToolCall, ThinkingPart),
    "assistant": (ToolResult,),
    "tool": (ToolCall, ThinkingPart, TextPart, ImagePart, AudioPart, FilePart),
}


def _misplaced(part: Part, role: Role) -> InputError:
    return InputError(
        f"A {role!r} message cannot hold a {type(part).__name__}. "
        "Calls and thinking belong to assistant messages, results to tool messages."
    )


def _belongs(part: Part, family: str, warnings: list[LMWarning]) -> bool:
    if isinstance(part, TextPart):
        return bool(part.text)
    if isinstance(part, ThinkingPart):
        return part.provider is None or part.provider == family
    if isinstance(part, OpaquePart) and part.provider != family:
        warnings.append(LMWarning("opaque", f"An item that only {part.provider} understands was left out."))
        return False
    return True


def _clean(part: Part) -> Part:
    if isinstance(part, TextPart):
        return part if _is_unicode(part.text) else TextPart(_as_unicode(part.text))
    if isinstance(part, ToolCall):
        arguments, raw = part.arguments, part.raw_arguments
        whole = replace_surrogates(arguments)
        if whole is arguments and (raw is None or _is_unicode(raw)):
            return part
        arguments = whole if isinstance(whole, dict) else None
        return replace(part, arguments=arguments, raw_arguments=None if raw is None else _as_unicode(raw))
    if isinstance(part, ToolResult):
        whole = replace_surrogates(part.content)
        return part if whole is part.content else replace(part, content=whole)
    return part


def replace_surrogates(value: JsonValue) -> JsonValue:
    """The value with lone surrogates replaced, which no provider takes; the very same value where there are none.

    >>> ascii(replace_surrogates({"a": ["ok", "\\ud800"]}))
    "{'a': ['ok', '\\\\ufffd']}"
    """
    if _is_well_formed(value):
        return value
    match value:
        case str():
            return _as_unicode(value)
        case dict():
            return {_as_unicode(key): replace_surrogates(child) for key, child in value.items()}
        case list():
            return [replace_surrogates(child) for child in value]
        case _:
            return value


def _is_well_formed(value: JsonValue) -> bool:
    if isinstance(value, str):
        return value.isascii() or _is_unicode(value)
    if isinstance(value, dict):
        return all(map(_is_unicode, value)) and all(map(_is_well_formed, value.values()))
    return not isinstance(value, list) or all(map(_is_well_formed, value))


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_unicode(text: str) -> str:
    # A pair of surrogates is one character written in two halves; only a half without its other half is lost.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- calls and their results ---------------------------------------------------------------------------------


def _fits(call_id: str, rules: CallIdRules | None) -> bool:
    return bool(call_id) if rules is None else rules.fits(call_id)


def _one_turn_of_calls(messages: Iterable[Message]) -> list[Message]:
    """An assistant turn with calls, and the assistant turns right behind it, as one turn: its results follow them all."""
    turns: list[Message] = []
    for message in messages:
        if turns and message.role == "assistant" == turns[-1].role and turns[-1].tool_calls:
            turns[-1] = Message("assistant", turns[-1].parts + message.parts)
        else:
            turns.append(message)
    return turns


def _answered(messages: Sequence[Message], warnings: list[LMWarning]) -> list[Message]:
    """Results are looked for from an assistant turn to the next one, whichever turn holds them."""
    turns: list[Message] = []
    start = 0
    while start < len(messages):
        message = messages[start]
        end = start + 1
        while end < len(messages) and messages[end].role != "assistant":
            end += 1
        if message.role == "assistant":
            turns.append(message)
            turns.extend(_window(message.tool_calls, messages[start + 1 : end], warnings))
        else:
            turns.extend(_window((), messages[start:end], warnings))
        start = end
    return turns


def _window(calls: tuple[ToolCall, ...], following: Sequence[Message], warnings: list[LMWarning]) -> list[Message]:
    results = [result for message in following for result in message.tool_results]
    others = [
        message if not message.tool_results else replace(message, parts=rest)
        for message in following
        if (rest := tuple(part for part in message.parts if not isinstance(part, ToolResult)))
    ]
    if not calls and not results:
        return others
    answers = tuple(_take(call, results) for call in calls)
    for call, answer in zip(calls, answers, strict=True):
        if answer is None:
            warnings.append(
                LMWarning("tool_results", f"The call {call.id!r} of {call.name!r} has no result; an error stands in.")
            )
    for result in results:
        warnings.append(
            LMWarning("tool_results", f"The result {result.id!r} of {result.name!r} answers no call and was left out.")
        )
    if not calls:
        return others
    whole = (
        answer or ToolResult(call.id, call.name, NOT_EXECUTED, True)
        for call, answer in zip(calls, answers, strict=True)
    )
    return [Message.tool(*(_named(result, call) for result, call in zip(whole, calls, strict=True))), *others]


def _take(call: ToolCall, results: list[ToolResult]) -> ToolResult | None:
    """The call's result, taken off the list: the one with its id, else one without an id that has its name."""
    by_id = (result for result in results if result.id == call.id)
    by_name = (result for result in results if not result.id and result.name in ("", call.name))
    found = next(by_id, None) or next(by_name, None)
    if found is not None:
        results.remove(found)
    return found


def _named(result: ToolResult, call: ToolCall) -> ToolResult:
    return result if (result.id, result.name) == (call.id, call.name) else replace(result, id=call.id, name=call.name)


def _with_fitting_ids(turns: list[Message], rules: CallIdRules | None) -> list[Message]:
    used: set[str] = set()
    fitting: list[Message] = []
    latest: list[str] = []
    for turn in turns:
        if turn.tool_calls:
            latest = [_fitting_id(call.id, rules, used) for call in turn.tool_calls]
            turn = _with_ids(turn, latest)
        elif turn.role == "tool":
            turn = _with_ids(turn, latest)
        fitting.append(turn)
    return fitting


def _fitting_id(call_id: str, rules: CallIdRules | None, used: set[str]) -> str:
    fits = _fits(call_id, rules)
    chosen, attempt = call_id, 0
    while not fits or chosen in used:
        chosen = (rules or CallIdRules()).rewrite(call_id, attempt)
        fits, attempt = True, attempt + 1
    used.add(chosen)
    return chosen


def _with_ids(turn: Message, ids: Sequence[str]) -> Message:
    remaining = iter(ids)
    parts = tuple(
        _with_id(part, next(remaining)) if isinstance(part, ToolCall | ToolResult) else part for part in turn.parts
    )
    return turn if all(new is old for new, old in zip(parts, turn.parts, strict=True)) else Message(turn.role, parts)


def _with_id(part: ToolCall | ToolResult, call_id: str) -> Part:
    return part if part.id == call_id else replace(part, id=call_id)


def _media_after_results(turns: list[Message], warnings: list[LMWarning]) -> list[Message]:
    """One user turn after the results holds their media; each result's text says so."""
    moved: list[Message] = []
    for turn in turns:
        media = tuple(part for result in turn.tool_results for part in result.media if not isinstance(part, TextPart))
        if not media:
            moved.append(turn)
            continue
        moved.append(Message.tool(*(_without_media(result) for result in turn.tool_results)))
        moved.append(Message("user", media))
        warnings.append(LMWarning("result_media", "Results are text only here; their media follow in a user turn."))
    return moved


def _without_media(result: ToolResult) -> ToolResult:
    if not result.media:
        return result
    told = [
        part.text if isinstance(part, TextPart) else f"[{_MEDIA_NAMES[type(part)]} attached below]"
        for part in result.media
    ]
    return replace(result, content="\n".join(filter(None, (result.text, *told))), media=())


_MEDIA_NAMES: dict[type, str] = {ImagePart: "image", AudioPart: "audio", FilePart: "file"}


# --- turns ---------------------------------------------------------------------------------------------------


def _system_first(turns: list[Message], warnings: list[LMWarning]) -> list[Message]:
    system = [turn for turn in turns if turn.role == "system"]
    if not system:
        return turns
    rest = [turn for turn in turns if turn.role != "system"]
    if turns[: len(system)] != system:
        warnings.append(
            LMWarning("system", "A later system turn was moved to the front, where this wire has its only place.")
        )
    return [system[0] if len(system) == 1 else _one_system(system), *rest]


def _one_system(turns: Sequence[Message]) -> Message:
    if all(isinstance(part, TextPart) for turn in turns for part in turn.parts):
        return Message.system("\n\n".join(turn.text for turn in turns))
    return Message("system", tuple(part for turn in turns for part in turn.parts))


def _merged(turns: list[Message], roles: frozenset[Role]) -> list[Message]:
    merged: list[Message] = []
    for turn in turns:
        if merged and turn.role in roles and merged[-1].role == turn.role:
            merged[-1] = Message(turn.role, merged[-1].parts + turn.parts)
        else:
            merged.append(turn)
    return merged


def _user_first(turns: list[Message], text: str, warnings: list[LMWarning]) -> list[Message]:
    first = next((number for number, turn in enumerate(turns) if turn.role != "system"), None)
    if first is None or turns[first].role == "user":
        return turns
    warnings.append(
        LMWarning("messages", "The conversation did not begin with a user turn; a short one was put first.")
    )
    return [*turns[:first], Message.user(text), *turns[first:]]


# --- results as text -------------------------------------------------------------------------------------------

_ERROR = "ERROR: "


def error_text(result: ToolResult) -> str:
    """The result as text for wires without an error flag: failures begin with ``ERROR: ``.

    >>> error_text(ToolResult("call_0", "f", "boom", is_error=True))
    'ERROR: boom'
    """
    return _ERROR + result.text if result.is_error else result.text


def read_error_text(text: str) -> tuple[str, bool]:
    """The content and the flag that ``error_text`` wrote.

    >>> read_error_text("ERROR: boom")
    ('boom', True)
    """
    return (text[len(_ERROR) :], True) if text.startswith(_ERROR) else (text, False)
