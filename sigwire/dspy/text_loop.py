"""DSPy's loop of a ``ReAct``: each turn asks for a thought, the name of a tool and its arguments, the end is ``finish``.

An agent runs it where a program of DSPy relies on it, and the core's loop otherwise:

    ReAct(..., text_loop=True)                or the setting ``text_loop``, when the agent is made
    react.react = ..., react.extract = ...    replaced by something else than a ``Predict`` or a ``ChainOfThought``
    def truncate_trajectory                   overridden
    tools=[]
    agent.load(...)                           of a loop that DSPy saved, or of one in text
    StreamListener("next_thought")            of ``streamify``, which switches the agent

The predictors get the trajectory as text; it is a dict of ``thought_i``, ``tool_name_i``, ``tool_args_i``, ``observation_i``.
Calls run like those of the core: with approval, limits, steps and a history. Outputs always come from ``extract``.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, TypeVar, cast

from sigwire.core.example import Prediction
from sigwire.core.json import dumps
from sigwire.core.messages import Message
from sigwire.core.record import to_plain
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult, number_calls
from sigwire.dspy.lm import SCRIPTED_FINISH
from sigwire.dspy.settings import settings
from sigwire.dspy.tools import Tool
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import CallerError, ConfigurationError, ContextWindowExceededError, ModelError, warn_user
from sigwire.modules.agents import react
from sigwire.modules.agents.large_results.shortening import shorten
from sigwire.modules.agents.run import Termination
from sigwire.modules.agents.run_state import RunState
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.calling import called_steps
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict, signature_of
from sigwire.modules.turn_text import as_text
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import SignatureMeta
from sigwire.signatures.types.history import History

if TYPE_CHECKING:
    from sigwire.modules.agents.run import ReActStep
    from sigwire.modules.agents.toolbox import ToolsLike
    from sigwire.signatures.signature import Signature

__all__ = ["TextReAct", "trajectory_of"]

P = ParamSpec("P")
S = TypeVar("S")
_PREDICTORS: tuple[type, ...] = (Predict, ChainOfThought)
_KEYS_OF_TURN, _ATTEMPTS, _FINISH, _COMPLETED = 4, 3, "finish", "Completed."


def trajectory_of(steps: Iterable[ReActStep], number: int = 0) -> dict[str, Any]:
    """Return DSPy's flat log of the calls of some turns: the keys of the first call end with ``number``."""
    flat: dict[str, Any] = {}
    for step in steps:
        thought = step.thought
        for call, result in zip(step.calls, step.results, strict=False):
            flat[f"thought_{number}"], thought = thought, ""
            finished = call.provider_data == SCRIPTED_FINISH
            flat[f"tool_name_{number}"] = _FINISH if finished else call.name
            flat[f"tool_args_{number}"] = {} if finished or call.arguments is None else call.arguments
            flat[f"observation_{number}"] = result.content
            number += 1
    return flat


