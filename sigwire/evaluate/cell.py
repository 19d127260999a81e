"""``Cell``: one run of one program on one example, scored. ``cell_steps`` makes it.

Errors become failures of the cell, except those of the kinds that the caller wants raised. Interrupts pass.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial, reduce
from operator import add, attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from sigwire.core.example import Example, Prediction
from sigwire.core.json import JsonObject, Value, decode_fields, dumps
from sigwire.core.narrow import is_items
from sigwire.core.record import Record
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, Repair, Usage, known_cost_of
from sigwire.core.tools.tool import Tool
from sigwire.effects.emitting import stream_queue
from sigwire.effects.steps import Steps
from sigwire.errors import LMError, ModelError, Unsure
from sigwire.evaluate.calls import RecordedCall, RowCalls
from sigwire.evaluate.examples import split_fields
from sigwire.evaluate.failures import ExampleTimeout, Failure, failure_of, missing_label
from sigwire.evaluate.metric_plan import MetricPlan, TraceList
from sigwire.evaluate.plain import NO_FORMS, Form, Written, dumped_example, plain_value, typed_fields, written_fields
from sigwire.modules.agents.run import ReActStep, load_run_fields
from sigwire.modules.agents.running_call import CurrentCall
from sigwire.modules.answer import meta_of
from sigwire.modules.call_limit import timed_steps
from sigwire.modules.calling import called_steps
from sigwire.modules.field_types import NO_TYPES, FieldTypes, types_of
from sigwire.modules.module import Module, module_paths
from sigwire.modules.where import locate
from sigwire.observe.usage import UsageTracker
from sigwire.settings import context, sample_in_context

__all__ = [
    "Cell", "CellOptions", "KeptRows", "RequestCounts", "TraceStep", "cell_steps", "counted", "score_steps",
    "stored_prediction", "tool_counts",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraceStep(Value):
    """One call of a predictor. ``path``: its name in ``program.named_predictors()``, "" if it has none there.

    ``demo``: the JSON of an ``Example(augmented=True)`` with the inputs and outputs of the call; tools are their names.
    ``called_by``: the call of the tool that ran it, "" outside of tools. ``evidence``: of the outputs, by path.
    """

    path: str
    demo: JsonObject
    called_by: str = ""
    evidence: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])


@dataclass(frozen=True, slots=True)
class Cell(Value):
    """One run of a program on one example.

    ``score``: ``None`` if not scored (failures of the provider, the metric and the caller). ``requests``: those that were sent
    to models, retries included; ``hits``: answers from the cache. ``usage``: the counts of ``Usage`` by model. ``cost``: US
    dollars, ``None`` if unknown; then ``known_cost`` is the part of it that is known. ``metric_requests``, ``metric_cost``,
    ``known_metric_cost``: those of the metric. ``seconds``: of the program.
    ``feedbacks``: the feedback for single predictors, by path. ``attempts``: those that failed, and re-asks. ``repairs``: those
    of the prediction. ``steps``: the turns of an agent that failed; those of a prediction are among the outputs. ``tools``: the
    calls and errors of each tool, of all agents of the program. ``warnings``: their number by feature. ``served``,
    ``metric_served``: the number of answers by the name that their model reports, with the fingerprint of its system.
    ``forms``: the outputs that their declared types do not read back (``plain.Written``). ``is_plain``: the program returned
    a value that is no prediction, which is the output ``value``. ``calls``: the messages that the program sent and received,
    if they are kept (``evaluate/calls.py``). ``spared``, ``spared_cost``: usage and cost of the hits when they were asked, if
    they are counted. ``evidence``: the probabilities of the outputs by path, as JSON; of a run that was unsure as well.

    >>> Cell.from_json(Cell(0.0, failure=Failure("program", "Refused", "no")).to_json()).failure.type
    'Refused'
    """

    score: float | None
    feedback: str = ""
    subscores: Mapping[str, float] = field(default_factory=dict[str, float])
    failure: Failure | None = None
    outputs: JsonObject | None = None
    requests: int = 0
    hits: int = 0
    usage: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    cost: float | None = None
    metric_requests: int = 0
    metric_cost: float | None = None
    seconds: float = 0.0
    trace: tuple[TraceStep, ...] = ()
    feedbacks: Mapping[str, str] = field(default_factory=dict[str, str])
    attempts: tuple[Attempt, ...] = ()
    repairs: tuple[Repair, ...] = ()
    steps: tuple[ReActStep, ...] = ()
    tools: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    warnings: Mapping[str, int] = field(default_factory=dict[str, int])
    served: Mapping[str, int] = field(default_factory=dict[str, int])
    metric_served: Mapping[str, int] = field(default_factory=dict[str, int])
    known_cost: float = 0.0
    known_metric_cost: float = 0.0
    forms: Mapping[str, Form] = field(default_factory=dict[str, Form])
    is_plain: bool = False
    calls: tuple[RecordedCall, ...] = ()
    spared: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    spared_cost: float | None = 0.0
    evidence: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """Decode the result of ``to_json``. Further members are ignored: those of the record around the cell."""
        return cls(**decode_fields(cls, data, ignores_unknown=True))


_without_score: Callable[[Cell], tuple[Any, ...]] = attrgetter(*[each.name for each in fields(Cell)][4:])


KeptRows: TypeAlias = Literal["failed", "all"]
"""The rows whose messages are kept."""


class CellOptions(TypedDict, total=False):
    """Options of ``cell_steps`` that are JSON."""

    traced: bool
    strict: bool
    timeout: float | None
    failure_score: float
    raises: list[str]
    explained: bool
    requests: KeptRows | None
    spared: bool


def cell_steps(
    program: object,
    example: Example,
    plan: MetricPlan | None,
    *,
    traced: bool = False,
    strict: bool = False,
    timeout: float | None = None,
    failure_score: float = 0.0,
    rollout_id: int | str | None = None,
    raises: Collection[str] = frozenset(),
    keep: Callable[[Any, Cell], object] | None = None,
    explained: bool = False,
    stored: Cell | None = None,
    requests: KeptRows | None = None,
    spared: bool = False,
) -> Steps[Cell]:
    """Run a program on the inputs of an example and score its prediction. Without a plan nothing is scored.

    ``traced``: the cell has a ``TraceStep`` for each call of a predictor. ``strict``: the metric gets the trace, as while
    demos are collected. ``timeout``: seconds; a program that takes longer failed. ``rollout_id``: the sample that all model
    calls of the program ask the cache for. ``raises``: kinds of failures ("bug" as well) whose error is raised. ``keep`` is
    called with the prediction and its cell, before it is scored. ``explained``: a metric that takes ``pred_name`` is called
    again for each predictor of the trace, for its ``feedbacks``. ``stored``: a cell whose metric failed: its outputs are
    scored, and the program is not run. ``requests``: the cells that have the messages sent and received. ``spared``: the
    usage of hits is counted.
    """
    if stored is not None:
        return (yield from _scored_again(stored, program, example, plan, strict, raises, keep, explained))
    run_of = _ProgramRun(program, example, traced, strict, timeout, rollout_id, spared)
    kept = None if requests is None else RowCalls()
    unsure: tuple[Unsure, Cell] | None = None
    prediction: object = None
    with _unstreamed(), UsageTracker(keep_runs=False) as tracker, _NO_CONTEXT if kept is None else kept.recording():
        try:
            prediction = yield from run_of.steps()
        except Exception as error:
            failure = _failure(error, program, raises)
            score = failure_score if failure.kind == "program" else None
            failed = Cell(score, "", {}, failure, *run_of.facts(None, tracker, error, kept))
            if plan is None or not (isinstance(error, Unsure) and plan.accepts_unsure):
                return failed
            unsure = error, failed
    if unsure is not None and plan is not None:  # the metric takes it in place of a prediction
        found, failed = unsure
        trace = run_of.trace if strict else None
        scored = yield from score_steps(failed, example, found, plan, trace, raises=raises)
        return scored if scored.failure is not None else replace(scored, failure=failed.failure)
    facts = run_of.facts(_outputs(program, prediction), tracker, prediction, kept if requests == "all" else None)
    if keep is not None:
        keep(prediction, Cell(None, "", {}, None, *facts))
    if plan is None:
        return Cell(None, "", {}, None, *facts)
    cell = yield from _judged(facts, example, prediction, plan, run_of.trace, strict, raises, explained)
    return replace(cell, calls=kept.recorded(program)) if requests == "failed" and kept and cell.failure else cell


def _judged(
    facts: tuple[Any, ...],
    example: Example,
    prediction: object,
    plan: MetricPlan,
    trace: TraceList,
    strict: bool,
    raises: Collection[str],
    explained: bool,
) -> Steps[Cell]:
    """Score a prediction, and add the feedback for single predictors if it is wanted."""
    cell = yield from _scored_steps(facts, example, prediction, plan, trace if strict else None, raises)
    if not (explained and plan.takes_predictor and cell.failure is None):
        return cell
    return (yield from _explained(cell, example, prediction, plan, trace, raises))


def _scored_again(
    stored: Cell,
    program: object,
    example: Example,
    plan: MetricPlan | None,
    strict: bool,
    raises: Collection[str],
    keep: Callable[[Any, Cell], object] | None,
    explained: bool,
) -> Steps[Cell]:
    """Score the outputs of a cell; calls of predictors are those of its trace, read back with their types."""
    facts = _without_score(_without_metric(stored))
    prediction = stored_prediction(stored, types_of(program))
    if keep is not None:
        keep(prediction, Cell(None, "", {}, None, *facts))
    if plan is None:
        return Cell(None, "", {}, None, *facts)
    return (
        yield from _judged(facts, example, prediction, plan, _stored_trace(stored, program), strict, raises, explained)
    )


def stored_prediction(cell: Cell, types: FieldTypes) -> Any:
    """Return the prediction of a cell: declared outputs and the run of an agent with their types, others as JSON data.

    A plain value is JSON data as well.
    """
    outputs = cell.outputs or {}
    if cell.is_plain:
        return typed_fields(outputs, NO_TYPES, cell.forms)["value"]
    fields = typed_fields(outputs, types, cell.forms)
    return Prediction({**fields, **_run_fields(outputs, types)} if types else fields)


def _run_fields(outputs: JsonObject, types: FieldTypes) -> dict[str, Any]:
    """Return the fields of the run of an agent, decoded; nothing for other programs."""
    run: dict[str, Any] = dict(outputs)
    try:
        load_run_fields(run, types)
    except (LookupError, ValueError, TypeError, AttributeError):
        return {}
    return {name: value for name, value in run.items() if value is not outputs[name]}


def _stored_trace(cell: Cell, program: object) -> TraceList:
    predictors = dict(program.named_predictors()) if isinstance(program, Module) else {}
    found: list[tuple[Any, Mapping[str, Any], Any]] = []
    for step in cell.trace:
        predictor, demo = predictors.get(step.path), Example.from_json(step.demo)
        fields = typed_fields(dict(demo.__dict__), types_of(predictor))
        inputs = {name: fields.pop(name) for name in demo.inputs()}
        fields.pop("augmented", None)
        found.append((predictor, inputs, Prediction(fields)))
    return found


def _without_metric(cell: Cell) -> Cell:
    """Return a cell without the requests of its metric."""
    if not (cell.metric_requests or cell.metric_served):
        return cell
    return replace(cell, metric_requests=0, metric_cost=None, known_metric_cost=0.0, metric_served={})


def _explained(
    cell: Cell, example: Example, prediction: object, plan: MetricPlan, trace: TraceList, raises: Collection[str]
) -> Steps[Cell]:
    """Add the feedback of the metric for each predictor of the trace."""
    feedbacks: dict[str, str] = {}
    with _unstreamed(), UsageTracker(keep_runs=False) as tracker:
        try:
            for path in dict.fromkeys(step.path for step in cell.trace):
                calls = [call for call, step in zip(trace, cell.trace, strict=True) if step.path == path]
                score = yield from plan.steps(example, prediction, trace, path, calls)
                feedbacks[path] = score.feedback
        except Exception as error:
            return replace(cell, score=None, failure=_failure(error, None, raises))
    counts, before = counted(tracker), cell.metric_cost if cell.metric_requests else 0.0
    cost = None if before is None or counts.cost is None else before + counts.cost
    return replace(
        cell,
        feedbacks=feedbacks,
        metric_requests=cell.metric_requests + counts.requests,
        metric_cost=cost if counts.requests else cell.metric_cost,
        known_metric_cost=0.0 if cost is not None else cell.known_metric_cost + (before or 0.0) + counts.known,
        metric_served=Counter(cell.metric_served) + Counter(counts.served),
    )


def score_steps(
    cell: Cell,
    example: Example,
    prediction: object,
    plan: MetricPlan,
    trace: TraceList | None = None,
    *,
    raises: Collection[str] = frozenset(),
) -> Steps[Cell]:
    """Score the prediction of a cell, and count the requests of the metric. Returns the cell with score or failure."""
    return (yield from _scored_steps(_without_score(_without_metric(cell)), example, prediction, plan, trace, raises))


def _scored_steps(
    facts: tuple[Any, ...],
    example: Example,
    prediction: object,
    plan: MetricPlan,
    trace: TraceList | None,
    raises: Collection[str],
) -> Steps[Cell]:
    """``score_steps`` of a cell that is not made yet: it has ``facts``, the fields after those of the score."""
    with _unstreamed(), UsageTracker(keep_runs=False) as tracker:
        try:
            score = yield from plan.steps(example, prediction, trace)
        except Exception as error:
            failure = _failure(missing_label(error, example) or error, None, raises)
            scored = Cell(None, "", {}, failure, *facts)
        else:
            scored = Cell(score.value, score.feedback, score.subscores, None, *facts)
    if not (tracker.attempts or tracker.served):
        return scored
    counts = counted(tracker)
    return replace(
        scored,
        metric_requests=counts.requests,
        metric_cost=counts.cost,
        known_metric_cost=0.0 if counts.cost is not None else counts.known,
        metric_served=counts.served,
    )


class _ProgramRun:
    """One call of the program, its trace and its seconds."""

    __slots__ = ("_changes", "_inputs", "_program", "_seconds", "_spared", "_started", "_timeout", "_traced", "trace")

    def __init__(
        self,
        program: object,
        example: Example,
        traced: bool,
        strict: bool,
        timeout: float | None,
        rollout_id: int | str | None,
        spared: bool,
    ) -> None:
        self._program, self._timeout, self._spared = program, timeout, spared
        self._inputs = split_fields(example)[0]
        self._traced = traced
        self.trace: list[Any] = []
        self._changes: dict[str, object] = {"trace": self.trace} if traced or strict else {}
        if rollout_id is not None:
            self._changes["rollout_id"] = sample_in_context(rollout_id)
        self._started = time.monotonic()
        self._seconds = 0.0

    def steps(self) -> Steps[object]:
        steps = called_steps(self._program, (), self._inputs)
        if self._timeout is not None:
            text = f"The program took longer than {self._timeout:g} seconds on one example (timeout=)."
            steps = timed_steps(steps, self._timeout, partial(ExampleTimeout, text))
        try:
            if not self._changes:
                return (yield from steps)
            with context(**self._changes):
                return (yield from steps)
        finally:
            self._seconds = time.monotonic() - self._started

    def facts(
        self, outputs: Written | None, tracker: UsageTracker, found: object, kept: RowCalls | None
    ) -> tuple[Any, ...]:
        """Return the fields of the cell after those of the score. ``found``: the prediction or the error of the run."""
        plain, forms = (None, NO_FORMS) if outputs is None else outputs
        trace = _trace_steps(self._program, self.trace) if self._traced else ()
        error = found if isinstance(found, Exception) else None
        odd = _odd_attempts(tracker, found), _repairs(found), _steps(error) if error is not None else ()
        calls = tool_counts(tracker.tool_calls), _counts(tracker.warnings)
        *sums, served, known = counted(tracker)
        unscored: dict[str, int] = {}
        rest = served, unscored, known if sums[-1] is None else 0.0, 0.0, forms
        is_plain = outputs is not None and not isinstance(found, Record)
        messages = () if kept is None else kept.recorded(self._program)
        hits = _spared(tracker.spared if self._spared else [])
        last = is_plain, messages, *hits, evidence_of(found)
        return plain, *sums, 0, None, self._seconds, trace, {}, *odd, *calls, *rest, *last


def _spared(hits: Sequence[Attempt]) -> tuple[Mapping[str, JsonObject], float | None]:
    """Return the usage by model and the cost of answers when they were asked."""
    by_model: dict[str, list[Attempt]] = {}
    for hit in hits:
        by_model.setdefault(hit.model or "unknown", []).append(hit)
    known, is_whole = known_cost_of(hits)
    return {model: _total(made).to_json() for model, made in by_model.items()}, known if is_whole else None


def _failure(error: Exception, program: object, raises: Collection[str]) -> Failure:
    """Return the failure of an error, or raise the error if its kind is among ``raises``."""
    if isinstance(program, Module):
        locate(error, program, module_paths(program))
    failure = failure_of(error, in_metric=program is None)
    if failure.kind in raises or (failure.is_bug and "bug" in raises):
        raise error
    return failure


class RequestCounts(NamedTuple):
    """The requests of a run; see ``Cell``. ``known``: the known part of the cost, all of it if there is a cost."""

    requests: int
    hits: int
    usage: Mapping[str, JsonObject]
    cost: float | None
    served: Mapping[str, int]
    known: float


def counted(tracker: UsageTracker) -> RequestCounts:
    """Return requests, usage and cost."""
    attempts = tracker.attempts
    sent = [attempt for made in attempts.values() for attempt in made if attempt.purpose not in _NOT_SENT]
    usage = {model: _total(made).to_json() for model, made in attempts.items() if made}
    known, is_whole = known_cost_of(sent)
    return RequestCounts(
        len(sent), len(tracker.hits), usage, known if is_whole else None, _counts(tracker.served), known
    )


def _counts(names: Sequence[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items())) if names else {}  # most rows have none, and a Counter is slow


def _total(attempts: Sequence[Attempt]) -> Usage:
    return attempts[0].usage if len(attempts) == 1 else reduce(add, [one.usage for one in attempts], Usage())


def tool_counts(calls: Sequence[tuple[str, bool]]) -> Mapping[str, JsonObject]:
    """Return calls and errors by tool. ``calls``: names, and whether the result is an error.

    >>> tool_counts([("find", False), ("find", True)])
    {'find': {'calls': 2, 'errors': 1}}
    """
    if not calls:
        return {}
    made, failed = Counter(name for name, _ in calls), Counter(name for name, is_error in calls if is_error)
    return {name: {"calls": number, "errors": failed[name]} for name, number in sorted(made.items())}


_NOT_SENT = ("skip", "joined")  # purposes of attempts without an exchange


def _odd_attempts(tracker: UsageTracker, found: object) -> tuple[Attempt, ...]:
    """Return the attempts that failed, and re-asks, which the prediction or the error of a parser has."""
    is_reported = isinstance(found, (Prediction, LMError, ModelError))
    own = CallReport.of(found).attempts if is_reported else ()
    failed = [attempt for made in tracker.attempts.values() for attempt in made if attempt.error]
    reasks = [attempt for attempt in own if attempt.purpose == "repair" and not attempt.error]
    return (*failed, *reasks)


def _steps(error: Exception) -> tuple[ReActStep, ...]:
    """Return the turns of the agent's run that an error ended."""
    steps: object = getattr(error, "steps", ())
    return tuple(step for step in steps if isinstance(step, ReActStep)) if is_items(steps) else ()


