"""DSPy's modules whose model writes code: ``CodeAct``, ``ProgramOfThought``, ``RLM`` with DSPy's arguments and results.

``interpreter_factory`` makes an interpreter of DSPy's protocol for each call; without one, code runs in Monty. A call may have
its own ``interpreter_factory=``. An interpreter that is the first argument of a call belongs to the caller and stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, ClassVar, cast

from sigwire.core.example import Prediction
from sigwire.dspy.modules import ChainOfThought, Module, Predict
from sigwire.dspy.predict.repl import ReplRun, ReplSignatures, check_fields, named_tools, repl_entry
from sigwire.dspy.primitives.foreign_code import (
    FactoryInterpreter,
    InterpreterFactory,
    checked_factory,
    closed_threads,
    given_factory,
    given_interpreter,
    wait_for,
)
from sigwire.dspy.primitives.interpreters import CodeInterpreter, WrongTypeGiven
from sigwire.effects.steps import Steps
from sigwire.lm.base import LanguageModel
from sigwire.modules import predict
from sigwire.modules.agents.run import AgentRun
from sigwire.modules.agents.toolbox import ToolsLike
from sigwire.modules.code import code_act, program_of_thought, rlm
from sigwire.signatures.signature import Signature

__all__ = ["RLM", "CodeAct", "ProgramOfThought"]


class CodeAct(Module, code_act.CodeAct[..., Any]):
    """``sigwire.CodeAct`` with DSPy's arguments; the result has the field ``trajectory``.

    >>> from sigwire.lm.fake import FakeLM
    >>> def double(n: int) -> int:
    ...     return 2 * n
    >>> act = CodeAct("n: int -> answer: int", tools=[double])
    >>> act.set_lm(FakeLM([{"reasoning": "Double it.", "code": "SUBMIT(answer=double(21))"}]))
    >>> result = act(n=21)
    >>> result.answer, result.trajectory["generated_code_0"]
    (42, 'SUBMIT(answer=double(21))')
    """

    predictor_classes: ClassVar[predict.PredictorClasses] = predict.PredictorClasses(Predict, ChainOfThought)

    def __init__(
        self,
        signature: str | Signature | Callable[..., Any],
        tools: ToolsLike = (),
        max_iters: int = 5,
        interpreter_factory: InterpreterFactory | None = None,
        **options: Any,
    ) -> None:
        super().__init__(cast(Any, signature), tools, max_iters, _interpreter(interpreter_factory, options), **options)

    def steps(self, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one run."""
        return (yield from _with_given(self, super().steps, args, inputs))

    def run_fields(self, run: AgentRun) -> dict[str, object]:
        """Return the fields of a result, with ``trajectory``."""
        return {"trajectory": _trajectory(run), **super().run_fields(run)}