class _TextRun:
    """A run in DSPy's loop: its state, the trajectory, and the conversation before it."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.trajectory = trajectory_of(state.steps)
        turns, later = state.history.messages, len(state.turns_since_task())
        is_continued = bool(later) and not state.open_calls  # without inputs of its own
        self.before = state.history if is_continued else History(turns[: len(turns) - later - 1])


class TextReAct(react.ReAct[P, S]):
    """``sigwire.ReAct`` that runs DSPy's loop if a program relies on it.

    ``text_loop=True`` makes it run it always, ``False`` only if nothing else can run; ``None``: the setting ``text_loop``.
    """

    has_text_loop: ClassVar[bool] = True
    text_loop: bool | None

    def __init__(
        self,
        signature: str | Signature | Callable[P, S],
        tools: ToolsLike = (),
        max_iters: int = 20,
        *,
        text_loop: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(signature_of(signature), tools, max_iters, **options)
        if text_loop not in (None, True, False) or (text_loop and not self.has_text_loop):
            takes = "True, False or None" if self.has_text_loop else "no True: its loop is that of native calls"
            raise ConfigurationError(
                f"text_loop of {type(self).__name__} is {takes}, not {text_loop!r:.80} (making it)."
            )
        self.text_loop = text_loop
        if not self.toolbox.tools:
            self._offered = (self._submit.tool,)
            self.react.signature = self._signatures.turn(self._submit.name)
        if not self.has_text_loop:
            return
        is_wanted = settings.text_loop if text_loop is None else text_loop
        if is_wanted or self._overrides_truncation() or not self.toolbox.tools:
            self.react.signature = _turn_signature(self)

    def loop_options(self) -> Mapping[str, object]:
        """Return the options of the loop, for files of whole programs."""
        is_text = True if _asks_in_text(self.react) else self.text_loop
        return {} if is_text is None else {"text_loop": is_text}

    def takes_text_loop(self) -> bool:
        """Return True if ``use_text_loop`` changes the loop and loses nothing."""
        asker: Any = self.react
        is_open = self.has_text_loop and self.text_loop is not False and isinstance(asker, Predict)
        return is_open and not _asks_in_text(self.react)

    def use_text_loop(self) -> Callable[[], None]:
        """Run DSPy's loop from now on, with its own instructions; returns the function that undoes it.

        >>> agent = TextReAct("question -> answer", tools=[len])
        >>> undo = agent.use_text_loop()
        >>> list(agent.react.signature.output_fields)
        ['next_thought', 'next_tool_name', 'next_tool_args']
        """
        before = self.react.signature, self.text_loop

        def undo() -> None:
            self.react.signature, self.text_loop = before

        self.react.signature, self.text_loop = _turn_signature(self), True
        return undo

    @property
    def tools(self) -> dict[str, Any]:
        """The tools by name, including the one that ends a run."""
        if not _asks_in_text(getattr(self, "react", None)):
            return {**super().tools}
        return {**self.toolbox.tools, _FINISH: _finish_tool(self._output_names)}

    def truncate_trajectory(self, trajectory: dict[str, Any]) -> dict[str, Any]:
        """Remove the oldest call of a trajectory that is too long for the model, and return it. Override it to change this.

        Raises ``ContextWindowExceededError`` if one call is left.

        >>> calls = {f"{name}_{n}": n for n in (0, 1) for name in ("thought", "tool_name", "tool_args", "observation")}
        >>> list(TextReAct("question -> answer").truncate_trajectory(calls))
        ['thought_1', 'tool_name_1', 'tool_args_1', 'observation_1']
        """
        if len(trajectory) <= _KEYS_OF_TURN:
            raise ContextWindowExceededError(
                "The inputs and the latest call do not fit the model (shortening the trajectory). Use a model with a larger "
                "context window, or set max_output."
            )
        for name in list(trajectory)[:_KEYS_OF_TURN]:
            del trajectory[name]
        return trajectory

    def _overrides_truncation(self) -> bool:
        shorten: object = cast(Any, self).truncate_trajectory
        return getattr(shorten, "__func__", None) is not cast(Any, TextReAct).truncate_trajectory

    def turn_steps(self, state: RunState, limit: int) -> Steps[Termination]:
        """Run the turns: in DSPy's loop, with the outputs of ``extract``, if the program relies on it."""
        is_text = self.has_text_loop and (
            not all(isinstance(part, _PREDICTORS) for part in (self.react, self.extract))
            or _asks_in_text(self.react)
            or self._overrides_truncation()
        )
        if not is_text:
            return (yield from super().turn_steps(state, limit))
        run = _TextRun(state)
        end = state.end = yield from self._loop(state, limit, lambda _: self._text_turn(run))
        if self.extracts:
            end = replace(end, outputs=(yield from self._text_outputs(run, end)))
        state.fields["trajectory"] = run.trajectory
        return end

    def _text_turn(self, run: _TextRun) -> Steps[Termination | None]:
        """Ask for one call and run it; return the end of the run, or ``None`` to continue."""
        started, state = time.perf_counter(), run.state
        if not state.open_calls:
            try:
                asked = yield from self._ask_in_text(run)
            except ContextWindowExceededError as error:
                return Termination(
                    "context_window_exceeded", why="the trajectory no longer fits the model", cause=error
                )
            except (ValueError, *react.UNREADABLE) as error:
                if isinstance(error, CallerError):
                    raise
                return _unread(state, error, time.perf_counter() - started)
            taken = [
                call.id for turn in state.history.messages if isinstance(turn, Message) for call in turn.tool_calls
            ]
            calls = number_calls([ToolCall.read("", str(asked.next_tool_name), asked.next_tool_args)], taken)
            state.add_choice(Choice(str(asked.next_thought), calls, finish_reason="tool_calls"), calls)
        if (call := state.open_calls[0]).name == _FINISH:
            result = ToolResult(call.id, _FINISH, _COMPLETED)
            state.end_turn([ToolRun(call, result, result)], time.perf_counter() - started)
            end: Termination | None = Termination("submit", why="the model called finish")
        else:
            end = yield from self._end_turn(state, started)
        run.trajectory.update(trajectory_of(state.steps[-1:], state.turn))
        if any(result.media for result in state.steps[-1].results):
            warn_user(
                "The trajectory of a ReAct is text: the model does not see the images and files of a tool's result."
            )
        return end

    def _ask_in_text(self, run: _TextRun) -> Steps[Any]:
        asker: object = self.react
        if isinstance(asker, _PREDICTORS) and not _asks_in_text(asker):  # only extract was replaced
            asker = self._text_predictor()
        return self._called_with_trajectory(run, asker)

    def _text_predictor(self) -> Predict[..., Any]:
        asker: Any = getattr(self.react, "predict", self.react)  # of a ChainOfThought
        options: dict[str, Any] = asker.config
        predictor: Predict[..., Any] = type(self).predictor_classes.ask(_turn_signature(self), lm=asker.lm, **options)
        return predictor

    def _called_with_trajectory(
        self, run: _TextRun, module: object, purpose: Literal["ask", "extract"] = "ask"
    ) -> Steps[Any]:
        """Call a predictor with the inputs and the trajectory, which is shortened while it is too long."""
        failure: ContextWindowExceededError | None = None
        for _ in range(_ATTEMPTS):
            inputs = {**run.state.inputs, self._signatures.trajectory: self._as_text(run)}
            try:
                prediction = yield from _called(module, inputs)
            except ContextWindowExceededError as error:
                failure = error
                run.trajectory = self.truncate_trajectory(run.trajectory)
            else:
                if isinstance(prediction, Prediction):
                    run.state.add_prediction(prediction, purpose)
                return prediction
        raise ContextWindowExceededError(
            f"The trajectory does not fit the model, even after {_ATTEMPTS} attempts to shorten it (running a ReAct). "
            "Use a model with a larger context window, or set max_output."
        ) from failure

    def _text_outputs(self, run: _TextRun, end: Termination) -> Steps[dict[str, object]]:
        """Get the outputs from the trajectory with one more request, or raise ``AgentStopped``."""
        try:
            outputs: dict[str, object] = dict((yield from self._called_with_trajectory(run, self.extract, "extract")))
        except ContextWindowExceededError:
            raise
        except ModelError as error:
            raise run.state.stopped_error(self._output_names, end, f"and could not be extracted: {error}") from error
        answers = {name: value for name, value in outputs.items() if name in self._output_names}
        run.state.add_outputs(answers, self._signatures.task.spec)
        return outputs

    def _as_text(self, run: _TextRun) -> str:
        """Return the trajectory for a prompt; results longer than ``max_output`` are cut."""
        before = [as_text(run.before)] if len(run.before) else []
        texts: list[str] = []
        for name, value in run.trajectory.items():
            kind, _, number = name.rpartition("_")
            plain = to_plain(value)
            if kind == "observation":
                tool = self.toolbox.tools.get(str(run.trajectory.get(f"tool_name_{number}")))
                own = None if tool is None else tool.max_output
                plain = shorten(plain, self.toolbox.max_output if own is None else own)
            texts.append(f"[[ ## {name} ## ]]\n{plain if isinstance(plain, str) else dumps(plain)}")
        return "\n\n".join([*before, *texts])