def _repairs(prediction: object) -> tuple[Repair, ...]:
    return tuple(meta_of(prediction).repairs) if isinstance(prediction, Prediction) else ()


def evidence_of(found: object) -> dict[str, JsonObject]:
    """Return the evidence of the outputs of a prediction, or of the error of a run that was unsure, as JSON by path."""
    given = found.evidence if isinstance(found, Unsure) else None
    if isinstance(found, Prediction):
        given = meta_of(found).evidence
    return {path: each.to_json() for path, each in given.items()} if given else {}


def _outputs(program: object, prediction: object) -> Written:
    if not isinstance(prediction, Record):
        return written_fields({"value": prediction})
    declared = meta_of(prediction).signature if isinstance(prediction, Prediction) else None
    return written_fields(prediction.__dict__, types_of(program) if declared is None else declared.spec.by_name)


def _trace_steps(program: object, trace: TraceList) -> tuple[TraceStep, ...]:
    paths = {id(part): name for name, part in program.named_predictors()} if isinstance(program, Module) else {}
    return tuple(
        TraceStep(
            paths.get(id(entry[0]), ""),
            _demo(*entry),
            _tool_call_text(getattr(entry, "tool_call", None)),
            evidence_of(entry[2]),
        )
        for entry in trace
    )


def _tool_call_text(call: CurrentCall | None) -> str:
    if call is None:
        return ""
    return f"{call.name}({', '.join(f'{name}={dumps(value)}' for name, value in call.arguments.items())})"


def _demo(predictor: object, inputs: Mapping[str, Any], prediction: Prediction) -> JsonObject:
    fields = {name: _without_tools(value) for name, value in {**inputs, **prediction.__dict__}.items()}
    try:
        return dumped_example(Example(fields, augmented=True).with_inputs(*inputs), types_of(predictor))
    except ValueError:  # a value without a JSON form
        return Example({name: plain_value(value) for name, value in fields.items()}).with_inputs(*inputs).to_json()


def _without_tools(value: object) -> object:
    if isinstance(value, Tool):
        return value.name
    return [_without_tools(item) for item in value] if isinstance(value, (list, tuple)) else value  # pyright: ignore


_NO_CONTEXT = nullcontext()


def _unstreamed() -> AbstractContextManager[None]:
    """Inside the block, programs ask for whole answers and emit nothing, also if the evaluation is streamed."""
    return _NO_CONTEXT if stream_queue.get() is None else _without_stream()


@contextmanager
def _without_stream() -> Generator[None]:
    before = stream_queue.get()
    stream_queue.set(None)
    try:
        yield
    finally:
        stream_queue.set(before)
