"""The parts of DSPy's ``RLM``: names of its tools, fields of its prompts, and a run whose turns are a ``REPLHistory``.

A turn is asked with ``variables_info``, ``repl_history`` and ``iteration``, so that a predictor of DSPy may take the place of
``generate_action``. The functions of the session are in the instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, cast

from sigwire.core.example import Prediction
from sigwire.core.record import FieldValues
from sigwire.core.tools.calls import WebSearch
from sigwire.core.tools.tool import Tool
from sigwire.dspy.primitives.interpreters import CodeInterpreterError, WrongTypeGiven
from sigwire.dspy.primitives.repl_types import (
    REPLEntry,
    REPLHistory,
    REPLVariable,
    SandboxSerializable,
    SandboxSetup,
    build_repl_variable,
)
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.interpreters.code_result import CodeResult
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.agents.toolbox import ToolsLike, as_tools, members_of
from sigwire.modules.code.code_run import CodeReply
from sigwire.modules.code.code_signatures import SessionSignatures
from sigwire.modules.code.session_run import SessionInputs, SessionRun
from sigwire.modules.code.variables import json_variables
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import SignatureClass, SignatureMeta, make_signature
from sigwire.signatures.types.history import History, Turn
from sigwire.signatures.types.text import fenced_blocks

__all__ = ["ReplRun", "ReplSignatures", "check_fields", "named_tools", "repl_entry"]

_FUNCTIONS = ("llm_query", "llm_query_batched", "SUBMIT", "print")
_PYTHON = ("", "python", "py", "python3", "py3")
_NOTE = 50  # characters: a result that was cut ends with a note
_SHORT = 200  # characters of a result that is worth no shortening


def named_tools(tools: ToolsLike) -> list[Tool]:
    """Return the tools of an ``RLM``. Their names are those of functions in its code, so no name is changed.

    Raises ``WrongTypeGiven`` for a dict and for values that are no functions, ``ConfigurationError`` for a name that Python or
    the session has for something else.

    >>> [tool.name for tool in named_tools([len])]
    ['len']
    """
    if isinstance(tools, Mapping):
        raise WrongTypeGiven(
            "tools must be a list, not a dict (making an RLM). Write tools=[f], or tools=[Tool(f, name='other')]."
        )
    is_one = callable(tools) or isinstance(tools, WebSearch) or members_of(tools) is not None
    listed: Iterable[Any] = () if tools is None else [tools] if is_one else cast("Iterable[Any]", tools)
    given = [each for tool in listed for each in members_of(tool) or (tool,)]
    if wrong := [tool for tool in given if not isinstance(tool, Tool) and not callable(tool)]:
        raise WrongTypeGiven(f"A tool must be callable, not {wrong[0]!r:.60} (making an RLM). Pass functions or Tools.")
    made = as_tools(given)
    for name in [tool.name for tool in made]:
        problem = "conflicts with built-in functions of the code" if name in _FUNCTIONS else ""
        if not name.isidentifier() or iskeyword(name):
            problem = "must be a valid Python identifier and not a keyword, since code calls it"
        if problem:
            raise ConfigurationError(
                f"The name of the tool {name!r} {problem} (making an RLM). Rename it: Tool(f, name=...)."
            )
    return made


def check_fields(signature: SignatureMeta) -> None:
    """Raise ``ConfigurationError`` for an input or output with a name that the session or the result uses."""
    session, result = {"SUBMIT", "print"}, {"trajectory", "final_reasoning"}
    used = (session & signature.input_fields.keys()) | (result & signature.output_fields.keys())
    if used:
        raise ConfigurationError(f"RLM uses {', '.join(sorted(used))} itself (making it). Rename the field.")


class ReplSignatures(SessionSignatures):
    """The signatures with DSPy's names: of a turn, and of the extraction."""

    def __init__(self, signature: SignatureMeta) -> None:
        super().__init__(signature, ("variables_info", "repl_history"), continues=False)

    def action(self, functions: str, place: str) -> SignatureClass:
        """Return the signature of a turn; ``functions`` are those of the session, ``place`` describes its interpreter."""
        spec = self.task.spec
        fields = {
            "variables_info": (str, InputField(desc="variables that the code can read, and their beginning and end")),
            "repl_history": (REPLHistory, InputField(desc="the turns before: code and its result")),
            "iteration": (str, InputField(desc="number of this turn, and the most there can be")),
            "reasoning": (str, OutputField(desc="what is known, and the next step")),
            "code": (str, OutputField(desc="Python in a fence: ```python, the code, ```")),
        }
        inputs, outputs = (", ".join(f"`{each.name}`" for each in part) for part in (spec.inputs, spec.outputs))
        ending = f"SUBMIT({', '.join(each.name for each in spec.outputs)})"
        return make_signature(
            fields,
            f"{spec.instructions}\n\n"
            f"The inputs ({inputs}) are variables of a Python session, described in `variables_info`. Find the outputs "
            f"({outputs}) in turns. In each turn, write `code`. It runs, and `repl_history` gets what it printed, the value "
            "of its last expression and its error. Variables stay.\n\n"
            f"Execution environment:\n{place}\n\nFunctions of the session:\n{functions}\n\n"
            "Look at the data first, in small parts. Search, count and compute in Python. Ask about the meaning of a text "
            "with `llm_query`, of many with `llm_query_batched`: put the question and the part of the data in one text. "
            "Keep results in variables.\n"
            f"When you have seen and checked the results, call `{ending}` with variables instead of long values.",
        )

    def extraction(self) -> SignatureClass:
        """Return the signature of the extraction."""
        return super().extraction().with_updated_fields(self.log, REPLHistory)