_init: Any = vars(TextReAct)["__init__"]
_core: Any = inspect.signature(vars(react.ReAct)["__init__"])
_option = inspect.Parameter("text_loop", inspect.Parameter.KEYWORD_ONLY, default=None)
*_parameters, _config = _core.parameters.values()
_init.__wrapped__ = vars(react.ReAct)["__init__"]  # saved programs have the same arguments, and this one
_init.__signature__ = _core.replace(parameters=[*_parameters, _option, _config])


def _asks_in_text(predictor: object) -> bool:
    signature = getattr(getattr(predictor, "predict", predictor), "signature", None)
    return isinstance(signature, SignatureMeta) and "next_tool_name" in signature.output_fields


def _turn_signature(agent: react.ReAct[..., Any]) -> SignatureMeta:
    """Return the signature of a turn: the inputs and the trajectory to a thought, the name of a tool and its arguments."""
    derived, tools = agent._signatures, agent.toolbox.tools  # pyright: ignore[reportPrivateUsage]
    turn: SignatureMeta = derived.task
    for name in derived.outputs:
        turn = turn.delete(name)
    offered = [Tool.of(tool) for tool in {**tools, _FINISH: _finish_tool(derived.outputs)}.values()]
    turn = turn.append(derived.trajectory, InputField(desc="your earlier turns and the results of the tools"), str)
    turn = turn.append("next_thought", OutputField(), str)
    turn = turn.append("next_tool_name", OutputField(), cast(Any, Literal)[tuple(tool.name for tool in offered)])
    turn = turn.append("next_tool_args", OutputField(desc="a JSON object"), dict[str, Any])
    asked: SignatureMeta = turn.with_instructions(
        f"{agent.signature.spec.instructions}\n\n"
        "Work in turns. In each turn, think, then choose one tool and its arguments. Its result is added to "
        f"`{derived.trajectory}` before your next turn. The tools are:\n" + "\n".join(f"- {tool}" for tool in offered)
    )
    return asked


