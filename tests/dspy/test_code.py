"""DSPy's modules that run code, and interpreters of DSPy's protocol: any object with tools, start, execute and shutdown."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sigwire.dspy.utils.callback import ACTIVE_CALL_ID

import sigwire.dspy as dspy
from sigwire import ConfigurationError, FakeLM, LMServerError
from sigwire.dspy.primitives.interpreters import (
    CodeExecutionError,
    CodeInterpreter,
    CodeInterpreterError,
    FinalOutput,
    PythonInterpreter,
)
from tests.modules.code.driving import MODES, called


class Submitted(Exception):
    def __init__(self, output: Any) -> None:
        self.output = output


class Plain:
    """An interpreter as users of DSPy write it: ``exec`` in this process, in one thread."""

    execution_instructions = "Plain Python."

    def __init__(self) -> None:
        self.tools: dict[str, Callable[..., Any]] = {}
        self.names: dict[str, Any] = {}
        self.threads: set[int] = set()
        self.is_open = True

    def start(self) -> None:
        self.threads.add(threading.get_ident())

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        assert self.is_open
        self.threads.add(threading.get_ident())
        printed: list[str] = []

        def submit(**outputs: Any) -> None:
            raise Submitted(outputs)

        self.names.update(self.tools, SUBMIT=submit, print=lambda *values: printed.append(" ".join(map(str, values))))
        self.names.update(variables or {})
        try:
            exec(code, self.names)  # the test is about such interpreters
        except Submitted as submitted:
            return FinalOutput(submitted.output)
        except SyntaxError:
            raise
        except Exception as error:
            raise CodeExecutionError(f"{type(error).__name__}: {error}") from error
        return "\n".join(printed)

    def shutdown(self) -> None:
        self.threads.add(threading.get_ident())
        self.is_open = False


@pytest.fixture
def made() -> list[Plain]:
    return []


@pytest.fixture
def factory(made: list[Plain]) -> Callable[[], Plain]:
    def make() -> Plain:
        made.append(Plain())
        return made[-1]

    return make


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


# --- PythonInterpreter -----------------------------------------------------------------------------


def test_python_interpreter_keeps_variables_and_returns_values_or_printed_text() -> None:
    with PythonInterpreter() as interpreter:
        assert isinstance(interpreter, CodeInterpreter)
        interpreter.start()
        assert interpreter.execute("n = 2\nprint('two')") == "two\n"
        assert interpreter("n + more", {"more": 40}) == 42
        assert interpreter.execute("pass") == ""


def test_python_interpreter_calls_tools_and_returns_submitted_outputs() -> None:
    def fail() -> None:
        raise ValueError("no")

    interpreter = PythonInterpreter(
        tools={"double": double, "fail": fail}, output_fields=[{"name": "a"}, {"name": "b"}]
    )
    assert interpreter.execute("double(n=21)") == 42
    assert interpreter.execute("SUBMIT(1, b=[2])\nprint('not run')") == FinalOutput({"a": 1, "b": [2]})
    with pytest.raises(CodeExecutionError, match="ValueError: no"):
        interpreter.execute("fail()")
    interpreter.shutdown()


def test_code_cannot_catch_an_error_of_a_tool_that_ends_the_run() -> None:
    error = LMServerError("503")

    def fail() -> None:
        raise error

    with PythonInterpreter(tools={"fail": fail}) as interpreter, pytest.raises(LMServerError) as found:
        interpreter.execute("try:\n    fail()\nexcept BaseException:\n    pass")
    assert found.value is error


def test_python_interpreter_raises_errors_of_code_and_after_its_end() -> None:
    interpreter = PythonInterpreter()
    with pytest.raises(SyntaxError):
        interpreter.execute("for")
    with pytest.raises(CodeExecutionError, match="ZeroDivisionError"):
        interpreter.execute("1 / 0")
    interpreter.shutdown()
    with pytest.raises(CodeInterpreterError, match="shut down"):
        interpreter.execute("1")


class Recorder(dspy.BaseCallback):
    """Records each operation of an interpreter with the operation around it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.names: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_interpreter_"):
            raise AttributeError(name)
        operation, _, moment = name.removeprefix("on_interpreter_").rpartition("_")
        return lambda **facts: self.record(operation, moment, facts)

    def record(self, operation: str, moment: str, facts: dict[str, Any]) -> None:
        if moment == "start":
            self.names[facts["call_id"]] = operation
            around = self.names.get(str(ACTIVE_CALL_ID.get()), "")
            self.events.append((f"{around}>{operation}", dict(facts["inputs"])))
        else:
            self.events.append((self.names[facts["call_id"]], facts["outputs"] or facts["exception"]))


