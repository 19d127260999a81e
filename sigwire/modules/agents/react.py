"""ReAct: ask, run the tools that the model calls, show it the results; until it submits the outputs.

One loop for every model: calls travel natively where the model has tools, as text elsewhere. The task stands once at
the start of the conversation, each turn adds two messages, and nothing before is rewritten (unless the context
overflows).

Every way out gives the declared outputs or raises, and says which way it was (``TerminationReason``):

    submit                     the model called ``submit`` with outputs that fit
    no_calls                   it answered in plain text: the outputs as the adapter reads them, or the single text output
    limit                      ``max_iters`` turns were used up
    parse_error                several turns running could not be read
    context_window_exceeded    the conversation no longer fits, with all but the latest results taken out

    cancelled                  an interrupt, a cancelled task, a reader who left the stream: always raised

Where the outputs are not there at the end, one more request extracts them from what was found (``extract=False``:
``AgentStopped``). Whatever is raised carries ``steps``, ``attempts``, the ``termination_reason`` and a ``history`` from
which a run can go on (``AgentRun.of(error)``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, ParamSpec, TypeAlias, TypeVar, overload

from sigwire.adapters.plan import Plan
from sigwire.adapters.prompts.layout import Layout
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import ToolDone
from sigwire.core.example import Prediction
from sigwire.core.json import Value
from sigwire.core.messages import Message
from sigwire.core.response import Attempt, Choice, Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import (
    AdapterParseError,
    AgentStopped,
    ConfigurationError,
    ContextWindowExceededError,
    EmptyResponse,
    InputError,
    LMError,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
    SignatureError,
)
from sigwire.modules.agents import conversation
from sigwire.modules.agents.submit import Submit
from sigwire.modules.agents.toolbox import OnError, Toolbox, ToolRun
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.inputs import InputReader
from sigwire.modules.module import StepsModule
from sigwire.modules.predict import Predict, attempts_of, default_adapter
from sigwire.modules.program_stream import EventPath, event_path_of, is_streamed, set_submit_listener, set_turn
from sigwire.settings import current
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.parser import caller_scope
from sigwire.signatures.signature import Signature, SignatureMeta, ensure_signature
from sigwire.signatures.types.history import History, Turn

__all__ = ["AgentRun", "ReAct", "ReActStep", "TerminationReason"]

P = ParamSpec("P")
S = TypeVar("S")

TerminationReason: TypeAlias = Literal[
    "submit", "no_calls", "limit", "parse_error", "context_window_exceeded", "cancelled"
]

_BAD_TURNS = 3  # unreadable answers in a row before the loop gives up


@dataclass(frozen=True, slots=True)
class ReActStep(Value):
    """One turn: what the model thought and called, what came back, what it cost.

    ``results`` are whole, also where the model saw a shortened text. ``error`` says why a turn could not be read.

    >>> step = ReActStep("Look it up.", (ToolCall("call_0", "find", {}),), (ToolResult("call_0", "find", "here"),))
    >>> ReActStep.from_json(step.to_json()) == step
    True
    """

    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How a run went, typed: ``AgentRun.of(prediction)``, or of an exception that ended one.

    A prediction has the same as fields ``steps``, ``history`` and ``termination_reason``; where an output has
    such a name, the field is ``run_steps`` and so on. ``termination_reason`` is ``None`` where something else than the loop
    ended the run: an ``LMError``, a refusal, a tool's exception (``on_tool_error="abort"``). ``attempts`` are all requests.
    """

    steps: tuple[ReActStep, ...]
    history: History
    termination_reason: TerminationReason | None = None
    attempts: tuple[Attempt, ...] = ()

    @classmethod
    def of(cls, result: object) -> AgentRun:
        """The run behind a prediction or an exception. Raises ``InputError`` where there was none."""
        held: dict[str, Any] = getattr(result, "__dict__", {})
        steps, history, reason = (
            held.get(f"run_{name}", held.get(name)) for name in ("steps", "history", "termination_reason")
        )
        if not isinstance(history, History) or steps is None:
            raise InputError(f"This {type(result).__name__} does not come from a ReAct run.")
        attempts = attempts_of(result) if isinstance(result, Prediction) else held.get("attempts", ())
        return cls(tuple(steps), history, reason, tuple(attempts))

    @property
    def usage(self) -> Usage:
        """The tokens of all requests."""
        return sum((attempt.usage for attempt in self.attempts), Usage())


