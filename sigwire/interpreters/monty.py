"""``MontyInterpreter``: code in Monty, a Python interpreter without access to the machine (the package ``pydantic-monty``)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, get_args
from weakref import finalize

from sigwire.core.json import JsonValue
from sigwire.errors import ConfigurationError
from sigwire.interpreters.code_limits import CodeLimits, limits_of
from sigwire.interpreters.host_calls import HostCall, HostReply
from sigwire.interpreters.interpreter import CodeSession, Interpreter
from sigwire.interpreters.session import WorkerSession
from sigwire.interpreters.worker import CodeEnd, CodeWorker, PrintedText
from sigwire.keywords import ChecksKeywords

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError, MontySession
    from pydantic_monty import SyncSnapshot as Snapshot

__all__ = ["MontyInterpreter", "default_interpreter", "interpreter_of"]

_MOST_WORKERS = 64
_WAIT_SECONDS = 60.0  # for a free worker
_MOST_STOPS = 10_000  # of a session: host calls, and refused calls of the machine


class MontyInterpreter(ChecksKeywords):
    """Run code in Monty, in a pool of processes: no files, no environment, no network, no programs.

    The code is Python with a part of the standard library (https://github.com/pydantic/monty). Its clock stands still at the
    start of the session, and its random numbers are seeded with it, so that repeated code makes the same calls. Processes start
    on demand, at most 64, and end with ``close`` or the program. Raises ``ConfigurationError`` without the extra ``code``.

    >>> from sigwire.effects.steps import run
    >>> with MontyInterpreter() as interpreter:
    ...     session = interpreter.session()
    ...     run(session.steps("n = 6", {})), run(session.steps("print(n)\\nn * 7", {})).value
    (CodeResult(value=None, output='', error='', calls=0, seconds=...), 42)
    """

    capabilities = (
        "Python with base64, bisect, collections, copy, csv, dataclasses, datetime, decimal, functools, hashlib, itertools, "
        "json, math, random, re, time, tomllib, typing, unicodedata; no other packages, no files, network or processes. "
        "Given functions can be called in loops and comprehensions, but not by map, sorted or max."
    )

    def __init__(self, limits: CodeLimits | None = None) -> None:
        if find_spec("pydantic_monty") is None:
            raise ConfigurationError(
                "Code of a model runs in Monty, which is not installed (making a MontyInterpreter). "
                'Run pip install "sigwire[code]", or pass another interpreter.'
            )
        self.limits = limits_of(limits)
        self._lock = threading.Lock()
        self._pool: Monty | None = None
        self._end: finalize[[Monty, int], MontyInterpreter] | None = None

    def open(self) -> None:
        """Open the pool."""
        self._open_pool()

    def close(self) -> None:
        """End all processes. The next session starts new ones."""
        with self._lock:
            self._pool = None
            if self._end is not None:
                self._end()

    def session(self, limits: CodeLimits | None = None) -> CodeSession:
        """Return a new session, with the interpreter's limits or with these."""
        limits = limits or self.limits
        return WorkerSession(partial(self._start_worker, limits), limits)

    def __enter__(self) -> MontyInterpreter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> MontyInterpreter:
        return self  # copies of a program share the pool

    def __reduce__(self) -> tuple[type[MontyInterpreter], tuple[CodeLimits]]:
        return type(self), (self.limits,)

    def _open_pool(self) -> Monty:
        with self._lock:
            if self._pool is None or _users[0] != os.getpid():
                from pydantic_monty import Monty

                if _users and _users[0] != os.getpid():  # Monty's threads do not exist there: it would wait for ever
                    raise ConfigurationError(
                        "Monty cannot run in a process that was forked after code had run (starting code). Start it with "
                        'multiprocessing.get_context("spawn"), or fork before the first code.'
                    )
                _users.append(os.getpid())
                self._pool = Monty(min_processes=0, max_processes=_MOST_WORKERS, checkout_timeout=_WAIT_SECONDS)
                self._pool.__enter__()
                self._end = finalize(self, _close_pool, self._pool, os.getpid())  # also at the end of the program
            return self._pool

    def _start_worker(self, limits: CodeLimits, now: datetime) -> CodeWorker:
        session = self._open_pool().checkout(
            script_name="code.py",
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory,
                "max_suspensions": _MOST_STOPS,
            },
            os_policy={"datetime": now, "sleep": "zero", "random_start": {"seed": now.timestamp()}},
        )
        try:
            session.__enter__()
        except TimeoutError as error:
            raise ConfigurationError(
                f"No free process for {_WAIT_SECONDS:g} seconds: {_MOST_WORKERS} sessions run (starting code). Run fewer."
            ) from error
        return _MontyWorker(session, limits)


_users: list[int] = []  # the process that has Monty's threads


