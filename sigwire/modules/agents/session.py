"""``ChatSession``: a conversation with a program, which keeps the history between calls."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.record import FieldValues
from sigwire.core.tools.held import Memo
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, SessionBusy
from sigwire.modules.agents.room import OnTurn, Room, ask_in_room, new_summary, prepare_summary, read_compaction
from sigwire.modules.agents.run import AgentRun
from sigwire.modules.module import Module, StepsModule
from sigwire.modules.tree.copying import copy_value
from sigwire.modules.tree.walk import Predictor
from sigwire.modules.turn_text import as_text
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.signature import SignatureMeta
from sigwire.signatures.types.history import History, Turn, regrouped

if TYPE_CHECKING:
    from sigwire.core.fold import Fold
    from sigwire.core.tools.tool import Tool
    from sigwire.modules.context.compaction import Compaction

__all__ = ["ChatSession"]


class ChatSession(StepsModule):
    """A conversation with an agent, or with a predictor that has an input of type ``History``.

    A call takes the program's inputs without the history; ``conversation`` has the turns. A call that fails keeps the
    turns that are complete, so the next call continues from there. If the call of a predictor is cancelled, the user's turn
    stays, with a message that it has no answer; a call without inputs, or with the same ones, asks it again. ``save`` and
    ``load`` keep the program's state, ``to_json`` the conversation.

    ``compaction`` and ``on_turn`` are those of ``ReAct``: requests leave out what does not fit the model, and
    ``conversation`` keeps it. A predictor has no tools to search it; its requests have the passages nearest to the inputs. An
    agent has options of its own, and a session with an agent takes none.

    Raises ``ConfigurationError`` for a program without a history, and ``SessionBusy`` for a call while another one runs
    (``is_busy``), in a thread, a task or a tool: each answer depends on the one before.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> answers = FakeLM([{"answer": "Hello Ada"}, {"answer": "Ada"}])
    >>> chat = ChatSession(Predict("question, history: History -> answer", lm=answers))
    >>> _ = chat(question="I am Ada.")
    >>> chat(question="Who am I?").answer, len(chat.conversation)
    ('Ada', 2)
    """

    _collects: ClassVar[bool] = False

    def __init__(
        self,
        program: Module,
        conversation: History | FieldValues | Iterable[Any] = (),
        *,
        compaction: Compaction | bool = True,
        on_turn: OnTurn | None = None,
    ) -> None:
        super().__init__()
        self.program = program
        name: object = getattr(program, "history_input", None)
        self._is_agent = isinstance(name, str)
        self._input = name if isinstance(name, str) else _history_input(program)
        self._spec = _spec_of(program)
        turns = History.read(conversation)
        self.conversation = turns if turns is conversation else self._spec.typed_history(turns)
        self._is_running = threading.Lock()
        if self._is_agent and (compaction is not True or on_turn is not None):
            raise ConfigurationError(
                f"{type(program).__name__} folds its own conversation (making a session). Write {type(program).__name__}(..., "
                "compaction=..., on_turn=...)."
            )
        self.compaction, self.on_turn = read_compaction(compaction, on_turn, "making a session"), on_turn
        self._room: Room | None = None
        prepare_summary(self)

    @cached_property
    def summary(self) -> Any:
        """The predictor of summaries, made at first use; at once if ``compaction`` is a ``Compaction`` that uses it."""
        return new_summary()

    @property
    def is_busy(self) -> bool:
        """Whether a call runs: another one is refused until it ends."""
        return self._is_running.locked()

    def steps(self, /, **inputs: object) -> Steps[Any]:
        """Return the steps of one call, without callbacks and call records of this module."""
        if not self._is_running.acquire(blocking=False):
            raise SessionBusy(
                "This session answers another call (starting a call). Wait for it, or make another session."
            )
        try:
            before, inputs = (self.conversation, inputs) if self._is_agent else _asked_again(self.conversation, inputs)
            asked = None if self._is_agent else _AskedSession(before, self._room_for(before, inputs))
            try:
                if asked is None:
                    result = yield from self.program.call_steps(**{self._input: before}, **inputs)
                else:
                    result = yield from ask_in_room(
                        asked, lambda history: self.program.call_steps(**{self._input: history}, **inputs)
                    )
            except BaseException as error:
                before = before if asked is None else asked.history
                self.conversation = self._after_error(error, before, inputs)
                raise
            before = before if asked is None else asked.history
            self.conversation = self._after(result, before, inputs)
            return result
        finally:
            self._is_running.release()

    def _after_error(self, error: BaseException, before: History, inputs: FieldValues) -> History:
        """Return the conversation after a call that failed. That of an agent is in the error."""
        if isinstance(turns := getattr(error, "history", None), History):
            return turns
        is_cancelled = not isinstance(error, Exception)
        if self._is_agent:
            return self.conversation
        return before.append(Turn(inputs), _NO_ANSWER) if is_cancelled else _with_folds_of(self.conversation, before)

    def _room_for(self, before: History, inputs: FieldValues) -> Room:
        """Return the room of the conversation for a call with these inputs."""
        predictors = self.program.predictors()[:1]
        room = self._room = self._room or Room(
            self, predictors[0] if predictors else None, self.compaction, self.on_turn
        )
        room.begin(before)
        room.asker, room.is_counted = predictors[0] if predictors else None, isinstance(self.program, Predictor)
        room.recall_query = as_text([Turn(inputs)])
        return room

    def _after(self, result: object, before: History, inputs: FieldValues) -> History:
        if self._is_agent:
            return AgentRun.of(result).history
        if not isinstance(result, Prediction):
            raise ConfigurationError(
                f"A session needs predictions, not {type(result).__name__} (keeping the turn). Return the prediction."
            )
        return before.append(Turn({**inputs, **dict(Prediction.items(result))}))

    def to_json(self) -> JsonObject:
        """Return the conversation as JSON: ``ChatSession(program, data)`` continues it, with values of the declared types.

        Raises ``ValueError`` for a value without a JSON form.
        """
        return self._spec.plain_history(self.conversation).to_json()

    def __deepcopy__(self, memo: Memo) -> ChatSession:
        program = copy_value(self.program, memo)
        if self._is_agent:
            return ChatSession(program, self.conversation)
        made = ChatSession(program, self.conversation, compaction=self.compaction, on_turn=self.on_turn)
        if "summary" in self.__dict__:
            made.summary = copy_value(self.summary, memo)
        return made


class _AskedSession:
    """A call of a predictor with the conversation before it."""

    prediction: Prediction | None = None

    def __init__(self, history: History, room: Room) -> None:
        self.history, self.room = history, room

    def tools_of(self, fold: Fold) -> Iterable[Tool]:
        """Return no tools: a predictor has none."""
        return ()

    def folded(self) -> None:
        """Do nothing: a predictor has no tools."""

    def shorten(self) -> bool:
        """Return False: the conversation has no other form."""
        return False


def _with_folds_of(conversation: History, asked: History) -> History:
    """Return the conversation after a call that failed, with the folds of the call."""
    return asked if asked.messages == conversation.messages else conversation


_NO_ANSWER = Message.assistant("[No answer: the call was cancelled.]")


def _asked_again(conversation: History, inputs: dict[str, object]) -> tuple[History, dict[str, object]]:
    """Return the conversation and the inputs of a call. A turn that was cancelled and is asked again is in the inputs only."""
    turns = conversation.messages
    if len(turns) < 2 or turns[-1] != _NO_ANSWER or not isinstance(last := turns[-2], Turn):
        return conversation, inputs
    if inputs and inputs != dict(last):
        return conversation, inputs
    return regrouped(conversation, [*((turn,) for turn in turns[:-2]), (), ()]), dict(last)


def _spec_of(program: Module) -> SignatureSpec:
    """Return the fields of an agent or a predictor; of another program those of its first predictor."""
    found: object = getattr(program, "signature", None)
    return (found if isinstance(found, SignatureMeta) else program.predictors()[0].signature).spec


def _history_input(program: Module) -> str:
    """Return the name of the input that takes the history."""
    for predictor in program.predictors()[:1]:
        if (field := predictor.signature.spec.history_field) is not None:
            return str(field.name)
    raise ConfigurationError(
        f"{type(program).__name__} takes no history (making a session). Use an agent, or a signature with an input "
        "`history: sigwire.History`."
    )
