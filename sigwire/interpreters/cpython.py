"""The program of ``SubprocessInterpreter``: runs code, and exchanges JSON lines with the process that started it.

This file is run by the interpreter of the code, never imported; it uses the standard library only. The first line of its input
has the limits. A message in: ``code``, or the ``value`` or ``error`` of a host call. A message out: a ``call``, printed
``text``, or the ``end`` with a value or an error.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import linecache
import os
import random
import re
import signal
import sys
import traceback
from typing import Any

__all__ = ["main"]

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_MOST_FILE_BYTES, _OWN_MEMORY = 16 * 2**20, 64 * 2**20
_REFUSED = (
    "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn",
    "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen",
)  # fmt: skip


class _Host:
    """The other process, on copies of standard input and output; the code's own are a closed input and ``print``."""

    def __init__(self) -> None:
        self._lines = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        empty = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(empty, number)
        sys.stdout = sys.stderr = _Printed(self)

    def receive(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            os._exit(0)  # the program ended
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, **message: object) -> None:
        text = json.dumps(message, default=_as_list)  # before the first byte is written: it may raise
        self._out.write(text + "\n")
        self._out.flush()

    def function(self, name: str) -> Any:
        def call(*args: object, **kwargs: object) -> object:
            try:
                self.send(call=name, args=args, kwargs=kwargs)
            except (TypeError, ValueError, RecursionError) as error:
                raise TypeError(f"{name}() takes numbers, texts, lists and dicts only: {error}") from None
            with _Paused():
                reply = self.receive()
            if reply["error"]:
                raise _exception(reply["error"], reply["message"])
            return reply["value"]

        call.__name__ = name
        return call


class _Paused:
    """Inside the block the code waits for the host, and its time does not count."""

    def __enter__(self) -> None:
        self._remaining, _ = signal.setitimer(signal.ITIMER_REAL, 0)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._remaining)


def _as_list(value: Any) -> list[object]:
    if isinstance(value, set | frozenset):
        return [*value]  # pyright: ignore[reportUnknownVariableType]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _exception(name: str, message: str) -> Exception:
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:  # a UnicodeError takes other arguments
            pass
    return RuntimeError(f"{name}: {message}")


class _Printed:
    """Standard output and error of the code."""

    def __init__(self, host: _Host) -> None:
        self._host = host

    def write(self, text: str) -> int:
        for start in range(0, len(text), 65_536):
            self._host.send(text=text[start : start + 65_536])
        return len(text)

    def flush(self) -> None:
        pass


def _confine(memory: int) -> None:
    """Drop what code does not need. A step that the system does not have is left out."""
    import ctypes
    import resource

    os.environ.clear()
    unshare = getattr(ctypes.CDLL(None), "unshare", None)  # Linux: the process has no network, and no rights of root
    if unshare is not None:
        unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    most = {"AS": memory + _OWN_MEMORY, "FSIZE": _MOST_FILE_BYTES, "CORE": 0}
    for name, value in most.items():
        if (number := getattr(resource, f"RLIMIT_{name}", None)) is not None:
            with contextlib.suppress(OSError, ValueError):  # a lower limit is set already, or the system has none
                resource.setrlimit(number, (value, value))
    sys.addaudithook(_refuse)


def _refuse(event: str, args: object) -> None:
    if event in _REFUSED:
        raise PermissionError(f"{event} is not allowed here")


def _run(host: _Host, code: str, names: dict[str, Any]) -> dict[str, object]:
    """Run code; return the message with the value of its last expression, or with its error."""
    linecache.cache["<code>"] = (len(code), None, code.splitlines(keepends=True), "<code>")
    try:
        tree = ast.parse(code, "<code>")
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            exec(compile(tree, "<code>", "exec"), names)
            return {"end": None, "error": ""}
        tree.body.pop()
        exec(compile(tree, "<code>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<code>", "eval"), names)
    except BaseException as error:
        return {"end": None, "error": _shown(error)}
    try:
        json.dumps(value, default=_as_list)
    except (TypeError, ValueError, RecursionError):
        return {"end": _text(value), "error": ""}
    return {"end": value, "error": ""}


def _text(value: object) -> str:
    try:
        return re.sub(" at 0x[0-9a-f]+", "", repr(value)[:10_000])
    except Exception:  # a class of the code may raise anything
        return f"<{type(value).__name__}>"


def _shown(error: BaseException) -> str:
    """Return the traceback with the lines of the code only."""
    whole = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = whole
    while part is not None:
        part.stack = traceback.StackSummary.from_list([frame for frame in part.stack if frame.filename == "<code>"])
        part = part.__cause__ or part.__context__
    return "".join(whole.format()).rstrip("\n")


def main() -> None:
    """Serve the process that started this one until it ends."""
    host = _Host()
    start = host.receive()
    random.seed(start["seed"])
    _confine(start["memory"])
    host.send(ready=True)
    names: dict[str, Any] = {"__name__": "__main__"}
    while True:
        message = host.receive()
        names |= {name: host.function(name) for name in message["functions"]} | message["variables"]
        # The other process ends this one after ``seconds``. The alarm does it if that process was killed.
        signal.setitimer(signal.ITIMER_REAL, start["seconds"] + 1)
        end = _run(host, message["code"], names)
        signal.setitimer(signal.ITIMER_REAL, 0)
        host.send(**end)


if __name__ == "__main__":
    main()
