"""Specimens of modules and runs: predictors, programs, agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sigwire.core.example import Example, Prediction
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import CallerError
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.failover.records import HealthTable, TargetHealth
from sigwire.lm.policy.money.sums import Amounts
from sigwire.lm.preview.cache_health import CacheBreak, CacheHealth
from sigwire.lm.preview.model_call import ModelCall
from sigwire.lm.preview.preview import Preview
from sigwire.modules.agents.run import AgentRun, ReActStep
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.probes.report import ProbeRow, Verification
from sigwire.show.card import HasCard
from sigwire.signatures.signature import SignatureMeta
from sigwire.signatures.types.history import History
from tests.show.gallery.material import Material
from tests.show.gallery.values import conversation, conversation_request, signature

__all__ = ["PROGRAMS", "agent_prediction"]


class Specimen(Module):
    """A program with parts in a dict, one of them shared."""

    def __init__(self, of: Material) -> None:
        super().__init__()
        self.first = _predictor(of)
        self.parts = {f"{of.name}{at}": _predictor(of, self.first.signature) for at in of.indices}
        self.again = [self.first]


def _predictor(of: Material, shared: SignatureMeta | None = None) -> Predict[..., Prediction]:
    predictor: Predict[..., Prediction] = Predict(shared or signature(of), temperature=0.2, stop=[of.text])
    predictor.demos = [Example({"question": of.text, of.name: of.text}) for _ in of.indices]
    predictor.lm = FakeLM()
    return predictor


def _step(of: Material) -> ReActStep:
    calls = tuple(ToolCall(f"call_{at}", of.name, {of.name: of.text}) for at in of.indices)
    results = tuple(ToolResult(call.id, call.name, of.text, at == 0) for at, call in enumerate(calls))
    warning = LMWarning(of.name, of.text)
    return ReActStep(of.text, calls, results, Usage(185, 29), 0.059, of.text or None, (warning,))


def _run(of: Material) -> AgentRun:
    steps = tuple(_step(of) for _ in of.indices)
    return AgentRun(steps, History(conversation(of)), "submit", _report(of))


def _report(of: Material) -> CallReport:
    warning, attempt = LMWarning(of.name, of.text), Attempt(model=of.name, usage=Usage(185, 29))
    leaf = CallReport(
        name=of.name, path=of.text, turn=0, error=of.text, own=(attempt,), own_warnings=(warning,), cache="hit"
    )
    return CallReport("tool", of.name, of.text, inner=tuple(leaf for _ in of.indices))


def agent_prediction(of: Material) -> Prediction:
    """Return the prediction of an agent."""
    run = _run(of)
    fields = {
        "topic": of.text,
        "steps": run.steps,
        "history": run.history,
        "termination_reason": run.termination_reason,
    }
    return Prediction.make(fields, signature=signature(of), attempts=run.attempts)


def _preview(of: Material) -> Preview:
    warnings = tuple(LMWarning(of.name, of.text) for _ in of.indices)
    return Preview(of.name, conversation_request(of), warnings, (CallerError(of.text),), path=of.name, turn=1)


def _health_table(of: Material) -> HealthTable:
    return HealthTable(tuple(TargetHealth(of.name, "open", 3.25, 4.2, at, 3, of.text or None) for at in of.indices))


def _model_call(of: Material) -> ModelCall:
    error = CallerError(of.text) if of.count > 1 else None
    return ModelCall(of.name, 1, of.name, of.name, conversation_request(of), Response(), error, 0.0)


def _verification(of: Material) -> Verification:
    rows = tuple(ProbeRow(of.name, of.text, "yes", of.text, "worse", of.text, (of.text,)) for _ in of.indices)
    return Verification(of.name, of.text, rows, 3, Amounts(3, 120, 0.01), of.text, "a1b2", "2026-11-28")


def _cache_health(of: Material) -> CacheHealth:
    breaks = tuple(CacheBreak(at, of.text, "edited", 3_000, 0.003 if at else None) for at in of.indices)
    return CacheHealth(of.count, 9_000, 4_500, breaks)


PROGRAMS: Mapping[type, Callable[[Material], HasCard]] = {
    AgentRun: _run,
    CacheHealth: _cache_health,
    CallReport: _report,
    HealthTable: _health_table,
    ModelCall: _model_call,
    Module: Specimen,
    Predict: _predictor,
    Preview: _preview,
    ReActStep: _step,
    Verification: _verification,
}
"""Specimens by class."""
