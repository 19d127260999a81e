"""``CodeAct``: an agent whose model writes code that calls the tools, until the code submits the outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sigwire.core.example import Prediction
from sigwire.core.messages import Message
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Approve, OnError, Tool
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import AdapterParseError, ConfigurationError, ContextWindowExceededError
from sigwire.interpreters.code_result import CodeResult
from sigwire.interpreters.interpreter import CodeSession, HostNames, Interpreter
from sigwire.interpreters.monty import interpreter_of
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules.agents.conversation import answer_text, interrupted_result
from sigwire.modules.agents.react import UNREADABLE, ReAct
from sigwire.modules.agents.run import Termination
from sigwire.modules.agents.run_state import EmittingRecorder, OffersTools, RunState, tool_done
from sigwire.modules.agents.toolbox import ToolRun, ToolSearchOption, ToolsLike
from sigwire.modules.ask import check_config
from sigwire.modules.code.act_signatures import ActSignatures
from sigwire.modules.code.code_run import CodeReply, code_tool_run, result_text
from sigwire.modules.code.host_tools import HostTools, shown_in_code
from sigwire.modules.code.submitting import SubmitFunction
from sigwire.modules.predict import P, S
from sigwire.modules.program_stream import event_path_of, is_streamed
from sigwire.signatures.signature import Signature
from sigwire.signatures.types.history import Turn, regrouped

if TYPE_CHECKING:
    from sigwire.modules.agents.room import OnTurn
    from sigwire.modules.context.compaction import Compaction

__all__ = ["CodeAct"]


class CodeAct(ReAct[P, S]):
    """Answer a signature with code that calls tools: a turn may call many tools, and loop and branch over their results.

    A turn of the model writes Python, which runs in ``interpreter`` (default: ``MontyInterpreter``, a sandbox) and sees the
    tools as functions. The model gets what the code printed, the value of its last expression and its error. Variables live
    until the end of the run. The code ends the run with ``submit(...)``, whose values are validated like those of ``ReAct``.
    Tools run in the program, with their limits and in its journal; their errors are exceptions that the code can catch,
    but for errors that end the run (``on_tool_error``).

    ``max_iters``: the most turns of a run; ``max_calls``: the most tool calls of a turn. A run that waits
    for approval continues with ``journal.resume``. ``tool_search``: of many tools some are listed, the code finds the others
    with ``find_tools``, and it can call all of them. The other options, the call and the
    result are those of ``ReAct``; the first call of each of ``steps`` is ``python``, with the code. Raises
    ``ConfigurationError`` without the extra ``code`` and without an interpreter. Paper: https://arxiv.org/abs/2402.01030

    >>> from sigwire.lm.fake import FakeLM
    >>> def stock(item: str) -> int:
    ...     return {"apples": 3, "pears": 4}[item]
    >>> agent = CodeAct("question -> total: int", tools=[stock])
    >>> code = "submit(total=sum(stock(item) for item in ('apples', 'pears')))"
    >>> agent.set_lm(FakeLM([{"reasoning": "Add the stocks.", "code": code}]))
    >>> result = agent(question="How many fruits are in stock?")
    >>> result.total, [call.name for call in result.steps[0].calls]
    (7, ['python', 'stock', 'stock'])
    """

    resumes = False  # without a journal: the state of its code is not kept
    takes_tools = False  # its prompts list them

    def __init__(
        self,
        signature: str | Signature | Callable[P, S],
        tools: ToolsLike = (),
        max_iters: int = 5,
        interpreter: Interpreter | None = None,
        *,
        max_calls: int = 50,
        on_tool_error: OnError | None = None,
        extract: bool = True,
        tool_timeout: float | None = None,
        approve: Approve | None = None,
        tool_search: ToolSearchOption = "auto",
        compaction: Compaction | bool = True,
        on_turn: OnTurn | None = None,
        callbacks: Sequence[object] | None = None,
        **config: Any,
    ) -> None:
        config = dict(wrap_secrets(config))
        check_config(CodeAct, config, config.get("lm"))
        if refused := [name for name in _OF_REACT if name in config]:
            raise ConfigurationError(
                f"CodeAct has no option {refused[0]!r} (making it). Its code makes one call at a time and gets whole results."
            )
        super().__init__(
            signature,
            tools,
            max_iters,
            on_tool_error=on_tool_error,
            extract=extract,
            tool_timeout=tool_timeout,
            max_output=None,
            approve=approve,
            max_repeats=None,
            tool_search=tool_search,
            compaction=compaction,
            on_turn=on_turn,
            callbacks=callbacks,
            **config,
        )
        if max_calls < 1:
            raise ConfigurationError(f"max_calls is a number of calls, above 0, not {max_calls!r} (CodeAct).")
        self.interpreter: Interpreter = interpreter_of(interpreter, "CodeAct")
        self.max_calls = max_calls
        self._host_tools = HostTools(self.toolbox)
        self._offered = (self._submit.tool,)
        made = ActSignatures(self._signatures, self._host_tools.by_name, self._submit, self.interpreter.capabilities)
        self._code, self._thought, self._listing = made.code, made.thought, {made.functions: made.listing}
        self._listed = made.listed
        self.react = type(self).predictor_classes.ask(made.turn(), **config)
        self.extract = type(self).predictor_classes.extract(made.extraction(), **config)

    # --- the loop ------------------------------------------------------------------------------------

    def _start(self, inputs: dict[str, object], before: object) -> RunState:
        state = super()._start(inputs, before)
        limits = replace(self.interpreter.limits, calls=self.max_calls + _SUBMISSIONS)
        *earlier, task = ((turn,) for turn in state.history.messages)
        if isinstance(task[0], Turn):
            state.history = regrouped(state.history, [*earlier, (Turn({**self._listing, **task[0]}),)])
        return _CodeState(state, self.interpreter.session(limits))

    def _tools_of(self, state: RunState) -> tuple[Tool, ...]:
        """Return no tools: the code calls them."""
        return ()

    def _names_in_use(self) -> set[str]:
        return {*self._host_tools.by_name, self._submit.name}

    def _run(self, state: RunState, limit: int) -> Steps[Prediction]:
        try:
            return (yield from super()._run(state, limit))
        finally:
            _session_of(state).close()

    def turn_steps(self, state: RunState, limit: int) -> Steps[Termination]:
        if state.search is not None:
            yield from self._list_some(state, state.search)
        return (yield from super().turn_steps(state, limit))

    def _list_some(self, state: RunState, search: OffersTools) -> Steps[None]:
        """List only the functions that fit the inputs, and the one that finds the others."""
        search.show = shown_in_code
        tools = {**self._host_tools.by_name, search.tool.name: search.tool}
        first = {*(yield from search.first_names()), search.tool.name}
        (name, _), last = *self._listing.items(), state.history.messages[-1]
        if isinstance(last, Turn) and name in last:
            listing = self._listed({python: tool for python, tool in tools.items() if tool.name in first})
            *earlier, _ = ((turn,) for turn in state.history.messages)
            state.history = regrouped(state.history, [*earlier, (Turn({**last, name: listing}),)])

    def _streamed_turn(self, state: RunState) -> Steps[Termination | None]:
        return self._turn(state)

    def _turn(self, state: RunState) -> Steps[Termination | None]:
        """Ask for code once, run it and emit its result; return the end of the run, or ``None`` to continue."""
        started = time.perf_counter()
        try:
            reply = yield from self._written_code(state)
        except (ContextWindowExceededError, *UNREADABLE) as error:
            advice = f"Write one block of Python, or the field {self._code}."
            return state.after_failure(error, time.perf_counter() - started, advice)
        state.add_choice(reply.choice, ())
        call, submit = (
            ToolCall(f"code_{len(state.steps)}", "python", {"code": reply.code}),
            SubmitFunction(self._submit),
        )
        try:
            result = yield from self._executed(state, call.id, reply, submit)
        except BaseException:  # interrupts too: another run can continue from the history
            shown = interrupted_result(call)
            self._add_result(state, reply, ToolRun(call, shown, shown), started, error="interrupted")
            raise
        text = result_text(result, self.interpreter.limits.output)
        if submit.outputs is not None:
            text = f"Submitted: {answer_text(submit.outputs, self._signatures.task.spec)}"
        done = code_tool_run(call, result, text)
        self._add_result(state, reply, done, started)
        if is_streamed():
            yield Emit(tool_done(done, event_path_of(self)), *submit.events(event_path_of(self.react)))
        return None if submit.outputs is None else Termination("submit", submit.outputs)

    def _written_code(self, state: RunState) -> Steps[CodeReply]:
        """Ask the model; return the code of its field, or of the one fenced block of a reply without fields."""
        try:
            prediction = yield from self._ask(state)
        except AdapterParseError as error:
            try:
                reply = CodeReply.of_text(error)
            except ValueError:
                raise error from None
            state.prediction = Prediction.make({}, signature=self.react.signature, choice=error.choice)
            return reply
        return CodeReply.of_fields(prediction, self._code, self._thought)

    def _executed(self, state: RunState, prefix: str, reply: CodeReply, submit: SubmitFunction) -> Steps[CodeResult]:
        place = event_path_of(self) if is_streamed() else None
        recorder = state.tool_runs if place is None else EmittingRecorder(state.tool_runs, place)
        own = state.search is None and not state.large.tools
        host = self._host_tools if own else HostTools(state.large.toolbox)
        functions = host.functions(recorder, prefix, self.max_calls, state.gate)
        names: HostNames = {**functions, self._submit.name: submit}
        return (yield from _session_of(state).steps(reply.code or "", names))

    @staticmethod
    def _add_result(state: RunState, reply: CodeReply, done: ToolRun, started: float, error: str | None = None) -> None:
        state.add_message(Message.user(f"Result of the code:\n{done.shown.text}"))
        state.add_step(reply.without_calls(), time.perf_counter() - started, [done, *state.tool_runs], error)


_OF_REACT = ("parallel", "max_output", "large_results", "max_repeats", "secret")
_SUBMISSIONS = 10  # of one run of code, beside its tool calls


class _CodeState(RunState):
    """A run in progress with the session of its code."""

    def __init__(self, state: RunState, session: CodeSession) -> None:
        super().__init__(state.history, state.inputs, state.gate, state.large)
        self.session = session


def _session_of(state: RunState) -> CodeSession:
    assert isinstance(state, _CodeState)  # made by CodeAct._start
    return state.session