def test_python_interpreter_shows_its_operations_to_its_listeners() -> None:
    recorder = Recorder()
    interpreter = PythonInterpreter(tools={"double": double}, callbacks=[recorder])
    code = "double(n=21)"
    assert interpreter.execute(code) == 42
    interpreter.start()  # is started
    interpreter.shutdown()
    assert recorder.events == [
        (">execute", {"code": code, "variables": None}),
        ("execute>startup", {}),
        ("startup", None),
        ("execute>tool_call", {"tool_name": "double", "kwargs": {"n": 21}}),
        ("tool_call", 42),
        ("execute", 42),
        (">shutdown", {}),
        ("shutdown", None),
    ]


def test_invoke_tool_returns_the_raw_value_and_shows_errors() -> None:
    recorder, value, error = Recorder(), object(), OSError("no")

    async def fail() -> None:
        raise error

    interpreter = PythonInterpreter(tools={"give": lambda: value, "fail": fail}, callbacks=[recorder])
    assert interpreter.invoke_tool("give", {}) is value
    with pytest.raises(OSError, match="no"):
        interpreter.invoke_tool("fail", {})
    with pytest.raises(CodeInterpreterError, match=r"Unknown tool: missing .*give, fail"):
        interpreter.invoke_tool("missing", {})
    seen = [found for name, found in recorder.events if name == "tool_call"]
    assert seen[:2] == [value, error]
    assert isinstance(seen[2], CodeInterpreterError)


def test_with_callbacks_shows_operations_of_an_own_interpreter() -> None:
    class Watched(Plain):
        execute = dspy.with_callbacks(Plain.execute)

    recorder = Recorder()
    with dspy.context(callbacks=[recorder]):
        Watched().execute("SUBMIT(a=1)")
    assert recorder.events == [
        (">execute", {"code": "SUBMIT(a=1)", "variables": None}),
        ("execute", FinalOutput({"a": 1})),
    ]


# --- modules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_factory_makes_one_interpreter_for_each_call(mode: str, made: list[Plain], factory: Any) -> None:
    think = dspy.ProgramOfThought("n: int -> answer: int", interpreter_factory=factory)
    think.set_lm(FakeLM([
        {"reasoning": "r", "generated_code": "submit(answer=n / 0)"},
        {"reasoning": "r", "generated_code": "SUBMIT(answer=n * 2)"},
        {"reasoning": "r", "generated_code": "submit(answer=n)\nraise SystemExit"},
    ]))  # fmt: skip
    assert (called(mode, think, n=21).answer, called(mode, think, n=3).answer) == (42, 3)
    assert len(made) == 2
    for thread in [each for each in threading.enumerate() if each.name == "sigwire-interpreter"]:
        thread.join(60)
    assert [(each.is_open, len(each.threads)) for each in made] == [(False, 1)] * 2


def test_own_interpreter_of_the_caller_stays_open() -> None:
    own = Plain()
    think = dspy.ProgramOfThought("n: int -> answer: int")
    think.set_lm(FakeLM([{"reasoning": "r", "generated_code": "seen = n\nsubmit(answer=n)"}]))
    assert think(own, n=4).answer == 4
    assert (own.is_open, own.names["seen"]) == (True, 4)
    act = dspy.CodeAct("n: int -> answer: int", tools=[double])
    act.set_lm(FakeLM([{"reasoning": "r", "code": "submit(answer=double(seen))"}]))
    assert act(own, n=1).answer == 8
    reader: Any = dspy.RLM("context -> answer: int", max_iters=2)
    reader.generate_action = lambda **inputs: dspy.Prediction(reasoning="r", code="```python\nSUBMIT(answer=seen)\n```")
    assert reader.forward(own, context="c").answer == 4
    assert own.is_open


def test_rlm_extracts_outputs_after_its_last_turn() -> None:
    reader: Any = dspy.RLM("context -> answer", max_iters=2)
    with dspy.context(lm=dspy.DummyLM([{"reasoning": "r", "code": "print(1)"}] * 2 + [{"answer": "x"}])):
        result = reader(context="c")
    assert (result.answer, result.final_reasoning) == ("x", "Extract forced final output")
    assert [row["output"] for row in result.trajectory] == ["1", "1"]


@pytest.mark.parametrize("mode", MODES)
def test_code_act_has_the_trajectory_of_dspy(mode: str, factory: Any) -> None:
    act = dspy.CodeAct("n: int -> answer: int", tools=[double], max_iters=5, interpreter_factory=factory)
    act.set_lm(FakeLM([
        {"reasoning": "r", "code": "print(double(21))"}, {"reasoning": "r", "code": "lost"},
        {"reasoning": "r", "code": "SUBMIT(answer='x')"}, {"reasoning": "r", "code": "SUBMIT(answer=42)"},
    ]))  # fmt: skip
    result = called(mode, act, n=21)
    assert result.answer == 42
    assert result.trajectory["generated_code_0"] == "print(double(21))"
    assert result.trajectory["code_output_0"] == "42"
    assert "NameError" in result.trajectory["observation_1"]
    assert "answer" in result.trajectory["observation_2"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "monty"])