class ReAct(StepsModule, Generic[P, S]):
    """Answer a signature with the help of tools.

    ``tools``: ``Tool`` objects, functions (sync or async), or a dict of them by name. ``max_iters``: how many turns
    the model may take; also per call. ``parallel``: how many calls of a turn run side by side.
    ``on_tool_error="abort"`` raises what a tool raises, instead of telling the model. ``extract``: get the outputs
    with one more request where a run ends without them; ``False`` raises ``AgentStopped``. ``tool_timeout`` (seconds)
    and ``max_output`` (characters shown of a result) apply to tools without their own.

    A call takes the signature's inputs by name, ``max_iters=`` and ``history=``: the ``History`` (or its JSON) of an
    earlier run, to go on from; with a history the inputs may be left out altogether. The result has the outputs and
    ``steps``, ``history``, ``termination_reason`` (typed: ``AgentRun.of``); ``attempts`` and ``usage``
    are those of all turns. Calls beside ``submit`` in one turn run first, and the outputs count only if none of them
    failed. Attributes for optimizers: ``react``, ``extract``.

    >>> from sigwire.lm.fake import FakeLM
    >>> def double(n: int) -> int:
    ...     return 2 * n
    >>> agent = ReAct("question -> answer: int", tools=[double])
    >>> agent.set_lm(FakeLM([ToolCall("a", "double", {"n": 21}), ToolCall("b", "submit", {"answer": 42})]))
    >>> result = agent(question="What is 21 doubled?")
    >>> result.answer, result.termination_reason, result.steps[0].results[0].content
    (42, 'submit', 42)
    """

    _predict_class: ClassVar[type[Predict[..., Any]]] = Predict
    _extract_class: ClassVar[type[ChainOfThought[..., Any]]] = ChainOfThought

    @overload
    def __init__(
        self: ReAct[..., Prediction],
        signature: str | Signature,
        tools: Any = (),
        max_iters: int = 20,
        *,
        parallel: int | bool = 8,
        on_tool_error: OnError = "answer",
        extract: bool = True,
        tool_timeout: float | None = None,
        max_output: int | None = 20_000,
        callbacks: Sequence[Any] | None = None,
        **config: Any,
    ) -> None: ...
    @overload
    def __init__(
        self,
        signature: Callable[P, S],
        tools: Any = (),
        max_iters: int = 20,
        *,
        parallel: int | bool = 8,
        on_tool_error: OnError = "answer",
        extract: bool = True,
        tool_timeout: float | None = None,
        max_output: int | None = 20_000,
        callbacks: Sequence[Any] | None = None,
        **config: Any,
    ) -> None: ...
    def __init__(
        self,
        signature: Any,
        tools: Any = (),
        max_iters: int = 20,
        *,
        parallel: int | bool = 8,
        on_tool_error: OnError = "answer",
        extract: bool = True,
        tool_timeout: float | None = None,
        max_output: int | None = 20_000,
        callbacks: Sequence[Any] | None = None,
        **config: Any,
    ) -> None:
        super().__init__(callbacks)
        scope = None if isinstance(signature, SignatureMeta) else caller_scope()
        self.signature: Any = ensure_signature(signature, scope=scope)
        self.max_iters = _turns(max_iters)
        self.extracts = extract
        self.toolbox = Toolbox(
            tools, parallel=parallel, timeout=tool_timeout, max_output=max_output, on_error=on_tool_error
        )
        spec = self.signature.spec
        _check(spec)
        self._names = _FieldNames.free_in(spec)
        self._asked_alone = _without_history(self.signature)
        self._reader = InputReader(self._asked_alone.spec)
        self._output_names = tuple(output.name for output in spec.outputs)
        self._submit = Submit(spec, taken=self.toolbox.tools)
        self._offered = (*self.toolbox.tools.values(), self._submit.tool)
        asks_tools = bool(self.toolbox.tools)
        asked = (
            _turn_signature(self.signature, self._names, self._submit)
            if asks_tools
            else _with_history(self.signature, self._names)
        )
        self.react: Predict[..., Any] = self._predict_class(asked, **config)
        self.extract: ChainOfThought[..., Any] = self._extract_class(
            _extraction_signature(self.signature, self._names), **config
        )

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools by name, the one for submitting among them."""
        return {**self.toolbox.tools, self._submit.name: self._submit.tool}

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        def __call__(
            self, *, history: History | Mapping[str, Any] | Sequence[Any], max_iters: int = ..., **inputs: Any
        ) -> S: ...
        @overload
        def __call__(self, *, max_iters: int, **inputs: Any) -> S: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

        @overload
        async def acall(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        async def acall(
            self, *, history: History | Mapping[str, Any] | Sequence[Any], max_iters: int = ..., **inputs: Any
        ) -> S: ...
        @overload
        async def acall(self, *, max_iters: int, **inputs: Any) -> S: ...
        async def acall(self, *args: Any, **kwargs: Any) -> Any: ...

    # --- the loop --------------------------------------------------------------------------------------

    def steps(self, *args: Any, **inputs: Any) -> Steps[Prediction]:
        """One run as a program."""
        if args:
            raise InputError(f"{type(self).__name__} takes its inputs by name: ReAct(...)(question=...).")
        given = None if "max_iters" in self.signature.spec.by_name else inputs.pop("max_iters", None)
        limit = self.max_iters if given is None else _turns(given)
        before = inputs.pop(self._names.history, None)
        return self._run(self._begin(inputs, before), limit)

    def _begin(self, inputs: dict[str, Any], before: Any) -> _RunState:
        """The conversation at its start: what was before, completed, and the task."""
        history = conversation.answer_open_calls(History.read(before)) if before is not None else History()
        history = conversation.without_outputs(history, self._output_names)
        if not inputs and len(history):
            inputs = conversation.latest_inputs(history, self._reader.names)
        else:
            check = current().warn_on_type_mismatch
            inputs = self._reader.read(type(self).__name__, dict(inputs), check_types=check)
            history = history.append(Turn(inputs))
        return _RunState(history, inputs)

    def _run(self, talk: _RunState, limit: int) -> Steps[Prediction]:
        try:
            if not self.toolbox.tools:
                return (yield from self._ask_plainly(talk))
            end = talk.end = yield from self._loop(talk, limit)
            outputs = end.outputs if end.outputs is not None else (yield from self._final_outputs(talk, end))
            return self._prediction(talk, end.reason, outputs)
        except BaseException as error:  # interrupts too: whatever ends a run, it can go on from here
            talk.close()
            _emit_runs(error, talk)
            raise

    def _loop(self, talk: _RunState, limit: int) -> Steps[_Termination]:
        before = set_turn(None)
        try:
            for number in range(limit):
                set_turn(number)
                end = yield from self._streamed_turn(talk) if is_streamed() else self._turn(talk)
                if end is not None:
                    return end
        finally:
            set_turn(before)
        return _Termination("limit", why=f"{limit} turns were used up")

    def _streamed_turn(self, talk: _RunState) -> Steps[_Termination | None]:
        """A turn in a stream: the outputs that it hands in are told like any fields."""
        from sigwire.modules.agents.submit_stream import SubmitStream

        handed = SubmitStream(self._submit, self._plain_plan().layout, event_path_of(self.react))
        set_submit_listener(self.react, handed)
        try:
            end = yield from self._turn(talk)
        finally:
            set_submit_listener(self.react, None)
        outputs = end.outputs if end is not None else None
        if rest := handed.unread() if outputs is None else handed.rest(outputs):
            yield Emit(*rest)
        return end

    def _turn(self, talk: _RunState) -> Steps[_Termination | None]:
        """Ask once and act on the answer; an end, or ``None`` to go on."""
        began = time.perf_counter()
        try:
            prediction = yield from self._ask(talk, self.react, {self._names.tools: self._offered})
        except ContextWindowExceededError as error:
            return _Termination("context_window_exceeded", why="the conversation no longer fits the model", cause=error)
        except _UNREADABLE as error:
            return talk.misread(error, time.perf_counter() - began)
        talk.strikes = 0
        choice: Choice = prediction.choice
        calls = conversation.with_fresh_ids(choice.tool_calls, talk.taken)
        talk.hear(choice, calls)
        if not calls:
            talk.step(choice, time.perf_counter() - began)
            return self._plain_end(choice)
        place = event_path_of(self) if is_streamed() else None
        record = talk.record if place is None else _EmittingRecorder(talk.record, place)
        runs = yield from self.toolbox.run(self._to_run(calls), record=record)
        end, results = self._settle(calls, runs)
        if place is not None:  # the submission's results: the tools' were told as they came
            yield Emit(*(_told(done, place) for done in results if done.call.name == self._submit.name))
        talk.answer([result.shown for result in results])
        talk.step(choice, time.perf_counter() - began, calls, tuple(result.result for result in results))
        return end

    def _ask(self, talk: _RunState, predictor: Any, more: dict[str, Any]) -> Steps[Any]:
        """Ask with the conversation; where it does not fit, with old results taken out, until nothing is left to take."""
        while True:
            try:
                asking: Steps[Any] = predictor.call_steps(**{**more, self._names.history: talk.history})
                prediction = yield from asking
            except ContextWindowExceededError as error:
                talk.attempts.append(Attempt("ask", error.model, error=error.code))
                shorter = conversation.shorten_history(talk.history)
                if shorter is None:
                    raise
                talk.history = shorter
            except ModelError as error:
                talk.attempts.extend(error.attempts)
                raise
            else:
                talk.attempts.extend(attempts_of(prediction))
                talk.last = prediction
                return prediction

    # --- ends ------------------------------------------------------------------------------------------

    def _to_run(self, calls: Iterable[ToolCall]) -> list[ToolCall]:
        return [call for call in calls if call.name != self._submit.name]

    def _settle(
        self, calls: tuple[ToolCall, ...], runs: tuple[ToolRun, ...]
    ) -> tuple[_Termination | None, list[ToolRun]]:
        """The results of all calls in order, the submission's among them, and the end if it counts."""
        failed = next((done.call.name for done in runs if done.result.is_error), None)
        waiting = iter(runs)
        end: _Termination | None = None
        results: list[ToolRun] = []
        for call in calls:
            if call.name != self._submit.name:
                results.append(next(waiting))
                continue
            submission = self._submit.read(call)
            if end is not None:
                content, bad = "Rejected: the output fields are already submitted.", True
            elif submission.outputs is None:
                content, bad = submission.problem, True
            elif failed is not None:
                content, bad = f"Rejected: {failed} failed in this turn. Read its result, then submit again.", True
            else:
                content, bad = "Completed.", False
                end = _Termination("submit", submission.outputs)
            result = ToolResult(call.id, call.name, content, bad)
            results.append(ToolRun(call, result, result))
        return end, results

    def _plain_end(self, choice: Choice) -> _Termination:
        """The end of a run that the model answered in plain text: as the adapter lays outputs out, or, where there is just one
        output, a text, as that text.
        """
        why = "the model answered in plain text"
        outputs = self.signature.spec.outputs
        plan = self._plain_plan()
        if _is_laid_out(plan.layout, choice.text):
            return _Termination("no_calls", _parsed(plan, choice), why=why)
        if len(outputs) != 1 or outputs[0].annotation is not str or not choice.text.strip():
            return _Termination("no_calls", why=why)
        try:
            return _Termination("no_calls", {outputs[0].name: outputs[0].adapter.validate_python(choice.text.strip())})
        except ValueError:  # a text that the field's constraints refuse
            return _Termination("no_calls", why=why)

    def _plain_plan(self) -> Plan:
        """How the adapter would have the outputs written, where no tools are offered."""
        adapter = current().adapter or default_adapter()
        return adapter.plan(self._asked_alone, Capabilities())

    def _final_outputs(self, talk: _RunState, end: _Termination) -> Steps[dict[str, Any]]:
        """Get the outputs from what was found, with one more request, or stop."""
        if not self.extracts:
            raise self._stopped(talk, end, "extract=True would get them with one more request") from end.cause
        while True:
            trajectory = {self._names.trajectory: conversation.as_text(talk.since_task()) or "No tool was called."}
            try:
                prediction = yield from self.extract.call_steps(**talk.inputs, **trajectory)
                break
            except ContextWindowExceededError as error:
                shorter = conversation.shorten_history(talk.history)
                if shorter is None:
                    raise self._too_long(talk, error) from error
                talk.history = shorter
            except ModelError as error:
                talk.attempts.extend(error.attempts)
                raise self._stopped(talk, end, f"and could not be extracted: {error}") from error
        talk.attempts.extend(replace(attempt, purpose="extract") for attempt in attempts_of(prediction))
        talk.last = prediction
        outputs = dict(prediction.__dict__)
        declared = {name: value for name, value in outputs.items() if name in self._output_names}
        talk.add(Message.assistant(conversation.answer_text(declared)))
        return outputs

    def _stopped(self, talk: _RunState, end: _Termination, hint: str) -> AgentStopped:
        return AgentStopped(
            f"The run ended without its outputs ({', '.join(self._output_names)}): {end.why}; {hint}. "
            "error.steps has what was done; call again with history=error.history to go on.",
            reason=end.reason,
            steps=tuple(talk.steps),
            history=talk.history,
        )

    def _too_long(self, talk: _RunState, error: ContextWindowExceededError) -> ContextWindowExceededError:
        task = len(conversation.as_text([Turn(talk.inputs)]))
        whole = len(conversation.as_text(talk.history))
        return ContextWindowExceededError(
            f"The conversation of {len(talk.history)} turns and {whole} characters (the task: {task}) does not fit the model, "
            "even with all but the latest tool results taken out. Use a model that reads more, or set max_output.",
            model=error.model,
            provider=error.provider,
        )

    def _ask_plainly(self, talk: _RunState) -> Steps[Prediction]:
        """A run without tools is a plain prediction."""
        prediction = yield from self._ask(talk, self.react, {})
        outputs = dict(prediction.__dict__)
        talk.hear(prediction.choice, ())
        return self._prediction(talk, "no_calls", outputs)

    def _prediction(self, talk: _RunState, reason: TerminationReason, outputs: dict[str, Any]) -> Prediction:
        run = AgentRun(tuple(talk.steps), talk.history, reason, tuple(talk.attempts))
        fields = dict(outputs)
        for name, value in self._run_fields(run).items():
            fields[f"run_{name}" if name in outputs else name] = value
        last = talk.last
        return Prediction.make(
            fields,
            signature=self.signature,
            response=last.response,
            choice=last.choice,
            repairs=last.repairs,
            mode=last.mode,
            attempts=run.attempts,
        )

    def _run_fields(self, run: AgentRun) -> dict[str, Any]:
        """Return the fields of a prediction that describe the run."""
        return {"steps": run.steps, "history": run.history, "termination_reason": run.termination_reason}


