"""DSPy's students: their source is here because MIPROv2 and SIMBA send the source of a program's class to the writing model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from benchmarks.landscape.tasks import TOOLS, Task

__all__ = ["Answerer", "Caller", "calls", "student"]

dspy: Any = importlib.import_module("dspy")


class Answerer(dspy.Module):  # type: ignore[misc]
    """A program of one predictor."""

    def __init__(self, signature: Any) -> None:
        dspy.Module.__init__(self)
        self.answer = dspy.Predict(signature)

    def forward(self, **inputs: str) -> Any:
        return self.answer(**inputs)


class Caller(dspy.Module):  # type: ignore[misc]
    """A program of one predictor that chooses among tools."""

    def __init__(self, signature: Any, tools: Sequence[Any]) -> None:
        dspy.Module.__init__(self)
        self.call = dspy.Predict(signature)
        self.tools = list(tools)

    def forward(self, request: str) -> Any:
        return self.call(request=request, tools=self.tools)


def student(task: Task) -> Any:
    """Return the program of a task."""
    if task.levers.tools:
        fields: Mapping[str, Any] = {
            task.input: (str, dspy.InputField()),
            "tools": (list[dspy.Tool], dspy.InputField()),
            task.output: (dspy.ToolCalls, dspy.OutputField()),
        }
        return Caller(dspy.Signature(fields, task.instructions), tools())
    output: Any = Literal[task.labels] if task.labels else str
    fields = {task.input: (str, dspy.InputField()), task.output: (output, dspy.OutputField())}
    return Answerer(dspy.Signature(fields, task.instructions))


def tools() -> list[Any]:
    """Return the tools; nothing calls the functions."""
    return [
        dspy.Tool(_nothing, name=name, desc=desc, args={argument: {"type": "string"} for argument in arguments})
        for name, (desc, arguments) in TOOLS.items()
    ]


def _nothing(**arguments: str) -> str:
    return "done"


def calls(found: Sequence[Mapping[str, Any]]) -> Any:
    """Return calls of tools as DSPy's value."""
    return dspy.ToolCalls.from_dict_list([{"name": one["name"], "args": one["args"]} for one in found])