@dataclass(frozen=True)
class ReplInputs(SessionInputs):
    """The inputs of a run, and the code that makes those that are no JSON."""

    setup: SandboxSetup | None


class ReplRun(SessionRun):
    """A run whose turns are a ``REPLHistory``. ``setup`` makes the inputs that are no JSON, before the first code."""

    setup: SandboxSetup | None = None
    continues = False
    _shown: int | None = None

    @classmethod
    def read_inputs(cls, signature: SignatureMeta, inputs: FieldValues) -> ReplInputs:
        """Return the inputs for a session; those that are no JSON are made by code."""
        objects = {name: value for name, value in inputs.items() if isinstance(value, SandboxSerializable)}
        setup = SandboxSetup.of(objects) if objects else None  # before the session: it is code of the user
        described = [
            build_repl_variable(objects[name], name, field)
            if name in objects
            else REPLVariable.from_value(name, inputs[name], field)
            for name, field in signature.input_fields.items()
            if name in inputs
        ]
        variables = json_variables({name: value for name, value in inputs.items() if name not in objects})
        return ReplInputs(variables, "\n\n".join(variable.format() for variable in described), setup)

    def begin(self, inputs: SessionInputs, functions: str) -> None:
        """Begin the conversation with the inputs."""
        self.described, self.setup = inputs.described, inputs.setup if isinstance(inputs, ReplInputs) else None
        self.history = History([Turn({"variables_info": inputs.described})])

    def turn_inputs(self, limit: int, history: History) -> FieldValues:
        """Return DSPy's inputs of a turn."""
        number = f"{len(self.steps) + 1}/{limit}"
        return {"variables_info": self.described, "repl_history": self.log(history), "iteration": number}

    def log(self, history: History) -> REPLHistory:
        """Return the turns; long results are shortened to beginning and end."""
        most = self._most + _NOTE if self._shown is None else self._shown
        return REPLHistory(tuple(map(repl_entry, self.steps)), most)

    def shorten(self) -> bool:
        """Show half of each long result from now on; return False if none is long."""
        log = self.log(self.history)
        shown = log.max_output_chars
        longest = max((min(len(entry.output), shown) for entry in log), default=0)
        self._shown = longest // 2
        return longest > _SHORT

    def ask(self, asked: Steps[Prediction], field: str) -> Steps[CodeReply]:
        """Run the steps of a predictor. A block of another language is a reply without code."""
        reply = yield from super().ask(asked, field)
        if reply.code is None or self.prediction is None or not isinstance(text := self.prediction[field], str):
            return reply
        tags = [tag for tag, _ in fenced_blocks(text.split("\n"))]
        if not tags or any(tag in _PYTHON for tag in tags):
            return reply
        problem = f"The block of code is {tags[0]}, and only Python runs. Write a block of Python."
        self.log_step(text, error=problem)
        return CodeReply(None, problem, reply.choice)

    def execute(self, code: str, thought: str) -> Steps[CodeResult]:
        """Run code; before it, make the inputs that are no JSON and that the session does not have."""
        if self.setup is not None and not self._has_variables:
            made = yield from self._session.steps(self.setup.code, {**self._names, **self.setup.variables})
            if made.error:
                raise CodeInterpreterError(
                    f"The session cannot make the inputs that are no JSON: {made.error}. Use an interpreter that has what "
                    "their sandbox_setup imports."
                )
        return (yield from super().execute(code, thought))


def repl_entry(step: ReActStep) -> REPLEntry:
    """Return a turn as DSPy writes it. Of a reply without code, ``code`` is the whole reply."""
    if not step.calls:
        return REPLEntry(step.thought, f"[Error] {step.error}")
    result, arguments = step.results[0], step.calls[0].arguments or {}
    output = f"[Error] {result.text}" if result.is_error else result.text
    return REPLEntry(str(arguments["code"]), output, step.thought)
