"""DSPy's interpreters of code: the protocol, its errors, and ``PythonInterpreter``, which runs code in Monty.

``FinalOutput`` is the value of ``execute`` after the code called ``SUBMIT``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from sigwire.core.json import JsonValue
from sigwire.effects.steps import Steps, run
from sigwire.errors import SigwireError
from sigwire.interpreters.host_calls import EndCode, HostCallError, HostFunction, as_json
from sigwire.interpreters.interpreter import CodeSession, HostNames
from sigwire.interpreters.monty import MontyInterpreter, default_interpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter
from sigwire.modules.agents.tool_results import short_message
from sigwire.modules.calling import called_steps

__all__ = [
    "CodeExecutionError", "CodeInterpreter", "CodeInterpreterError", "FinalOutput", "LocalInterpreter", "PythonInterpreter",
]  # fmt: skip


class CodeInterpreterError(SigwireError, RuntimeError):
    """An interpreter cannot run code: it was shut down, or its process ended."""


class CodeExecutionError(CodeInterpreterError):
    """The code failed. The interpreter can run more code."""


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
    ``output``). Raises ``ConfigurationError`` without the extra ``code``.

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
    ) -> None:
        self.tools: dict[str, Callable[..., Any]] = dict(tools or {})
        self.output_fields = output_fields
        self._session: CodeSession | None = self._start()

    def start(self) -> None:
        """Do nothing: the first code starts the session."""

    def execute(self, code: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Run code with the variables; see ``CodeInterpreter``."""
        if self._session is None:
            raise CodeInterpreterError("The interpreter was shut down (running code). Make another one.")
        names: HostNames = {name: _host_function(tool) for name, tool in self.tools.items()}
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


def _host_function(tool: Callable[..., Any]) -> HostFunction:
    def call(*args: JsonValue, **kwargs: JsonValue) -> Steps[JsonValue]:
        try:
            return as_json((yield from called_steps(tool, args, kwargs)))
        except Exception as error:  # the code may catch any error of a tool
            raise HostCallError(type(error).__name__, short_message(error).partition(": ")[2]) from error

    return call
