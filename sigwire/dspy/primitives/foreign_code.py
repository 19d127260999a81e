"""Interpreters of DSPy's protocol as interpreters of sigwire's modules.

DSPy's ``execute`` blocks and calls tools from inside; sigwire's steps yield at each call. So a thread of the session runs
``execute``, and its tools wait there until the steps send their results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonValue
from sigwire.dspy.primitives.interpreters import (
    CodeExecutionError,
    CodeInterpreter,
    FinalOutput,
    PythonInterpreter,
    WrongTypeGiven,
)
from sigwire.dspy.settings import settings
from sigwire.effects.inbox import Inbox
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.effects.waiting import join
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.code_result import CodeResult
from sigwire.interpreters.host_calls import EndCode, HostCall, HostCallError, HostFunction, as_json
from sigwire.interpreters.interpreter import CodeSession, HostNames
from sigwire.interpreters.monty import default_interpreter
from sigwire.modules.code.submitting import SubmitFunction

__all__ = [
    "FactoryInterpreter", "InterpreterFactory", "checked_factory", "closed_threads", "given_factory", "given_interpreter",
    "wait_for",
]  # fmt: skip

InterpreterFactory: TypeAlias = Callable[[], CodeInterpreter]

given_interpreter: ContextVar[CodeInterpreter | None] = ContextVar("sigwire_dspy_interpreter", default=None)
"""The caller's own interpreter, for the next session; it is not shut down."""
given_factory: ContextVar[InterpreterFactory | None] = ContextVar("sigwire_dspy_interpreter_factory", default=None)
"""The factory of a call, for the next session."""
closed_threads: ContextVar[list[threading.Thread] | None] = ContextVar("sigwire_dspy_closed_threads", default=None)
"""The threads of the sessions that a call has closed, for which it waits at its end."""


class FactoryInterpreter:
    """Sessions in interpreters that ``factory`` makes, by default that of the settings, else Monty.

    Raises ``WrongTypeGiven`` for a factory that is no function, and for one that makes no interpreter.
    """

    limits = CodeLimits()

    def __init__(self, factory: InterpreterFactory | None) -> None:
        self._factory = None if factory is None else checked_factory(factory)

    @property
    def capabilities(self) -> str:
        """The instructions of the factory."""
        return getattr(self._made_by(), "execution_instructions", "") or PythonInterpreter.execution_instructions

    def open(self) -> None:
        """Do nothing: sessions make their interpreters."""

    def close(self) -> None:
        """Do nothing: sessions shut their interpreters down."""

    def session(self, limits: CodeLimits | None = None) -> CodeSession:
        """Return a session of the given interpreter, of a new one, or of Monty."""
        given = given_interpreter.get()
        if given is not None:
            given_interpreter.set(None)
            return _WithSubmit(_ForeignSession(given, is_owned=False))
        factory = given_factory.get() or self._made_by()
        given_factory.set(None)
        if factory is PythonInterpreter:
            return _WithSubmit(default_interpreter().session(limits))
        return _WithSubmit(_ForeignSession(factory(), is_owned=True))

    def _made_by(self) -> InterpreterFactory:
        configured = PythonInterpreter if settings.interpreter_factory is None else settings.interpreter_factory
        return cast("InterpreterFactory", self._factory or configured)


def wait_for(threads: Iterable[threading.Thread]) -> Steps[None]:
    """Wait until interpreters have shut down; an event loop goes on meanwhile."""
    for thread in threads:
        ends = partial(join, thread)
        yield FunctionEffect(ends, partial(to_thread, ends))


def checked_factory(factory: object) -> InterpreterFactory:
    """Return the factory. Raises ``WrongTypeGiven`` for a value that is no function.

    >>> checked_factory(PythonInterpreter) is PythonInterpreter
    True
    """
    if not callable(factory):
        raise WrongTypeGiven(
            f"interpreter_factory is a function that makes an interpreter, not a {type(factory).__name__}. Pass the class, "
            "or the interpreter as the first positional argument when calling the module."
        )
    return cast("InterpreterFactory", factory)