def test_rlm_has_the_arguments_and_results_of_dspy(mode: str, plain: bool, factory: Any) -> None:
    options = {"interpreter_factory": factory} if plain else {}
    reader = dspy.RLM(
        "context, query -> answer", max_iters=10, max_llm_calls=5, max_output_chars=100, verbose=True, tools=[double],
        sub_lm=FakeLM(["a", "b", "c"]), **options,
    )  # fmt: skip
    reader.set_lm(FakeLM([
        {"reasoning": "Look.", "code": "print(len(context), double(2))"},
        {"reasoning": "Ask.", "code": "SUBMIT(answer=llm_query(query) + ''.join(llm_query_batched([query, query])))"},
    ]))  # fmt: skip
    result = called(mode, reader, context="x" * 1000, query="?")
    assert sorted(result.answer) == ["a", "b", "c"]
    assert result.final_reasoning == "Ask."
    assert result.trajectory[0] == {"reasoning": "Look.", "code": "print(len(context), double(2))", "output": "1000 4"}


def test_setting_of_the_factory_is_used_by_modules_without_one(made: list[Plain], factory: Any) -> None:
    think = dspy.ProgramOfThought("n: int -> answer: int")
    think.set_lm(FakeLM([{"reasoning": "r", "generated_code": "submit(answer=n)"}] * 2))
    with dspy.context(interpreter_factory=factory):
        assert think(n=1).answer == 1
        assert dspy.settings.interpreter_factory is factory
    assert len(made) == 1
    assert think(n=2).answer == 2
    assert len(made) == 1


def test_failure_of_an_interpreter_ends_the_run() -> None:
    class Broken(Plain):
        def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
            raise CodeInterpreterError("the sandbox is gone")

    think = dspy.ProgramOfThought("n: int -> answer: int", interpreter_factory=Broken)
    think.set_lm(FakeLM([{"reasoning": "r", "generated_code": "submit(answer=n)"}]))
    with pytest.raises(CodeInterpreterError, match="the sandbox is gone"):
        think(n=1)


def test_wrong_factories_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="interpreter_factory is a function"):
        dspy.RLM("a -> b", interpreter_factory=Plain())  # type: ignore[arg-type]
    think = dspy.ProgramOfThought("n: int -> answer: int", interpreter_factory=dict)  # type: ignore[arg-type]
    think.set_lm(FakeLM([{"reasoning": "r", "generated_code": "submit(answer=n)"}]))
    with pytest.raises(ConfigurationError, match="not dict, which lacks one"):
        think(n=1)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("predict.rlm", "RLM"),
        ("predict.program_of_thought", "ProgramOfThought"),
        ("predict.code_act", "CodeAct"),
        ("primitives.python_interpreter", "PythonInterpreter"),
        ("primitives.code_interpreter", "FinalOutput"),
    ],
)
def test_names_are_at_the_paths_of_dspy(module: str, name: str) -> None:
    assert getattr(importlib.import_module(f"sigwire.dspy.{module}"), name) is not None


@pytest.mark.parametrize("made", [dspy.CodeAct, dspy.ProgramOfThought, dspy.RLM])
def test_interpreter_as_an_option_is_refused_with_the_two_ways(made: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"interpreter_factory=PythonInterpreter, or an interpreter as the first"
    ):
        made("a -> b", interpreter=Plain())


async def test_event_loop_goes_on_while_an_interpreter_shuts_down() -> None:
    leave, left = threading.Event(), threading.Event()

    class Slow(Plain):
        def shutdown(self) -> None:
            assert leave.wait(60)
            super().shutdown()
            left.set()

    reader = dspy.RLM("n: int -> double: int", interpreter_factory=Slow)
    reader.set_lm(dspy.FakeLM([{"reasoning": "Double it.", "code": "SUBMIT(double=2 * n)"}]))
    asyncio.get_running_loop().call_later(0.05, leave.set)  # comes only if the loop is free
    assert (await reader.acall(n=4)).double == 8
    assert left.is_set()


def test_session_is_not_opened_for_an_input_that_cannot_be_prepared() -> None:
    class Torn(dspy.SandboxSerializable):
        def sandbox_setup(self) -> str:
            return ""

        def to_sandbox(self) -> bytes:
            raise ValueError("torn")

        def sandbox_assignment(self, var_name: str, data_expr: str) -> str:
            return f"{var_name} = {data_expr}"

        def rlm_preview(self, max_chars: int = 500) -> str:
            return "torn"

    made: list[Plain] = []
    reader = dspy.RLM("page -> title", interpreter_factory=lambda: made.append(Plain()) or made[-1])
    reader.set_lm(dspy.FakeLM([]))
    with pytest.raises(ValueError, match="torn"), dspy.context(warn_on_type_mismatch=False):
        reader(page=Torn())
    assert made == []