def _is_laid_out(layout: Layout, text: str) -> bool:
    """Whether a text holds outputs in the form that an adapter teaches, anywhere in it."""
    marks = (layout.opening(name).strip() for name in layout.codecs)
    return layout.starts_outputs(text.lstrip()) or any(mark in text for mark in marks)


def _parsed(plan: Plan, choice: Choice) -> dict[str, Any] | None:
    """The outputs in an answer; ``None`` where they cannot be read."""
    try:
        return plan.parse(choice).fields
    except ModelError:
        return None


def _turns(given: Any) -> int:
    """How many turns a run may take, as it was given."""
    if not isinstance(given, int) or given < 0:
        raise ConfigurationError(f"max_iters is a number of turns, 0 or more, not {given!r} (ReAct).")
    return given


class _EmittingRecorder:
    """A record of tool runs that tells a stream of each as it is done."""

    def __init__(self, record: list[ToolRun], place: EventPath) -> None:
        self._record, self._place = record, place

    def append(self, done: ToolRun, /) -> None:
        self._record.append(done)
        Emit(_told(done, self._place)).run()


def _told(done: ToolRun, place: EventPath) -> ToolDone:
    return ToolDone(done.shown, path=place.path, turn=place.turn)


def _emit_runs(error: BaseException, talk: _RunState) -> None:
    """Put what was done on an error that ends a run."""
    reason = talk.end and talk.end.reason
    failed = error.attempts if isinstance(error, LMError) else ()  # a ModelError's were counted when it was caught
    told: dict[str, Any] = {
        "steps": tuple(talk.steps),
        "history": talk.history,
        "termination_reason": reason if isinstance(error, Exception) else "cancelled",
        "attempts": (*talk.attempts, *failed),
    }
    for name, value in told.items():
        with suppress(Exception):  # a user's error may refuse attributes
            setattr(error, name, value)


