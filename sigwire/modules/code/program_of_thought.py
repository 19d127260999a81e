"""``ProgramOfThought``: a model writes one program that computes the outputs; errors are sent back for a repair."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sigwire.core.example import Prediction
from sigwire.effects.steps import Steps
from sigwire.errors import AgentStopped
from sigwire.interpreters.interpreter import Interpreter
from sigwire.interpreters.monty import interpreter_of
from sigwire.keywords import check_whole
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules.agents.submit import Submit
from sigwire.modules.ask import check_config
from sigwire.modules.calling import called_steps
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.code.code_run import CodeRun, result_text
from sigwire.modules.code.code_signatures import ThoughtSignatures
from sigwire.modules.code.submitting import SubmitFunction
from sigwire.modules.code.variables import json_variables
from sigwire.modules.inputs import InputReader
from sigwire.modules.predict import P, PredictorClasses, ReadingCalls, S, signature_of
from sigwire.settings import current
from sigwire.signatures.signature import Signature, SignatureClass

__all__ = ["ProgramOfThought"]


class ProgramOfThought(ReadingCalls[P, S]):
    """Answer a signature with a program that the model writes: one request if the program works.

    The program runs in ``interpreter`` (default: ``MontyInterpreter()``) with the inputs as variables, and ends with
    ``submit(...)``, whose values are checked against the outputs. An error is sent back, with the code, for another program:
    at most ``max_iters`` programs. If a program prints or assigns its result and submits nothing, one more request reads the
    outputs from it. ``config`` are request options. The result has the outputs and ``steps``, one for each program:
    ``steps[-1].calls[0]`` has the code. Attributes for optimizers: ``code_generate``, ``code_regenerate``,
    ``generate_output``.

    Raises ``AgentStopped`` (with ``steps``) if the last program fails, ``ConfigurationError`` without the extra ``code`` and
    without an interpreter, ``InputError`` for inputs without a JSON form. Program-aided answers: https://arxiv.org/abs/2211.12588

    >>> from sigwire.lm.fake import FakeLM
    >>> code = "submit(answer=sum(n for n in range(limit) if n % 3 == 0))"
    >>> think = ProgramOfThought("question, limit: int -> answer: int")
    >>> think.set_lm(FakeLM([{"reasoning": "Add them up.", "generated_code": code}]))
    >>> think(question="What is the sum of the multiples of 3 below the limit?", limit=1000).answer
    166833
    """

    _collects: ClassVar[bool] = True
    predictor_classes: ClassVar[PredictorClasses] = PredictorClasses(ChainOfThought, ChainOfThought)
    """The classes of ``code_generate`` and ``code_regenerate``, and of ``generate_output``; a subclass may have others."""
    _hooks: ClassVar[Sequence[str]] = ("predictor_classes",)

    def __init__(
        self,
        signature: str | Signature | Callable[P, S],
        max_iters: int = 3,
        *,
        interpreter: Interpreter | None = None,
        callbacks: Sequence[object] | None = None,
        **config: Any,
    ) -> None:
        config = dict(wrap_secrets(config))
        super().__init__(callbacks)
        check_config(ProgramOfThought, config, config.get("lm"))
        check_whole("max_iters", max_iters, "making ProgramOfThought", of="programs", least=1)
        self.signature: SignatureClass = signature_of(signature)
        self.max_iters = max_iters
        self.interpreter: Interpreter = interpreter_of(interpreter, "ProgramOfThought")
        self._reader = InputReader(self.signature.spec)
        self._submit = Submit(self.signature.spec, taken=self._reader.names)
        self._names = made = ThoughtSignatures(self.signature, self._submit, self.interpreter.capabilities)
        self.code_generate: ChainOfThought[..., Any] = type(self).predictor_classes.ask(made.generation(), **config)
        self.code_regenerate: ChainOfThought[..., Any] = type(self).predictor_classes.ask(made.regeneration(), **config)
        self.generate_output: ChainOfThought[..., Any] = type(self).predictor_classes.extract(made.answer(), **config)

    def steps(self, /, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one call, without callbacks and call records of this module."""
        if args:
            raise self._reader.positional_error(type(self).__name__)
        given = type(self).prepare_inputs(self, self._reader, dict(inputs), check_types=current().warn_on_type_mismatch)
        submit, variables = SubmitFunction(self._submit), json_variables(given)
        run = CodeRun(self, self.interpreter.session(), submit, {self._submit.name: submit, **variables}, {})
        try:
            return (yield from self._programs(run, given))
        except BaseException as error:
            run.attach_facts(error)
            raise
        finally:
            run.close()

    def _programs(self, run: CodeRun, inputs: dict[str, object]) -> Steps[Prediction]:
        names, code, problem = self._names, "", ""
        for number in range(self.max_iters):
            failed = {names.previous: code, names.error: problem} if number else {}
            asked = called_steps(self.code_regenerate if number else self.code_generate, (), {**inputs, **failed})
            reply = yield from run.ask(asked, names.code)
            if reply.code is None:
                problem = reply.thought
                continue
            code = _with_value(reply.code)
            result = yield from run.execute(code, reply.thought)
            if run.outputs is not None:
                return run.result(self.signature, run.outputs)
            if not result.error and (result.output or result.value is not None):
                return (
                    yield from self._read_outputs(
                        run, {**inputs, names.final: code, names.printed: result_text(result)}
                    )
                )
            problem = (
                result_text(result)
                if result.error
                else f"The code printed nothing and did not call {self._submit.name}."
            )
        raise AgentStopped(
            f"No program of {self.max_iters} submitted the outputs ({', '.join(self._submit.codecs)}). The last problem: "
            f"{problem.splitlines()[-1]}. error.steps has every program; a larger max_iters allows more.",
            reason="limit",
            steps=tuple(run.steps),
        )

    def _read_outputs(self, run: CodeRun, inputs: dict[str, object]) -> Steps[Prediction]:
        prediction = yield from called_steps(self.generate_output, (), inputs)
        run.add_prediction(prediction)
        return run.result(self.signature, prediction.__dict__)


def _with_value(code: str) -> str:
    """Return code whose value is that of its last line, if this line assigns a name: models end programs in this way."""
    found = _ASSIGNMENT.match(code.rstrip().rpartition("\n")[2])
    return f"{code}\n{found[1]}" if found else code


_ASSIGNMENT = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
