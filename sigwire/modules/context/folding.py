"""The steps of one fold, and the error of a conversation that has nothing left to fold.

A fold is a function of the conversation and of what providers answered: a run of a journal folds at the same turns when it is
resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from sigwire.core.events import Compacted
from sigwire.core.fold import Fold
from sigwire.core.json import dumps
from sigwire.core.messages import Message
from sigwire.core.narrow import is_items
from sigwire.core.tools.tool import Tool
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import ContextWindowExceededError
from sigwire.lm.base import LanguageModel
from sigwire.modules.context.compaction import DEFAULT, Compaction, Draft, drafted
from sigwire.modules.context.sizes import ConversationSizes, priced_window, tokens_of, window_in_text, window_of_tables
from sigwire.modules.context.summary import ConversationRoom, Summarizer
from sigwire.modules.planned_folds import planned_folds
from sigwire.modules.program_stream import event_path_of, is_streamed
from sigwire.signatures.types.history import AnyTurn, History, Turn, folded
from sigwire.signatures.types.views import is_cut, pinned_turns

__all__ = ["fold_near", "fold_refused", "last_cut", "remaining_error"]

_PASSAGE = 90  # tokens


class FoldedRun(Protocol):
    """A run whose conversation is folded."""

    history: History

    @property
    def room(self) -> Any: ...

    def tools_of(self, fold: Fold) -> Iterable[Tool]: ...

    def folded(self) -> None: ...


class _FoldPlace(NamedTuple):
    """The conversation of a run, its model, the window of the model, and the tokens of the next request."""

    room: ConversationRoom
    history: History
    compaction: Compaction
    lm: LanguageModel
    window: int | None
    waiting: int

    @classmethod
    def of(cls, run: FoldedRun) -> _FoldPlace:
        room: ConversationRoom = run.room
        compaction = room.compaction if isinstance(room.compaction, Compaction) else DEFAULT
        lm = room.model()
        windows = [compaction.window or window_of_tables(lm.model, lm.capabilities), room.learned(lm)]
        if compaction.price is not None:
            windows.append(priced_window(lm.model, compaction.price, getattr(lm, "_price", None)))
        waiting = 0
        if room.recall_query:
            waiting = sum(tokens_of(lm.model, [Message.user(room.recall_query)])) + compaction.recall * _PASSAGE
        window = min((each for each in windows if each), default=None)
        return cls(room, run.history, compaction, lm, window, waiting)

    def fixed(self) -> int:
        """Return the tokens around the conversation: instructions, demos, tools."""
        return sum(_tokens_of_parts(self.lm.model, self.room).values())

    def total(self) -> int:
        """Return the tokens of the request with the conversation as it is."""
        if (counted := self.room.counted) is not None:
            return counted[0] + sum(tokens_of(self.lm.model, self.history.messages[counted[1] :]))
        return self.fixed() + sum(tokens_of(self.lm.model, self.history.view().messages))


def fold_near(run: FoldedRun) -> Steps[None]:
    """Fold the conversation of a run if the next request would exceed the share of the window at which folds start."""
    place = _FoldPlace.of(run)
    if place.window is None:
        return
    total = place.total()
    if total + place.waiting > place.room.most(place.lm, place.window, place.compaction.at):
        is_over = total + place.waiting > place.window
        yield from _fold(run, place, "window", total, 0 if is_over else place.window // 20)
    else:
        place.room.set_size(total, place.history)


def fold_refused(run: FoldedRun, error: ContextWindowExceededError) -> Steps[bool]:
    """Fold after a refusal, and keep the window that it showed; return False if nothing is left to fold."""
    place = _FoldPlace.of(run)
    total = place.total()
    window = window_in_text(str(error)) or place.window or total
    if place.window is None or window < place.window:
        place.room.learn(place.lm, window)
    place = place._replace(window=min(window, place.window or window))
    return (yield from _fold(run, place, "refused", max(total, window), 0))


def _fold(run: FoldedRun, place: _FoldPlace, why: str, total: int, least: int) -> Steps[bool]:
    history, room, compaction, lm = place.history, place.room, place.compaction, place.lm
    latest = history.folds[-1] if history.folds else Fold(0)
    search, reader = room.named() if compaction.search else ("", "")
    start = replace(latest, why=why, tokens_before=total, search=search, reader=reader)
    added = _tokens_of_tools(lm.model, run.tools_of(start))
    sizes = ConversationSizes(lm.model, history, place.fixed(), total, added)
    planned = planned_folds.get()
    draft = Draft(
        history,
        start,
        max(room.most(lm, place.window or total, compaction.to) - place.waiting, 0),
        tuple(at for at in range(latest.upto, last_cut(history.messages) + 1) if is_cut(history.messages, at)),
        sizes.tokens,
        least,
        Summarizer(room, lm, place.window or total, total) if planned is None else None,
    )
    for strategy in compaction.steps:
        if draft.fits:
            break
        draft = yield from drafted(strategy, draft)
    fold = replace(draft.fold, tokens_after=sizes.tokens(draft.fold))
    is_same = (fold.upto, fold.cleared, fold.summary) == (latest.upto, latest.cleared, latest.summary)
    if is_same or total - fold.tokens_after < max(least, 1):
        return False
    if planned is not None:
        planned.append(fold)
        return False
    run.history = folded(history, fold)
    room.set_size(fold.tokens_after, run.history)
    run.folded()
    if is_streamed():
        yield Emit(Compacted(fold, **event_path_of(room.owner)._asdict()))
    return True


def last_cut(turns: Sequence[AnyTurn]) -> int:
    """Return the last place where a fold may end: the open turn and the turns since the latest results stay.

    >>> last_cut([Message.user("?"), Message.assistant("!"), Message.user("And?")])
    1
    """
    task = max((at for at, turn in enumerate(turns) if isinstance(turn, Turn)), default=-1)
    later = range(len(turns) - 1, task, -1)
    results = next((at for at in later if _role(turns[at]) == "tool"), len(turns))
    answer = next((at for at in later if at < results and _role(turns[at]) == "assistant"), None)
    return max(task if answer is None else answer, 0)


def _role(turn: AnyTurn) -> str:
    return turn.role if isinstance(turn, Message) else ""


def remaining_error(run: FoldedRun, error: ContextWindowExceededError, why: str) -> ContextWindowExceededError:
    """Return the error of a conversation that does not fit its model, with the sizes of what is left of it."""
    place = _FoldPlace.of(run)
    model, turns = place.lm.model, place.history.messages
    parts = _tokens_of_parts(model, place.room)
    last = last_cut(turns)
    tasks = [turn for turn in turns if isinstance(turn, Turn)][-1:] or pinned_turns(turns, last)
    latest = [turn for turn in turns[last:] if all(turn is not task for task in tasks)]
    sizes = {
        **parts,
        "task": sum(tokens_of(model, tasks)) + place.waiting,
        "latest turn": sum(tokens_of(model, latest)),
    }
    shown = ", ".join(f"{name} {count:,}" for name, count in sizes.items())
    window = f"{place.window:,}" if place.window else "unknown"
    return ContextWindowExceededError(
        f"The conversation does not fit the model, {why} (asking {model}). Estimated tokens: {shown}; window "
        f"{window}. Use a model with a larger window, shorten the largest of these, or set max_output for tool results.",
        model=error.model,
        provider=error.provider,
    )


def _tokens_of_parts(model: str, room: ConversationRoom) -> dict[str, int]:
    """Return the tokens of what stands around the conversation of a request."""
    signature = getattr(room.asker, "signature", None)
    instructions = [str(getattr(signature, "instructions", ""))]
    if signature is not None:
        instructions += [
            f"{field.name} {field.description}" for field in (*signature.spec.inputs, *signature.spec.outputs)
        ]
    demos = [repr(demo) for demo in getattr(room.asker, "demos", ())]
    text = "\n".join([*instructions, *demos])
    return {
        "instructions": sum(tokens_of(model, [Message.user(text)])),
        "tools": _tokens_of_tools(model, _tools_of(room.inputs())),
    }


def _tokens_of_tools(model: str, tools: Iterable[Tool]) -> int:
    texts = [dumps(tool.spec) for tool in tools]
    return sum(tokens_of(model, [Message.user("\n".join(texts))])) if texts else 0


def _tools_of(inputs: Mapping[str, Any]) -> Iterator[Tool]:
    for value in inputs.values():
        if is_items(value):
            yield from (item for item in value if isinstance(item, Tool))
