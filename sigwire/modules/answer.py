"""One call of a predictor: ask, normalize, parse; again with the errors while re-asks are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from sigwire.core.example import Prediction
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Choice, LMWarning, Response
from sigwire.core.tools.tool import Tool
from sigwire.effects.collecting import collector
from sigwire.effects.performing import performed
from sigwire.effects.steps import Steps
from sigwire.errors import AdapterParseError, BudgetSpent, EmptyResponse, LMError, MalformedToolCall, ModelError
from sigwire.modules.ask import Ask, resolve_lm
from sigwire.modules.program_stream import EventReader, submit_listener_of
from sigwire.observe.callbacks import watched_value
from sigwire.observe.reports import Leaf, failed_attempts, leaf_of
from sigwire.observe.usage import record_warnings

if TYPE_CHECKING:
    from typing import TypeGuard

    from typing_extensions import TypeIs

    from sigwire.adapters.plan import FollowUp, ParsedChoice, Plan
    from sigwire.adapters.streaming import FieldReader
    from sigwire.core.record import Meta
    from sigwire.lm.base import LanguageModel
    from sigwire.modules.deciding import Deciding
    from sigwire.modules.tool_texts import ToolOverlay

__all__ = ["CallContext", "answer_steps", "collector_around", "meta_of"]

collector_around: Callable[[], object] = collector.get
"""Return the collector of the running code, ``None`` if nothing collects."""
_Purpose: TypeAlias = Literal["ask", "repair", "extract", "summarize", "retry"]


@dataclass(slots=True, eq=False)
class CallContext:
    """The parts of one call that all its requests share."""

    module: object
    lm: LanguageModel
    plan: Plan
    tools: tuple[Tool, ...] = ()
    used_ids: Iterable[str] = ()
    overlay: ToolOverlay | None = None
    deciding: Deciding | None = None
    started: float = field(default_factory=perf_counter)
    attempts: list[Attempt] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]  # list["Attempt"]() is slow
    leaf: Leaf | None = None
    fallback: Callable[[], tuple[CallContext, Request]] | None = None  # the call with another adapter, and its request
    warning: LMWarning | None = None  # about the call, for the response of its result
    _field_reader: FieldReader | None = None

    def reader(self, path: str, turn: int | None) -> EventReader:
        """Return a new reader of a streamed response."""
        from sigwire.adapters.streaming import FieldReader

        self._field_reader = FieldReader(self.plan, self.tools, path, turn, self.used_ids)
        reader = self._field_reader if self.overlay is None else self.overlay.reader(self._field_reader)
        if self.deciding is not None:
            reader = self.deciding.held(reader)
        listener = submit_listener_of(self.module)
        return reader if listener is None else listener(reader)

    def add_attempts(self, response: Response, purpose: _Purpose) -> None:
        """Add the attempts of a response. The model does not know their purpose and reports "ask"."""
        attempts = response.attempts
        if not attempts and response.cache != "hit":
            attempts = (Attempt(purpose, self.lm.model, response.usage),)
        if purpose != "ask":
            attempts = tuple(replace(each, purpose=purpose) if each.purpose == "ask" else each for each in attempts)
        self.attempts.extend(attempts)

    def begin(self) -> None:
        """Take the place of the call in the report of the call around it, if there is one."""
        self.leaf = leaf_of(self.module)

    def fail(self, error: BaseException) -> None:
        """Add the exchanges of the question that an error ended, and report them. The error gets those of all questions."""
        before = tuple(self.attempts)
        made = before if isinstance(error, ModelError) else (*before, *failed_attempts(error, self.lm.model))
        if self.leaf is not None:
            self.leaf.fail(error, made)
        if isinstance(error, LMError | BudgetSpent):
            error.attempts = made

    def normalize(self, response: Response, checks_calls: bool) -> Response:
        """Normalize a response; ``checks_calls`` marks the calls that do not fit their tool, for a re-ask."""
        response = self.plan.normalize(response, self.tools, taken=self.used_ids)
        return self.plan.check_calls(response, self.tools) if checks_calls else response

    def read(self, number: int, choice: Choice) -> _Reading:
        """Parse a choice of the last response; return its fields, a second request, or the error."""
        plan, reader = self.plan, self._field_reader
        try:
            if (follow_up := plan.follow_up(choice)) is not None:
                return follow_up
            facts = {"signature": plan.setup.signature, "choice": choice}
            parse = plan.parse if reader is None else partial(reader.parse, number)
            return watched_value("adapter_parse", plan.setup.adapter, facts, parse, choice)
        except ModelError as error:
            return error

    def reask(self, request: Request, response: Response, failure: ModelError | None) -> Request:
        """Return the request that sends the first choice back with its errors."""
        self.used_ids = (*self.used_ids, *(call.id for choice in response.choices for call in choice.tool_calls))
        return self.plan.reask(request, next(iter(response.choices), Choice()), failure)


_Outcome: TypeAlias = "ParsedChoice | ModelError"
_Reading: TypeAlias = "_Outcome | FollowUp"

_REASKABLE = (AdapterParseError, EmptyResponse, MalformedToolCall)


def answer_steps(context: CallContext, request: Request, reasks: int, purpose: _Purpose = "ask") -> Steps[Prediction]:
    """Ask until the response can be parsed or all re-asks are used. Each re-ask has only the last failure."""
    checks_calls, asked = reasks > 0, request
    earlier: tuple[Choice, ...] = ()
    while True:
        response = yield performed(Ask(context.lm, asked, context))
        context.add_attempts(response, purpose)
        response = context.normalize(response, checks_calls)
        readings = [context.read(number, choice) for number, choice in enumerate(response.choices or (Choice(),))]
        failure = _first_failure(readings)
        if failure is None and not (reasks > 0 and _has_wrong_calls(response)):
            read = readings if _are_outcomes(readings) else (yield from _extracted(context, readings, reasks))
            if context.deciding is not None:
                return (yield from _finished(context, response, read))
            return _prediction(context, response, read)
        if failure is not None and (reasks <= 0 or not isinstance(failure, _REASKABLE)):
            if context.deciding is not None and (fields := context.deciding.forgive(failure)) is not None:
                return (yield from _finished(context, response, _forgiven(readings, fields)))
            if context.fallback is not None and isinstance(failure, _REASKABLE):
                return (yield from _fallback_steps(*context.fallback(), failure))
            failure.attempts = tuple(context.attempts)
            failure.answers = (*earlier, *failure.answers)
            raise failure
        earlier = (*earlier, *response.choices[:1])
        asked, reasks, purpose = context.reask(request, response, failure), reasks - 1, "repair"


def _finished(context: CallContext, response: Response, outcomes: Sequence[_Outcome]) -> Steps[Prediction]:
    """Return the prediction, and emit the outputs that were held back in its stream until they are decided."""
    prediction = _prediction(context, response, outcomes)
    deciding = context.deciding
    if deciding is not None and deciding.holder is not None:
        number = next(at for at, outcome in enumerate(outcomes) if not isinstance(outcome, ModelError))
        if events := deciding.released(context.plan, prediction.__dict__, number):
            from sigwire.effects.emitting import Emit

            yield Emit(*events)
    return prediction


def _forgiven(readings: Sequence[_Reading], fields: dict[str, object]) -> list[_Outcome]:
    """Return the outcomes of an answer that lacks nothing but its probabilities."""
    from sigwire.adapters.plan import ParsedChoice

    return [ParsedChoice(fields), *(each for each in readings[1:] if isinstance(each, ModelError))]


def _fallback_steps(context: CallContext, request: Request, failure: ModelError) -> Steps[Prediction]:
    """Make one more request with another adapter, after an answer that could not be parsed."""
    try:
        return (yield from answer_steps(context, request, 0, "repair"))
    except _REASKABLE as error:
        raise error from failure


def _first_failure(readings: Sequence[_Reading]) -> ModelError | None:
    first = readings[0]
    if not isinstance(first, ModelError) or not all(isinstance(reading, ModelError) for reading in readings):
        return None
    return first


def _has_wrong_calls(response: Response) -> bool:
    return any(call.error is not None for choice in response.choices for call in choice.tool_calls)


def _prediction(context: CallContext, response: Response, outcomes: Sequence[_Outcome]) -> Prediction:
    """Return the prediction of the first parsed choice; the completions are all parsed choices."""
    overlay = context.overlay
    response = response if overlay is None else overlay.response(response)
    if context.warning is not None:
        record_warnings(context.warning)
        response = response.with_warnings(context.warning)
    rows: list[dict[str, object]] = []
    first: tuple[Choice, ParsedChoice] | None = None
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, ModelError):
            detail = f"choice {number} was left out: {outcome.message.splitlines()[0]}"
            warning = LMWarning("choices", detail)
            record_warnings(warning)
            response = response.with_warnings(warning)
            continue
        first = first or (response.choices[number], outcome)
        rows.append(outcome.fields if overlay is None else overlay.fields(outcome.fields))
    assert first is not None  # ``answer_steps`` raises the error if no choice could be parsed
    choice, parsed = first
    prediction = Prediction.make(
        rows[0],
        signature=context.plan.setup.signature,
        response=response,
        choice=choice,
        repairs=parsed.repairs,
        mode=_sent_mode(response) or context.plan.setup.mode if response.warnings else context.plan.setup.mode,
        attempts=tuple(context.attempts),
        completions=rows if len(outcomes) > 1 else None,
        made_by=type(context.module).__name__,
        seconds=perf_counter() - context.started,
    )
    if context.deciding is None and choice.evidence is None:
        return prediction
    from sigwire.modules.deciding import decided_prediction, measured_only

    deciding = context.deciding or measured_only(context.plan.setup.signature)
    read = [outcome for outcome in outcomes if not isinstance(outcome, ModelError)]
    return decided_prediction(deciding, context.plan, prediction, read, rows)


def _sent_mode(response: Response) -> str | None:
    """Return the mode that the provider was sent in place of the plan's."""
    return next((warning.sent for warning in response.warnings if warning.sent), None)