def _finish_tool(outputs: Iterable[str]) -> Tool:
    names = ", ".join(f"`{name}`" for name in outputs)
    return Tool(lambda: _COMPLETED, _FINISH, f"Call it without arguments when you know all output fields ({names}).")


def _unread(state: RunState, error: ValueError | ModelError, seconds: float) -> Termination:
    """End the loop after a turn that could not be read: it is a step, or a warning if a replaced predictor failed."""
    problem = f"{type(error).__name__}: {error!s:.200}"
    if isinstance(error, ModelError):
        state.add_step(error.choice or Choice(), seconds, error=problem)
    else:
        warn_user(f"A turn could not be read, and the outputs are extracted now (running a ReAct): {problem}")
    return Termination("parse_error", why=f"the turn could not be read ({error!s:.200})", cause=error)


class _ReplacementCall(FunctionEffect[Any]):
    """A call of what a program put in the place of a predictor."""

    __slots__ = ()
    nests = True  # it may run programs


def _called(module: object, inputs: Mapping[str, object]) -> Steps[Any]:
    awaited = None if isinstance(module, Module) else getattr(module, "acall", None)
    if awaited is None:
        return (yield from called_steps(module, (), inputs))
    return (yield _ReplacementCall(partial(cast(Any, module), **inputs), partial(awaited, **inputs)))
