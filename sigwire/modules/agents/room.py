"""``Room``: how near a conversation is to the window of its model; ``ask_in_room`` asks with a view that fits.

This file is loaded by every agent and decides by counts alone whether a fold is near. What folds is in ``modules/context``,
loaded when a conversation first nears its window.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary, ref

from sigwire.core.example import Prediction
from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.record import FieldValues
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.effects.performing import current_frame
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, ContextWindowExceededError, InputError
from sigwire.modules.answer import meta_of
from sigwire.modules.ask import resolve_lm
from sigwire.modules.calling import called_steps
from sigwire.modules.where import locate
from sigwire.observe.place import prefix_moved
from sigwire.signatures.types.history import AnyTurn, History, folded, shown_as

if TYPE_CHECKING:
    from sigwire.core.fold import Fold
    from sigwire.core.tools.tool import Tool
    from sigwire.lm.base import LanguageModel
    from sigwire.modules.context.compaction import Compaction

__all__ = [
    "AskedRun",
    "OnTurn",
    "Room",
    "ask_in_room",
    "free_name",
    "new_summary",
    "prepare_summary",
    "read_compaction",
    "with_names",
]  # fmt: skip

OnTurn = Callable[[History], Any]
"""Gets the view that is about to be sent; returns another one for that request, or ``None``. Sync or async."""

_LEAST = 3_400  # tokens of a request below which no window of a model is looked up
_MOST_REFUSALS = 3
_AT = 0.85  # as Compaction

# The windows that refusals showed, of the models of this process. Runs of a journal do not read it: they would fold at other
# turns when they are resumed.
_learned: WeakKeyDictionary[object, int] = WeakKeyDictionary()


def read_compaction(compaction: object, on_turn: object, where: str) -> Compaction | bool:
    """Return the compaction of a constructor; a mapping, as files of programs have it, has the options of one.

    Raises ``ConfigurationError`` for values of other types, and for an ``on_turn`` that is no function.
    """
    if on_turn is not None and not callable(on_turn):
        raise ConfigurationError(f"on_turn is a function of a History, not {type(on_turn).__name__} ({where}).")
    if isinstance(compaction, bool):
        return compaction
    from sigwire.modules.context.compaction import Compaction  # agents with the defaults do not load it

    if is_mapping(compaction):
        return Compaction(**compaction)
    if isinstance(compaction, Compaction):
        return compaction
    raise ConfigurationError(
        f"compaction is True, False or a Compaction, not {type(compaction).__name__} ({where}). Write "
        "compaction=sigwire.Compaction(window=8000)."
    )


def prepare_summary(owner: Any) -> None:
    """Make the predictor ``summary`` of an agent whose ``Compaction`` uses it, so that optimizers find it."""
    if not isinstance(owner.compaction, bool) and owner.compaction.has_summary:
        owner.summary  # noqa: B018  # a cached property


def new_summary() -> Any:
    """Return a new predictor of summaries."""
    from sigwire.modules.context.summary import summary_predictor  # few conversations are folded

    return summary_predictor()


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken.

    >>> free_name("find", ["find", "find_2"])
    'find_3'
    """
    return next(each for number in count(1) if (each := name if number == 1 else f"{name}_{number}") not in taken)