def _are_outcomes(readings: Sequence[_Reading]) -> TypeGuard[Sequence[_Outcome]]:
    for reading in readings:  # noqa: SIM110  # a generator would cost each call a frame
        if not isinstance(reading, ModelError) and _is_follow_up(reading):
            return False
    return True


def _is_follow_up(reading: ParsedChoice | FollowUp) -> TypeIs[FollowUp]:
    return hasattr(reading, "request")  # importing FollowUp would load the adapters when a predictor is declared


def _extracted(context: CallContext, readings: Sequence[_Reading], reasks: int) -> Steps[list[_Outcome]]:
    outcomes: list[_Outcome] = []
    for reading in readings:
        if not isinstance(reading, ModelError) and _is_follow_up(reading):
            reading = yield from _extracted_fields(context, reading, reasks)
        outcomes.append(reading)
    return outcomes


def _extracted_fields(context: CallContext, follow_up: FollowUp, reasks: int) -> Steps[ParsedChoice]:
    """Make the second request of a two-step adapter: fields from free text."""
    lm = context.lm if follow_up.lm is None else resolve_lm(follow_up.lm, "the second request of the adapter")
    second = CallContext(context.module, lm, follow_up.plan, attempts=context.attempts)
    request, deciding = follow_up.request, context.deciding
    if deciding is not None and deciding.source in ("logprob", "measured"):
        second.deciding, request = deciding.without_rules(), deciding.second_request(request)
    prediction = yield from answer_steps(second, request, reasks, "extract")
    from sigwire.adapters.plan import ParsedChoice

    meta = meta_of(prediction)
    return ParsedChoice(prediction.__dict__, tuple(meta.repairs), meta.evidence)


def meta_of(prediction: object) -> Meta:
    """Return the metadata of a prediction. Its attributes may be hidden by fields of their names."""
    meta: Meta = cast(Any, prediction)._meta
    return meta