@dataclass
class _WithSubmit:
    """A session whose code may also write ``SUBMIT``, DSPy's name."""

    session: CodeSession

    def steps(self, code: str, names: HostNames) -> Steps[CodeResult]:
        submit = next(each for each in names.values() if isinstance(each, SubmitFunction))
        return self.session.steps(code, {"SUBMIT": submit, **names})

    def close(self) -> None:
        self.session.close()


@dataclass
class _Call:
    """A call that the code waits for, and where its result goes."""

    call: HostCall
    reply: Inbox[object] = field(default_factory=lambda: Inbox[object]())


class _ForeignSession:
    """A session of one interpreter. All its methods run in one thread: some interpreters require that."""

    def __init__(self, interpreter: CodeInterpreter, *, is_owned: bool) -> None:
        if not isinstance(interpreter, CodeInterpreter):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's factory
            raise WrongTypeGiven(
                f"interpreter_factory must return a CodeInterpreter, not {type(interpreter).__name__}, which lacks one of "
                "tools, start, execute and shutdown."
            )
        self._interpreter, self._is_owned = interpreter, is_owned
        self._jobs: Inbox[Callable[[], object] | None] = Inbox()
        self._events: Inbox[Any] = Inbox()
        self._waiting: _Call | None = None
        work = partial(copy_context().run, self._work)
        self._thread = threading.Thread(target=work, name="sigwire-interpreter", daemon=True)
        self._thread.start()
        self._is_running = False

    def steps(self, code: str, names: HostNames) -> Steps[CodeResult]:
        """Return the steps of one run of code."""
        functions = {name: value for name, value in names.items() if callable(value)}
        variables = {name: value for name, value in names.items() if name not in functions}
        self._interpreter.tools.update({name: partial(self._call, name) for name in functions})
        self._jobs.put(partial(self._interpreter.execute, code, variables))
        self._is_running, calls = True, 0
        while True:
            event = yield FunctionEffect(self._events.get, partial(to_thread, self._events.get))
            if not isinstance(event, _Call):
                self._is_running = False
                return (yield from self._result(event, functions, calls))
            self._waiting, calls = event, calls + 1
            try:
                args, kwargs = event.call.arguments()
                value: object = yield from functions[event.call.name](*args, **kwargs)
            except HostCallError as error:
                value = CodeExecutionError(str(error))
            except EndCode as end:
                return CodeResult(end.value, calls=calls)
            self._waiting = None
            event.reply.put(value)

    def close(self) -> None:
        """Shut the interpreter down, and wait for it; after its running code, if it runs. The caller's own stays open."""
        if self._waiting is not None:
            self._waiting.reply.put(CodeExecutionError("The run has ended."))
        if self._is_owned:
            self._jobs.put(self._interpreter.shutdown)
        self._jobs.put(None)
        if self._is_owned and not self._is_running:
            closed = closed_threads.get()
            join(self._thread) if closed is None else closed.append(self._thread)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._events.put(job())
            except BaseException as error:
                self._events.put(error)

    def _call(self, name: str, *args: object, **kwargs: object) -> object:
        call = _Call(HostCall(name, args, tuple(kwargs.items())))
        self._events.put(call)
        value = call.reply.get()
        if isinstance(value, Exception):
            raise value
        return value

    def _result(self, end: object, functions: Mapping[str, HostFunction], calls: int) -> Steps[CodeResult]:
        if isinstance(end, SyntaxError | CodeExecutionError):
            return CodeResult(error=str(end) or type(end).__name__, calls=calls)
        if isinstance(end, BaseException):
            raise end
        if isinstance(end, FinalOutput):
            return (yield from _submitted(end, functions, calls))
        value: JsonValue = as_json(end)
        return CodeResult(output=value, calls=calls) if isinstance(value, str) else CodeResult(value, calls=calls)


def _submitted(end: FinalOutput, functions: Mapping[str, HostFunction], calls: int) -> Steps[CodeResult]:
    """Hand outputs of the interpreter's own ``SUBMIT`` to that of the module."""
    output: Any = as_json(end.output)
    try:
        yield from functions["SUBMIT"](**output) if isinstance(output, dict) else functions["SUBMIT"](output)
    except HostCallError as error:
        return CodeResult(error=str(error), calls=calls)
    except EndCode as submitted:
        return CodeResult(submitted.value, calls=calls)
    return CodeResult(calls=calls)
