"""DSPy's modules whose model writes code: ``CodeAct``, ``ProgramOfThought``, ``RLM`` with DSPy's arguments and results.

``interpreter_factory`` makes an interpreter of DSPy's protocol for each call; without one, code runs in Monty. An interpreter
that is the first argument of a call belongs to the caller and stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, cast

from sigwire.core.example import Prediction
from sigwire.dspy.modules import ChainOfThought, Module, Predict
from sigwire.dspy.primitives.foreign_code import FactoryInterpreter, InterpreterFactory, given_interpreter
from sigwire.dspy.primitives.interpreters import CodeInterpreter
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.lm.base import LanguageModel
from sigwire.modules import chain_of_thought, predict
from sigwire.modules.agents.run import AgentRun
from sigwire.modules.agents.toolbox import ToolsLike
from sigwire.modules.code import code_act, program_of_thought, rlm
from sigwire.signatures.signature import Signature, SignatureClass

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

    _predict_class: ClassVar[type[predict.Predict[..., Any]]] = Predict
    _extract_class: ClassVar[type[chain_of_thought.ChainOfThought[..., Any]]] = ChainOfThought

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
        return (yield from _with_given(super().steps, args, inputs))

    def _run_fields(self, run: AgentRun) -> dict[str, object]:
        return {"trajectory": _trajectory(run), **super()._run_fields(run)}


class ProgramOfThought(Module, program_of_thought.ProgramOfThought[..., Any]):
    """``sigwire.ProgramOfThought`` with DSPy's arguments.

    >>> from sigwire.lm.fake import FakeLM
    >>> think = ProgramOfThought("question -> answer: int", max_iters=3)
    >>> think.set_lm(FakeLM([{"reasoning": "Add.", "generated_code": "SUBMIT(answer=1 + 1)"}]))
    >>> think(question="What is 1 + 1?").answer
    2
    """

    _thinker_class: ClassVar[type[chain_of_thought.ChainOfThought[..., Any]]] = ChainOfThought

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
        return (yield from _with_given(super().steps, args, inputs))


class RLM(Module, rlm.RLM[..., Any]):
    """``sigwire.RLM`` with DSPy's arguments; the result has ``trajectory``, a list of dicts, and ``final_reasoning``.

    ``verbose`` has no effect: the result and streams have every step. Raises ``ConfigurationError`` for an input, output or
    tool with a name that the session or the result uses.

    >>> from sigwire.lm.fake import FakeLM
    >>> reader = RLM("context, query -> answer", max_iters=10)
    >>> reader.set_lm(FakeLM([{"reasoning": "It is short.", "code": "SUBMIT(answer=context[-2:])"}]))
    >>> result = reader(context="The magic number is 42", query="What is it?")
    >>> result.answer, result.final_reasoning, result.trajectory[0]["code"]
    ('42', 'It is short.', 'SUBMIT(answer=context[-2:])')
    """

    _predict_class: ClassVar[type[predict.Predict[..., Any]]] = Predict

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
            tools=tools,
            sub_lm=sub_lm,
            interpreter=_interpreter(interpreter_factory, options),
            **options,
        )
        _check_names(self.signature, self.toolbox.tools)

    def steps(self, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one run."""
        result = yield from _with_given(super().steps, args, inputs)
        rows = [
            {
                "reasoning": step.thought,
                "code": (step.calls[0].arguments or {}).get("code"),
                "output": step.results[0].text,
            }
            for step in AgentRun.of(result).steps
            if step.calls
        ]
        result["trajectory"] = rows
        is_submitted = AgentRun.of(result).termination_reason == "submit"
        result["final_reasoning"] = rows[-1]["reasoning"] if is_submitted else "Extract forced final output"
        return result


def _check_names(signature: SignatureClass, tools: Iterable[str]) -> None:
    session, result = {"SUBMIT", "print"}, {"trajectory", "final_reasoning"}
    used = {
        *(session & signature.input_fields.keys()), *({"SUBMIT"} & set(tools)), *(result & signature.output_fields.keys()),
    }  # fmt: skip
    if used:
        raise ConfigurationError(
            f"RLM uses {', '.join(sorted(used))} itself (making it). Rename the field or the tool."
        )


def _interpreter(factory: InterpreterFactory | None, options: Mapping[str, object]) -> FactoryInterpreter:
    if "interpreter" in options:
        raise ConfigurationError(
            "interpreter is no option here (making a module that runs code). Pass interpreter_factory=PythonInterpreter, or "
            "an interpreter as the first argument of each call."
        )
    return FactoryInterpreter(factory)


def _with_given(
    start: Callable[..., Steps[Prediction]], args: tuple[object, ...], inputs: dict[str, object]
) -> Steps[Prediction]:
    """Return the steps of a call, in the interpreter that is its first argument if there is one."""
    if args and isinstance(args[0], CodeInterpreter):
        given_interpreter.set(args[0])
        args = args[1:]
    return (yield from start(*args, **inputs))


def _trajectory(run: AgentRun) -> dict[str, object]:
    """Return DSPy's flat log: ``generated_code_i`` and ``code_output_i`` or ``observation_i``, i from 0."""
    flat: dict[str, object] = {}
    for number, step in enumerate(step for step in run.steps if step.calls):
        name = "observation" if step.results[0].is_error else "code_output"
        flat[f"generated_code_{number}"] = (step.calls[0].arguments or {}).get("code")
        flat[f"{name}_{number}"] = step.results[0].text
    return flat