_UNREADABLE = (AdapterParseError, EmptyResponse, MalformedToolCall, OutputTruncated)


@dataclass(frozen=True, slots=True)
class _Termination:
    """How the loop ended: with outputs, or why without."""

    reason: TerminationReason
    outputs: dict[str, Any] | None = None
    why: str = ""
    cause: BaseException | None = None


class _RunState:
    """One run as it goes: the conversation, the steps, and calls that still wait for results."""

    def __init__(self, history: History, inputs: dict[str, Any]) -> None:
        self.history = history
        self.inputs = inputs
        self.steps: list[ReActStep] = []
        self.attempts: list[Attempt] = []
        self.taken = conversation.call_ids(history)
        self.strikes = 0
        self.last: Any = None
        self.end: _Termination | None = None
        self.record: list[ToolRun] = []
        self._heard = Choice()
        self._waiting: tuple[ToolCall, ...] = ()
        self._counted = 0

    def add(self, message: Message) -> None:
        self.history = self.history.append(message)

    def hear(self, choice: Choice, calls: tuple[ToolCall, ...]) -> None:
        """Take in what the model said."""
        self.record, self._heard, self._waiting = [], choice, calls
        self.taken.update(call.id for call in calls)
        message = conversation.assistant_message(choice, calls)
        if message.parts:
            self.add(message)

    def answer(self, results: list[ToolResult]) -> None:
        """Take in the results of all calls that wait."""
        self.add(Message.tool(*results))
        self._waiting = ()

    def step(
        self,
        choice: Choice,
        seconds: float,
        calls: tuple[ToolCall, ...] = (),
        results: tuple[ToolResult, ...] = (),
        error: str | None = None,
    ) -> None:
        """Note a turn."""
        thought = choice.text or choice.reasoning or ""
        self.steps.append(ReActStep(thought, calls, results, self._new_usage(), seconds, error))

    def _new_usage(self) -> Usage:
        """The usage of the attempts since the last step."""
        new, self._counted = self.attempts[self._counted :], len(self.attempts)
        return new[0].usage if len(new) == 1 else sum((attempt.usage for attempt in new), Usage())

    def misread(self, error: ModelError, seconds: float) -> _Termination | None:
        """Tell the model what was wrong with its answer; an end after several in a row."""
        choice = error.choice or Choice()
        if choice.text.strip():
            self.add(Message.assistant(choice.text))
        problem = _PROBLEMS.get(type(error), error.message.splitlines()[0])
        self.add(Message.user(f"Your reply is invalid: {problem} Call a tool or submit the output fields."))
        self.step(choice, seconds, error=f"{type(error).__name__}: {problem}")
        self.strikes += 1
        if self.strikes < _BAD_TURNS:
            return None
        return _Termination(
            "parse_error", why=f"{self.strikes} answers in a row could not be read ({problem})", cause=error
        )

    def since_task(self) -> Sequence[Any]:
        """The turns after the latest inputs."""
        turns = self.history.messages
        start = next((at for at in range(len(turns) - 1, -1, -1) if isinstance(turns[at], Turn)), -1)
        return turns[start + 1 :]

    def close(self) -> None:
        """Give every call that still waits a result, so that the history can go on from here; note the broken turn."""
        calls = self._waiting
        if not calls:
            return
        done = {run.call.id: run for run in self.record}
        lost = {call.id: conversation.interrupted_result(call) for call in calls if call.id not in done}
        self.answer([lost[call.id] if call.id in lost else done[call.id].shown for call in calls])
        results = tuple(lost[call.id] if call.id in lost else done[call.id].result for call in calls)
        self.step(self._heard, 0.0, calls, results, error="interrupted")


