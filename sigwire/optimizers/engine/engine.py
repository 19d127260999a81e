"""The engine: performs the effects of a rule. Runs are made at once, journaled as they end, and answered in the asked order.

    rule ──Measure, Write, Report──▶ engine ──RowRun──▶ cells of ``evaluate``
         ◀──cells, answers─────────         ──▶ store (journal), spending, events

A rule sees values only between its effects, so its path does not depend on which run ended first. The engine is itself steps:
it blocks, awaits or streams by the drivers of all steps.

An answer of the model that cannot be used is a fault of the candidate (``failure_score``). After a failure of the provider the
run is made again; if rounds pass without success, the search stops and can be resumed. An exception of the metric or the
program stops the search with its traceback, unless ``errors="score"``.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from sigwire.core.example import Example, Prediction
from sigwire.core.json import JsonObject
from sigwire.core.record import to_plain
from sigwire.effects.steps import Steps
from sigwire.errors import BudgetSpent, InputError, LMError, ModelError
from sigwire.evaluate.cell import Cell, CellOptions, counted
from sigwire.evaluate.figures.tool_counts import CallTotals
from sigwire.evaluate.metric_plan import MetricPlan
from sigwire.evaluate.rows.run import FinishedRow, Row, RowExecutor, RowRun, RowsCaller
from sigwire.modules.batch import in_run
from sigwire.modules.calling import called_steps
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.modules.tree.sharing import shared_modules
from sigwire.observe.usage import UsageTracker
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.optimizers.engine.reuse import AnswerStore
from sigwire.optimizers.engine.spending import Spending, cost_of_run
from sigwire.optimizers.engine.store import RunStore, run_key, write_key
from sigwire.optimizers.errors import SearchPaused
from sigwire.optimizers.events import SearchEvent, Spent
from sigwire.optimizers.judge import ScoreTable
from sigwire.optimizers.rule import Measure, Rule, RuleEffect, RunKey, Write
from sigwire.settings import context, sample_in_context
from sigwire.signatures.signature import SignatureMeta

if TYPE_CHECKING:
    from sigwire.lm.policy.money.budget import Budget
    from sigwire.optimizers.progress import SearchReporter

__all__ = ["Engine", "EngineSetup"]

_MAX_ROUNDS = 8  # of runs that a provider failed
_IDLE_ROUNDS = 2  # rounds without a finished run
_MAX_REFUSALS = 1_000  # effects of a rule after its budget is spent
_KEPT_PROGRAMS = 64


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """The programs, rows and models of an engine.

    ``examples`` by row, ``held_out`` rows of the validation set; ``writer``: the model that writes, ``None``: that of the
    settings; ``task_model`` for the program; ``teacher_settings``: settings while the teacher runs; ``raises``: kinds of
    failures that stop the search; ``explains``: traced runs have feedback for each predictor; ``executor`` and ``metric``: for
    runs on other processes; ``reuses``: questions with known answers are not asked; ``spared``: the usage of
    hits is counted.
    """

    student: Module
    teacher: Module
    examples: Mapping[str, Example]
    held_out: frozenset[str]
    plan: MetricPlan | None
    writer: Any = None
    task_model: Any = None
    teacher_settings: Mapping[str, Any] | None = None
    limit: int = 8
    timeout: float | None = None
    failure_score: float = 0.0
    raises: frozenset[str] = frozenset()
    explains: bool = False
    executor: Any = None
    metric: Any = None
    reuses: bool = True
    spared: bool = False


class Engine:
    """Runs rules over one store, one table of scores and one budget."""

    def __init__(
        self,
        setup: EngineSetup,
        store: RunStore,
        table: ScoreTable,
        spending: Spending,
        listen: Callable[[SearchEvent], object] | None = None,
        progress: SearchReporter | None = None,
    ) -> None:
        self._setup, self._store, self._table, self._spending, self._listen = setup, store, table, spending, listen
        self._progress = progress
        self._programs: OrderedDict[tuple[str, str], Module] = OrderedDict()
        executor = None if setup.executor is None else RowExecutor(setup.executor)
        self._rows = RowRun(setup.metric, setup.plan, setup.limit, executor)
        self._answers_of_models = AnswerStore() if setup.reuses else None
        self.candidates: dict[str, Candidate] = {}
        self.costs: dict[str, Spent] = {}  # of all runs, by candidate
        self.calls, self.calls_of = CallTotals(), dict[str, CallTotals]()  # of all runs; of the student's, by candidate
        self.is_spent = False
        self._failed: Counter[str] = Counter()  # runs of candidates, by the class of the error
        self._unusable: Counter[str] = Counter()  # answers of the writing model, likewise
        self._answers = 0

    def steps(self, rule: Rule) -> Steps[Candidate]:
        """Run a rule to its end; return its candidate."""
        refusals = 0
        advance: Callable[[], RuleEffect] = partial(next, rule)
        while True:
            try:
                effect = advance()
            except StopIteration as stop:
                return cast(Candidate, stop.value)
            try:
                value = yield from self._perform(effect)
            except BudgetSpent as spent:
                refusals += 1
                self.is_spent = True
                if refusals > _MAX_REFUSALS:
                    raise
                advance = partial(rule.throw, spent)
            else:
                advance = partial(rule.send, value)

    def calls_of_candidate(self, digest: str) -> CallTotals:
        """Return the calls of tools and the warnings of all runs of a candidate."""
        return self.calls_of.get(digest, CallTotals())

    def end_search(self) -> None:
        """Lift the limit of runs, for the runs on test rows."""
        self._spending.end_search()

    @property
    def reused(self) -> int:
        """The number of questions to models whose answer was known."""
        return 0 if self._answers_of_models is None else self._answers_of_models.reused

    def warnings(self) -> list[str]:
        """Return what failed, and the modules that candidates share because tools do not hold them, in sentences."""
        runs = sum(spent.runs for spent in self.costs.values())
        counted = [(self._failed, f"{runs} runs of the program failed")]
        counted.append((self._unusable, f"{self._answers} answers of the writing model could not be used"))
        return [
            f"{errors.total()} of {sentence}: {', '.join(f'{count} {name}' for name, count in errors.most_common(4))}."
            for errors, sentence in counted
            if errors
        ] + [text for _, text in shared_modules(self._setup.student)]

    def _perform(self, effect: RuleEffect) -> Steps[object]:
        if isinstance(effect, Measure):
            return (yield from self._measure(effect))
        if isinstance(effect, Write):
            return (yield from self._write(effect))
        self.is_spent = self.is_spent or effect.is_cut
        if self._listen is not None:
            self._listen(effect.event)
        return None

    # --- runs ----------------------------------------------------------------------------------------

    def _measure(self, effect: Measure) -> Steps[list[Cell]]:
        keys = {run: run_key(run, effect.by, effect.traced) for run in effect.runs}
        for run in keys:
            self.candidates.setdefault(run.candidate.digest, run.candidate)
        cells: dict[RunKey, Cell] = {}
        self._recall(keys, effect, cells)
        failures, idle = list[str](), 0
        while missing := [run for run in keys if run not in cells]:
            before = len(cells)
            yield from self._run_part(missing[: self._spending.fitting(len(missing))], keys, effect, cells, failures)
            idle = idle + 1 if len(cells) == before else 0
            if idle >= _IDLE_ROUNDS or len(failures) > _MAX_ROUNDS * len(keys):
                raise SearchPaused.after(failures)
        return [cells[run] for run in effect.runs]

    def _run_part(
        self,
        runs: Sequence[RunKey],
        keys: Mapping[RunKey, bytes],
        effect: Measure,
        cells: dict[RunKey, Cell],
        failures: list[str],
    ) -> Steps[None]:
        """Make runs and count those that ended, in the asked order, also after an interrupt."""
        own = [(run, keys[run]) for run in runs]
        part = _Part(
            self._store,
            self._spending,
            effect,
            self._setup.failure_score,
            own,
            self._answers_of_models,
            None if self._progress is None else self._progress.ran,
        )
        try:
            yield from self._run_all(part)
        finally:
            for run, key in part.runs:
                if (cell := part.done.get(run)) is not None:
                    self._count(key, run, effect, cell)
            cells |= part.done
            failures += part.failures
            self._settle()

    def _recall(self, keys: Mapping[RunKey, bytes], effect: Measure, cells: dict[RunKey, Cell]) -> None:
        """Add the runs that are finished."""
        for run, key in keys.items():
            if (found := self._store.find(key, run, effect.by, effect.traced)) is not None:
                cells[run] = cell = self._store.cell(found)
                self._count(found, run, effect, cell)
        self._settle()

    def _settle(self) -> None:
        if self._progress is not None:
            self._progress.settle(self.candidates)

    def _count(self, key: bytes, run: RunKey, effect: Measure, cell: Cell) -> None:
        """Count a finished run once: as spent, and in the table of scores."""
        if self._store.first_use(key):
            self._spending.add(cost := cost_of_run(cell))
            if effect.by == "student":
                self.costs[run.candidate.digest] = self.costs.get(run.candidate.digest, Spent()).plus(cost)
                self._table.add(run.candidate.digest, run.row, run.repeat, cell)
                self._failed.update([] if cell.failure is None else [cell.failure.type])
                self.calls_of.setdefault(run.candidate.digest, CallTotals()).add(cell)
            self.calls.add(cell)

    def _run_all(self, part: _Part) -> Steps[None]:
        """Make runs at once; each is stored as it ends."""
        effect, examples = part.effect, self._setup.examples
        rows = [
            Row(
                partial(self._program_of, run, effect),
                examples[run.row],
                str(at),
                at,
                run.repeat,
                run.repeat or None,
                stored=self._store.unscored(key, str(at), at, run),
            )
            for at, (run, key) in enumerate(part.runs)
        ]
        settings = self._setup.teacher_settings if effect.by == "teacher" else None
        options, rest = self._cell_options(effect), self._spending.rest()
        end = yield from self._rows.steps(rows, options, part, budget=rest, settings=settings)
        if part.spent is not None:
            raise part.spent
        if end.status == "budget":
            raise BudgetSpent(end.detail)
        if end.status != "complete":
            raise SearchPaused.after([end.detail])

    def close(self) -> None:
        """End the processes of an executor that was made here."""
        self._rows.close()

    def _program_of(self, run: RunKey, effect: Measure) -> Module:
        return self._program(effect.by, run.candidate.without_row(run.row))  # no row is its own demo

    def _cell_options(self, effect: Measure) -> CellOptions:
        setup = self._setup
        options: CellOptions = {
            "traced": effect.traced,
            "strict": effect.traced and effect.by == "teacher",
            "timeout": setup.timeout,
            "failure_score": setup.failure_score,
            "raises": sorted(setup.raises),
            "explained": effect.traced and setup.explains,
        }
        return {**options, "spared": True} if setup.spared else options

    def _program(self, by: str, candidate: Candidate) -> Module:
        """Return the program with a candidate applied; the latest ones are kept. Threads may make the same one twice."""
        key = (by, candidate.digest)
        program = self._programs.get(key)
        if program is None:
            program = applied(self._setup.teacher if by == "teacher" else self._setup.student, candidate)
            if self._setup.task_model is not None and "model" not in candidate.choices:
                program.set_lm(self._setup.task_model)
            self._programs[key] = program
            if len(self._programs) > _KEPT_PROGRAMS:
                self._programs.popitem(last=False)
        return program

    # --- writing -------------------------------------------------------------------------------------

    def _write(self, effect: Write) -> Steps[list[Mapping[str, Any] | None]]:
        if leaked := sorted(self._setup.held_out.intersection(effect.rows)):
            raise InputError(f"A writing request quotes rows of the validation set: {', '.join(leaked[:3])}.")
        request: JsonObject = {
            "signature": effect.signature.dump_state() if isinstance(effect.signature, SignatureMeta) else None,
            "name": effect.name,
            "inputs": to_plain(effect.inputs),
            "temperature": effect.temperature,
        }
        keys = {write_key(request, index): index for index in range(effect.sample, effect.sample + effect.count)}
        rounds, failures = 0, list[str]()
        while missing := [key for key in keys if not self._store.has(key)]:
            self._spending.fitting(1)
            rest = self._spending.rest()
            answers = [self._answer(effect, key, keys[key], failures, rest) for key in missing]
            yield from self._rows.at_once(answers, RowsCaller())
            rounds += 1
            if rounds > _MAX_ROUNDS:
                raise SearchPaused.after(failures)
        answered = [self._answered(key) for key in keys]
        self._settle()
        return answered

    def _answer(self, effect: Write, key: bytes, index: int, failures: list[str], budget: Budget | None) -> Steps[None]:
        """Ask the writing model once, within a budget; an answer that cannot be used is recorded too."""
        in_run(self._rows.run)
        record: JsonObject = {"outputs": None}
        # Not around all answers, as in ``RowRun``.
        with (
            budget or nullcontext(),
            UsageTracker(keep_runs=False) as tracker,
            context(rollout_id=sample_in_context(index or None), trace=None),
        ):
            try:
                prediction = yield from self._written(effect)
                record["outputs"] = to_plain(dict(prediction.items()))
            except ModelError as error:
                record["error"] = f"{type(error).__name__}: {error.message}"[:500]
            except LMError as error:
                if not error.retryable:
                    raise
                failures.append(f"{type(error).__name__}: {error}")
                return
        counts = counted(tracker)
        made = Cell(None, requests=counts.requests, usage=counts.usage, cost=counts.cost, known_cost=counts.known)
        spent = cost_of_run(made)
        spent = replace(spent, runs=0, writing_calls=spent.calls)
        warned: JsonObject = {"warnings": {**Counter(tracker.warnings)}} if tracker.warnings else {}
        self._store.put_written(key, {**record, **warned, "spent": spent.to_json()})

    def _written(self, effect: Write) -> Steps[Mapping[str, Any]]:
        if not isinstance(effect.signature, SignatureMeta):
            return cast("Mapping[str, Any]", (yield from called_steps(effect.signature, (), effect.inputs)))
        options: dict[str, Any] = {"config": {} if effect.temperature is None else {"temperature": effect.temperature}}
        if self._setup.writer is not None:
            options["lm"] = self._setup.writer
        prediction: Prediction = yield from Predict(effect.signature, max_reasks=1).call_steps(
            **effect.inputs, **options
        )
        return dict(Prediction.items(prediction))

    def _answered(self, key: bytes) -> Mapping[str, Any] | None:
        record = self._store.written(key)
        if self._store.first_use(key):
            self._spending.add(Spent.from_json(cast("Mapping[str, object]", record["spent"])))
            self._answers += 1
            self.calls.warnings.update(cast("Mapping[str, int]", record.get("warnings") or {}))
            if "error" in record:
                self._unusable[str(record["error"]).partition(":")[0]] += 1
        return cast("Mapping[str, Any] | None", record["outputs"])


class _Part(RowsCaller):
    """Some runs of a ``Measure``, with their keys. Each is stored as it ends.

    ``done``: the cells of runs that ended; ``failures``: of the provider, whose runs are made again; ``spent``: the error of a
    spent budget.
    """

    def __init__(
        self,
        store: RunStore,
        spending: Spending,
        effect: Measure,
        failure_score: float,
        runs: Sequence[tuple[RunKey, bytes]],
        answers: AnswerStore | None,
        ran: Callable[[Spent], None] | None = None,
    ) -> None:
        self._ran = ran
        self._store, self._spending, self._failure_score, self._answers = store, spending, failure_score, answers
        self.effect, self.runs = effect, runs
        self.done: dict[RunKey, Cell] = {}
        self.failures: list[str] = []
        self.spent: BudgetSpent | None = None

    def around(self, row: Row, steps: Steps[Cell]) -> Steps[Cell]:
        self._spending.check_time()
        if self._answers is None:
            return steps
        run = self.runs[row.index][0]
        return self._answers.around(f"{run.row}/{run.repeat}", steps)

    def fail(self, row: Row, error: Exception) -> None:
        if not isinstance(error, BudgetSpent):
            raise error
        self.spent = self.spent or error

    def is_over(self) -> bool:
        return self.spent is not None

    def keep(self, done: FinishedRow) -> Steps[None]:
        """Store a run that ended, unless the provider failed: then it is made again."""
        cell, failure = done.cell, done.cell.failure
        if failure is not None and failure.kind == "provider":
            self.failures.append(f"{failure.type}: {failure.message}")
            return
        if failure is not None and failure.kind == "worker":
            cell = replace(cell, score=self._failure_score)
        run, key = self.runs[done.row.index]
        self._store.put_cell(key, run, cell if self.effect.traced else replace(cell, outputs=None))
        self.done[run] = cell
        if self._ran is not None:
            self._ran(cost_of_run(cell))
        yield from ()

    def keep_unscored(self, done: FinishedRow) -> Steps[None]:
        """Store the outputs of a run whose scoring ended the search: when it is resumed, they are scored."""
        run, key = self.runs[done.row.index]
        self._store.put_unscored(key, run, done.cell)
        yield from ()
