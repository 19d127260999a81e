"""``RunState``: a run of an agent in progress, from which approval makes its states, and ``EmittingRecorder``.

A run always has a history from which another run can continue: every call in it has a result, also after an interrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sigwire.adapters.finish import with_calls
from sigwire.adapters.prompts.excerpts import excerpt
from sigwire.core.events import ToolDone
from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.record import FieldValues
from sigwire.core.report import CallReport
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.effects.emitting import Emit
from sigwire.errors import (
    AgentStopped,
    EmptyResponse,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
)
from sigwire.journal.errors import ApprovalNeeded
from sigwire.modules.agents import conversation
from sigwire.modules.agents.prompt_cache_watch import PromptCacheWatch
from sigwire.modules.agents.room import Room, with_names
from sigwire.modules.agents.run import AgentRun, Termination, TerminationReason
from sigwire.modules.agents.step_log import StepLog
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.answer import meta_of
from sigwire.modules.program_stream import EventPath
from sigwire.modules.turn_text import as_text
from sigwire.observe.reports import CallNode, with_cache_breaks
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.signature import SignatureMeta
from sigwire.signatures.types.history import AnyTurn, History, Turn

if TYPE_CHECKING:
    from sigwire.core.fold import Fold
    from sigwire.core.tools.tool import Tool
    from sigwire.effects.steps import Steps
    from sigwire.modules.agents.approval.gate import CallGate
    from sigwire.modules.agents.large_results.lookup import LargeResults

__all__ = ["EmittingRecorder", "OffersTools", "RunState", "tool_done", "turns_since_task"]

_MAX_UNREADABLE, _ADVICE = 3, "Call a tool or submit the output fields."  # 3 consecutive responses
_LONGEST_NAME = 128  # characters


class OffersTools(Protocol):
    """The search of a run with many tools (``ToolSearch``). ``tool`` finds more of them; ``show`` is how it shows one."""

    show: Callable[[Tool], JsonObject]

    @property
    def tool(self) -> Tool: ...
    def first_names(self) -> Steps[set[str]]: ...
    def ask(self, ask: Callable[[], Steps[Prediction]]) -> Steps[Prediction]: ...


class RunState(StepLog):
    """A run in progress: the conversation, the steps, and the calls without a result.

    ``gate`` decides which calls run; ``large`` has the results that the model saw in part; ``search`` offers some of many
    tools: ``offered``. ``asker``: the predictor of the turns; ``cache``: breaks of the prompt cache of its requests.
    ``options``: keywords of each request for a turn; ``fields``: fields of the result. A loop of its own sets them. ``place``:
    that of the run among the runs of agents in a tool call (``CurrentCall.begin_run``). ``is_resumed``: a person decided about
    a call of the run.
    """

    def __init__(self, history: History, inputs: FieldValues, gate: CallGate, large: LargeResults) -> None:
        super().__init__()
        self.history, self.inputs = history, inputs
        self.gate, self.large, self.turn = gate, large, 0
        self.search: OffersTools | None = None
        self.offered: tuple[Tool, ...] = ()
        self.asker: Any = None
        self.cache = PromptCacheWatch()
        self.place, self.is_resumed = "", False
        self.room: Room
        self.size: tuple[int, int] | None = None  # that the room of a suspended run had counted
        self.options: dict[str, object] = {}
        self.fields: dict[str, object] = {}
        self.end: Termination | None = None
        self.tool_runs: list[ToolRun] = []
        self._unreadable = 0
        self.choice = Choice()
        self.open_calls: tuple[ToolCall, ...] = ()

    def add_prediction(self, prediction: Prediction, purpose: Literal["ask", "extract"] = "ask") -> None:
        super().add_prediction(prediction, purpose)
        if purpose == "ask" and (response := meta_of(prediction).response) is not None:
            self.cache.add(response, self.asker, self.calls.add)

    def add_message(self, message: Message) -> None:
        self.history = self.history.append(message)

    @property
    def answer(self) -> Choice:
        """The latest answer of a predictor."""
        return meta_of(self.prediction).choice or Choice()

    def add_answer(self) -> Choice:
        """Add the latest answer with its calls, and return it."""
        choice = self.answer
        self.add_choice(choice, tuple(map(self._with_bounded_name, choice.tool_calls)))
        return choice

    def _with_bounded_name(self, call: ToolCall) -> ToolCall:
        """Return the call; an unknown name of any length must not be repeated in each later request."""
        is_bounded = len(call.name) <= _LONGEST_NAME or call.name in self.large.toolbox.tools
        return call if is_bounded else replace(call, name=call.name[:_LONGEST_NAME])

    def add_choice(self, choice: Choice, calls: tuple[ToolCall, ...]) -> None:
        """Add a response of the model. ``calls``: its calls that are run."""
        self._unreadable = 0
        self.tool_runs, self.choice, self.open_calls = [], choice, calls
        message = (choice if calls == choice.tool_calls else with_calls(choice, choice.text, calls)).message()
        if message.parts:
            self.add_message(message)

    def add_results(self, results: Sequence[ToolResult]) -> None:
        """Add the results of all open calls."""
        self.add_message(Message.tool(*results))
        self.open_calls = ()

    def add_outputs(self, outputs: FieldValues, spec: SignatureSpec) -> None:
        """Add extracted outputs of a signature as the message that ends the conversation."""
        self.add_message(Message.assistant(conversation.answer_text(outputs, spec)))

    def end_turn(self, runs: Sequence[ToolRun], seconds: float) -> Termination | None:
        """Add the calls of the turn as they ran; return the end of the run if a limit of calls is reached."""
        self.history = conversation.with_calls_that_ran(self.history, runs)
        self.add_results([run.shown for run in runs])
        self.add_step(self.choice, seconds, runs)
        reached = self.gate.counts.end
        return None if reached is None else Termination(reached[0], why=reached[1])

    def enter(self, room: Room, *, has_tools: bool) -> None:
        """Set the room of the conversation. A folded one offers the tools of the agent that find what is left out."""
        self.room = room
        if not has_tools:
            room.recall_query, room.is_query_sent = as_text([Turn(self.inputs)]), True
        room.begin(self.history, self.size)
        if self.history.folds:
            self.history = with_names(self.history, room)
            self.folded()

    def tools_of(self, fold: Fold) -> Iterable[Tool]:
        """Return the tools that a fold adds to the requests: none if code calls them."""
        return self.large.tools_of(fold, lambda: self.history) if self.room.owner.takes_tools else ()

    def folded(self) -> None:
        """Offer the tools that find what the latest fold leaves out."""
        fold = self.history.folds[-1]
        if fold.search:
            self.large.offer_search(fold, lambda: self.history)

    def shorten(self) -> bool:
        """Return False: the conversation has no other form."""
        return False

    def after_failure(self, error: Exception, seconds: float, advice: str = _ADVICE) -> Termination | None:
        """Return the end of a run whose request failed, ``None`` to go on after an answer that could not be parsed.

        Raises the error if ``on_turn`` raised it.
        """
        if error is self.room.failure:
            raise error
        if isinstance(error, ModelError):
            return self.add_unreadable(error, seconds, advice)
        return Termination("context_window_exceeded", why="the conversation no longer fits the model", cause=error)

    def add_step(
        self,
        choice: Choice,
        seconds: float,
        runs: Sequence[ToolRun] = (),
        error: str | None = None,
    ) -> None:
        """Add a turn to the log."""
        self.log_step(choice.text or choice.reasoning or "", seconds, runs, error)

    def add_unreadable(self, error: ModelError, seconds: float, advice: str = _ADVICE) -> Termination | None:
        """Add a response that could not be parsed and a message with its problem. Ends the loop after several in a row."""
        choice = error.choice or Choice()
        if choice.text.strip():
            self.add_message(Message.assistant(excerpt(choice.text)))
        problem = _PROBLEMS.get(type(error), error.message.splitlines()[0])
        self.add_message(Message.user(f"Your reply is invalid: {problem} {advice}"))
        self.add_step(choice, seconds, error=f"{type(error).__name__}: {problem}")
        self._unreadable += 1
        if self._unreadable < _MAX_UNREADABLE:
            return None
        why = f"{self._unreadable} answers in a row could not be read ({problem})"
        return Termination("parse_error", why=why, cause=error)

    def turns_since_task(self) -> Sequence[AnyTurn]:
        """Return the turns after the latest inputs."""
        return turns_since_task(self.history)

    def log(self, history: History) -> str:
        """Return the turns since the task as text, for a prompt, as far as requests with ``history`` send them."""
        return as_text(turns_since_task(history.view())) or "No tool was called."

    def close(self) -> None:
        """Add a result for every open call, so that another run can continue from the history."""
        calls = self.open_calls
        if not calls:
            return
        done = {run.call.id: run for run in self.tool_runs}
        runs = [done.get(call.id) or _interrupted_run(call) for call in calls]
        self.add_results([run.shown for run in runs])
        self.add_step(self.choice, 0.0, runs, error="interrupted")

    def attach_to(self, error: BaseException) -> None:
        """Set the attributes of the run on the error that ended it."""
        reason = "approval" if isinstance(error, ApprovalNeeded) else self.end and self.end.reason
        reason = reason if isinstance(error, Exception) else "cancelled"
        facts = {"cache_breaks": tuple(self.cache.breaks)} if self.cache.breaks else {}
        self.attach_facts(error, history=self.history, termination_reason=reason, **facts)

    def stopped_error(self, outputs: Sequence[str], end: Termination, hint: str) -> AgentStopped:
        """Return the error of a run that ended without its outputs."""
        return AgentStopped(
            f"The run ended without its outputs ({', '.join(outputs)}): {end.why}; {hint}. "
            "error.steps has all turns; call again with history=error.history to continue.",
            reason=end.reason,
            steps=tuple(self.steps),
            history=self.history,
        )

    def run(self, reason: TerminationReason | None) -> AgentRun:
        """Return the log of the finished turns, without its report: the run has not ended."""
        return AgentRun(tuple(self.steps), self.history, reason)

    @property
    def report(self) -> CallReport:
        """The report of the run until now."""
        return self.calls.snapshot() if isinstance(self.calls, CallNode) else CallReport()

    def result(self, signature: SignatureMeta, outputs: FieldValues, facts: FieldValues) -> Prediction:
        """Return the prediction of the run: the outputs, and facts about it."""
        repairs = meta_of(self.prediction).repairs
        made = self.make_prediction(signature, outputs, {**facts, **self.fields}, repairs=repairs)
        return with_cache_breaks(made, tuple(self.cache.breaks)) if self.cache.breaks else made


def _interrupted_run(call: ToolCall) -> ToolRun:
    result = conversation.interrupted_result(call)
    return ToolRun(call, result, result)


_PROBLEMS: Mapping[type[ModelError], str] = {
    EmptyResponse: "it is empty.",
    OutputTruncated: "it exceeds the token limit. Write a shorter reply.",
    MalformedToolCall: "the tool call is malformed.",
}


def turns_since_task(history: History) -> Sequence[AnyTurn]:
    """Return the turns after the latest inputs of a history."""
    turns = history.messages
    start = next((at for at in range(len(turns) - 1, -1, -1) if isinstance(turns[at], Turn)), -1)
    return turns[start + 1 :]


class EmittingRecorder:
    """A recorder of tool runs that also emits an event for each finished run."""

    def __init__(self, runs: list[ToolRun], event_path: EventPath) -> None:
        self._runs, self._event_path = runs, event_path

    def append(self, done: ToolRun, /) -> None:
        self._runs.append(done)
        Emit(tool_done(done, self._event_path)).run()


def tool_done(done: ToolRun, event_path: EventPath) -> ToolDone:
    """Return the event of a finished tool run."""
    return ToolDone(done.shown, **event_path._asdict())