_PROBLEMS: Mapping[type[ModelError], str] = {
    EmptyResponse: "it is empty.",
    OutputTruncated: "it exceeds the token limit. Write a shorter reply.",
    MalformedToolCall: "the tool call is malformed.",
}


# --- the signatures of the two predictors ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FieldNames:
    """Names for our own fields that the signature has no other use for."""

    tools: str
    calls: str
    history: str
    trajectory: str

    @classmethod
    def free_in(cls, spec: SignatureSpec) -> _FieldNames:
        def free(name: str) -> str:
            while name in spec.by_name:
                name += "_"
            return name

        history = spec.history_field.name if spec.history_field else free("history")
        return cls(free("tools"), free("tool_calls"), history, free("trajectory"))


def _check(spec: SignatureSpec) -> None:
    if spec.tools_field or spec.calls_field:
        name = (spec.calls_field or spec.tools_field).name  # type: ignore[union-attr]
        raise SignatureError(
            f"{spec.name} has the field {name!r}, but ReAct offers tools and reads their calls itself. "
            "Leave it out of the signature and pass ReAct(signature, tools=[...])."
        )
    if not spec.outputs:
        raise SignatureError(f"{spec.name} has no outputs, so a run of ReAct could not end. Declare at least one.")


def _with_history(signature: Any, names: _FieldNames) -> Any:
    """The signature with a history."""
    if signature.spec.history_field:
        return signature
    return signature.append(names.history, InputField(), History)


