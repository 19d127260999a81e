"""``RLM``, a recursive language model: long inputs are variables of a session, which the model reads by code.

The conversation has descriptions of the variables, the code of each turn and what it printed. Inside the code, ``llm_query``
asks a model about a part of an input. So the length of a request does not depend on the length of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sigwire.core.example import Prediction
from sigwire.core.tools.tool import OnError, Tool
from sigwire.effects.steps import Steps
from sigwire.errors import AgentStopped, ConfigurationError, ContextWindowExceededError, ModelError
from sigwire.interpreters.interpreter import Interpreter
from sigwire.interpreters.monty import interpreter_of
from sigwire.lm.base import LanguageModel
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules.agents.room import (
    OnTurn,
    Room,
    ask_in_room,
    free_name,
    new_summary,
    prepare_summary,
    read_compaction,
)
from sigwire.modules.agents.run import Termination
from sigwire.modules.agents.submit import Submit
from sigwire.modules.agents.toolbox import Toolbox, ToolsLike
from sigwire.modules.ask import check_config, resolve_lm
from sigwire.modules.calling import called_steps
from sigwire.modules.code.code_run import CodeReply
from sigwire.modules.code.code_signatures import SessionSignatures
from sigwire.modules.code.host_tools import HostTools
from sigwire.modules.code.language_calls import LANGUAGE_FUNCTIONS, LanguageCalls, check_limits
from sigwire.modules.code.session_run import SessionRun
from sigwire.modules.code.submitting import SubmitFunction
from sigwire.modules.inputs import InputReader
from sigwire.modules.predict import P, Predict, ReadingCalls, S, signature_of
from sigwire.modules.program_stream import set_turn
from sigwire.settings import current
from sigwire.signatures.signature import Signature, SignatureClass

if TYPE_CHECKING:
    from sigwire.core.record import FieldValues
    from sigwire.modules.context.compaction import Compaction

__all__ = ["RLM", "SessionClasses"]

_MAX_UNREADABLE = 3  # consecutive replies


class SessionClasses(NamedTuple):
    """The classes of what an ``RLM`` makes: of its predictors, and of each run."""

    predictor: type[Any]
    run: type[SessionRun]


class RLM(ReadingCalls[P, S]):
    """Answer a signature about inputs of any length, by code that the model writes in turns.

    The inputs are variables of a session of ``interpreter`` (default: ``MontyInterpreter()``); a request has only their type,
    size and beginning. Each turn runs the model's code and sends back what it printed, at most ``max_output_chars``
    characters. The code may call ``llm_query(text)`` and ``llm_query_batched(texts)``, which ask ``sub_lm`` (default: the
    module's model), at most ``max_llm_calls`` texts in a call of the module and ``parallel`` at once; ``tools``, with
    ``on_tool_error`` as in ``ReAct``; and ``submit(...)`` with the outputs, which ends the run. After ``max_iters`` turns,
    one more request extracts the outputs from the session (``extract=False``: ``AgentStopped``). ``compaction`` and
    ``on_turn`` are those of ``ReAct``. ``config`` are request options.

    A call takes the signature's inputs by name, and ``history=``: the ``History`` (or its JSON) of an earlier run, whose
    conversation this run continues. Variables of the earlier session are not kept.

    The result has the outputs, ``steps``, ``history`` and ``termination_reason`` as that of ``ReAct`` (typed: ``AgentRun.of``);
    ``attempts`` and ``usage`` have the requests of turns and of ``llm_query``. Attributes for optimizers: ``generate_action``,
    ``extract``. Raises ``ConfigurationError`` without the extra ``code`` and without an interpreter, ``InputError`` for inputs
    without a JSON form. Recursive language models: https://arxiv.org/abs/2512.24601

    >>> from sigwire.lm.fake import FakeLM
    >>> turns = FakeLM([
    ...     {"reasoning": "Look.", "code": "lines = log.splitlines()\\nprint(len(lines), lines[0])"},
    ...     {"reasoning": "Ask.", "code": "submit(cause=llm_query('The cause, in a word: ' + lines[-1]))"},
    ... ])
    >>> rlm = RLM("log -> cause", sub_lm=FakeLM(["disk"]))
    >>> rlm.set_lm(turns)
    >>> result = rlm(log="ok\\n" * 100_000 + "ERROR no space left on device")
    >>> result.cause, result.steps[0].results[0].content, max(len(r.messages[-1].text) for r in turns.requests) < 1000
    ('disk', '100001 ok', True)
    """

    _collects: ClassVar[bool] = True
    session_classes: ClassVar[SessionClasses] = SessionClasses(Predict, SessionRun)
    """The classes of the predictors and of a run; a subclass may have others."""
    _hooks: ClassVar[Sequence[str]] = ("session_classes",)

    def __init__(
        self,
        signature: str | Signature | Callable[P, S],
        max_iters: int = 20,
        max_llm_calls: int = 50,
        max_output_chars: int = 10_000,
        *,
        tools: ToolsLike = (),
        sub_lm: LanguageModel | None = None,
        interpreter: Interpreter | None = None,
        parallel: int = 8,
        on_tool_error: OnError | None = None,
        extract: bool = True,
        compaction: Compaction | bool = True,
        on_turn: OnTurn | None = None,
        callbacks: Sequence[object] | None = None,
        **config: Any,
    ) -> None:
        config = dict(wrap_secrets(config))
        super().__init__(callbacks)
        self.compaction, self.on_turn = read_compaction(compaction, on_turn, "creating an RLM"), on_turn
        check_config(RLM, config, config.get("lm"))
        check_limits(max_iters, max_llm_calls, max_output_chars, parallel)
        self.signature: SignatureClass = signature_of(signature)
        self.max_iters, self.max_llm_calls, self.max_output_chars = max_iters, max_llm_calls, max_output_chars
        self.sub_lm, self.parallel, self.extracts = sub_lm, parallel, extract
        self.interpreter: Interpreter = interpreter_of(interpreter, "RLM")
        self.toolbox = Toolbox(tools, max_output=None, on_error=on_tool_error)
        self._tools = HostTools(self.toolbox)
        self._signatures = made = SessionSignatures(self.signature, continues=type(self).session_classes.run.continues)
        self.history_input = made.history
        self._reader = InputReader(made.task.spec)
        self._submit = Submit(made.task.spec, taken={*self._reader.names, *self._tools.by_name})
        _check_names([*LANGUAGE_FUNCTIONS, *self._tools.by_name, *self._reader.names])
        asking = [text.format(most=max_llm_calls) for text in LANGUAGE_FUNCTIONS.values()]
        self._listing = made.functions(asking, self._tools.by_name, self._submit)
        turn = made.turn(self._submit.name, max_output_chars, self.interpreter.capabilities)
        self.generate_action: Predict[..., Any] = type(self).session_classes.predictor(turn, **config)
        self.extract: Predict[..., Any] = type(self).session_classes.predictor(made.extraction(), **config)
        prepare_summary(self)

    @cached_property
    def summary(self) -> Any:
        """The predictor of summaries, made at first use; at once if ``compaction`` is a ``Compaction`` that uses it."""
        return new_summary()

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools by name."""
        return dict(self.toolbox.tools)

    # --- the loop ------------------------------------------------------------------------------------

    def steps(self, /, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one run, without callbacks and call records of this module."""
        if args:
            raise self._reader.positional_error(type(self).__name__)
        before = None if self.history_input is None else inputs.pop(self.history_input, None)
        earlier = type(self).session_classes.run.earlier_history(before, self._signatures.task.spec)
        given = type(self).prepare_inputs(self, self._reader, dict(inputs), check_types=current().warn_on_type_mismatch)
        self.toolbox.check_injected()
        run = self._start(given)
        run.history = earlier + run.history
        run.enter(self._room_of(run))
        try:
            end = yield from self._loop(run)
            outputs = end.outputs if end.outputs is not None else (yield from self._extracted_outputs(run, end))
            return run.result(self.signature, outputs, history=run.history, termination_reason=end.reason)
        except BaseException as error:
            run.attach_facts(
                error, history=run.history, termination_reason=None if isinstance(error, Exception) else "cancelled"
            )
            raise
        finally:
            run.close()

    def _start(self, inputs: FieldValues) -> SessionRun:
        submit, kind = SubmitFunction(self._submit), type(self).session_classes.run
        limits = self.interpreter.limits
        limits = replace(limits, output=self.max_output_chars, calls=max(limits.calls, self.max_llm_calls))
        read = kind.read_inputs(self._signatures.task, inputs)
        run = kind(
            self,
            self.interpreter.session(limits),
            submit,
            {self._submit.name: submit},
            read.variables,
            tools=self._tools,
            most=self.max_output_chars,
        )
        run.add_names(LanguageCalls(self._asked_lm, self.max_llm_calls, self.parallel).functions)
        run.begin(read, self._listing)
        return run

    def _asked_lm(self) -> LanguageModel:
        """Return the model that code asks."""
        own = getattr(self.generate_action, "lm", None) if self.sub_lm is None else self.sub_lm
        return resolve_lm(own, type(self).__name__)

    def _loop(self, run: SessionRun) -> Steps[Termination]:
        before, unreadable = set_turn(None), 0
        try:
            for number in range(self.max_iters):
                set_turn(number)
                try:
                    reply = yield from self._ask(run)
                except ContextWindowExceededError as error:
                    if error is run.room.failure:
                        raise
                    return Termination(
                        "context_window_exceeded", why="the conversation no longer fits the model", cause=error
                    )
                if reply.code is None:
                    unreadable += 1
                    if unreadable == _MAX_UNREADABLE:
                        return Termination(
                            "parse_error", why=f"{unreadable} replies in a row had no code ({reply.thought})"
                        )
                    run.add_message(f"Your reply is invalid: {reply.thought}")
                    continue
                unreadable = 0
                yield from run.execute(reply.code, reply.thought)
                if run.outputs is not None:
                    return Termination("submit", run.outputs)
                run.add_message(run.steps[-1].results[0].text)
        finally:
            set_turn(before)
        return Termination("limit", why=f"the limit max_iters={self.max_iters} is used up")

    def _ask(self, run: SessionRun) -> Steps[CodeReply]:
        """Ask for the code of a turn, with as much of the conversation as fits the model."""
        reply: CodeReply = yield from ask_in_room(
            run,
            lambda history: run.ask(
                called_steps(self.generate_action, (), run.turn_inputs(self.max_iters, history)), "code"
            ),
        )
        run.add_reply(reply)
        return reply

    def _room_of(self, run: SessionRun) -> Room:
        def inputs() -> FieldValues:
            return run.turn_inputs(self.max_iters, run.history)

        def named() -> tuple[str, str]:
            taken = {*LANGUAGE_FUNCTIONS, *self._tools.by_name, *self._reader.names, self._submit.name}
            return free_name("search_conversation", taken), ""  # results of code have no id to read by

        compaction = self.compaction if type(run).continues else False  # another form of conversation is not folded
        return Room(self, self.generate_action, compaction, self.on_turn, inputs, named)

    def _extracted_outputs(self, run: SessionRun, end: Termination) -> Steps[Mapping[str, object]]:
        """Get the outputs from the session with one more request, or raise ``AgentStopped``."""
        if not self.extracts:
            raise self._stopped_error(run, end, "extract=True would get them with one more request") from end.cause
        names = self._signatures
        try:
            prediction: Prediction = yield from ask_in_room(
                run,
                lambda history: called_steps(
                    self.extract, (), {names.variables: run.described, names.log: run.log(history)}
                ),
                is_turn=False,
            )
        except ModelError as error:
            raise self._stopped_error(run, end, f"and could not be extracted: {error}") from error
        run.add_prediction(prediction, "extract")
        outputs: Mapping[str, object] = prediction.__dict__
        answers = {name: value for name, value in outputs.items() if name in self._submit.codecs}
        run.add_outputs(answers, self._signatures.task.spec)
        return outputs

    def _stopped_error(self, run: SessionRun, end: Termination, hint: str) -> AgentStopped:
        return AgentStopped(
            f"The run ended without its outputs ({', '.join(self._submit.codecs)}): {end.why}; {hint}. "
            "error.steps has all turns; call again with history=error.history to continue.",
            reason=end.reason,
            steps=tuple(run.steps),
            history=run.history,
        )


def _check_names(names: Sequence[str]) -> None:
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise ConfigurationError(
            f"{twice[0]!r} is the name of two things in the session (creating an RLM). Rename the input or tool."
        )
