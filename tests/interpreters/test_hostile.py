"""Hostile programs: each ends as an error for the model, within its limits, and the machine is as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sigwire.core.json import JsonValue
from sigwire.effects.steps import Steps, run
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.interpreter import Interpreter
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter

LIMITS = CodeLimits(seconds=5, memory=48 * 2**20, calls=20, output=1_000)
KINDS = {"monty": MontyInterpreter, "cpython": SubprocessInterpreter}
if sys.platform != "linux":  # other systems have other limits, or none
    del KINDS["cpython"]
BOTH, MONTY, CPYTHON = ("monty", "cpython"), ("monty",), ("cpython",)
CLOCK = "TimeoutError"  # programs that the clock ends get less time

PROGRAMS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "read a file": (MONTY, "open('/etc/passwd').read()", "PermissionError"),
    "read a file by pathlib": (MONTY, "from pathlib import Path\nPath('/etc/passwd').read_text()", "PermissionError"),
    "write a file": (MONTY, "open('MARK', 'w').write('x')", "PermissionError"),
    "list a folder": (MONTY, "import os\nos.listdir('/')", "Error"),
    "read the environment": (BOTH, "import os\nos.environ['SIGWIRE_TEST_SECRET']", "Error"),
    "open a socket": (BOTH, "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)", "Error"),
    "ask a name server": (BOTH, "import socket\nsocket.getaddrinfo('example.com', 80)", "Error"),
    "start a shell": (BOTH, "import os\nos.system('touch MARK')", "Error"),
    "start a program": (BOTH, "import subprocess\nsubprocess.run(['touch', 'MARK'])", "Error"),
    "fork for ever": (BOTH, "import os\nwhile True: os.fork()", "Error"),
    "kill the parent": (BOTH, "import os\nos.kill(os.getppid(), 9)", "Error"),
    "run for ever": (BOTH, "while True: pass", CLOCK),
    "catch its own end": (
        BOTH,
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        CLOCK,
    ),
    "search with a slow pattern": (CPYTHON, "import re\nre.match('(a+)+$', 'a' * 64 + 'b')", CLOCK),
    "recurse for ever": (BOTH, "def f(n): return f(n + 1)\nf(0)", "RecursionError"),
    "take memory at once": (BOTH, "x = [0] * 10 ** 10", "MemoryError"),
    "take memory step by step": (BOTH, "x = 'x'\nwhile True: x += x", "MemoryError"),
    "compute a huge power": (MONTY, "x = 10 ** 10 ** 9", "MemoryError"),
    "print for ever": (BOTH, "while True: print('x' * 1000)", CLOCK),
    "walk to the host by attributes": (
        MONTY,
        "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0]",
        "Error",
    ),
    "walk to the host by a function": (BOTH, "look.__globals__['__builtins__']['open']('MARK', 'w')", "Error"),
    "import by text": (MONTY, "__import__('os').system('touch MARK')", "Error"),
    "run text": (MONTY, "exec('import socket')", "Error"),
    "call with wrong arguments": (BOTH, "look(nothing=1)", "TypeError"),
    "call with too many arguments": (BOTH, "look(1, 2, 3)", "TypeError"),
    "call with an object": (BOTH, "class A: pass\nlook(A())", "TypeError"),
    "call for ever": (BOTH, "while True: look(1)", "the limit of 20 calls"),
    "call a name that is not given": (BOTH, "submit_all(1)", "NameError"),
    "end the process": (BOTH, "import os\nos._exit(0)", "Error"),
    "leave by sys": (BOTH, "raise SystemExit", "SystemExit"),
}
CASES = [
    pytest.param(kind, name, id=f"{kind}-{name.replace(' ', '_')}")
    for name, row in PROGRAMS.items()
    for kind in row[0]
    if kind in KINDS
]


def look(n: JsonValue) -> Steps[JsonValue]:
    return n
    yield


@pytest.fixture(scope="module")
def interpreters() -> Iterator[dict[str, Interpreter]]:
    made = {name: kind(LIMITS) for name, kind in KINDS.items()}
    yield made
    for each in made.values():
        each.close()


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_hostile_program_ends_as_an_error(
    interpreters: dict[str, Interpreter], kind: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SIGWIRE_TEST_SECRET", "secret")
    monkeypatch.chdir(tmp_path)
    _, code, error = PROGRAMS[name]
    session = interpreters[kind].session(replace(LIMITS, seconds=0.15) if error == CLOCK else LIMITS)
    result = run(session.steps(code.replace("MARK", str(tmp_path / "mark")), {"look": look}))
    assert error in result.error
    assert len(result.error) <= 2_000
    assert len(result.output) <= 1_100
    assert result.value is None
    assert "secret" not in result.error
    assert list(tmp_path.iterdir()) == []
    if error == CLOCK:  # its time is too short for a busy machine
        session.close()
        session = interpreters[kind].session()
    assert run(session.steps("1 + 1", {})).value == 2  # the session goes on
    session.close()


def test_at_least_twenty_programs_run_on_each_interpreter() -> None:
    assert all(sum(kind in row[0] for row in PROGRAMS.values()) >= 20 for kind in KINDS)
