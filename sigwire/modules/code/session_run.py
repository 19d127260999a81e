"""``SessionRun``: a run of code in turns, with its conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sigwire.core.fold import Fold
from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.record import FieldValues
from sigwire.core.tools.tool import Tool
from sigwire.effects.steps import Steps
from sigwire.interpreters.code_result import CodeResult
from sigwire.modules.agents.conversation import answer_text, earlier_history
from sigwire.modules.agents.large_results.lookup import LargeResults
from sigwire.modules.agents.room import Room, with_names
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.agents.run_state import turns_since_task
from sigwire.modules.code.code_run import CodeReply, CodeRun
from sigwire.modules.code.host_tools import HostTools
from sigwire.modules.code.variables import describe_variables, json_variables
from sigwire.modules.turn_text import as_text
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.signature import SignatureMeta
from sigwire.signatures.types.history import History, Turn

__all__ = ["SessionInputs", "SessionRun"]


@dataclass(frozen=True)
class SessionInputs:
    """The inputs of a run: variables of the session, and their text in prompts."""

    variables: Mapping[str, JsonValue]
    described: str


class SessionRun(CodeRun):
    """A run of code with its conversation."""

    history = History()
    described = ""
    room: Room
    large: LargeResults | None = None
    _places: tuple[int, ...] = ()  # of the replies whose code ran, among the turns
    continues = True
    """Whether a run continues the ``history`` of an earlier one. A subclass may take an input of that type as another."""

    @classmethod
    def read_inputs(cls, signature: SignatureMeta, inputs: FieldValues) -> SessionInputs:
        """Return the inputs for a session, before it is opened. Raises ``InputError`` for a value without a JSON form."""
        variables = json_variables(inputs)
        described = {field.name: field.description for field in signature.spec.inputs}
        return SessionInputs(variables, describe_variables(variables, described))

    def begin(self, inputs: SessionInputs, functions: str) -> None:
        """Begin the conversation with the inputs and the functions of the session."""
        self.described = inputs.described
        self.history = History([Turn({"functions": functions, "variables": inputs.described})])

    @classmethod
    def earlier_history(cls, before: object, spec: SignatureSpec) -> History:
        """Return the history of an earlier run, with a result for every call; an empty one for ``None``."""
        return earlier_history(before, spec)

    def add_outputs(self, outputs: FieldValues, spec: SignatureSpec) -> None:
        """Add extracted outputs of a signature as the message that ends the conversation."""
        self.history = self.history.append(Message.assistant(answer_text(outputs, spec)))

    def turn_inputs(self, limit: int, history: History) -> FieldValues:
        """Return what the model is asked with in a turn; ``limit``: the most turns; ``history``: the conversation to send."""
        return {"history": history}

    def enter(self, room: Room) -> None:
        """Set the room of the conversation. A folded one has the functions that find what is left out."""
        self.room = room
        room.begin(self.history)
        if self.history.folds:
            self.history = with_names(self.history, room)
            self.folded()

    def tools_of(self, fold: Fold) -> Iterable[Tool]:
        """Return no tools: the code calls them."""
        return ()

    def folded(self) -> None:
        """Add the functions that find what the latest fold leaves out."""
        fold = self.history.folds[-1]
        if fold.search and self._tools is not None:
            self.large = self.large or LargeResults(self._tools.toolbox)
            self.large.offer_search(fold, lambda: self.history)
            self.set_tools(HostTools(self.large.toolbox))

    def shorten(self) -> bool:
        """Return False: the conversation has no other form. A subclass may have one that is not folded."""
        return False

    def execute(self, code: str, thought: str) -> Steps[CodeResult]:
        """Run the code of the latest reply, add its step, and emit the result in a stream."""
        self._places = (*self._places, len(self.history) - 1)
        return super().execute(code, thought)

    def add_reply(self, reply: CodeReply) -> None:
        """Add the model's message."""
        if (message := reply.choice.message()).parts:
            self.history = self.history.append(message)

    def add_message(self, text: str) -> None:
        """Add a message to the model."""
        self.history = self.history.append(Message.user(text))

    def log(self, history: History) -> object:
        """Return the code of the turns with its results, for a prompt, as far as requests with ``history`` send them."""
        upto = history.folds[-1].upto if history.folds else 0
        task = len(history) - len(turns_since_task(history))
        note = [as_text(turns_since_task(history.view())[:1])] if upto > task else []
        ran = zip(self._places, (step for step in self.steps if step.calls), strict=True)
        return "\n\n".join([*note, *(_as_text(step) for place, step in ran if place >= upto)])


def _as_text(step: ReActStep) -> str:
    return f"{(step.calls[0].arguments or {}).get('code')}\n-> {step.results[0].text}"
