"""ReAct: ask, run the tools that the model calls, add the results to the conversation; until the model submits the outputs.

Every model runs in one loop: tool calls are native if the model supports tools, and text otherwise. The task is the first
message of the conversation. Each turn appends two messages and rewrites none. A conversation that nears the window of its model
is folded: its turns stay, and requests leave the oldest out (``compaction``).

A run returns the declared outputs or raises, with one of these reasons (``TerminationReason``):

    submit                     the model called ``submit`` with valid outputs
    no_calls                   the model answered in plain text: parsed by the adapter, or the single text output
    limit                      ``max_iters`` turns, or ``max_calls`` calls, were used
    repeat                     the model repeated a call that always gave the same result (``max_repeats``)
    approval                   a call waits for a decision: ``ApprovalNeeded`` is raised, and ``resume`` continues the run
    parse_error                several responses in a row could not be parsed
    context_window_exceeded    the task and the latest turn alone do not fit the model

    cancelled                  an interrupt, a cancelled task, a closed stream: always raised

If a run ends without outputs, one more request extracts them from the tool results (``extract=False``: ``AgentStopped``).
Every raised error has ``steps``, ``attempts``, the ``termination_reason`` and a ``history`` from which another run can
continue (``AgentRun.of(error)``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, overload

from sigwire.core.example import Prediction
from sigwire.core.tools.tool import Approve, OnError, Tool
from sigwire.effects.steps import Steps
from sigwire.errors import (
    AdapterParseError,
    ContextWindowExceededError,
    EmptyResponse,
    InputError,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
)
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules.agents.approval.limits import CallRules, check_turns
from sigwire.modules.agents.approval.resuming import (
    Resumption,
    begin_run,
    decided_result,
    give_decided,
    keep_decided,
    resumption_of,
    state_secret,
    suspend,
)
from sigwire.modules.agents.large_results.lookup import reader_name
from sigwire.modules.agents.plain_answer import plain_end, plan_of_task
from sigwire.modules.agents.react_signatures import AgentSignatures
from sigwire.modules.agents.room import (
    OnTurn,
    Room,
    ask_in_room,
    free_name,
    new_summary,
    prepare_summary,
    read_compaction,
)
from sigwire.modules.agents.run import AgentRun, Termination, TerminationReason, load_run_fields
from sigwire.modules.agents.run_state import RunState
from sigwire.modules.agents.starting import asked_with_tools, check_search, set_up, start_run
from sigwire.modules.agents.submit import Submit
from sigwire.modules.agents.toolbox import Toolbox, ToolSearchOption, ToolsLike
from sigwire.modules.agents.turns import TurnSteps, run_calls, run_turns
from sigwire.modules.ask import check_config, resolve_lm
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import ReadsInputs
from sigwire.modules.predict import P, Predict, PredictorClasses, S, signature_of
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream, is_streamed
from sigwire.signatures.signature import Signature, SignatureClass

if TYPE_CHECKING:
    from sigwire.core.record import FieldValues
    from sigwire.modules.agents.session import ChatSession
    from sigwire.modules.context.compaction import Compaction
    from sigwire.signatures.types.history import History

__all__ = ["UNREADABLE", "ReAct"]

UNREADABLE = (AdapterParseError, EmptyResponse, MalformedToolCall, OutputTruncated)


class ReAct(ReadsInputs, Generic[P, S]):
    """Answer a signature with the help of tools.

    ``tools``: ``Tool`` objects, functions (sync or async), or a dict of them by name. ``max_iters``: the most turns of a run;
    also per call. ``parallel``: how many calls of a turn run at once. ``extract``: get missing outputs with one more request;
    ``False`` raises ``AgentStopped``. ``tool_timeout`` (seconds) and ``max_output`` (characters of a result that models see)
    are defaults for tools without these options. The model reads the rest of a larger result with one more tool
    (``large_results="cut"``: never). ``approve`` is that of ``Tool``, for tools without one. ``max_calls``: the most tool calls
    of a run. A call that gave the same result ``max_repeats`` times in a row is not run again (``None``: no such limit).
    ``tool_search``: of many tools only some are sent, and the model finds the others by the provider's search or by the tool
    ``find_tools``. ``"auto"``: if there are more than 30, if one has ``defer=True``, or if their schemas need more than a tenth
    of a known window. A number: how many that fit the inputs are sent first (20). An ``Embedder``: tools are found by vectors.
    ``secret`` signs the states of ``ApprovalNeeded``, and only states that it signed are resumed.

    ``compaction``: what requests leave out when the conversation nears the window of the model: a ``Compaction``, ``True``
    for its defaults, ``False`` for nothing. ``history`` always keeps all turns. ``on_turn``, sync or async, gets the
    ``History`` that the next request sends, and may return another one for that request alone. It must depend on nothing
    else.

    ``on_tool_error``: whether the model reads about the exception of a tool, or the run ends with it. ``None``: the run ends if
    no model can solve the problem (``sigwire.errors.ends_run``). ``"answer"``: the model reads all but errors of the run, such
    as a spent budget. ``"abort"``: all but ``RetryTool`` and ``ToolFailed`` are raised. A function, sync or async, gets the
    exception and returns the text for the model, or ``None`` for the default; what it raises is raised. It does not get errors
    of the run and timeouts.

    A call takes the signature's inputs by name, ``max_iters=`` and ``history=``: the ``History`` (or its JSON) of an earlier
    run, from which this run continues; with a history all inputs may be omitted. The result has the outputs and ``steps``,
    ``history``, ``termination_reason`` (typed: ``AgentRun.of``); ``attempts`` and ``usage`` are those of all turns. If a turn
    calls ``submit`` and other tools, these run first, and the outputs are rejected if one of them failed. Attributes for
    optimizers: ``react``, ``extract``, and ``summary`` if ``compaction`` is a ``Compaction`` that asks for summaries.

    >>> from sigwire.core.tools.calls import ToolCall
    >>> from sigwire.lm.fake import FakeLM
    >>> def double(n: int) -> int:
    ...     return 2 * n
    >>> agent = ReAct("question -> answer: int", tools=[double])
    >>> agent.set_lm(FakeLM([ToolCall("a", "double", {"n": 21}), ToolCall("b", "submit", {"answer": 42})]))
    >>> result = agent(question="What is 21 doubled?")
    >>> result.answer, result.termination_reason, result.steps[0].results[0].content
    (42, 'submit', 42)
    """

    fixed_methods: ClassVar[Mapping[str, str]] = {"tools": "pass tools to the constructor"}
    resumes: ClassVar[bool] = True
    takes_tools: ClassVar[bool] = True  # its requests have the tools
    secret: bytes | None = None
    predictor_classes: ClassVar[PredictorClasses] = PredictorClasses(Predict, ChainOfThought)
    """The classes of ``react`` and ``extract``; a subclass may have others."""
    takes_plain_text: ClassVar[bool] = True
    """Whether a plain answer is the only text output of the signature. Without, such an answer has no outputs."""
    _hooks: ClassVar[Sequence[str]] = ("predictor_classes", "run_fields", "takes_plain_text", "turn_steps")

    def __init__(
        self,
        signature: str | Signature | Callable[P, S],
        tools: ToolsLike = (),
        max_iters: int = 20,
        *,
        parallel: int | bool = 8,
        on_tool_error: OnError | None = None,
        extract: bool = True,
        tool_timeout: float | None = None,
        max_output: int | None = 20_000,
        large_results: Literal["reference", "cut"] = "reference",
        approve: Approve | None = None,
        max_calls: int | None = None,
        max_repeats: int | None = 3,
        tool_search: ToolSearchOption = "auto",
        secret: str | bytes | None = None,
        compaction: Compaction | bool = True,
        on_turn: OnTurn | None = None,
        callbacks: Sequence[object] | None = None,
        **config: Any,
    ) -> None:
        config = dict(wrap_secrets(config))
        super().__init__(callbacks)
        check_config(ReAct, config, config.get("lm"))
        self.compaction, self.on_turn = read_compaction(compaction, on_turn, "creating a ReAct"), on_turn
        self.signature: SignatureClass = signature_of(signature)
        self.max_iters = check_turns(max_iters)
        self.extracts = extract
        self.toolbox = Toolbox(
            tools, parallel=parallel, timeout=tool_timeout, max_output=max_output, on_error=on_tool_error
        )
        self.toolbox.rules = CallRules(approve, max_calls, max_repeats).checked("creating a ReAct")
        self.tool_search: ToolSearchOption = check_search(tool_search, self.toolbox.tools.values(), "creating a ReAct")
        if secret is not None:
            self.secret = state_secret(secret)
        self._signatures = signatures = AgentSignatures(self.signature)
        self.history_input = signatures.history
        self._reader = signatures.reader()
        self._output_names = signatures.outputs
        self._submit = Submit(self.signature.spec, taken=self.toolbox.tools)
        self.toolbox.reader = reader_name(large_results, taken=self.tools)
        self._offered = (*self.toolbox.tools.values(), self._submit.tool) if self.toolbox.tools else ()
        asked = signatures.turn(self._submit.name) if self._offered else signatures.with_history
        self.react: Predict[..., Any] = type(self).predictor_classes.ask(asked, **config)
        self.extract: ChainOfThought[..., Any] = type(self).predictor_classes.extract(signatures.extraction(), **config)
        prepare_summary(self)

    @cached_property
    def summary(self) -> Any:
        """The predictor of summaries, made at first use; at once if ``compaction`` is a ``Compaction`` that uses it."""
        return new_summary()

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools by name, including the submit tool."""
        return {**self.toolbox.tools, self._submit.name: self._submit.tool}

    def loop_options(self) -> Mapping[str, object]:
        """Return the options of a loop of a subclass, which files of whole programs have."""
        return {}

    def session(self, conversation: History | FieldValues | Sequence[object] = ()) -> ChatSession:
        """Return a conversation with this agent, from the turns of an earlier one."""
        from sigwire.modules.agents.session import ChatSession  # agents without one do not load it

        return ChatSession(self, conversation)

    def names_for_search(self) -> tuple[str, str]:
        """Return the names of the tools that search and read what requests leave out; "" for an agent without tools.

        Code has no tool that reads: its results have no id.
        """
        if not self._offered:
            return "", ""
        taken = self._names_in_use()
        reader = (self.toolbox.reader or reader_name("reference", taken)) if self.takes_tools else ""
        return free_name("search_conversation", {*taken, reader}), reader

    def _names_in_use(self) -> set[str]:
        return {*self.tools}

    def resume(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> Any:
        """Continue a run from ``error.state`` of ``ApprovalNeeded``, blocking; return the result of the whole run.

        ``decisions`` has one for each id of ``error.pending``: ``"approve"``, ``"deny"``, ``{"deny": "why"}`` or
        ``{"edit": {arguments}}``. ``claim`` gets the id of the state, and returns True for its first use only; without it,
        a state that is resumed twice runs its calls twice. The agent must have the same signature and tools. Raises
        ``StateError`` for a state that does not fit or was claimed, ``InputError`` for decisions that are missing, unknown
        or invalid, and ``ApprovalNeeded`` if another call waits.

        >>> from sigwire.core.tools.calls import ToolCall
        >>> from sigwire.lm.fake import FakeLM
        >>> from sigwire.journal.errors import ApprovalNeeded
        >>> def pay(cents: int) -> str:
        ...     return f"paid {cents}"
        >>> agent = ReAct("order -> answer", tools=[Tool(pay, approve=True)])
        >>> submit = ToolCall("b", "submit", {"answer": "Paid."})
        >>> agent.set_lm(FakeLM([ToolCall("a", "pay", {"cents": 500}), submit]))
        >>> try:
        ...     agent(order="1042")
        ... except ApprovalNeeded as error:
        ...     state, pending = error.state, error.pending
        >>> result = agent.resume(state, {pending[0].id: {"edit": {"cents": 400}}})
        >>> result.answer, result.steps[0].results[0].content
        ('Paid.', 'paid 400')
        """
        with Resumption(state, decisions, claim, self).active():
            return super().__call__()

    async def aresume(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> Any:
        """``resume``, awaited. ``claim`` may be async."""
        with Resumption(state, decisions, claim, self).active():
            return await super().acall()

    def resume_stream(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> ProgramStream[Any]:
        """``resume`` as ``stream``: the events from here on."""
        with Resumption(state, decisions, claim, self).active():
            return self.stream()

    def aresume_stream(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> AsyncProgramStream[Any]:
        """``resume_stream``, awaited."""
        with Resumption(state, decisions, claim, self).active():
            return self.astream()

    def load_result(self, data: FieldValues) -> Prediction:
        """Decode the JSON of a result of this agent (``prediction.to_json()``), the run included."""
        prediction = Prediction.from_json(data, signature=self.signature)
        load_run_fields(prediction.__dict__, self.signature.spec.by_name)
        return prediction

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        def __call__(
            self, *, history: History | FieldValues | Sequence[object], max_iters: int = ..., **inputs: object
        ) -> S: ...
        @overload
        def __call__(self, *, max_iters: int, **inputs: object) -> S: ...
        def __call__(self, *args: object, **kwargs: object) -> object: ...
        @overload
        async def acall(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        async def acall(
            self, *, history: History | FieldValues | Sequence[object], max_iters: int = ..., **inputs: object
        ) -> S: ...
        @overload
        async def acall(self, *, max_iters: int, **inputs: object) -> S: ...
        async def acall(self, *args: object, **kwargs: object) -> object: ...

    def steps(self, /, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one run, without callbacks and call records of this module."""
        if args:
            raise InputError(f"{type(self).__name__} takes its inputs by name: ReAct(...)(question=...).")
        place = begin_run(self)
        if (decided := decided_result(place)) is not None:
            return self._decided(place, decided)
        if (resumption := resumption_of(self, place)) is not None:
            return self._continued(resumption)
        given = None if "max_iters" in self.signature.spec.by_name else inputs.pop("max_iters", None)
        limit = self.max_iters if given is None else check_turns(given)
        state = self._start(inputs, inputs.pop(self._signatures.history, None))
        state.place = place
        return self._run(state, limit)

    def _start(self, inputs: dict[str, object], before: object) -> RunState:
        """Return the state at the start: the earlier history with a result for every call, and the task."""
        return start_run(
            self.toolbox, self._signatures, inputs, before, partial(type(self).prepare_inputs, self, self._reader)
        )

    def _continued(self, resumption: Resumption) -> Steps[Prediction]:
        state, limit = yield from resumption.run(self)
        return (yield from self._run(state, limit))

    def _decided(self, place: str, data: FieldValues) -> Steps[Prediction]:
        """Return the result of an earlier run at a place of a tool call that is resumed."""
        result = self.load_result(data)
        give_decided(place, result)
        return result
        yield

    def _run(self, state: RunState, limit: int) -> Steps[Prediction]:
        try:
            self.toolbox.check_injected()
            set_up(self, state)
            state.enter(self._room_of(state), has_tools=bool(self._offered))
            if not self._offered:
                return (yield from self._run_without_tools(state))
            end = state.end = yield from type(self).turn_steps(self, state, limit)
            outputs = end.outputs if end.outputs is not None else (yield from self._extracted_outputs(state, end))
            result = self._prediction(state, end.reason, outputs)
            if state.is_resumed:
                keep_decided(state.place, result, state.report)
            return result
        except BaseException as error:  # interrupts too: another run can continue from the history
            yield from suspend(self, state, limit, error)
            state.close()
            state.attach_to(error)
            raise

    def turn_steps(self, state: RunState, limit: int) -> Steps[Termination]:
        """Run the turns until one ends the run, at most ``limit``; return the end. A subclass may have a loop of its own.

        An end without outputs is followed by a request that extracts them.
        """
        return self._loop(state, limit, self._streamed_turn if is_streamed() else self._turn)

    def _loop(self, state: RunState, limit: int, turn: TurnSteps) -> Steps[Termination]:
        return run_turns(state, limit, turn, lambda error, number: self._locate(error, turn=number))

    def _streamed_turn(self, state: RunState) -> Steps[Termination | None]:
        from sigwire.modules.agents.submit_stream import with_submitted_fields

        model = resolve_lm(self.react.lm, type(self).__name__).model
        return with_submitted_fields(
            self._turn(state), self._submit, self.react, model, plan_of_task(self._signatures.task)
        )

    def _turn(self, state: RunState) -> Steps[Termination | None]:
        """Ask once and run the calls; return the end of the run, or ``None`` to continue."""
        started = time.perf_counter()
        if state.open_calls:  # of a resumed run
            return (yield from self._end_turn(state, started))
        try:
            yield from asked_with_tools(state, lambda: self._ask(state))
        except (ContextWindowExceededError, *UNREADABLE) as error:
            return state.after_failure(error, time.perf_counter() - started)
        choice = state.add_answer()
        if state.open_calls:
            return (yield from self._end_turn(state, started))
        state.add_step(choice, time.perf_counter() - started)
        return plain_end(
            self._signatures.task, self.signature.spec.outputs if type(self).takes_plain_text else (), choice
        )

    def _end_turn(self, state: RunState, started: float) -> Steps[Termination | None]:
        """Run the calls of the turn; return the end of the run, or ``None`` to continue."""
        end, runs = yield from run_calls(self, state, self._submit)
        reached = state.end_turn(runs, time.perf_counter() - started)
        return reached if end is None else end

    def _room_of(self, state: RunState) -> Room:
        return Room(
            self, self.react, self.compaction, self.on_turn, lambda: self._inputs_of_turn(state), self.names_for_search
        )

    def _inputs_of_turn(self, state: RunState, history: History | None = None) -> dict[str, object]:
        """Return the inputs of the next request."""
        tools = {self._signatures.tools: offered} if (offered := self._tools_of(state)) else {}
        return {**tools, **state.options, self._signatures.history: state.history if history is None else history}

    def _tools_of(self, state: RunState) -> tuple[Tool, ...]:
        """Return the tools that the next request offers."""
        return (*(state.offered or self._offered), *state.large.tools) if self._offered else ()

    def _ask(self, state: RunState) -> Steps[Prediction]:
        """Ask with the conversation, as much of it as fits the model."""
        prediction: Prediction = yield from ask_in_room(
            state, lambda history: self.react.call_steps(**self._inputs_of_turn(state, history))
        )
        state.add_prediction(prediction)
        return prediction

    def _extracted_outputs(self, state: RunState, end: Termination) -> Steps[dict[str, object]]:
        """Get the outputs from the tool results with one more request, or raise ``AgentStopped``."""
        names = self._output_names
        if not self.extracts:
            raise state.stopped_error(names, end, "extract=True would get them with one more request") from end.cause
        try:
            prediction = yield from ask_in_room(
                state,
                lambda history: self.extract.call_steps(
                    **{**state.inputs, self._signatures.trajectory: state.log(history)}
                ),
                is_turn=False,
            )
        except ModelError as error:
            raise state.stopped_error(names, end, f"and could not be extracted: {error}") from error
        state.add_prediction(prediction, "extract")
        outputs = dict(prediction.__dict__)
        state.add_outputs({name: value for name, value in outputs.items() if name in names}, self._signatures.task.spec)
        return outputs

    def _run_without_tools(self, state: RunState) -> Steps[Prediction]:
        prediction = yield from self._ask(state)
        state.add_choice(state.answer, ())
        return self._prediction(state, "no_calls", dict(prediction.__dict__))

    def _prediction(self, state: RunState, reason: TerminationReason, outputs: dict[str, object]) -> Prediction:
        return state.result(self.signature, outputs, type(self).run_fields(self, state.run(reason)))

    def run_fields(self, run: AgentRun) -> dict[str, object]:
        """Return the fields that a result has beside the outputs. A subclass may add some."""
        return {"steps": run.steps, "history": run.history, "termination_reason": run.termination_reason}
