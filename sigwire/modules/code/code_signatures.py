"""The signatures that modules derive from the signature of their task, to ask for code and for outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from keyword import iskeyword

from sigwire.core.tools.tool import Tool
from sigwire.errors import SignatureError
from sigwire.modules.agents.react_signatures import split_history
from sigwire.modules.agents.submit import Submit
from sigwire.modules.code.tool_signatures import tool_signature
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.signature import SignatureClass, SignatureMeta, make_signature
from sigwire.signatures.types import Code, History

__all__ = ["SessionSignatures", "ThoughtSignatures"]


class ThoughtSignatures:
    """The signatures of ``ProgramOfThought``, and names for its fields that no field of the task has."""

    def __init__(self, signature: SignatureMeta, submit: Submit, capabilities: str) -> None:
        spec = signature.spec
        _check(spec)
        names = ("generated_code", "previous_code", "error", "final_generated_code", "code_output")
        self.code, self.previous, self.error, self.final, self.printed = (_free_name(name, spec) for name in names)
        self._task, self._asked = signature, signature
        for field in spec.outputs:
            self._asked = self._asked.delete(field.name)
        inputs = ", ".join(f"`{field.name}`" for field in spec.inputs)
        ending = " ".join(tool_signature(submit.name, submit.tool).split())
        self._desc = f"ends with a call of {ending} Runs in {capabilities}"
        self._instructions = (
            f"{spec.instructions}\n\n"
            f"Do not write the result yourself. Write Python code (`{self.code}`) that computes it and ends with a call of "
            f"`{submit.name}`. The inputs ({inputs}) are variables of the code."
        )

    def generation(self) -> SignatureClass:
        """Return the signature of the first code: inputs to code."""
        made = self._asked.append(self.code, OutputField(desc=self._desc), Code)
        return made.with_instructions(self._instructions)

    def regeneration(self) -> SignatureClass:
        """Return the signature of a repair: inputs, the code that failed and its error to code."""
        made = self._asked.append(self.previous, InputField(), Code).append(self.error, InputField(), str)
        return made.append(self.code, OutputField(desc=self._desc), Code).with_instructions(
            f"{self._instructions}\n\n`{self.previous}` failed with `{self.error}`. Write the whole code again, corrected."
        )

    def answer(self) -> SignatureClass:
        """Return the signature of outputs that code printed: inputs, code and its output to the outputs of the task."""
        made = self._task.append(self.final, InputField(), Code).append(self.printed, InputField(), str)
        return made.with_instructions(
            f"{self._task.spec.instructions}\n\n"
            f"`{self.final}` was run for this task, and `{self.printed}` is its result. Write the output fields from it."
        )


class SessionSignatures:
    """The signatures of ``RLM``: a turn of code, and the extraction of the outputs. They have no input of the task."""

    def __init__(
        self,
        signature: SignatureMeta,
        names: tuple[str, str] = ("variables", "session"),
        *,
        continues: bool = True,
    ) -> None:
        _check(signature.spec)
        self.history: str | None = None
        """The name of the history in calls; ``None`` if a run does not continue another."""
        self.task: SignatureMeta = signature
        """The signature without the history."""
        if continues:
            self.history, self.task = split_history(signature)
        self.variables, self.log = (_free_name(name, signature.spec) for name in names)

    def turn(self, submit: str, most: int, place: str) -> SignatureClass:
        """Return the signature of a turn: functions, descriptions of the variables and the conversation to code."""
        spec = self.task.spec
        fields = {
            "functions": (str, InputField(desc="functions that the code can call")),
            "variables": (str, InputField(desc="variables that the code can read, and their beginning")),
            "history": (History, InputField()),
            "reasoning": (str, OutputField(desc="what is known, and the next step")),
            "code": (Code, OutputField(desc=f"runs in {place}")),
        }
        names = ", ".join(f"`{field.name}`" for field in spec.inputs)
        return make_signature(
            fields,
            f"{spec.instructions}\n\n"
            f"The inputs ({names}) are `variables` of a Python session. Work in turns. In each turn, write `code`. It runs, "
            f"and you get what it printed, at most {most:,} characters, the value of its last expression and its error. "
            "Variables stay.\nLook at the data first, in small parts. Search, count and compute in Python. Ask about the "
            "meaning of a text with `llm_query`: put the question and the part of the data in one text. Keep results in "
            "variables.\n"
            f"When you have seen and checked the results, call `{submit}` with variables instead of long values.",
        )

    def functions(self, asking: Sequence[str], tools: Mapping[str, Tool], submit: Submit) -> str:
        """Return the functions of the session for the model: an input of a run, so that optimized instructions keep it."""
        own = {**tools, submit.name: submit.tool}
        return "\n".join([*asking, *(tool_signature(name, tool) for name, tool in own.items())])

    def extraction(self) -> SignatureClass:
        """Return the signature of the extraction: the variables and the log of a session to the outputs of the task."""
        spec = self.task.spec
        made: SignatureMeta = self.task
        for field in spec.inputs:
            made = made.delete(field.name)
        made = made.append(self.variables, InputField(), str).append(self.log, InputField(), str)
        return made.with_instructions(
            f"{spec.instructions}\n\nThe inputs are described in `{self.variables}`. `{self.log}` has the code that was run "
            "for this task and its results. Write the output fields from the results. If they are incomplete, give the best "
            "value you can."
        )


def _check(spec: SignatureSpec) -> None:
    if words := [field.name for field in spec.inputs if iskeyword(field.name)]:
        raise SignatureError(
            f"The input {words[0]!r} is a word of Python, and no name of a variable (deriving the signatures of code). Rename "
            "the input."
        )
    if not spec.outputs:
        raise SignatureError(f"{spec.name} has no outputs, so code could not submit any. Declare at least one.")


def _free_name(name: str, spec: SignatureSpec) -> str:
    while name in spec.by_name:
        name += "_"
    return name
