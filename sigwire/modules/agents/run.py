"""``AgentRun``, the typed log of a run of an agent: its ``ReActStep``s, its history, and the reason of its ``Termination``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from sigwire.core.json import JsonObject, Value, decoding
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, LMWarning, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError
from sigwire.show.card import BoundedRepr, HasCard
from sigwire.signatures.fields import FieldSpec, typed_history
from sigwire.signatures.types.history import History

if TYPE_CHECKING:
    from sigwire.lm.preview.cache_health import CacheBreak, CacheHealth

__all__ = ["AgentRun", "ReActStep", "Termination", "TerminationReason", "load_run_fields"]

TerminationReason: TypeAlias = Literal[
    "submit", "no_calls", "limit", "repeat", "approval", "parse_error", "context_window_exceeded", "cancelled"
]


@dataclass(frozen=True, slots=True)
class ReActStep(Value, HasCard):
    """One turn: the model's thought and calls, the results, the cost.

    ``results`` are complete, also if the model saw a shortened text. ``usage``: with that of the programs in tools.
    ``error``: the reason if the turn could not be read. ``warnings``: the exceptions of tools, with file and line
    (``result.exception`` has the traceback). ``reports``: of the predictors that were asked, and of the calls of tools in
    which programs ran; steps of older files have none. ``call_seconds``: of each call, in the order of ``results``; a wait for
    approval is not in them.

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
    reports: tuple[CallReport, ...] = ()
    call_seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class AgentRun(HasCard):
    """The typed log of a run: ``AgentRun.of(prediction)``, or of the exception that ended the run.

    A prediction has the fields ``steps``, ``history`` and ``termination_reason``; if an output has such a name, the field is
    ``run_steps`` and so on. ``termination_reason`` is ``None`` if the loop did not end the run: an ``LMError``, a refusal, a
    tool's exception (``on_tool_error``). ``report`` has all requests, also those of programs in tools; ``attempts``,
    ``usage`` and ``cost`` are its totals.

    >>> run = AgentRun((ReActStep("Done."),), History([{"question": "2+2?"}]), "submit")
    >>> AgentRun.from_json(run.to_json()) == run
    True
    """

    _shown_by = "sigwire.core.cards.runs:run"
    steps: tuple[ReActStep, ...]
    history: History
    termination_reason: TerminationReason | None = None
    report: CallReport = CallReport()
    cache_breaks: tuple[CacheBreak, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, result: object) -> Self:
        """Return the run of a prediction or an exception. Raises ``InputError`` if it has none."""
        held: dict[str, Any] = getattr(result, "__dict__", {})
        steps, history, reason = (
            held.get(f"run_{name}", held.get(name)) for name in ("steps", "history", "termination_reason")
        )
        if not isinstance(history, History) or steps is None:
            raise InputError(f"This {type(result).__name__} does not come from a ReAct run.")
        meta = getattr(result, "_meta", None)
        breaks = getattr(result if meta is None else meta, "cache_breaks", ())
        return cls(tuple(steps), history, reason, CallReport.of(result), tuple(breaks))

    def to_json(self) -> JsonObject:
        """Return the run as JSON, without the response of its report and the breaks of the prompt cache."""
        return {
            "steps": [step.to_json() for step in self.steps],
            "history": self.history.to_json(),
            "termination_reason": self.termination_reason,
            "report": self.report.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Decode the result of ``to_json``. Values of fields in the history are JSON, as those of ``History.from_json``."""
        with decoding("AgentRun", data):
            steps = tuple(map(ReActStep.from_json, data["steps"]))
            history, reason = History.from_json(data["history"]), data["termination_reason"]
            return cls(steps, history, reason, CallReport.from_json(data["report"]))

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All requests."""
        return self.report.attempts

    @property
    def usage(self) -> Usage:
        """The tokens of all requests."""
        return self.report.usage

    @property
    def cache(self) -> CacheHealth:
        """The tokens that the provider's prompt cache read of all requests, and the breaks in the conversation of the agent."""
        from sigwire.lm.preview.cache_health import CacheHealth  # few runs are asked for it

        usage, count = self.usage, sum(attempt.error is None for attempt in self.attempts)
        return CacheHealth(count, usage.input_tokens or 0, usage.cached_tokens, self.cache_breaks)

    @property
    def cost(self) -> float | None:
        """The cost of all requests in US dollars; ``None`` if that of one is unknown."""
        return self.report.cost


@dataclass(frozen=True, slots=True)
class Termination(BoundedRepr):
    """The end of the loop: the outputs, or the reason why there are none."""

    reason: TerminationReason
    outputs: dict[str, object] | None = None
    why: str = ""
    cause: BaseException | None = None


_RUN_FIELDS: Mapping[str, Callable[[Any], object]] = {
    "steps": lambda steps: tuple(map(ReActStep.from_json, steps)),
    "history": History.from_json,
    "termination_reason": str,
}


def load_run_fields(fields: dict[str, Any], known: Mapping[str, FieldSpec]) -> None:
    """Decode the fields of a run among the fields of a result, in place. An output of such a name stands beside ``run_...``.

    ``known``: the fields of the agent, whose values in turns of the history get their types.

    >>> fields = {"steps": [], "history": {"messages": []}, "termination_reason": "submit"}
    >>> load_run_fields(fields, {})
    >>> fields["steps"], fields["termination_reason"]
    ((), 'submit')
    """
    for name, load in _RUN_FIELDS.items():
        name = f"run_{name}" if name in known and known[name].direction == "output" else name
        value = load(fields[name])
        fields[name] = typed_history(value, known) if isinstance(value, History) else value
