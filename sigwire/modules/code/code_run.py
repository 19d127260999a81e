"""``CodeRun``: the runs of code of one call of a module, logged as steps, and the text of their results for a model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from sigwire.adapters.finish import with_calls
from sigwire.core.example import Prediction
from sigwire.core.json import JsonValue
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import AdapterParseError, EmptyResponse, ModelError, OutputTruncated
from sigwire.interpreters.code_result import CodeResult
from sigwire.interpreters.interpreter import CodeSession, HostNames
from sigwire.modules.agents.run_state import EmittingRecorder, tool_done
from sigwire.modules.agents.step_log import StepLog
from sigwire.modules.agents.toolbox import ToolRun
from sigwire.modules.answer import meta_of
from sigwire.modules.code.code_text import fenced_code
from sigwire.modules.code.host_tools import HostTools
from sigwire.modules.code.submitting import SubmitFunction
from sigwire.modules.program_stream import event_path_of, is_streamed
from sigwire.observe.usage import record_tool_call
from sigwire.signatures.signature import SignatureMeta
from sigwire.signatures.types.text import Code

__all__ = ["CodeReply", "CodeRun", "code_tool_run", "result_text"]

_UNREADABLE = (AdapterParseError, EmptyResponse, OutputTruncated)
_INTERRUPTED = "The code was interrupted. Its calls may or may not have taken effect."
_NO_OUTPUT = "(The code printed nothing. Print what you need to see.)"
_CUT = "\n... ({} more characters)"


@dataclass(frozen=True, slots=True)
class CodeReply:
    """A reply of a model: its code and its thought; without code, ``thought`` is the problem for the model."""

    code: str | None
    thought: str
    choice: Choice

    @classmethod
    def of_fields(cls, prediction: Prediction, code: str, thought: str = "reasoning") -> CodeReply:
        """Return the reply in the fields of a prediction."""
        choice = meta_of(prediction).choice or Choice()
        return cls(Code.read(prediction[code]).code, str(prediction.__dict__.get(thought) or ""), choice)

    @classmethod
    def of_text(cls, error: AdapterParseError) -> CodeReply:
        """Return the reply in a text without fields, of one fenced block. Raises ``ValueError`` with the problem."""
        return cls(fenced_code(error.text), error.text, error.choice or Choice())

    def without_calls(self) -> Choice:
        """Return the choice as a step of a run shows it: the thought, and no calls."""
        return with_calls(self.choice, self.thought, ())


class CodeRun(StepLog):
    """The runs of code of one call: its ``steps``, and the outputs that code submitted.

    ``names``: host functions and constants of every run of code. ``variables`` are set once, and again when they are lost.
    """

    def __init__(
        self,
        module: object,
        session: CodeSession,
        submit: SubmitFunction,
        names: HostNames,
        variables: Mapping[str, JsonValue],
        *,
        tools: HostTools | None = None,
        most: int = 10_000,
    ) -> None:
        super().__init__()
        self._module, self._session, self._submit, self._names = module, session, submit, dict(names)
        self._variables, self._tools, self._most, self._has_variables = variables, tools, most, False

    def set_tools(self, tools: HostTools) -> None:
        """Set the tools that every later run of code has."""
        self._tools = tools

    def add_names(self, names: HostNames) -> None:
        """Add names that every later run of code has."""
        self._names.update(names)

    @property
    def outputs(self) -> dict[str, object] | None:
        """The valid outputs that code submitted."""
        return self._submit.outputs

    def execute(self, code: str, thought: str) -> Steps[CodeResult]:
        """Run code, add its step, and emit the result in a stream."""
        call = ToolCall(f"code_{len(self.steps)}", "python", {"code": code})
        place = event_path_of(self._module) if is_streamed() else None
        done: list[ToolRun] = []
        recorder = done if place is None else EmittingRecorder(done, place)
        names = {**self._names}
        if self._tools is not None:
            names.update(self._tools.functions(recorder, call.id))
        if not self._has_variables:
            names.update(self._variables)
        started = time.perf_counter()
        try:
            result: CodeResult = yield from self._session.steps(code, names)
        except BaseException:
            shown = ToolResult(call.id, call.name, _INTERRUPTED, True)
            self._add_step(thought, ToolRun(call, shown, shown), done, started)
            raise
        self._has_variables = not result.is_lost
        text = "Submitted." if self.outputs is not None else result_text(result, self._most)
        run = code_tool_run(call, result, text)
        self._add_step(thought, run, done, started)
        if place is not None:
            yield Emit(tool_done(run, place), *self._submit.events(place))
        return result

    def _add_step(self, thought: str, run: ToolRun, done: list[ToolRun], started: float) -> None:
        self.log_step(thought, time.perf_counter() - started, [run, *done])

    def ask(self, asked: Steps[Prediction], field: str) -> Steps[CodeReply]:
        """Run the steps of a predictor; return the code of its reply, or add a step with the problem of the reply."""
        try:
            prediction = yield from asked
        except ModelError as error:
            if not isinstance(error, _UNREADABLE):
                raise
            return self._reply_without_fields(error)
        self.add_prediction(prediction)
        return CodeReply.of_fields(prediction, field)

    def _reply_without_fields(self, error: ModelError) -> CodeReply:
        choice = error.choice or Choice()
        try:
            if isinstance(error, AdapterParseError):
                return CodeReply.of_text(error)
            problem = error.message.splitlines()[0]
        except ValueError as found:
            problem = str(found)
        self.log_step(error.text, error=problem)
        return CodeReply(None, problem, choice)

    def result(self, signature: SignatureMeta, outputs: Mapping[str, object], **facts: object) -> Prediction:
        """Return the prediction of the run: the outputs, ``steps`` and other facts."""
        return self.make_prediction(signature, outputs, {"steps": tuple(self.steps), **facts})

    def close(self) -> None:
        """End the session."""
        self._session.close()


def code_tool_run(call: ToolCall, result: CodeResult, text: str) -> ToolRun:
    """Return the run of code as that of a tool, and count it. ``text``: what the model sees."""
    shown = ToolResult(call.id, call.name, text, bool(result.error))
    record_tool_call(call.name, is_error=shown.is_error)
    return ToolRun(call, shown, shown, result.seconds)


def result_text(result: CodeResult, most: int = 10_000) -> str:
    """Return the result as a model sees it: the output, the value of the last expression, the error.

    Output and value have at most ``most`` characters together.

    >>> result_text(CodeResult(6, "n = 3\\n"))
    'n = 3\\n6'
    >>> result_text(CodeResult(["a" * 50], error="ValueError: no"), 20)
    "['aaaaaaaaaaaaaaaaaa\\n... (34 more characters)\\nValueError: no"
    """
    shown = "" if result.value is None else repr(result.value)
    room = max(most - len(result.output), 0)
    if len(shown) > room:
        shown = f"{shown[:room]}{_CUT.format(len(shown) - room)}"
    return "\n".join(text for text in (result.output.rstrip("\n"), shown, result.error) if text) or _NO_OUTPUT