def _turn_signature(signature: Any, names: _FieldNames, submit: Submit) -> Any:
    """Inputs, tools and history to tool calls: what each turn asks."""
    acting = _with_history(signature, names)
    for spec in signature.spec.outputs:
        acting = acting.delete(spec.name)
    acting = acting.append(names.tools, InputField(), list[Tool]).append(names.calls, OutputField(), ToolCalls)
    outputs = ", ".join(f"`{spec.name}`" for spec in signature.spec.outputs)
    return acting.with_instructions(
        f"{signature.spec.instructions}\n\n"
        "Work in turns. In each turn, call the tools you need next. Make independent tool calls in the same turn. You get "
        "the results before your next turn. If a result is an error, correct the tool call.\n"
        f"When you know all output fields ({outputs}), call `{submit.name}` with their values."
    )


def _without_history(signature: Any) -> Any:
    field = signature.spec.history_field
    return signature if field is None else signature.delete(field.name)


def _extraction_signature(signature: Any, names: _FieldNames) -> Any:
    """Inputs and what was found to the outputs: what is asked where a run ends without them."""
    described = InputField(desc="the tool calls made so far and their results")
    return (
        _without_history(signature)
        .append(names.trajectory, described, str)
        .with_instructions(
            f"{signature.spec.instructions}\n\n"
            f"`{names.trajectory}` lists the tool calls made for this task and their results. Write the output fields from "
            "these results. If the results are incomplete, give the best value you can."
        )
    )
