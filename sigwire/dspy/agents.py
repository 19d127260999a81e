"""``ReAct`` with DSPy's methods, ``ReActV2`` with its termination reasons, and ``AgentRun`` with its trajectory.

A ``ReAct`` of the door holds a ``Predict`` and a ``ChainOfThought`` of the door.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, cast, overload

from sigwire.core.example import Prediction
from sigwire.dspy.agent_history import AgentHistory, messages_of, with_closed_turn
from sigwire.dspy.inputs import read_as_dspy
from sigwire.dspy.layouts.thinking import takes_effort
from sigwire.dspy.modules import ChainOfThought, Module, Predict
from sigwire.dspy.text_loop import TextReAct, trajectory_of
from sigwire.dspy.tools import Tool
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.modules import predict
from sigwire.modules.agents import run
from sigwire.modules.agents.run import Termination
from sigwire.modules.inputs import InputReader
from sigwire.settings import current
from sigwire.signatures.types.history import History

if TYPE_CHECKING:
    from sigwire.modules.agents.run_state import RunState
    from sigwire.modules.agents.toolbox import ToolsLike
    from sigwire.signatures.signature import Signature

__all__ = ["AgentRun", "ReAct", "ReActV2"]

P = ParamSpec("P")
S = TypeVar("S")


class ReAct(Module, TextReAct[P, S]):
    """``sigwire.ReAct`` with DSPy's methods; its predictions have the field ``trajectory``.

    >>> from sigwire.core.tools.calls import ToolCall
    >>> from sigwire.lm.fake import FakeLM
    >>> def double(n: int) -> int:
    ...     return 2 * n
    >>> agent = ReAct("question -> answer: int", tools=[double])
    >>> agent.set_lm(FakeLM([ToolCall("a", "double", {"n": 21}), ToolCall("b", "submit", {"answer": 42})]))
    >>> agent(question="What is 21 doubled?").trajectory["observation_0"]
    42
    """

    predictor_classes: ClassVar[predict.PredictorClasses] = predict.PredictorClasses(Predict, ChainOfThought)

    if TYPE_CHECKING:

        @overload
        def __init__(self: ReAct[..., Prediction], signature: str | Signature, *args: Any, **options: Any) -> None: ...
        @overload
        def __init__(self, signature: Callable[P, S], *args: Any, **options: Any) -> None: ...
        def __init__(self, *args: Any, **options: Any) -> None: ...

    @property
    def tools(self) -> dict[str, Any]:
        """The tools by name, as ``Tool`` of the door."""
        return {name: Tool.of(given) for name, given in super().tools.items()}

    def prepare_inputs(
        self, reader: InputReader, given: dict[str, object], *, check_types: bool = True
    ) -> dict[str, object]:
        """Return the inputs, read as DSPy reads them."""
        self._reader = read_as_dspy(reader)
        return super().prepare_inputs(self._reader, given, check_types=check_types)

    def run_fields(self, run: run.AgentRun) -> dict[str, Any]:
        """Return the fields of a result, with ``trajectory``."""
        return {"trajectory": trajectory_of(run.steps), **super().run_fields(run)}


class ReActV2(ReAct[P, S]):
    """``ReAct`` with the names of DSPy's second agent: ``history``, and ``termination_reason`` "submit" or "forced_submit".

    The turns of the history have the calls and their results in ``turn["tool_calls"]``. An answer in plain text does not end a
    run: one more request asks for the outputs. A model that reasons does so with ``reasoning_effort="low"``, unless it has
    another effort.

    Raises ``ConfigurationError`` for a signature or tool with a name that the agent uses itself.

    >>> from sigwire.core.tools.calls import ToolCall
    >>> from sigwire.lm.fake import FakeLM
    >>> agent = ReActV2("question -> answer", tools=[len])
    >>> agent.set_lm(FakeLM([ToolCall("a", "submit", {"answer": "yes"})]))
    >>> agent(question="Is it?").termination_reason
    'submit'
    """

    takes_plain_text = False
    has_text_loop = False

    def __init__(
        self, signature: str | Signature | Callable[P, S], tools: ToolsLike = (), max_iters: int = 20, **options: Any
    ) -> None:
        super().__init__(cast("Callable[P, S]", predict.signature_of(signature)), tools, max_iters, **options)
        used = {"history", "termination_reason"} & self.signature.output_fields.keys()
        used |= {"history", "tools"} & self.signature.input_fields.keys()
        used |= {"submit"} & self.toolbox.tools.keys()
        if used:
            raise ConfigurationError(
                f"{', '.join(sorted(used))} is reserved by ReActV2 (making it). Rename the field or the tool."
            )

    @property
    def tools(self) -> dict[str, Any]:
        """The tools by name; ``submit`` returns the fields it is called with."""
        submit = self._submit.tool
        answers = Tool(_fields, name=submit.name, desc=submit.description, parameters=submit.parameters)
        return {**super().tools, submit.name: answers}

    def run_fields(self, run: run.AgentRun) -> dict[str, Any]:
        """Return the fields of a result, with DSPy's ``history`` and ``termination_reason``."""
        reason = "submit" if run.termination_reason == "submit" else "forced_submit"
        return {**super().run_fields(run), "history": AgentHistory(run.history), "termination_reason": reason}

    def steps(self, /, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one run."""
        if (before := inputs.get(self.history_input)) is not None:
            history = messages_of(History.read(before))
            options = {"max_iters"} - self.signature.input_fields.keys()
            has_inputs = bool(inputs.keys() - {self.history_input} - options)
            inputs[self.history_input] = history if has_inputs else with_closed_turn(history)
        return super().steps(*args, **inputs)

    def turn_steps(self, state: RunState, limit: int) -> Steps[Termination]:
        """Run the turns; a plain answer with the outputs in the layout of the adapter submits them."""
        own, config = getattr(self.react, "lm", None), getattr(self.react, "config", {})
        lm: Any = current().lm if own is None else own
        given = {**getattr(lm, "kwargs", {}), **config, **self.signature.input_fields}
        is_open = getattr(lm, "supports_reasoning", False) and given.keys().isdisjoint(_NO_EFFORT_WITH)
        if is_open and takes_effort(lm, {**config, "reasoning_effort": "low"}):
            state.options["config"] = {"reasoning_effort": "low"}  # the thought of a turn is the model's own
        end = yield from super().turn_steps(state, limit)
        return end if end.outputs is None else Termination("submit", end.outputs)


_NO_EFFORT_WITH = ("reasoning", "reasoning_effort", "thinking", "config")


def _fields(**fields: object) -> dict[str, object]:
    return fields


@dataclass(frozen=True, slots=True)
class AgentRun(run.AgentRun):
    """``sigwire.AgentRun`` with DSPy's ``trajectory``."""

    @property
    def trajectory(self) -> dict[str, Any]:
        """``thought_i``, ``tool_name_i``, ``tool_args_i``, ``observation_i`` for each call in order."""
        return trajectory_of(self.steps)