@cache
def default_interpreter() -> MontyInterpreter:
    """Return the interpreter that modules share. Raises ``ConfigurationError`` without the extra ``code``."""
    return MontyInterpreter()


def interpreter_of(given: Interpreter | None, owner: str) -> Interpreter:
    """Return the interpreter of a module, by default the one that modules share.

    Raises ``ConfigurationError`` for an object that is none, and for the default without the extra ``code``.
    """
    if given is None:
        return default_interpreter()
    if isinstance(given, type) or not hasattr(given, "session"):
        raise ConfigurationError(
            f"interpreter is an object with the methods of Interpreter, not {given!r:.80} (making {owner}). "
            "Write interpreter=MontyInterpreter()."
        )
    return given


def _close_pool(pool: Monty, process: int) -> None:
    if process == os.getpid():  # a forked child must not end the processes of its parent
        pool.__exit__(None, None, None)


class _MontyWorker:
    """A session of Monty. It stops at each call of a name that the code does not define."""

    def __init__(self, session: MontySession, limits: CodeLimits) -> None:
        self._session, self._limits = session, limits
        self._snapshot: Snapshot | None = None
        self._functions: Sequence[str] = ()

    def start(
        self, code: str, functions: Sequence[str], variables: Mapping[str, JsonValue], output: PrintedText
    ) -> HostCall | CodeEnd:
        self._functions = functions

        def print_text(stream: str, text: str) -> None:
            output.write(text)

        return self._run(lambda: self._session.feed_start(code, inputs=dict(variables), print_callback=print_text))

    def resume(self, reply: HostReply) -> HostCall | CodeEnd:
        from pydantic_monty import ExcType, FunctionSnapshot

        snapshot = self._snapshot
        assert isinstance(snapshot, FunctionSnapshot)
        if not reply.error:
            return self._run(lambda: snapshot.resume({"return_value": reply.value}))
        kind, message = reply.error, reply.message
        if kind not in get_args(ExcType):
            kind, message = "RuntimeError", f"{kind}: {message}"
        return self._run(lambda: snapshot.resume({"exc_type": kind, "message": message}))  # type: ignore[typeddict-item]

    def close(self) -> None:
        self._session.__exit__(None, None, None)

    def _run(self, move: Callable[[], Snapshot]) -> HostCall | CodeEnd:
        """Run code up to its next host call. Other stops, of names and of the machine, are answered here."""
        from pydantic_monty import MontyComplete, MontyCrashedError, MontyError

        try:
            snapshot = move()
            while not isinstance(snapshot, MontyComplete):
                if (call := self._host_call(snapshot)) is not None:
                    self._snapshot = snapshot
                    return call
                snapshot = self._answer(snapshot)
            return CodeEnd(snapshot.output)
        except MontyCrashedError as error:
            return CodeEnd(None, f"RuntimeError: the process of the code ended ({error})", is_lost=True)
        except MontyError as error:
            return self._failure(error)

    def _host_call(self, snapshot: Snapshot) -> HostCall | None:
        from pydantic_monty import FunctionSnapshot

        if not isinstance(snapshot, FunctionSnapshot) or snapshot.function_name not in self._functions:
            return None
        return HostCall(snapshot.function_name, snapshot.args, tuple(snapshot.kwargs.items()))

    def _answer(self, snapshot: Snapshot) -> Snapshot:
        """Refuse what is no host call."""
        from pydantic_monty import FunctionSnapshot, FutureSnapshot, NameLookupSnapshot

        if isinstance(snapshot, NameLookupSnapshot):
            name = snapshot.variable_name
            return snapshot.resume(value=_placeholder(name)) if name in self._functions else snapshot.resume()
        if isinstance(snapshot, FunctionSnapshot):
            if snapshot.is_os_function:
                return snapshot.resume_not_handled()
            message = f"name {snapshot.function_name!r} is not defined"
            return snapshot.resume({"exc_type": "NameError", "message": message})
        assert isinstance(snapshot, FutureSnapshot)
        return snapshot.resume({call: {"return_value": None} for call in snapshot.pending_call_ids})

    def _failure(self, error: MontyError) -> CodeEnd:
        from pydantic_monty import MontyRuntimeError, MontySyntaxError

        message = str(error.exception())
        if message.startswith("feed time limit exceeded"):
            # The message of Monty has the measured time, which would differ in each repetition.
            why = f"TimeoutError: the code ran for more than {self._limits.seconds:g} seconds"
            return CodeEnd(None, why, is_lost=True)
        if isinstance(error, MontyRuntimeError | MontySyntaxError):
            return CodeEnd(None, error.display(), is_lost=message.startswith("suspension limit"))
        return CodeEnd(None, f"RuntimeError: {error}", is_lost=True)


def _placeholder(name: str) -> Callable[[], None]:
    """Return a function of this name: Monty sends a name as a value by the ``__name__`` of a function."""

    def call() -> None: ...

    call.__name__ = name
    return call
