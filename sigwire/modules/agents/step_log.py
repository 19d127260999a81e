"""``StepLog``: the turns and requests of a run, which end in its prediction or on the error that ended it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal

from sigwire.core.example import Prediction
from sigwire.core.record import FieldValues
from sigwire.core.report import CallReport
from sigwire.core.response import Repair, Usage
from sigwire.effects.collecting import Collector, collector
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.answer import meta_of
from sigwire.observe.reports import Leaf, reports_of
from sigwire.signatures.signature import SignatureMeta

__all__ = ["StepLog"]


class StepLog:
    """The steps of a run in progress, and the latest answer of a predictor. ``calls``: what the run collects."""

    def __init__(self) -> None:
        self.steps: list[ReActStep] = []
        self.prediction: Prediction | None = None
        self.calls = collector.get() or Collector()
        self._counted = 0  # entries of ``calls`` that are in a step

    def add_prediction(self, prediction: Prediction, purpose: Literal["ask", "extract"] = "ask") -> None:
        """Add the answer of a predictor. ``purpose``: of its exchanges."""
        self.prediction = prediction
        if purpose == "extract" and isinstance(last := next(reversed(self._new_entries()), None), Leaf):
            last.relabel(purpose)

    def _new_entries(self) -> Sequence[object]:
        """Return what ran since the last step."""
        return (self.calls.entries or [])[self._counted :]

    @property
    def new_reports(self) -> tuple[CallReport, ...]:
        """The reports of the calls since the last step."""
        return reports_of(self._new_entries())

    def log_step(
        self, thought: str, seconds: float = 0.0, runs: Sequence[ToolRun] = (), error: str | None = None
    ) -> None:
        """Add a turn, with the reports of the calls since the last one."""
        reports, self._counted = self.new_reports, len(self.calls.entries or ())
        usage = reports[0].usage if len(reports) == 1 else sum((report.usage for report in reports), Usage())
        calls, results = tuple(run.call for run in runs), tuple(run.result for run in runs)
        found = tuple(run.warning for run in runs if run.warning is not None)
        each = tuple(run.seconds for run in runs)
        self.steps.append(ReActStep(thought, calls, results, usage, seconds, error, found, reports, each))

    def restore(self, steps: Sequence[ReActStep], reports: Iterable[CallReport]) -> None:
        """Set the steps of a run that continues; ``reports``: of its calls that are in no step."""
        self.steps = list(steps)
        for step in steps:
            for entry in (*step.reports, *step.warnings):
                self.calls.add(entry)
        self._counted = len(self.calls.entries or ())
        for report in reports:
            self.calls.add(report)

    def make_prediction(
        self,
        signature: SignatureMeta,
        outputs: FieldValues,
        facts: FieldValues,
        *,
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
            response=last.response,
            choice=last.choice,
            repairs=repairs,
            mode=last.mode,
        )

    def attach_facts(self, error: BaseException, **facts: object) -> None:
        """Set the steps and other facts of the run on the error that ended it. ``attempts`` are set with its report."""
        if not isinstance(getattr(error, "attempts", None), tuple):
            facts["attempts"] = ()
        for name, value in {"steps": tuple(self.steps), **facts}.items():
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(error, name, value)
