"""Interpreters: values, output, errors, host calls, limits and sessions, on Monty and on CPython in a process."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from time import sleep
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonValue
from sigwire.effects.emitting import stream
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError
from sigwire.interpreters import monty, session
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.code_result import CodeResult
from sigwire.interpreters.host_calls import EndCode, HostCallError
from sigwire.interpreters.interpreter import CodeSession, HostNames, Interpreter
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter
from tests.strategies import at_most

KINDS = {"monty": MontyInterpreter, "cpython": SubprocessInterpreter}
if os.name != "posix":
    del KINDS["cpython"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="SubprocessInterpreter needs POSIX")
LIMITS = CodeLimits(seconds=5, calls=3, output=40)


@pytest.fixture(scope="module", params=KINDS)
def interpreter(request: pytest.FixtureRequest) -> Iterator[Interpreter]:
    made = KINDS[request.param](LIMITS)
    yield made
    made.close()


def double(n: JsonValue, *, times: int = 1) -> Steps[JsonValue]:
    assert isinstance(n, int)
    return n * (1 << times)
    yield


def fail(kind: str, message: str) -> Steps[JsonValue]:
    raise HostCallError(kind, message)
    yield


def finish(**outputs: JsonValue) -> Steps[JsonValue]:
    raise EndCode(outputs)
    yield


NAMES: HostNames = {"double": double, "fail": fail, "finish": finish, "data": {"a": [1, None]}}


def execute(interpreter: Interpreter, *codes: str) -> CodeResult:
    """Run codes in one session; return the last result."""
    session = interpreter.session()
    try:
        return [run(session.steps(code, NAMES)) for code in codes][-1]
    finally:
        session.close()


VALUES: list[tuple[str, JsonValue]] = [
    ("1 + 1", 2),
    ("x = 1", None),
    ("", None),
    ("(1, [2.5, None], {'a': True})", [1, [2.5, None], {"a": True}]),
    ("float('nan')", "nan"),
    ("10 ** 5000", "<int>"),
    ("x = []\nfor _ in range(5000): x = [x]\nx", "<list>"),
    ("'\\ud800'[0:0] + 'é'", "é"),
    ("data['a']", [1, None]),
    ("double(4)", 8),
    ("f = double\n[f(n) for n in (1, 2)]", [2, 4]),
    ("double(1, times=3)", 8),
]


@pytest.mark.parametrize(("code", "value"), VALUES)
def test_value_of_the_last_expression_is_json(interpreter: Interpreter, code: str, value: JsonValue) -> None:
    result = execute(interpreter, code)
    assert (result.value, result.error) == (value, "")
    assert CodeResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_variables_stay_in_a_session_and_are_not_shared(interpreter: Interpreter) -> None:
    assert execute(interpreter, "x = 2\ndef f(): return x", "x = 3", "f()").value == 3
    assert "NameError" in execute(interpreter, "x").error


def test_printed_text_is_kept_up_to_the_limit(interpreter: Interpreter) -> None:
    assert execute(interpreter, "print('a', 1)\nprint('b')").output == "a 1\nb\n"
    assert execute(interpreter, "print('x' * 100)").output == "x" * 40 + "\n... (the output ends after 40 characters)"
    assert execute(interpreter, "print('early')\n1 / 0").output == "early\n"


def test_error_is_the_traceback_of_the_code_alone(interpreter: Interpreter) -> None:
    result = execute(interpreter, "def half(n):\n    return n / 0\nhalf(1)")
    assert "half(1)" in result.error
    assert "return n / 0" in result.error
    assert result.error.endswith("ZeroDivisionError: division by zero")
    assert ".py" not in result.error.replace("code.py", "")
    assert "SyntaxError" in execute(interpreter, "x = (").error


def test_long_error_is_cut_to_its_end(interpreter: Interpreter) -> None:
    error = execute(interpreter, "raise ValueError('x' * 5000 + ' the end')").error
    assert len(error) == 2000
    assert error.endswith("the end")


ERRORS = [
    ("fail('ValueError', 'too small')", "ValueError", "too small"),
    ("fail('OutOfStock', 'no apples')", "RuntimeError", "OutOfStock: no apples"),
    ("fail('UnicodeDecodeError', 'bad')", ("UnicodeDecodeError", "RuntimeError"), "bad"),
    ("double(open)", ("TypeError", "NameError"), ""),
    ("double()", "TypeError", "double"),
    ("double(1, 2)", "TypeError", "double"),
    ("double(float('inf'))", "TypeError", "JSON"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_failed_host_call_is_an_exception_that_code_catches(
    interpreter: Interpreter, call: str, kind: str | tuple[str, ...], message: str
) -> None:
    code = f"try:\n    {call}\nexcept Exception as error:\n    seen = [type(error).__name__, str(error)]\nseen"
    seen = execute(interpreter, code).value
    assert isinstance(seen, list)
    assert seen[0] in kind if isinstance(kind, tuple) else seen[0] == kind
    assert message in str(seen[1])


def test_object_of_the_code_is_no_argument_of_a_host_call(interpreter: Interpreter) -> None:
    assert "TypeError: double()" in execute(interpreter, "class A: pass\ndouble(A())").error


def test_calls_above_the_limit_are_refused(interpreter: Interpreter) -> None:
    result = execute(interpreter, "for n in range(9):\n    double(n)")
    assert (result.calls, "the limit of 3 calls" in result.error) == (4, True)


def test_end_of_code_runs_no_line_after_the_call(interpreter: Interpreter) -> None:
    code = "try:\n    finish(a=1)\nexcept BaseException:\n    print('caught')\nprint('after')"
    result = execute(interpreter, code)
    assert (result.value, result.output, result.error) == ({"a": 1}, "", "")


def test_other_exception_of_a_host_function_ends_the_program(interpreter: Interpreter) -> None:
    def broken() -> Steps[JsonValue]:
        raise ZeroDivisionError("ours")
        yield

    with pytest.raises(ZeroDivisionError, match="ours"):
        run(interpreter.session().steps("try:\n    broken()\nexcept BaseException: pass", {"broken": broken}))


@pytest.mark.parametrize("kind", KINDS)
def test_time_limit_ends_the_code_and_the_session_goes_on_without_variables(kind: str) -> None:
    with KINDS[kind](CodeLimits(seconds=0.2)) as interpreter:
        session = interpreter.session()
        run(session.steps("x = 1", {}))
        late = run(session.steps("while True:\n    try:\n        while True: pass\n    except BaseException: pass", {}))
        assert late.is_lost
        assert late.error == (
            "TimeoutError: the code ran for more than 0.2 seconds\nAll variables of earlier code are lost."
        )
        assert "NameError" in run(session.steps("x", {})).error
        session.close()


@pytest.mark.long
def test_time_of_host_calls_does_not_count() -> None:
    def slow() -> Steps[JsonValue]:
        sleep(0.6)
        return 1
        yield

    for kind in KINDS.values():
        with kind(CodeLimits(seconds=0.5)) as interpreter:
            session = interpreter.session()
            assert run(session.steps("slow()", {"slow": slow})).value == 1
            session.close()


def drive_sync(steps: Callable[[], Steps[CodeResult]]) -> CodeResult:
    return run(steps())


def drive_async(steps: Callable[[], Steps[CodeResult]]) -> CodeResult:
    return asyncio.run(arun(steps()))


def drive_streamed(steps: Callable[[], Steps[CodeResult]]) -> CodeResult:
    events = stream(steps())
    while True:
        try:
            next(events)
        except StopIteration as end:
            result: CodeResult = end.value
            return result


@pytest.mark.parametrize("drive", [drive_sync, drive_async, drive_streamed])
def test_each_driver_gives_the_same_result(
    interpreter: Interpreter, drive: Callable[[Callable[[], Steps[CodeResult]]], CodeResult]
) -> None:
    code = "print('go')\ntry:\n    fail('KeyError', 'k')\nexcept KeyError:\n    pass\ndouble(2)"
    session = interpreter.session()
    result = drive(lambda: session.steps(code, NAMES))
    session.close()
    assert result == CodeResult(4, "go\n", calls=2)


def test_cancelled_task_does_not_wait_for_its_code() -> None:
    async def cancel(interpreter: Interpreter) -> None:
        session = interpreter.session()
        task = asyncio.ensure_future(arun(session.steps("while True: pass", {})))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for kind in KINDS.values():
        with kind(CodeLimits(seconds=0.2)) as interpreter:
            asyncio.run(cancel(interpreter))


def test_repeated_session_of_a_recorded_time_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "now", lambda: datetime(2026, 1, 2, tzinfo=UTC))
    for kind in KINDS.values():
        with kind() as interpreter:
            codes = "import random\n[random.random(), sorted({'a', 'b', 'c'}), str({'a', 'b', 'c'})]"
            assert execute(interpreter, codes).value == execute(interpreter, codes).value
    with MontyInterpreter() as interpreter:
        assert execute(interpreter, "import datetime\nstr(datetime.datetime.now())").value == "2026-01-02 00:00:00"


def test_copies_share_the_interpreter_and_pickles_make_an_equal_one(interpreter: Interpreter) -> None:
    assert copy.deepcopy(interpreter) is interpreter
    again = pickle.loads(pickle.dumps(interpreter))
    assert again.limits == LIMITS
    again.close()


def test_interpreter_works_after_close() -> None:
    for kind in KINDS.values():
        interpreter = kind()
        interpreter.open()
        assert execute(interpreter, "1").value == 1
        interpreter.close()
        assert execute(interpreter, "2").value == 2
        interpreter.close()


def test_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monty, "find_spec", dict[str, object]().get)
    with pytest.raises(ConfigurationError, match=r'pip install "sigwire\[code\]"'):
        MontyInterpreter()


def test_limit_below_zero_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="seconds is a limit above 0"):
        CodeLimits(seconds=0)


@pytest.mark.parametrize("limits", [{"seconds": "1"}, {"memory": True}], ids=str)
def test_limit_that_is_no_number_is_refused(limits: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"is a limit above 0, not ('1'|True)"):
        CodeLimits(**limits)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_limits_that_are_no_code_limits_are_refused(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"limits is a CodeLimits, not 5 .* Write limits=CodeLimits"):
        kind(5)


@POSIX
def test_interpreter_of_an_unknown_program_is_refused() -> None:
    steps = SubprocessInterpreter(python="/nowhere/python").session().steps("1", {})
    with pytest.raises(ConfigurationError, match="/nowhere/python cannot be started"):
        run(steps)


@POSIX
def test_interpreter_that_is_no_python_is_refused() -> None:
    steps = SubprocessInterpreter(python="/bin/true").session().steps("1", {})
    with pytest.raises(ConfigurationError, match=r"/bin/true does not run cpython\.py"):
        run(steps)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def one_session(interpreter: Interpreter) -> Iterator[CodeSession]:
    made = interpreter.session()
    yield made
    made.close()


@pytest.mark.long
@at_most(60)
@given(value=JSON_VALUES)
def test_json_value_passes_through_code_and_host_unchanged(one_session: CodeSession, value: JsonValue) -> None:
    def echo(given: JsonValue) -> Steps[JsonValue]:
        assert given == value
        return given
        yield

    result = run(one_session.steps("echo(x)", {"echo": echo, "x": value}))
    assert (result.value, result.error) == (value, "")
