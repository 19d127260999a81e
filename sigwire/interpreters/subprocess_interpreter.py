"""``SubprocessInterpreter``: code in a CPython of its own, for programs whose code is trusted."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from weakref import WeakSet, finalize

from sigwire.core.json import JsonObject, JsonValue
from sigwire.effects.waiting import wait_for
from sigwire.errors import ConfigurationError
from sigwire.interpreters.code_limits import CodeLimits, limits_of
from sigwire.interpreters.host_calls import HostCall, HostReply
from sigwire.interpreters.interpreter import CodeSession
from sigwire.interpreters.session import WorkerSession
from sigwire.interpreters.worker import CodeEnd, CodeWorker, PrintedText
from sigwire.keywords import ChecksKeywords

__all__ = ["SubprocessInterpreter"]

_START_SECONDS = 60.0
_PROGRAM = Path(__file__).with_name("cpython.py")


class SubprocessInterpreter(ChecksKeywords):
    """Run code in a process of CPython. It is no sandbox: hostile code can read the files of the user.

    The process has an empty environment, an empty directory that is removed at its end, and limits of time and memory. If Linux
    allows it, the process has no network and no rights of root. Starting programs and connections is refused; code that
    wants to can work around that. Use it for code that needs packages, of a model and of inputs that you trust, or inside a
    container. ``MontyInterpreter`` is the default of all modules.

    ``python``: the interpreter that runs the code, with its packages; by default the one of the program. POSIX only: raises
    ``ConfigurationError`` on Windows. A session starts its process with the first code, in about 50 ms. ``memory`` of the
    limits is address space, of which packages such as numpy need more than they use.

    >>> from sigwire.effects.steps import run
    >>> with SubprocessInterpreter() as interpreter:
    ...     run(interpreter.session().steps("import os, textwrap\\ndict(os.environ)", {})).value
    {}
    """

    def __init__(self, limits: CodeLimits | None = None, *, python: str | None = None) -> None:
        if os.name != "posix":
            raise ConfigurationError(
                "SubprocessInterpreter needs the limits of POSIX (making it). Use MontyInterpreter, or run in WSL."
            )
        self.limits, self.python = limits_of(limits), python or sys.executable
        self._workers: WeakSet[_CPythonWorker] = WeakSet()

    @property
    def capabilities(self) -> str:
        """The modules and rights of code, as a sentence for a model."""
        return "CPython with the standard library and installed packages; no network, no processes, an empty directory."

    def open(self) -> None:
        """Do nothing: each session starts its process."""

    def close(self) -> None:
        """End all processes. The next session starts new ones."""
        for worker in list(self._workers):
            worker.close()

    def session(self, limits: CodeLimits | None = None) -> CodeSession:
        """Return a new session, with the interpreter's limits or with these."""
        limits = limits or self.limits
        return WorkerSession(partial(self._start_worker, limits), limits)

    def __enter__(self) -> SubprocessInterpreter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> SubprocessInterpreter:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), self.limits, python=self.python), ()

    def _start_worker(self, limits: CodeLimits, now: datetime) -> CodeWorker:
        worker = _CPythonWorker(self.python, limits, now)
        self._workers.add(worker)
        return worker


class _CPythonWorker:
    """A process of CPython, with JSON lines on its standard input and output."""

    def __init__(self, python: str, limits: CodeLimits, now: datetime) -> None:
        self._limits, directory = limits, TemporaryDirectory(prefix="sigwire-code-")
        try:
            # -P and -s: no module of the user is found by accident. Sets have the same order in each repetition.
            process = subprocess.Popen(
                [python, "-P", "-s", "-B", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=directory.name,
                env={"PYTHONHASHSEED": "0"},
                start_new_session=True,
            )
        except OSError as error:
            directory.cleanup()
            raise ConfigurationError(f"{python} cannot be started: {error} (starting code).") from error
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        self._selector = selectors.DefaultSelector()
        self._free = finalize(self, _free, process, self._selector, directory)
        self._selector.register(self._output, selectors.EVENT_READ)
        self._received, self._printed, self._remaining = bytearray(), PrintedText(0), limits.seconds
        self._send({"seed": now.timestamp(), "memory": limits.memory, "seconds": limits.seconds})
        if isinstance(self._line(monotonic() + _START_SECONDS), CodeEnd):
            self.close()
            raise ConfigurationError(
                f"{python} does not run {_PROGRAM.name} (starting code). Use CPython 3.11 or later."
            )

    def start(
        self, code: str, functions: Sequence[str], variables: Mapping[str, JsonValue], output: PrintedText
    ) -> HostCall | CodeEnd:
        self._printed, self._remaining = output, self._limits.seconds
        self._send({"code": code, "functions": list(functions), "variables": dict(variables)})
        return self._next_stop()

    def resume(self, reply: HostReply) -> HostCall | CodeEnd:
        self._send({"value": reply.value, "error": reply.error, "message": reply.message})
        return self._next_stop()

    def close(self) -> None:
        self._free()

    def _send(self, message: JsonObject) -> None:
        with suppress(BrokenPipeError):  # the next read finds the end
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()

    def _next_stop(self) -> HostCall | CodeEnd:
        """Read messages up to a host call or the end of the code."""
        deadline = monotonic() + self._remaining
        while True:
            line = self._line(deadline)
            if isinstance(line, CodeEnd):
                return line
            message = json.loads(line)
            if "text" in message:
                self._printed.write(message["text"])
            elif "call" in message:
                self._remaining = deadline - monotonic()
                return HostCall(message["call"], tuple(message["args"]), tuple(message["kwargs"].items()))
            else:
                return CodeEnd(message["end"], message["error"])

    def _line(self, deadline: float) -> bytes | CodeEnd:
        while (end := self._received.find(b"\n")) < 0:
            if not wait_for(self._selector.select, deadline - monotonic()):
                why = f"TimeoutError: the code ran for more than {self._limits.seconds:g} seconds"
                return CodeEnd(None, why, is_lost=True)
            if not (chunk := os.read(self._output.fileno(), 2**20)) or len(self._received) > self._limits.memory:
                return CodeEnd(None, "RuntimeError: the process of the code ended", is_lost=True)
            self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.poll() is not None


def _free(
    process: subprocess.Popen[bytes], selector: selectors.BaseSelector, directory: TemporaryDirectory[str]
) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    wait_for(partial(_has_ended, process))
    selector.close()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # the rest of a message that was not read
            pipe.close()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    directory.cleanup()
