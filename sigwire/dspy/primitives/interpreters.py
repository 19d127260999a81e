"""DSPy's interpreters of code: the protocol, its errors, and ``PythonInterpreter``, which runs code in Monty.

``FinalOutput`` is the value of ``execute`` after the code called ``SUBMIT``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from sigwire.core.json import JsonValue
from sigwire.dspy.callback import with_callbacks
from sigwire.effects.steps import Steps, run
from sigwire.errors import ConfigurationError, SigwireError, ends_run
from sigwire.interpreters.host_calls import EndCode, HostCallError, HostFunction, as_json
from sigwire.interpreters.interpreter import CodeSession, HostNames
from sigwire.interpreters.monty import MontyInterpreter, default_interpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter
from sigwire.modules.agents.tool_results import short_message
from sigwire.modules.calling import called_steps
from sigwire.observe.callbacks import watched_call, watched_steps

__all__ = [
    "CodeExecutionError", "CodeInterpreter", "CodeInterpreterError", "FinalOutput", "LocalInterpreter", "PythonInterpreter",
    "WrongTypeGiven",
]  # fmt: skip


class CodeInterpreterError(SigwireError, RuntimeError):
    """An interpreter cannot run code: it was shut down, or its process ended."""


class CodeExecutionError(CodeInterpreterError):
    """The code failed. The interpreter can run more code."""


class WrongTypeGiven(ConfigurationError, TypeError):
    """A module that runs code got an interpreter, a factory or tools of a type that it does not take."""


@dataclass(frozen=True, slots=True)
class FinalOutput:
    """The outputs that code submitted."""

    output: object


@runtime_checkable
class CodeInterpreter(Protocol):
    """DSPy's protocol of an interpreter. Variables live from ``start`` to ``shutdown``.

    ``execute`` returns a ``FinalOutput`` after ``SUBMIT``, else the value of the last expression or the printed text. It raises
    ``SyntaxError`` and ``CodeExecutionError`` for errors of the code, ``CodeInterpreterError`` for others.
    """

    @property
    def tools(self) -> dict[str, Callable[..., Any]]: ...

    def start(self) -> None: ...

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any: ...

    def shutdown(self) -> None: ...


class PythonInterpreter:
    """DSPy's interpreter by its name and methods, in a session of ``MontyInterpreter``: no files, environment, network.

    ``tools`` are functions by name; ``output_fields`` are ``{"name": ...}`` dicts, the parameters of ``SUBMIT`` (default:
    ``output``); ``callbacks`` are listeners of this interpreter, with ``on_interpreter_execute_start`` and the others of
    ``with_callbacks``. Raises ``ConfigurationError`` without the extra ``code``.

    >>> with PythonInterpreter(tools={"double": lambda n: 2 * n}) as interpreter:
    ...     interpreter.execute("print(double(n))", {"n": 21}), interpreter("SUBMIT(n)")
    ('42\\n', FinalOutput(output={'output': 21}))
    """

    execution_instructions = MontyInterpreter.capabilities

    def __init__(
        self,
        *,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        output_fields: Sequence[Mapping[str, Any]] | None = None,
        callbacks: Sequence[object] | None = None,
    ) -> None:
        self.tools: dict[str, Callable[..., Any]] = dict(tools or {})
        self.output_fields = output_fields
        self.callbacks = list(callbacks or ())
        self._session: CodeSession | None = self._start()
        self._is_started = False

    def start(self) -> None:
        """Show the start to the listeners, once; the first ``execute`` calls it."""
        if not self._is_started:
            self._is_started = True
            with watched_call("interpreter_startup", self, {}):
                """The session is open since the interpreter was made."""

    @with_callbacks
    def execute(self, code: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Run code with the variables; see ``CodeInterpreter``."""
        if self._session is None:
            raise CodeInterpreterError("The interpreter was shut down (running code). Make another one.")
        self.start()
        names: HostNames = {name: self._host_function(name) for name in self.tools}
        given = {name: as_json(value) for name, value in (variables or {}).items()}
        submitted: list[JsonValue] = []
        result = run(self._session.steps(code, {**names, "SUBMIT": self._submit(submitted), **given}))
        if submitted:
            return FinalOutput(submitted[0])
        if result.error:
            *_, last = result.error.splitlines()
            raise SyntaxError(last) if last.startswith("SyntaxError") else CodeExecutionError(last)
        return result.output if result.value is None else result.value

    __call__ = execute

    @with_callbacks
    def invoke_tool(self, tool_name: str, kwargs: Mapping[str, Any]) -> Any:
        """Call a tool as the code does. Raises ``CodeInterpreterError`` for an unknown name."""
        if tool_name not in self.tools:
            raise CodeInterpreterError(
                f"Unknown tool: {tool_name} (calling it). The tools are {', '.join(self.tools)}."
            )
        return run(called_steps(self.tools[tool_name], (), kwargs))

    @with_callbacks
    def shutdown(self) -> None:
        """End the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    @staticmethod
    def _start() -> CodeSession:
        return default_interpreter().session()

    def _host_function(self, name: str) -> HostFunction:
        tool = self.tools[name]

        def call(*args: JsonValue, **kwargs: JsonValue) -> Steps[JsonValue]:
            inputs = {"tool_name": name, "kwargs": kwargs, **({"args": args} if args else {})}
            steps = called_steps(tool, args, kwargs)
            try:
                return as_json((yield from watched_steps("interpreter_tool_call", self, inputs, steps)))
            except Exception as error:
                if ends_run(error):
                    raise  # the code may catch any other error of a tool
                raise HostCallError(type(error).__name__, short_message(error).partition(": ")[2]) from error

        return call

    def _submit(self, submitted: list[JsonValue]) -> HostFunction:
        names = [field["name"] for field in self.output_fields or ({"name": "output"},)]

        def submit(*args: JsonValue, **kwargs: JsonValue) -> Steps[JsonValue]:
            submitted.append({**dict(zip(names, args, strict=False)), **kwargs})
            raise EndCode
            yield

        return submit


class LocalInterpreter(PythonInterpreter):
    """``PythonInterpreter`` in a process of CPython, for trusted code: it is no sandbox. See ``sigwire.SubprocessInterpreter``.

    >>> with LocalInterpreter() as interpreter:
    ...     interpreter.execute("import os\\nos.path.basename('/a/b')")
    'b'
    """

    execution_instructions = SubprocessInterpreter.capabilities

    @staticmethod
    def _start() -> CodeSession:
        return SubprocessInterpreter().session()
