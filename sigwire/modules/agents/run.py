"""Runs of an agent: ``AgentRun``, the typed log of a run, and ``RunState``, a run in progress.

A run always has a history from which another run can continue: every call in it has a result, also after an interrupt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

from sigwire.adapters.finish import with_calls
from sigwire.adapters.prompts.excerpts import excerpt
from sigwire.core.events import ToolDone
from sigwire.core.example import Prediction
from sigwire.core.json import Value
from sigwire.core.messages import Message
from sigwire.core.record import FieldValues
from sigwire.core.response import Attempt, Choice, LMWarning, Usage, cost_of_attempts
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.effects.emitting import Emit
from sigwire.errors import (
    BudgetSpent,
    EmptyResponse,
    InputError,
    LMError,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
)
from sigwire.journal.errors import ApprovalNeeded
from sigwire.modules.agents import conversation
from sigwire.modules.agents.approval.gate import CallGate
from sigwire.modules.agents.large_results.lookup import LargeResults
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.answer import meta_of
from sigwire.modules.program_stream import EventPath
from sigwire.show.card import HasCard
from sigwire.signatures.types.history import AnyTurn, History, Turn

__all__ = ["AgentRun", "EmittingRecorder", "ReActStep", "RunState", "Termination", "TerminationReason", "tool_done"]

TerminationReason: TypeAlias = Literal[
    "submit", "no_calls", "limit", "repeat", "approval", "parse_error", "context_window_exceeded", "cancelled"
]

_MAX_UNREADABLE, _ADVICE = 3, "Call a tool or submit the output fields."  # 3 consecutive responses


@dataclass(frozen=True, slots=True)
class ReActStep(Value, HasCard):
    """One turn: the model's thought and calls, the results, the cost.

    ``results`` are complete, also if the model saw a shortened text. ``error``: the reason if the turn could not be read.
    ``warnings``: the exceptions of tools, with file and line (``result.exception`` has the traceback).

    >>> step = ReActStep("Look it up.", (ToolCall("call_0", "find", {}),), (ToolResult("call_0", "find", "here"),))
    >>> ReActStep.from_json(step.to_json()) == step
    True
    """

    _shown_by = "sigwire.core.cards.runs:turn"
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    error: str | None = None
    warnings: tuple[LMWarning, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class AgentRun(HasCard):
    """The typed log of a run: ``AgentRun.of(prediction)``, or of the exception that ended the run.

    A prediction has the fields ``steps``, ``history`` and ``termination_reason``; if an output has such a name, the field is
    ``run_steps`` and so on. ``termination_reason`` is ``None`` if the loop did not end the run: an ``LMError``, a refusal, a
    tool's exception (``on_tool_error="abort"``). ``attempts`` are all requests.
    """

    _shown_by = "sigwire.core.cards.runs:run"
    steps: tuple[ReActStep, ...]
    history: History
    termination_reason: TerminationReason | None = None
    attempts: tuple[Attempt, ...] = ()

    @classmethod
    def of(cls, result: object) -> Self:
        """Return the run of a prediction or an exception. Raises ``InputError`` if it has none."""
        held: dict[str, Any] = getattr(result, "__dict__", {})
        steps, history, reason = (
            held.get(f"run_{name}", held.get(name)) for name in ("steps", "history", "termination_reason")
        )
        if not isinstance(history, History) or steps is None:
            raise InputError(f"This {type(result).__name__} does not come from a ReAct run.")
        attempts = meta_of(result).attempts if isinstance(result, Prediction) else held.get("attempts", ())
        return cls(tuple(steps), history, reason, tuple(attempts))

    @property
    def usage(self) -> Usage:
        """The tokens of all requests."""
        return sum((attempt.usage for attempt in self.attempts), Usage())

    @property
    def cost(self) -> float | None:
        """The cost of all requests in US dollars; ``None`` if that of one is unknown."""
        return cost_of_attempts(self.attempts)


@dataclass(frozen=True, slots=True)
class Termination:
    """The end of the loop: the outputs, or the reason why there are none."""

    reason: TerminationReason
    outputs: dict[str, object] | None = None
    why: str = ""
    cause: BaseException | None = None


class RunState:
    """A run in progress: the conversation, the steps, and the calls without a result."""

    def __init__(self, history: History, inputs: FieldValues, toolbox: Toolbox) -> None:
        self.history = history
        self.large, self.gate, self.turn = LargeResults(toolbox), CallGate(toolbox.rules), 0
        self.inputs = inputs
        self.steps: list[ReActStep] = []
        self.attempts: list[Attempt] = []
        self.prediction: Prediction | None = None
        self.end: Termination | None = None
        self.tool_runs: list[ToolRun] = []
        self._unreadable = 0
        self.choice = Choice()
        self.open_calls: tuple[ToolCall, ...] = ()
        self._counted_attempts = 0

    def add_message(self, message: Message) -> None:
        self.history = self.history.append(message)

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

    def add_step(
        self,
        choice: Choice,
        seconds: float,
        runs: Sequence[ToolRun] = (),
        error: str | None = None,
    ) -> None:
        """Add a turn to the log."""
        thought = choice.text or choice.reasoning or ""
        calls, results = tuple(run.call for run in runs), tuple(run.result for run in runs)
        found = tuple(run.warning for run in runs if run.warning is not None)
        self.steps.append(ReActStep(thought, calls, results, self._usage_of_step(), seconds, error, found))

    def _usage_of_step(self) -> Usage:
        new, self._counted_attempts = self.attempts[self._counted_attempts :], len(self.attempts)
        return new[0].usage if len(new) == 1 else sum((attempt.usage for attempt in new), Usage())

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
        turns = self.history.messages
        start = next((at for at in range(len(turns) - 1, -1, -1) if isinstance(turns[at], Turn)), -1)
        return turns[start + 1 :]

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
        # Those of a ModelError are in self.attempts.
        failed = error.attempts if isinstance(error, LMError | BudgetSpent) else ()
        attributes: dict[str, object] = {
            "steps": tuple(self.steps),
            "history": self.history,
            "termination_reason": reason if isinstance(error, Exception) else "cancelled",
            "attempts": (*self.attempts, *failed),
        }
        for name, value in attributes.items():
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(error, name, value)


def _interrupted_run(call: ToolCall) -> ToolRun:
    result = conversation.interrupted_result(call)
    return ToolRun(call, result, result)


_PROBLEMS: Mapping[type[ModelError], str] = {
    EmptyResponse: "it is empty.",
    OutputTruncated: "it exceeds the token limit. Write a shorter reply.",
    MalformedToolCall: "the tool call is malformed.",
}


class EmittingRecorder:
    """A recorder of tool runs that also emits an event for each finished run."""

    def __init__(self, runs: list[ToolRun], event_path: EventPath) -> None:
        self._runs, self._event_path = runs, event_path

    def append(self, done: ToolRun, /) -> None:
        self._runs.append(done)
        Emit(tool_done(done, self._event_path)).run()


def tool_done(done: ToolRun, event_path: EventPath) -> ToolDone:
    """Return the event of a finished tool run."""
    return ToolDone(done.shown, path=event_path.path, turn=event_path.turn)
