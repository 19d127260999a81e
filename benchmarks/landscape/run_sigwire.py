"""sigwire's optimizers on the landscape: ``python -m benchmarks.landscape.run_sigwire``.

Optimizers are taken from ``sigwire.optimizers`` by name, with the arguments that DSPy's get. ``--budget N`` limits the calls of
each run to N; else a run may make as many calls as DSPy's optimizer on average (``dspy-3.4.1.json``), and half of them if
the optimizer is in ``HALVED``. Optimizers that need less than ``FEW`` calls have no limit.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import sigwire
from benchmarks.landscape.report import read
from benchmarks.landscape.runs import MODEL, SETTINGS, Session, Side, main
from benchmarks.landscape.tasks import TOOLS, Row, Split, Task, feedback, is_right
from sigwire.core.json import JsonObject

__all__ = ["HALVED", "SigwireSession", "budget_of"]

HALVED = frozenset({"BootstrapFewShotWithRandomSearch", "MIPROv2", "SIMBA", "COPRO"})
FEW = 100
FIGURES = Path(__file__).with_name("dspy-3.4.1.json")


def budget_of(optimizer: str) -> int | None:
    """Return the mean calls of DSPy's optimizer, task and writing, or half of them; ``None`` for no limit."""
    runs = [run for run in read([str(FIGURES)]) if run["optimizer"] == optimizer] if FIGURES.exists() else []
    calls = statistics.mean(run["task_calls"] + run["writing_calls"] for run in runs) if runs else 0
    return None if calls < FEW else int(calls / 2 if optimizer in HALVED else calls)


class SigwireSession(Session):
    """sigwire at work on one task."""

    def __init__(self, task: Task, rows: Split, port: int, seed: int) -> None:
        self.task, self.rows, self.seed = task, {row.text: row for row in (*rows.train, *rows.val)}, seed
        self.train, self.val = rows.train, rows.val
        url = f"http://127.0.0.1:{port}/v1"
        self.lm = sigwire.LM(MODEL, base_url=url, api_key="key", temperature=0.0)
        self.writer = sigwire.LM(MODEL, base_url=url, api_key="key", temperature=1.0)
        self.tools = [_tool(name) for name in TOOLS]

    def student(self) -> Any:
        task = self.task
        if task.levers.tools:
            fields: dict[str, Any] = {
                task.input: (str, sigwire.InputField()),
                "tools": (list[sigwire.Tool], sigwire.InputField()),
                task.output: (sigwire.ToolCalls, sigwire.OutputField()),
            }
        else:
            output: Any = Literal[task.labels] if task.labels else str
            fields = {task.input: (str, sigwire.InputField()), task.output: (output, sigwire.OutputField())}
        return sigwire.Predict(sigwire.make_signature(fields, task.instructions), lm=self.lm)

    def scored(self, program: Any, rows: Sequence[Row]) -> float:
        return sum(is_right(row, self._answer(program, row)) for row in rows) / len(rows)

    def compile(self, optimizer: str, budget: int | None) -> tuple[Any, float | None]:
        made = _optimizer(optimizer)
        options: dict[str, Any] = {"metric": self._metric, **SETTINGS[optimizer], "seed": self.seed}
        accepted = inspect.signature(made).parameters
        options |= {name: self.writer for name in ("prompt_model", "reflection_lm") if name in accepted}
        if optimizer == "LabeledFewShot":
            del options["metric"]
        if budget is not None:
            options["budget"] = budget
        program = made(**options).compile(
            self.student(), trainset=self._examples(self.train), valset=self._examples(self.val)
        )
        report = program.optimization
        estimate = report.estimate.baseline if report.kept_student else report.estimate.corrected
        return program, estimate

    def _answer(self, program: Any, row: Row) -> Any:
        inputs: dict[str, Any] = {self.task.input: row.text}
        if self.task.levers.tools:
            inputs["tools"] = self.tools
        return self._answer_of(program(**inputs))

    def _answer_of(self, prediction: Any) -> Any:
        value = getattr(prediction, self.task.output, None)
        if not self.task.levers.tools:
            return value
        calls = list(value or ())
        return {"name": calls[0].name, "args": calls[0].arguments} if len(calls) == 1 else None

    def _metric(self, example: Any, prediction: Any, trace: Any = None) -> Any:
        self.scored_runs += 1
        row, answer = self.rows[example[self.task.input]], self._answer_of(prediction)
        return sigwire.Prediction(score=float(is_right(row, answer)), feedback=feedback(row, answer))

    def _examples(self, rows: Sequence[Row]) -> list[sigwire.Example]:
        made = list[sigwire.Example]()
        for row in rows:
            values: dict[str, Any] = {self.task.input: row.text, self.task.output: row.expected}
            inputs = [self.task.input]
            if self.task.levers.tools:
                values |= {"tools": self.tools, self.task.output: sigwire.ToolCalls([row.expected])}
                inputs.append("tools")
            made.append(sigwire.Example(**values).with_inputs(*inputs))
        return made


def _optimizer(name: str) -> Any:
    """Return the class of an optimizer: a public name, or one of the files of rules."""
    if name in sigwire.__all__:
        return getattr(sigwire, name)
    rules = importlib.import_module("sigwire.optimizers.rules")
    for found in pkgutil.iter_modules(rules.__path__, "sigwire.optimizers.rules."):
        if hasattr(module := importlib.import_module(found.name), name):
            return getattr(module, name)
    raise LookupError(f"sigwire has no optimizer {name}.")


def _tool(name: str) -> sigwire.Tool:
    desc, arguments = TOOLS[name]
    schema: JsonObject = {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in arguments},
        "required": list(arguments),
    }
    return sigwire.Tool.from_schema(name, desc, schema)


if __name__ == "__main__":
    if importlib.util.find_spec("sigwire.optimizers") is None:
        sys.exit("This version of sigwire has no optimizers.")
    main(Side("sigwire", SigwireSession), budget_of)
