"""``StepLog``: the turns and requests of a run, which end in its prediction or on the error that ended it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from sigwire.core.example import Prediction
from sigwire.core.record import FieldValues
from sigwire.core.response import Attempt, LMWarning, Repair, Usage
from sigwire.errors import BudgetSpent, LMError
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.answer import meta_of
from sigwire.signatures.signature import SignatureMeta

__all__ = ["StepLog"]


class StepLog:
    """The steps of a run in progress, its requests, and the latest answer of a predictor."""

    def __init__(self) -> None:
        self.steps: list[ReActStep] = []
        self.attempts: list[Attempt] = []
        self.prediction: Prediction | None = None
        self._counted = 0  # attempts that are in the usage of a step

    def add_prediction(self, prediction: Prediction, purpose: Literal["ask", "extract"] = "ask") -> None:
        """Add the answer of a predictor, with its attempts."""
        attempts = meta_of(prediction).attempts
        self.attempts.extend(attempts if purpose == "ask" else (replace(each, purpose=purpose) for each in attempts))
        self.prediction = prediction

    def log_step(
        self, thought: str, seconds: float = 0.0, runs: Sequence[ToolRun] = (), error: str | None = None
    ) -> None:
        """Add a turn, with the usage of the requests since the last one."""
        new, self._counted = self.attempts[self._counted :], len(self.attempts)
        usage = new[0].usage if len(new) == 1 else sum((attempt.usage for attempt in new), Usage())
        calls, results = tuple(run.call for run in runs), tuple(run.result for run in runs)
        found = tuple(run.warning for run in runs if run.warning is not None)
        self.steps.append(ReActStep(thought, calls, results, usage, seconds, error, found))

    def make_prediction(
        self,
        signature: SignatureMeta,
        outputs: FieldValues,
        facts: FieldValues,
        *,
        warnings: Sequence[LMWarning] = (),
        repairs: Sequence[Repair] = (),
    ) -> Prediction:
        """Return the result of the run: the outputs, and facts about it; ``run_steps`` beside an output ``steps``."""
        fields = dict(outputs)
        for name, value in facts.items():
            fields[f"run_{name}" if name in outputs else name] = value
        last = meta_of(self.prediction or Prediction())
        return Prediction.make(
            fields,
            signature=signature,
            response=last.response and last.response.with_warnings(*warnings),
            choice=last.choice,
            repairs=repairs,
            mode=last.mode,
            attempts=tuple(self.attempts),
        )

    def attach_facts(self, error: BaseException, **facts: object) -> None:
        """Set the steps, the attempts and other facts of the run on the error that ended it."""
        # Those of a ModelError are in self.attempts.
        failed = error.attempts if isinstance(error, LMError | BudgetSpent) else ()
        for name, value in {"steps": tuple(self.steps), "attempts": (*self.attempts, *failed), **facts}.items():
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(error, name, value)
