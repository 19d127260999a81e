"""Processes of interpreters: a killed one is replaced, none stays behind, and a forked program has its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sigwire.effects.steps import run
from sigwire.interpreters.interpreter import Interpreter
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc of Linux")
KINDS = [MontyInterpreter, SubprocessInterpreter]


def children(process: int | str = "self") -> set[int]:
    """Return the processes that a process started and that run."""
    found = {
        int(each) for path in Path(f"/proc/{process}/task").glob("*/children") for each in path.read_text().split()
    }
    return {each for each in found if is_running(each)}


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_ended(processes: set[int], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(is_running, processes))


@pytest.mark.parametrize("kind", KINDS)
def test_killed_worker_is_replaced_and_its_variables_are_lost(kind: type[MontyInterpreter]) -> None:
    before = children()
    interpreter: Interpreter = kind()
    session = interpreter.session()
    run(session.steps("x = 1", {}))
    for process in children() - before:
        os.kill(process, signal.SIGKILL)
    result = run(session.steps("x", {}))
    assert result.is_lost
    assert result.error.startswith("RuntimeError: the process of the code ended")
    assert result.error.endswith("All variables of earlier code are lost.")
    assert run(session.steps("x = 2\nx", {})).value == 2
    session.close()
    interpreter.close()
    assert wait_until_ended(children() - before)


@pytest.mark.parametrize("kind", KINDS)
def test_abandoned_sessions_leave_no_process(kind: type[MontyInterpreter]) -> None:
    before = children()
    interpreter: Interpreter = kind()
    for _ in range(3):
        steps = interpreter.session().steps("look()", {"look": iter})
        next(steps).run()
        steps.close()  # in the middle of the code
    del interpreter, steps
    assert wait_until_ended(children() - before)


def script(text: str, *, kill: bool = False) -> tuple[str, set[int]]:
    """Run a program; return its last line, and the processes that it had started when it printed it."""
    program = f"from sigwire.effects.steps import run\n{text}"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        started = children(process.pid)
        if kill:
            process.kill()
        else:
            process.communicate("go on\n", timeout=60)
            assert process.returncode == 0
    return line, started


ENDLESS = """
import threading, time
from sigwire.interpreters.{module} import {name}
from sigwire.interpreters.code_limits import CodeLimits
session = {name}(CodeLimits(seconds=1)).session()
run(session.steps("1", {{}}))
threading.Thread(target=lambda: run(session.steps("while True: pass", {{}})), daemon=True).start()
time.sleep(0.1)
print("running", flush=True)
input()
"""


@pytest.mark.long
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize(
    ("module", "name"), [("monty", "MontyInterpreter"), ("subprocess_interpreter", "SubprocessInterpreter")]
)
def test_code_ends_with_its_program(module: str, name: str, kill: bool) -> None:
    line, started = script(ENDLESS.format(module=module, name=name), kill=kill)
    assert line == "running"
    assert len(started) == 1
    assert wait_until_ended(started)


THOUSAND = """
from sigwire import FakeLM
from sigwire.modules.code.code_act import CodeAct
agent = CodeAct("n: int -> double: int")
for n in range(1000):
    agent.set_lm(FakeLM([{"reasoning": "", "code": f"submit(double=2 * {n})"}]))
    assert agent(n=n).double == 2 * n
print("done", flush=True)
input()
"""


@pytest.mark.long
def test_thousand_runs_start_few_processes_and_leave_none() -> None:
    line, started = script(THOUSAND)
    assert line == "done"
    assert 1 <= len(started) <= 2
    assert wait_until_ended(started, 2)


FORK = """
import os
from sigwire.errors import ConfigurationError
from sigwire.interpreters.monty import default_interpreter
def value():
    session = default_interpreter().session()
    try:
        return run(session.steps("6 * 7", {})).value
    finally:
        session.close()
def in_child():
    child = os.fork()
    if child == 0:
        try:
            os._exit(value())
        except ConfigurationError as error:
            os._exit(7 if "spawn" in str(error) else 8)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(in_child(), value(), in_child(), value(), flush=True)
input()
"""


@pytest.mark.long
def test_fork_before_the_first_code_works_and_later_ones_are_refused() -> None:
    line, started = script(FORK)
    assert (line, len(started)) == ("42 42 7 42", 1)
    assert wait_until_ended(started, 2)
