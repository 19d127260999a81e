"""The signatures that ``CodeAct`` derives from the signature of its task: a turn of code, and the extraction of the outputs."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.tools.tool import Tool
from sigwire.modules.agents.react_signatures import AgentSignatures
from sigwire.modules.agents.submit import Submit
from sigwire.modules.code.tool_signatures import tool_signature
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.signature import SignatureClass
from sigwire.signatures.types.text import Code

__all__ = ["ActSignatures"]


class ActSignatures:
    """The derived signatures, and names for the fields of a turn that no field of the task has.

    ``listing`` has the functions; it is an input of each task, so instructions that an optimizer writes keep it.
    """

    def __init__(self, agent: AgentSignatures, tools: Mapping[str, Tool], submit: Submit, place: str) -> None:
        self._agent, self._spec = agent, agent.with_history.spec
        self.code, self.thought = (_free_name(name, self._spec) for name in ("code", "reasoning"))
        self.functions = _free_name("functions", self._spec)
        self._place, self._submit, self._ends = place, submit.name, submit
        self.listing = self.listed(tools)

    def listed(self, tools: Mapping[str, Tool]) -> str:
        """Return the listing of functions with ``submit``."""
        functions = {**tools, self._submit: self._ends.tool}
        return "\n".join(tool_signature(name, tool) for name, tool in functions.items())

    def turn(self) -> SignatureClass:
        """Return the signature of a turn: inputs and history to a thought and code."""
        turn = self._agent.with_history
        for name in self._agent.outputs:
            turn = turn.delete(name)
        turn = turn.prepend(self.functions, InputField(desc="functions that the code can call"), str)
        turn = turn.append(self.thought, OutputField(desc="what is known, and the next step"), str)
        turn = turn.append(self.code, OutputField(desc=f"runs in {self._place}"), Code)
        outputs = ", ".join(f"`{name}`" for name in self._agent.outputs)
        return turn.with_instructions(
            f"{self._spec.instructions}\n\n"
            f"Work in turns. In each turn, write Python `{self.code}`. It runs, and you get what it prints, the value of its "
            f"last expression and its error before your next turn. Variables stay. Call as many of the `{self.functions}` as "
            "you need in one turn, with loops and conditions over their results; an error of a function is an exception.\n"
            f"When you know all output fields ({outputs}), call `{self._submit}` with their values in the code."
        )

    def extraction(self) -> SignatureClass:
        """Return the signature of the extraction: inputs and the log of the run to the outputs."""
        log = self._agent.trajectory
        described = InputField(desc="the code that was run and its results")
        return self._agent.task.append(log, described, str).with_instructions(
            f"{self._spec.instructions}\n\n"
            f"`{log}` has the code that was run for this task and its results. Write the output fields from these results. If "
            "they are incomplete, give the best value you can."
        )


def _free_name(name: str, spec: SignatureSpec) -> str:
    while name in spec.by_name:
        name += "_"
    return name
