"""DSPy's optimizers on the landscape: ``python -m benchmarks.landscape.run_dspy``, in an environment that has DSPy.

    python -m venv dspy-venv && dspy-venv/bin/pip install dspy==3.4.1 gepa optuna
    dspy-venv/bin/python -m benchmarks.landscape.run_dspy --optimizers GEPA --tasks tickets --seeds 0

The module does not need sigwire.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import random
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.landscape.runs import MODEL, SETTINGS, Session, Side, main
from benchmarks.landscape.tasks import Row, Split, Task, feedback, is_right

__all__ = ["DSPySession"]


class DSPySession(Session):
    """DSPy at work on one task."""

    def __init__(self, task: Task, rows: Split, port: int, seed: int) -> None:
        self.dspy: Any = importlib.import_module("dspy")
        self.programs: Any = importlib.import_module("benchmarks.landscape.dspy_programs")
        self.task, self.rows, self.seed = task, rows, seed
        logging.getLogger("dspy").setLevel(logging.ERROR)
        random.seed(seed)
        self.dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
        model = self.dspy.LM(
            MODEL, api_base=f"http://127.0.0.1:{port}/v1", api_key="key", temperature=0.0, max_tokens=1000
        )
        self.dspy.configure(lm=model)
        self.model = model

    def student(self) -> Any:
        return self.programs.student(self.task)

    def scored(self, program: Any, rows: Sequence[Row]) -> float:
        return sum(is_right(row, self.answer(program, row)) for row in rows) / len(rows)

    def answer(self, program: Any, row: Row) -> Any:
        return self.answer_of(program(**{self.task.input: row.text}))

    def answer_of(self, prediction: Any) -> Any:
        value = getattr(prediction, self.task.output, None)
        if not self.task.levers.tools:
            return value
        calls: list[Any] = getattr(value, "tool_calls", None) or []
        return {"name": calls[0].name, "args": calls[0].args} if len(calls) == 1 else None

    def metric(self, example: Any, prediction: Any, trace: Any = None) -> float:
        self.scored_runs += 1
        return float(is_right(self.row(example), self.answer_of(prediction)))

    def feedback_metric(
        self, example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        self.scored_runs += 1
        row, answer = self.row(example), self.answer_of(prediction)
        return self.dspy.Prediction(score=float(is_right(row, answer)), feedback=feedback(row, answer))

    def row(self, example: Any) -> Row:
        return next(row for row in (*self.rows.train, *self.rows.val) if row.text == example[self.task.input])

    def examples(self, rows: Sequence[Row]) -> list[Any]:
        made = list[Any]()
        for row in rows:
            value = self.programs.calls([row.expected]) if self.task.levers.tools else row.expected
            made.append(
                self.dspy.Example(**{self.task.input: row.text, self.task.output: value}).with_inputs(self.task.input)
            )
        return made

    def compile(self, optimizer: str, budget: int | None) -> tuple[Any, float | None]:
        train, val = self.examples(self.rows.train), self.examples(self.rows.val)
        options = dict(SETTINGS[optimizer])
        takes_valset = optimizer in ("BootstrapFewShotWithRandomSearch", "MIPROv2", "GEPA", "InferRules")
        more: dict[str, Any] = {"valset": val} if takes_valset else {}
        if optimizer != "LabeledFewShot":
            options["metric"] = self.feedback_metric if optimizer in ("GEPA", "SIMBA") else self.metric
        if optimizer not in ("LabeledFewShot", "BootstrapFewShot", "COPRO"):
            options["num_threads"] = 1
        if optimizer in ("MIPROv2", "GEPA"):
            options["seed"] = self.seed + 1
        if optimizer == "SIMBA":
            more["seed"] = self.seed
        if optimizer == "COPRO":
            more["eval_kwargs"] = {"num_threads": 1, "display_progress": False}
        if optimizer == "GEPA":
            options |= {"reflection_lm": self.model.copy(temperature=1.0), "track_stats": True}
            if budget is not None:
                options |= {"auto": None, "max_metric_calls": budget}
        made = getattr(self.dspy, optimizer)(**options)
        program = made.compile(self.student(), trainset=train, **more)
        return program, _estimate(optimizer, program)


def _estimate(optimizer: str, program: Any) -> float | None:
    """Return the score that the optimizer reports, from 0 to 1."""
    if optimizer == "GEPA":
        results = program.detailed_results
        return float(results.val_aggregate_scores[results.best_idx])
    found = getattr(program, "candidate_programs", None)
    if not found:
        return None
    best = max(float(one["score"]) for one in found)
    return best if optimizer == "SIMBA" else best / 100


if __name__ == "__main__":
    if importlib.util.find_spec("dspy") is None:
        sys.exit("DSPy is not installed here; see the first lines of this file.")
    main(Side("dspy", DSPySession))