class Room:
    """The room of one conversation. ``owner``: the agent or session; ``asker``: the predictor that its requests are of.

    ``inputs`` returns the other inputs of the next request; ``named`` the names of the tools that search and read what is left
    out ("" without). ``waiting``: the tokens of inputs that no turn has yet.
    """

    def __init__(
        self,
        owner: Any,
        asker: Any,
        compaction: Compaction | bool = True,
        on_turn: OnTurn | None = None,
        inputs: Callable[[], FieldValues] = dict,
        named: Callable[[], tuple[str, str]] = lambda: ("", ""),
    ) -> None:
        self.owner, self.asker, self.inputs, self.named = owner, asker, inputs, named
        self.compaction, self.on_turn = compaction, on_turn
        self.counted: tuple[int, int] | None = None
        """The tokens of the conversation, and the number of turns that they are of."""
        self.is_cached, self.is_counted = False, True
        """Whether the latest request read a cached prefix; whether the counts of answers are those of the conversation."""
        self.answered: str | None = None
        self.refused: int | None = None
        """The window that the refusals of this run showed."""
        self.failure: Exception | None = None
        self.sent_folds = 0
        self.recall_query, self.is_query_sent = "", False
        """The text of the inputs of a program without tools, and whether the last turn has them."""
        self._bound, self._turns = 0, 0
        self._target: Any = None

    @property
    def recall(self) -> int:
        """The passages of what is left out in a request of a program without tools."""
        return 5 if isinstance(self.compaction, bool) else self.compaction.recall

    def model(self) -> LanguageModel:
        """Return the model that is asked; of a router the target that answered last."""
        lm: Any = resolve_lm(getattr(self.asker, "lm", None), type(self.owner).__name__)
        if self.answered not in (None, lm.model) and hasattr(lm, "targets"):
            if self._target is None or self._target.model != self.answered:
                self._target = next((each.lm for each in lm.targets() if each.lm.model == self.answered), lm)
            lm = self._target
        found: LanguageModel = lm
        return found

    def learned(self, lm: object) -> int | None:
        """Return the window that refusals showed: of this run, or of this process if the run has no journal."""
        if _is_recorded():
            return self.refused
        try:
            known = _learned.get(lm)
        except TypeError:  # a model of the user without a hash
            known = None
        return known if self.refused is None else min(self.refused, known or self.refused)

    def learn(self, lm: object, window: int) -> None:
        """Keep the window that a refusal showed."""
        self.refused = min(window, self.refused or window)
        try:
            _learned[lm] = min(window, _learned.get(lm, window))
        except TypeError:
            return

    def most(self, lm: object, window: int, share: float) -> int:
        """Return the tokens of a share of a window, less if the answer needs the room: ``max_tokens``, or a tenth."""
        given: Mapping[str, Any] = {
            **(getattr(lm, "kwargs", None) or {}),
            **(getattr(self.asker, "config", None) or {}),
        }
        answer = given.get("max_tokens")
        answer = min(answer, window * 3 // 4) if isinstance(answer, int) and answer > 0 else window // 10
        return int(min(share * window, window - answer))

    def is_near(self, history: History) -> bool:
        """Return True if the next request may exceed the share of the window at which folds start. Reads new turns only."""
        if self.compaction is False:
            return False
        turns = history.messages
        if self._turns > len(turns):  # the caller continues another conversation
            self.counted, self._turns = None, 0
        if self._turns == 0:
            self._bound, self._turns = sum(map(_characters, history.view().messages)), len(turns)
        self._bound += sum(map(_characters, turns[self._turns :]))
        self._turns = len(turns)
        bound = self._bound + len(self.recall_query)
        own: Any = None if self.compaction is True else self.compaction
        if own is not None and own.price is not None:
            return True
        try:
            lm = self.model()
        except ConfigurationError:  # the call itself raises it
            return False
        known = (own.window if own is not None else None, self.learned(lm), lm.capabilities.context_window)
        window = min((each for each in known if each is not None), default=None)
        if window is None:
            return bound >= _LEAST
        return bound > self.most(lm, window, _AT if own is None else own.at)

    def set_size(self, tokens: int, history: History) -> None:
        """Set the tokens of the conversation, as far as it is sent. The next run that continues it begins with them."""
        self.counted = (tokens, len(history))
        self._bound, self._turns = self.counted
        history.derived["size"] = (tokens, history.messages, history.folds, ref(self.owner))

    def begin(self, history: History, size: tuple[int, int] | None = None) -> None:
        """Begin with the tokens that a suspended run had counted, or an earlier one of this process.

        A run of a journal begins without those of an earlier one: a resumed run may get its history from a file.
        """
        self.counted, self._bound, self._turns, self.sent_folds = None, 0, 0, len(history.folds)
        if size is None and (known := history.derived.get("size")) and not _is_recorded():
            tokens, turns, folds, owner = known  # another agent has other instructions and tools
            is_earlier = 0 < len(turns) <= len(history) and turns[-1] is history.messages[len(turns) - 1]
            if folds is history.folds and is_earlier and owner() is self.owner:
                size = (tokens, len(turns))
        if size is not None and size[1] <= len(history):
            self.counted = size
            self._bound, self._turns = size

    def add_answer(self, prediction: object, history: History, *, is_own_view: bool) -> None:
        """Keep what the provider counted of a request. ``is_own_view``: the view was not replaced."""
        response = meta_of(prediction).response if isinstance(prediction, Prediction) else None
        if response is None:
            return
        self.answered = response.attempts[-1].model if response.attempts else response.model
        self.is_cached = bool(response.usage.cached_tokens)
        if is_own_view and self.is_counted and response.usage.input_tokens:
            self.set_size(response.usage.input_tokens, history)

    def replaced(self, history: History) -> Steps[History]:
        """Return the history with the view of ``on_turn`` for the next request."""
        if self.on_turn is None:
            return history
        try:
            view = yield from called_steps(self.on_turn, [history.view()], {})
            if view is None:
                return history
            if not isinstance(view, History):
                raise InputError(
                    f"on_turn returned {type(view).__name__} (before a request). It returns a History or None."
                )
        except Exception as error:
            self.failure = error
            locate(error, hook="on_turn")
            raise
        from sigwire.modules.agents.conversation import answer_open_calls

        return shown_as(history, answer_open_calls(view.view()))


def with_names(history: History, room: Room) -> History:
    """Return a folded history whose note names the tools that this run offers, and no others."""
    fold = history.folds[-1]
    has_search = room.compaction is not False and (room.compaction is True or room.compaction.search)
    search, reader = room.named() if has_search else ("", "")
    if (search, reader) == (fold.search, fold.reader):
        return history
    return folded(history, replace(fold, why="tools", search=search, reader=reader))


def _moved(steps: Steps[Any], room: Room, history: History, *, is_turn: bool, is_own: bool) -> Steps[Any]:
    """Run the steps of a request; its record has the reason if the request starts with other bytes than the one before."""
    folds, before = len(history.folds), room.sent_folds
    if not is_turn or (is_own and folds == before):
        return (yield from steps)
    room.sent_folds = folds
    prefix_moved.set("fold" if is_own else "on_turn")
    try:
        return (yield from steps)
    finally:
        prefix_moved.set("")


def _is_recorded() -> bool:
    frame = current_frame()
    return frame is not None and bool(frame.run)


def _characters(turn: AnyTurn) -> int:
    """Return the characters of a turn: about the most tokens that it may have."""
    if isinstance(turn, Message):
        return sum(map(_characters_of_part, turn.parts)) + 8
    return sum(len(value) if isinstance(value, str) else len(str(value)) for value in turn.values()) + 20 * len(turn)


def _characters_of_part(part: object) -> int:
    if isinstance(part, TextPart | ThinkingPart):
        return len(part.text)
    if isinstance(part, ToolCall):
        return len(part.arguments_text) + 20
    return len(part.text) + 20 if isinstance(part, ToolResult) else 0


class AskedRun(Protocol):
    """A run whose conversation is sent. ``folded`` is called after each fold. ``prediction``: the latest answer.

    ``tools_of`` returns the tools that a fold adds to the requests.
    ``shorten`` makes a conversation of another form shorter, which no fold knows; it returns False if nothing is left.
    """

    history: History
    room: Room
    prediction: Prediction | None

    def tools_of(self, fold: Fold) -> Iterable[Tool]: ...

    def folded(self) -> None: ...

    def shorten(self) -> bool: ...


def ask_in_room(run: AskedRun, ask: Callable[[History], Steps[Any]], *, is_turn: bool = True) -> Steps[Any]:
    """Ask with the conversation, folded before if it nears the window; after a refusal fold and ask again, at most 3 times.

    ``ask`` returns the steps of the request with a history. ``is_turn``: the request is of the conversation itself, so that its
    size counts and ``on_turn`` sees it. Raises ``ContextWindowExceededError`` with the sizes of what remains
    if nothing is left to fold.
    """
    room, refusals, before = run.room, 0, run.prediction
    if is_turn and room.is_near(run.history):
        from sigwire.modules.context.folding import fold_near

        yield from fold_near(run)
    while True:
        sent = (yield from room.replaced(run.history)) if is_turn else run.history
        is_own = sent is run.history
        if is_own and room.recall_query and run.history.folds and room.recall:
            from sigwire.modules.context.search_tools import with_passages

            sent = with_passages(sent, room.recall_query, room.recall, before_last=room.is_query_sent)
        try:
            answer = yield from _moved(ask(sent), room, run.history, is_turn=is_turn, is_own=is_own)
        except ContextWindowExceededError as error:
            if isinstance(getattr(error, "history", None), History):  # of an agent: it folded, and its tools ran
                raise
            if room.compaction is False:
                if run.shorten():
                    continue
                raise
            from sigwire.modules.context.folding import fold_refused, remaining_error

            refusals += 1
            if refusals > _MOST_REFUSALS:
                raise remaining_error(run, error, f"after {_MOST_REFUSALS} folds in a row") from error
            if not (yield from fold_refused(run, error)):
                raise remaining_error(run, error, "and nothing is left to fold") from error
        else:
            prediction = answer if isinstance(answer, Prediction) else run.prediction
            if is_turn and prediction is not before:
                room.add_answer(prediction, run.history, is_own_view=is_own)
            return answer