class ProgramOfThought(Module, program_of_thought.ProgramOfThought[..., Any]):
    """``sigwire.ProgramOfThought`` with DSPy's arguments.

    >>> from sigwire.lm.fake import FakeLM
    >>> think = ProgramOfThought("question -> answer: int", max_iters=3)
    >>> think.set_lm(FakeLM([{"reasoning": "Add.", "generated_code": "SUBMIT(answer=1 + 1)"}]))
    >>> think(question="What is 1 + 1?").answer
    2
    """

    predictor_classes: ClassVar[predict.PredictorClasses] = predict.PredictorClasses(ChainOfThought, ChainOfThought)

    def __init__(
        self,
        signature: str | Signature | Callable[..., Any],
        max_iters: int = 3,
        interpreter_factory: InterpreterFactory | None = None,
        **options: Any,
    ) -> None:
        interpreter = _interpreter(interpreter_factory, options)
        super().__init__(cast(Any, signature), max_iters, interpreter=interpreter, **options)

    def steps(self, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one call."""
        return (yield from _with_given(self, super().steps, args, inputs))


class RLM(Module, rlm.RLM[..., Any]):
    """``sigwire.RLM`` with DSPy's arguments; the result has ``trajectory``, a list of dicts, and ``final_reasoning``.

    The fields of its prompts are DSPy's: ``variables_info``, ``repl_history`` and ``iteration`` to ``reasoning`` and ``code``.
    An input may be a ``SandboxSerializable``. ``verbose`` has no effect: the result and streams have every step. Raises
    ``ConfigurationError`` for an input, output or tool with a name that the session or the result uses, and
    ``WrongTypeGiven`` for a dict of tools.

    >>> from sigwire.lm.fake import FakeLM
    >>> reader = RLM("context, query -> answer", max_iters=10)
    >>> reader.set_lm(FakeLM([{"reasoning": "It is short.", "code": "SUBMIT(answer=context[-2:])"}]))
    >>> result = reader(context="The magic number is 42", query="What is it?")
    >>> result.answer, result.final_reasoning, result.trajectory[0]["code"]
    ('42', 'It is short.', 'SUBMIT(answer=context[-2:])')
    """

    session_classes: ClassVar[rlm.SessionClasses] = rlm.SessionClasses(Predict, ReplRun)

    def __init__(
        self,
        signature: str | Signature | Callable[..., Any],
        max_iters: int = 20,
        max_llm_calls: int = 50,
        max_output_chars: int = 10_000,
        verbose: bool = False,
        tools: ToolsLike = (),
        sub_lm: LanguageModel | None = None,
        interpreter_factory: InterpreterFactory | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            cast(Any, signature),
            max_iters,
            max_llm_calls,
            max_output_chars,
            tools=named_tools(tools),
            sub_lm=sub_lm,
            interpreter=_interpreter(interpreter_factory, options),
            **options,
        )
        check_fields(self.signature)
        self._signatures = made = ReplSignatures(self.signature)
        functions = self._listing.replace(f"def {self._submit.name}(", "def SUBMIT(")
        self.generate_action.signature = made.action(functions, self.interpreter.capabilities)
        self.extract.signature = made.extraction()

    def steps(self, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one run."""
        result = yield from _with_given(self, super().steps, args, inputs)
        entries = [repl_entry(step) for step in AgentRun.of(result).steps]
        result["trajectory"] = [
            {"reasoning": entry.reasoning, "code": entry.code, "output": entry.output} for entry in entries
        ]
        is_submitted = AgentRun.of(result).termination_reason == "submit"
        result["final_reasoning"] = entries[-1].reasoning if is_submitted else "Extract forced final output"
        return result


def _interpreter(factory: InterpreterFactory | None, options: Mapping[str, object]) -> FactoryInterpreter:
    if "interpreter" in options:
        raise WrongTypeGiven(
            "unexpected keyword argument 'interpreter' (making a module that runs code). Pass "
            "interpreter_factory=PythonInterpreter, or an interpreter as the first positional argument of each call."
        )
    return FactoryInterpreter(factory)


def _with_given(
    module: code_act.CodeAct[..., Any] | program_of_thought.ProgramOfThought[..., Any] | rlm.RLM[..., Any],
    start: Callable[..., Steps[Prediction]],
    args: tuple[object, ...],
    inputs: dict[str, object],
) -> Steps[Prediction]:
    """Return the steps of a call, in the interpreter that is its first argument, or in one of ``interpreter_factory=``."""
    names = module.signature.input_fields
    if "interpreter" in inputs and "interpreter" not in names:
        raise WrongTypeGiven(
            f"An interpreter is the first positional argument of a call (calling {type(module).__name__})."
        )
    before, closed = closed_threads.get(), list[Thread]()
    closed_threads.set(closed)
    try:
        factory = inputs.pop("interpreter_factory", None) if "interpreter_factory" not in names else None
        if factory is not None:
            given_factory.set(checked_factory(factory))
        if args and (args[0] is None or isinstance(args[0], CodeInterpreter)):
            given_interpreter.set(args[0])
            args = args[1:]
        result = yield from start(*args, **inputs)
    except Exception:
        yield from wait_for(closed)
        raise
    finally:  # a call that failed before its session leaves nothing to the next
        given_factory.set(None)
        given_interpreter.set(None)
        closed_threads.set(before)
    yield from wait_for(closed)
    return result


def _trajectory(run: AgentRun) -> dict[str, object]:
    """Return DSPy's flat log: ``generated_code_i`` and ``code_output_i`` or ``observation_i``, i from 0."""
    flat: dict[str, object] = {}
    for number, step in enumerate(step for step in run.steps if step.calls):
        name = "observation" if step.results[0].is_error else "code_output"
        flat[f"generated_code_{number}"] = (step.calls[0].arguments or {}).get("code")
        flat[f"{name}_{number}"] = step.results[0].text
    return flat
