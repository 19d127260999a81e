"""``WorkerSession``: the loop of host calls, which every interpreter shares."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.durable import now
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.code_result import CodeResult
from sigwire.interpreters.host_calls import EndCode, HostCall, HostCallError, HostFunction, HostReply, as_json
from sigwire.interpreters.interpreter import HostNames
from sigwire.interpreters.worker import CodeEnd, CodeWorker, PrintedText, WorkerStart

__all__ = ["WorkerSession"]

_Move: TypeAlias = "Callable[[CodeWorker], HostCall | CodeEnd]"

_LONGEST_ERROR = 2_000  # characters
_LOST = "All variables of earlier code are lost."


class WorkerSession:
    """A session on a worker, which is started for the first code and again when it was lost."""

    def __init__(self, start: WorkerStart, limits: CodeLimits) -> None:
        self._start, self._limits = start, limits
        self._worker: CodeWorker | None = None
        self._in_use = threading.Lock()
        self._is_closed = False

    def steps(self, code: str, names: HostNames) -> Steps[CodeResult]:
        """Return the steps of one run of code."""
        functions = {name: value for name, value in names.items() if callable(value)}
        variables = {name: value for name, value in names.items() if not callable(value)}
        output, calls, seconds = PrintedText(self._limits.output), 0, 0.0
        # A journal gives the recorded time again, so that repeated code makes the calls that are recorded.
        start = now() if self._worker is None else None
        move: _Move = partial(_start_code, code, functions, variables, output)
        try:
            while True:
                stop, spent = yield self._run_worker(move, start)
                seconds += spent
                if isinstance(stop, CodeEnd):
                    return self._result(stop, output, calls, seconds)
                calls += 1
                reply = yield from self._reply(stop, functions, calls)
                move, start = _resume(reply), None
        except EndCode as end:
            self.close()
            return CodeResult(end.value, output.text, "", calls, seconds)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the session. If code runs in a thread, the thread frees the worker when the code stops."""
        self._is_closed = True
        if self._in_use.acquire(blocking=False):
            try:
                self._free()
            finally:
                self._in_use.release()

    def _run_worker(self, move: _Move, start: datetime | None) -> FunctionEffect[tuple[HostCall | CodeEnd, float]]:
        """Return the effect of a run up to the next stop. With a time, it starts the worker first, which may wait."""

        def run() -> tuple[HostCall | CodeEnd, float]:
            try:
                with self._in_use:
                    if start is not None:
                        self._worker = self._start(start)
                    assert self._worker is not None
                    started = perf_counter()
                    return move(self._worker), perf_counter() - started
            finally:
                if self._is_closed:
                    self.close()

        self._is_closed = False
        return FunctionEffect(run, partial(to_thread, run))

    def _free(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _reply(self, call: HostCall, functions: Mapping[str, HostFunction], number: int) -> Steps[HostReply]:
        try:
            if number > self._limits.calls:
                raise HostCallError("RuntimeError", f"the limit of {self._limits.calls} calls of functions is used up")
            args, kwargs = call.arguments()
            return HostReply((yield from _bound(functions[call.name], args, kwargs)))
        except HostCallError as error:
            return HostReply(None, error.kind, error.message)

    def _result(self, end: CodeEnd, output: PrintedText, calls: int, seconds: float) -> CodeResult:
        error = end.error
        if end.is_lost:
            self.close()
            error = f"{error[-_LONGEST_ERROR + len(_LOST) + 1 :]}\n{_LOST}"
        return CodeResult(_shown(end.value), output.text, error[-_LONGEST_ERROR:], calls, seconds, end.is_lost)


def _start_code(
    code: str, functions: HostNames, variables: Mapping[str, JsonValue], output: PrintedText, worker: CodeWorker
) -> HostCall | CodeEnd:
    return worker.start(code, list(functions), variables, output)


def _resume(reply: HostReply) -> _Move:
    return lambda worker: worker.resume(reply)


def _bound(function: HostFunction, args: Sequence[JsonValue], kwargs: JsonObject) -> Steps[JsonValue]:
    try:
        return function(*args, **kwargs)
    except TypeError as error:  # a generator function has only bound its arguments
        raise HostCallError("TypeError", str(error)) from error


def _shown(value: object) -> JsonValue:
    try:
        return as_json(value)
    except ValueError:
        pass
    try:
        return _ADDRESS.sub("", repr(value))
    except (RecursionError, ValueError):  # nested too deeply; a number of thousands of digits
        return f"<{type(value).__name__}>"


_ADDRESS = re.compile(" at 0x[0-9a-f]+")  # a repetition must give the same text
