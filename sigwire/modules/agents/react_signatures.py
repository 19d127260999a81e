"""The signatures that ReAct derives from the signature of its task: one turn of the loop, and the extraction of the outputs."""

from __future__ import annotations

from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.errors import SignatureError
from sigwire.modules.inputs import InputReader
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.signature import SignatureClass, SignatureMeta
from sigwire.signatures.types.history import History

__all__ = ["AgentSignatures", "split_history"]


class AgentSignatures:
    """The derived signatures, and names for the agent's fields that no field of the task has.

    A history field of the task is used for the conversation. Raises ``SignatureError`` if the task has tools or calls of its
    own, or no outputs.
    """

    def __init__(self, signature: SignatureMeta) -> None:
        spec = signature.spec
        _check(spec)
        self.outputs = tuple(output.name for output in spec.outputs)
        self.tools, self.calls = _free_name("tools", spec), _free_name("tool_calls", spec)
        self.trajectory = _free_name("trajectory", spec)
        self._instructions = spec.instructions
        self.with_history: SignatureMeta = signature
        self.history, self.task = split_history(signature)
        if spec.history_field is None:
            self.with_history = signature.append(self.history, InputField(), History)

    def reader(self) -> InputReader:
        """Return the reader of the inputs of the task."""
        return InputReader(self.task.spec)

    def turn(self, submit: str) -> SignatureClass:
        """Return the signature of a turn: inputs, tools and history to tool calls. ``submit`` names the submit tool."""
        turn = self.with_history
        for name in self.outputs:
            turn = turn.delete(name)
        turn = turn.append(self.tools, InputField(), list[Tool]).append(self.calls, OutputField(), ToolCalls)
        outputs = ", ".join(f"`{name}`" for name in self.outputs)
        return turn.with_instructions(
            f"{self._instructions}\n\n"
            "Work in turns. In each turn, call the tools you need next. Make independent tool calls in the same turn. You get "
            "the results before your next turn. If a result is an error, correct the tool call.\n"
            f"When you know all output fields ({outputs}), call `{submit}` with their values."
        )

    def extraction(self) -> SignatureClass:
        """Return the signature of the extraction: inputs and the text of all tool calls to the outputs."""
        described = InputField(desc="the earlier tool calls and their results")
        return self.task.append(self.trajectory, described, str).with_instructions(
            f"{self._instructions}\n\n"
            f"`{self.trajectory}` lists the tool calls made for this task and their results. Write the output fields from "
            "these results. If the results are incomplete, give the best value you can."
        )


def split_history(signature: SignatureMeta) -> tuple[str, SignatureMeta]:
    """Return the name of the history in calls of an agent, and the signature of its task, which has no history.

    >>> from sigwire.signatures.signature import Signature
    >>> name, task = split_history(Signature("chat: History, question -> answer"))
    >>> name, [field.name for field in task.spec.inputs], split_history(Signature("question -> answer"))[0]
    ('chat', ['question'], 'history')
    """
    if (field := signature.spec.history_field) is not None:
        return field.name, signature.delete(field.name)
    return _free_name("history", signature.spec), signature


def _check(spec: SignatureSpec) -> None:
    field = spec.calls_field or spec.tools_field
    if field is not None:
        raise SignatureError(
            f"{spec.name} has the field {field.name!r}, but ReAct offers tools and reads their calls itself. "
            "Remove it from the signature and pass ReAct(signature, tools=[...])."
        )
    if not spec.outputs:
        raise SignatureError(f"{spec.name} has no outputs, so a run of ReAct could not end. Declare at least one.")


def _free_name(name: str, spec: SignatureSpec) -> str:
    while name in spec.by_name:
        name += "_"
    return name
