"""All changes of a history for one wire, in order.

``convert_history(messages, rules)`` returns messages that an encoder can write one by one:

    text         lone surrogates are replaced; empty text parts and empty turns are dropped, by the rules blank ones too
    thinking     thinking and opaque items of another provider (not ``rules.family``) are dropped, or thinking becomes text;
                 of its own, those that it does not take back
    media        media that the provider does not take become a note, if the rules list what it takes; details of images and
                 names of files without a place are dropped
    answers      exactly one tool turn follows an assistant turn with calls. It answers every call, in call order: a call
                 without a result gets an error result, a user turn quotes a result without a call. Assistant turns that
                 directly follow a turn with calls become one turn with it
    ids          call ids that the wire refuses, or that repeat, are rewritten, for the call and its result
    results      if results of the wire are text only, their images move to a user turn behind them
    documents    by the rules: a name for each document of the request, a text beside them
    turns        by the rules: system turns gathered or placed, neighbours of one role merged, a user turn put first

Every change is a ``Loss``. Rewritten ids are not mapped back: a provider answers with new ids, and the caller's messages are
never changed. A part in a turn that cannot hold it (a call in a user turn) is an ``InputError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sigwire.core.messages import Message
from sigwire.lm.histories.call_ids import are_valid_ids, rewrite_call_ids
from sigwire.lm.histories.calls import answer_calls, merge_call_turns
from sigwire.lm.histories.documents import add_texts, name_documents
from sigwire.lm.histories.losses import Loss, Losses, Turn
from sigwire.lm.histories.parts import CallKey, is_plain, view_of
from sigwire.lm.histories.rules import HistoryRules
from sigwire.lm.histories.turns import merge_roles, move_media, move_system, place_system, start_with_user

__all__ = ["ConvertedHistory", "convert_history"]


class ConvertedHistory(NamedTuple):
    """The messages to encode, the changes, and the ids and names of all calls as the caller wrote them.

    ``numbers``: for each message, its number in the given history; that of the first if several became one.
    """

    messages: tuple[Message, ...]
    losses: Losses
    calls: tuple[CallKey, ...]
    numbers: tuple[int, ...] = ()


def convert_history(messages: Sequence[Message], rules: HistoryRules) -> ConvertedHistory:
    """Return the history in the form of a wire. Raises ``InputError`` for a part that its turn cannot hold.

    >>> from sigwire.core.tools.calls import ToolCall
    >>> given = [Message.user("q"), Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.user("and?")]
    >>> history = convert_history(given, HistoryRules())
    >>> [message.role for message in history.messages], history.messages[2].tool_results[0].content
    (['user', 'assistant', 'tool', 'user'], 'tool was not executed')
    >>> history.losses[0].message, history.losses[0].severity
    (1, 'form')
    """
    losses: list[Loss] = []
    turns, calls, is_normal = _scan(messages, rules, losses)
    ids = [id for id, _ in calls]
    if not (is_normal and (not ids or are_valid_ids(ids, rules.ids))):
        turns = answer_calls(merge_call_turns(turns, losses), losses)
        turns = rewrite_call_ids(turns, rules.ids, losses)
        if rules.result_media == "user":
            turns = move_media(turns, losses)
    if rules.system != "keep":
        turns = _SYSTEM[rules.system](turns, losses)
    if rules.merge:
        turns = merge_roles(turns, rules.merge, losses)
    if rules.filenames == "plain":
        turns = name_documents(turns, losses)
    if rules.document_text is not None:
        turns = add_texts(turns, rules.document_text, losses)
    if rules.first_user is not None:
        turns = start_with_user(turns, rules.first_user, losses)
    numbers, kept = tuple([number for number, _ in turns]), tuple([turn for _, turn in turns])
    if losses and kept == tuple(messages):  # an empty first turn was left out and put first again
        losses = []
    return ConvertedHistory(kept, tuple(losses), tuple(calls), numbers)


_SYSTEM = {"front": move_system, "between": place_system}
_NO_CALLS: tuple[CallKey, ...] = ()


def _scan(
    messages: Iterable[Message], rules: HistoryRules, losses: list[Loss]
) -> tuple[list[Turn], list[CallKey], bool]:
    """Return the turns as the provider sees them, their calls, and whether calls and results are normal.

    They are normal if every call is answered directly behind its turn, in order and by its own id. The modules
    of this package write history so. The passes over calls and results would then change nothing and are skipped.
    """
    turns: list[Turn] = []
    calls: list[CallKey] = []
    is_normal, unanswered = True, _NO_CALLS
    for number, message in enumerate(messages):
        if is_plain(message):
            turns.append((number, message))
            is_normal, unanswered = is_normal and not unanswered, _NO_CALLS
            continue
        view = view_of(message, rules)
        if view.losses:
            losses += [Loss(number, *loss) for loss in view.losses]
        kept = view.message or message
        if not kept.parts:
            continue
        turns.append((number, kept))
        calls += view.calls
        is_moved = view.has_media and rules.result_media == "user"
        is_normal = is_normal and view.answers == unanswered and view.is_tidy and not is_moved
        unanswered = view.calls
    return turns, calls, is_normal and not unanswered
