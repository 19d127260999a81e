"""Optimizer, the base of all optimizers: from ``compile`` to the program that it returns.

A subclass defines its own constructor and ``rule(task, options)``; everything else is written here and in the engine. It is one
generator (``compile_steps``) that ``compile`` blocks on and ``acompile`` awaits.
"""

from __future__ import annotations

import copy
import inspect
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Never, Self, TypeVar, Unpack, cast

from sigwire.core.example import Example
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError, InputError, suggest, warn_user
from sigwire.evaluate.metric_plan import MetricPlan
from sigwire.keywords import ChecksKeywords
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import applied, candidate_of, slots, tunable
from sigwire.optimizers.engine.engine import Engine, EngineSetup
from sigwire.optimizers.engine.identity import search_facts, search_header
from sigwire.optimizers.engine.plan import Forecast, forecast
from sigwire.optimizers.engine.search import MOST_TESTED, Rows, SearchEnd, finish, halves, held_out, planned
from sigwire.optimizers.engine.sizes import Sizes, sizes_of
from sigwire.optimizers.engine.spending import Spending, read_budget
from sigwire.optimizers.engine.store import RunStore
from sigwire.optimizers.errors import OptimizationInterrupted
from sigwire.optimizers.events import Certified, RefusedText, Warned
from sigwire.optimizers.judge import Judge, ScoreTable
from sigwire.optimizers.objectives import COSTS, HEADLINE, named_objectives
from sigwire.optimizers.options import FAMILIES, TUNES, SearchOptions, check_search_options, fixed_passages, labels_of
from sigwire.optimizers.progress import SearchLog, SearchReporter
from sigwire.optimizers.reports.report import NONE_BETTER, Estimate, OptimizationReport, StopReason, trials_of
from sigwire.optimizers.rule import Rule, checked_rule
from sigwire.optimizers.task import Task
from sigwire.optimizers.teleprompter import Teleprompter
from sigwire.settings import current

__all__ = ["Optimizer", "SearchOptions"]

M = TypeVar("M", bound=Module)

_LEAST_EVIDENCE = 16


class Optimizer(Teleprompter, ChecksKeywords):
    """Base of all optimizers: ``compile`` returns a copy of a program with better texts, demos or options.

    ``metric(example, prediction, trace=None)`` returns a number, a bool or a ``Score``, sync or async, or is a module that
    judges. ``prompt_model`` writes texts, ``task_model`` runs the program; by default the models of the settings and of the
    program. ``teacher_settings``: settings while the teacher runs, such as its ``lm``. ``num_threads``: runs at once, by
    default the setting of that name. ``metric_threshold``: the least score of a run that may be shown as a demo. ``search``:
    see ``SearchOptions``.

    The student, the settings and the caller's lists are never changed, and no model is copied.
    """

    _compile_options: ClassVar[Mapping[str, Any]] = {}  # options of ``compile`` by name, with their defaults
    _chooses: bool = True  # whether candidates are chosen on validation rows
    _is_fair_on_training_rows: ClassVar[bool] = False  # whether no text of a candidate is written from them
    _needs_metric: ClassVar[bool] = True
    _draws_labels: ClassVar[bool] = False  # whether candidates differ in ``choices``
    _explains: ClassVar[bool] = False  # whether traced runs need feedback for each predictor
    _fixed_tunes: ClassVar[frozenset[str]] = TUNES  # what this optimizer can change
    _hooks: ClassVar[Sequence[str]] = ("check_options", "row_sets")
    _idle: ClassVar[Mapping[str, str]] = {}  # options that are accepted and have no effect, and the reason
    _refused: ClassVar[Mapping[str, str]] = {}  # accepted options that are refused, unless they are off, and the reason

    def __init__(
        self,
        metric: Any = None,
        *,
        prompt_model: Any = None,
        task_model: Any = None,
        teacher_settings: Mapping[str, Any] | None = None,
        num_threads: int | None = None,
        metric_threshold: float | None = None,
        failure_score: float = 0.0,
        **search: Unpack[SearchOptions],
    ) -> None:
        name = type(self).__name__
        search = _without_refused(name, self._refused, search)
        check_search_options(name, search, inspect.signature(type(self).__init__).parameters)
        if metric is None and self._needs_metric:
            raise ConfigurationError(f"{name} needs a metric (making it). Write {name}(metric=my_metric).")
        if num_threads is not None and num_threads < 1:
            raise ConfigurationError(f"num_threads is a number above 0, not {num_threads} (making {name}).")
        if len(search.get("objectives", ())) > 1 and not self._chooses:
            raise ConfigurationError(
                f"{name} compares no candidates, so it has no objectives (making it). Write GEPA(objectives=...), or another "
                "optimizer that chooses."
            )
        self._labels = labels_of(name, search, draws=self._draws_labels)
        if search.get("must_hold") and metric is None:
            raise ConfigurationError(f"must_hold needs a metric (making {name}). Write {name}(..., metric=my_metric).")
        self.metric = metric
        self.prompt_model, self.task_model, self.teacher_settings = (
            prompt_model,
            task_model,
            dict(teacher_settings or {}),
        )
        self.num_threads, self.metric_threshold, self.failure_score = num_threads, metric_threshold, failure_score
        self.search = search
        self.budget = read_budget(search.get("budget"))
        self._plan = MetricPlan(metric) if metric is not None else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self._plan is None else f'metric={self._plan.name}'})"

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule of a search. ``options`` are those of ``compile``."""
        raise NotImplementedError(f"{type(self).__name__} has no rule (compiling). Define rule(task, options).")

    # --- compile

    def compile(
        self,
        student: M,
        *rows: Never,
        trainset: Iterable[Example] = (),
        teacher: Module | None = None,
        valset: Iterable[Example] | None = None,
        testset: Iterable[Example] | None = None,
        **options: Any,
    ) -> M:
        """Search, blocking; return a copy of the student with what was found, and the report as ``optimization``.

        ``valset``: rows on which candidates are chosen; without it half of ``trainset`` is set apart, if the optimizer chooses.
        ``testset``: rows that the search does not see; student and winner are run on them at the end, and they choose nothing:
        the gain on them is the number to report. Raises ``MetricError``
        at the first metric that gives no score, ``SearchPaused`` if the provider fails for long, and
        ``OptimizationInterrupted`` for Ctrl-C. Each error of a search has the best program until then as ``program``, and its
        ``report``.
        """
        self._refuse_positions(rows)
        return run(self.compile_steps(student, trainset, teacher, valset, testset, options))

    async def acompile(
        self,
        student: M,
        *rows: Never,
        trainset: Iterable[Example] = (),
        teacher: Module | None = None,
        valset: Iterable[Example] | None = None,
        testset: Iterable[Example] | None = None,
        **options: Any,
    ) -> M:
        """``compile``, awaited. If it is cancelled, the ``CancelledError`` has ``program`` and ``report``."""
        self._refuse_positions(rows)
        return await arun(self.compile_steps(student, trainset, teacher, valset, testset, options))

    def _refuse_positions(self, rows: tuple[object, ...]) -> None:
        if rows:
            name = type(self).__name__
            raise ConfigurationError(
                f"{name}.compile takes its rows by name (compiling). Write {name}(...).compile(program, trainset=rows)."
            )

    def compile_steps(
        self,
        student: M,
        trainset: Iterable[Example],
        teacher: Module | None = None,
        valset: Iterable[Example] | None = None,
        testset: Iterable[Example] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Steps[M]:
        """Return the steps of ``compile``, for ``yield from`` in other steps."""
        given = type(self).check_options(self, student, options or {})
        testset = list(testset or ())
        if testset and self.metric is None:
            name = type(self).__name__
            raise ConfigurationError(f"A testset needs a metric (compiling). Write {name}(..., metric=my_metric).")
        chosen = self._for_call(given)
        rows = chosen._rows(student, trainset, valset, testset, given)
        if not rows.train:
            raise InputError(f"{type(self).__name__} needs training examples: trainset is empty (compiling).")
        self._warn_of_idle(given)
        return (yield from chosen._searched(student, teacher or student, rows, given))

    def row_sets(
        self, trainset: Iterable[Example], valset: Iterable[Example] | None, given: Mapping[str, Any]
    ) -> tuple[list[Example], list[Example]]:
        """Return the training and the validation rows of a call of ``compile`` or ``plan``."""
        return list(trainset), list(valset or ())

    def _rows(
        self,
        student: Module,
        trainset: Iterable[Example],
        valset: Iterable[Example] | None,
        testset: list[Example],
        given: Mapping[str, Any],
    ) -> Rows:
        """Return the rows of a search. A share that is held out takes the place of the test set."""
        train, val = type(self).row_sets(self, trainset, valset, given)
        if share := self.search.get("hold_out", 0.0):
            if testset:
                raise ConfigurationError(
                    "A search has a testset or hold_out, not both (compiling). Leave hold_out out: the testset is the estimate."
                )
            shuffle = random.Random(f"{self.search.get('seed', 0)}/held out").shuffle
            if val:
                val, testset = held_out(val, share, shuffle)
            else:
                train, testset = held_out(train, share, shuffle)
        return Rows.of(train, val, testset, student)

    def check_options(self, student: object, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a call of ``compile`` or ``plan``, with their defaults. A subclass may check more.

        Raises ``InputError`` for a student that is no module, and ``ConfigurationError`` for an unknown option.
        """
        name = type(self).__name__
        if not isinstance(student, Module):
            raise InputError(f"{name} compiles a module of sigwire, not {type(student).__name__} (compiling).")
        for option in options:
            if option not in self._compile_options:
                known = ("trainset", "valset", "testset", "teacher", *sorted(self._compile_options))
                raise ConfigurationError(
                    f"{name}.compile has no option {option!r} (compiling). {suggest(option, known)}Its options: "
                    f"{', '.join(known)}."
                )
        return {**self._compile_options, **options}

    def _for_call(self, given: Mapping[str, Any]) -> Self:
        """Return the optimizer with the ``seed`` and the ``num_threads`` of one call of ``compile`` or ``plan``."""
        seed, threads = given.get("seed"), given.get("num_threads")
        if threads is not None and threads < 1:
            raise ConfigurationError(f"num_threads is a number above 0, not {threads} (compiling).")
        chosen = copy.copy(self)
        chosen.num_threads = threads or self.num_threads
        if seed is not None:
            chosen.search = {**self.search, "seed": seed}
        return chosen

    def _warn_of_idle(self, given: Mapping[str, Any]) -> None:
        """Warn of options without an effect that ask for something, of this call or of the constructor."""
        name = type(self).__name__
        for option, reason in self._idle.items():
            is_of_call = option in self._compile_options
            value = given[option] if is_of_call else getattr(self, option)
            if value and value != self._compile_options.get(option):
                place = f"{name}.compile" if is_of_call else name
                warn_user(f"{place}({option}=...) has no effect (compiling): {reason}.")

    def plan(
        self,
        student: Module,
        trainset: Iterable[Example],
        valset: Iterable[Example] | None = None,
        *,
        teacher: Module | None = None,
        testset: Iterable[Example] | None = None,
        **options: Any,
    ) -> Forecast:
        """Return what ``compile`` with these arguments may cost: runs, calls, tokens and money. No call is made.

        >>> from sigwire.lm.client import LM
        >>> from sigwire.lm.policy.money.prices import Price
        >>> from sigwire.modules.predict import Predict
        >>> from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
        >>> rows = [Example(question=f"{n}+1?", answer=str(n + 1)).with_inputs("question") for n in range(8)]
        >>> lm = LM("openai/gpt-5-mini", price=Price(input=0.25, output=2.0), max_tokens=200)
        >>> plan = BootstrapFewShot(lambda example, prediction: 1.0).plan(Predict("question -> answer", lm=lm), rows)
        >>> plan.calls.max, plan.tokens.max < 8 * 1_000, 0 < plan.money.expected < plan.money.max
        (8, True, True)
        """
        given = type(self).check_options(self, student, options)
        chosen = self._for_call(given)
        rows = chosen._rows(student, trainset, valset, list(testset or ()), given)
        task = chosen._task(student, teacher or student, rows, ScoreTable())
        examples = [rows.examples[row] for row in rows.train]
        sizes = sizes_of(self, student, teacher or student, examples, len(task.signatures))
        return chosen._forecast(task, rows, given, sizes).sized(sizes)

    def _forecast(self, task: Task, rows: Rows, given: Mapping[str, Any], sizes: Sizes | None = None) -> Forecast:
        def make(task: Task) -> Rule:
            return planned(task, rows, self._checked_rule(task, given), chooses=self._chooses)

        reuses = self.search.get("reuse", True)
        found = forecast(task, make, len(task.signatures), reuses, sizes)
        most = self._most(task)
        if most is None:
            return found
        more = MOST_TESTED * (len(rows.test) + len(task.val)) if len(task.judge.objectives) > 1 else 0
        return found.within(*most, 2 * len(rows.test), len(task.signatures), reuses, more)

    def _most(self, task: Task) -> tuple[int, int] | None:
        """Return the most runs and writing calls of a search, if more than luck decides them."""
        return None

    def limit_of_runs(self, task: Task) -> int | None:
        """Return how many runs the search may make, without those of test rows; ``None`` for no limit but the budget."""
        return None

    # --- the search

    def _checked_rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        return checked_rule(type(self).__name__, self.rule(task, options), task.lacking)

    def _searched(self, student: M, teacher: Module, rows: Rows, options: Mapping[str, Any]) -> Steps[M]:
        table = ScoreTable(self.search.get("objectives", ()))
        task = self._task(student, teacher, rows, table)
        spending = Spending(self.budget, time.monotonic, self.limit_of_runs(task))
        store = RunStore(
            self.search.get("journal"),
            search_header(self, student, teacher, (rows.train, rows.val, rows.test), self._plan, options),
            search_facts(student, self.task_model),
        )
        try:
            progress = self._reporter(task, rows, spending, options)
            events = SearchLog(spending, self.search.get("on_event"), progress)
            engine = Engine(self._setup(student, teacher, rows, task), store, table, spending, events.add, progress)
            for text in rows.warnings():
                events.add(Warned(text))
            try:
                verdict = yield from finish(
                    engine,
                    task,
                    rows,
                    self._checked_rule(task, options),
                    chooses=self._chooses,
                    keeps_student=self.search.get("if_worse", "keep_student") == "keep_student",
                )
            except BaseException as error:
                report = self._report(student, task, rows, _best_until_now(task, engine), engine, store, events)
                progress.close("interrupted", report)
                program = self._program(student, report)
                if isinstance(error, KeyboardInterrupt):
                    raise OptimizationInterrupted.after(program, report, self.search.get("journal")) from error
                with suppress(Exception):  # a user's exception class may refuse attributes
                    vars(error).update(program=program, report=report)
                raise
            finally:
                engine.close()
            report = self._report(student, task, rows, verdict, engine, store, events)
            store.note({"type": "end", "report": report.to_json()})
            progress.close(report.reason.value, report)
            return self._program(student, report)
        finally:
            store.close()

    @property
    def _metric_name(self) -> str:
        return HEADLINE if self._plan is None else self._plan.name

    def _reporter(self, task: Task, rows: Rows, spending: Spending, options: Mapping[str, Any]) -> SearchReporter:
        """Return the progress of a search. Its plan is made when the search has run for a second."""
        mode = self.search.get("progress", "auto")

        def expect() -> int:
            return self._forecast(task, rows, options).runs.expected

        name = type(self).__name__
        return SearchReporter(name, self._metric_name, task, spending, expect, mode, clock=time.monotonic)

    def _task(self, student: Module, teacher: Module, rows: Rows, table: ScoreTable) -> Task:
        if not isinstance(teacher, Module):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may pass any object
            name = type(self).__name__
            raise InputError(f"A teacher of {name} is a module of sigwire, not {type(teacher).__name__} (compiling).")
        search = self.search
        seed = search.get("seed", 0)
        tunes = frozenset(search.get("tune", TUNES)) & (self._fixed_tunes | {"tool_names"})
        objectives, headline = named_objectives(search.get("objectives", (HEADLINE,)), self._metric_name)
        judge = Judge(
            table,
            confidence=search.get("confidence", 0.9),
            strategy=search.get("strategy", "paired"),
            threshold=self.metric_threshold,
            unscored=self.metric is None,
            seed=seed,
            objectives=objectives,
            headline=headline,
        )
        examples, passages = [rows.examples[row] for row in rows.train], search.get("fixed_texts", ())
        task = Task(
            baseline=candidate_of(student),
            teacher=candidate_of(teacher),
            slots=slots(student, examples, tunes),
            signatures={name: predictor.signature for name, predictor in tunable(student).items()},
            train=rows.train,
            val=rows.val,
            judge=judge,
            seed=seed,
            outline=repr(student),
            tunes=tunes,
            example_of=rows.examples.__getitem__,
            is_taught=bool(getattr(teacher, "_compiled", False)),
            labels=self._labels,
            drawn=rows.drawn,
            fixed=fixed_passages(passages, slots(student, examples, FAMILIES)) if passages else {},
        )
        if self._chooses and not rows.val:
            train, val = halves(rows.train, task.rng("validation").shuffle)
            if not val:
                raise InputError(f"{type(self).__name__} needs two training examples or a valset (compiling).")
            kept = rows.given(search.get("must_hold", ()), student)
            val = (*val, *(row for row in train if row in kept))
            task = task.with_rows(tuple(row for row in train if row not in kept), val)
        if must_hold := search.get("must_hold"):
            task = replace(task, must_hold=rows.holding(must_hold, task.val, student))
        if self._is_fair_on_training_rows:
            task = replace(task, evidence=task.train[: max(_LEAST_EVIDENCE, len(task.val) // 2)])
        return task

    def _setup(self, student: Module, teacher: Module, rows: Rows, task: Task) -> EngineSetup:
        stops = {"metric", "caller", "bug"} if self.search.get("errors", "raise") == "raise" else {"caller"}
        return EngineSetup(
            student=student,
            teacher=teacher,
            examples=rows.examples,
            held_out=frozenset((*task.val, *rows.test)) - frozenset(task.train),
            plan=self._plan,
            writer=self.prompt_model,
            task_model=self.task_model,
            teacher_settings=self.teacher_settings,
            limit=self.num_threads or current().num_threads,
            timeout=self.search.get("timeout"),
            failure_score=self.failure_score,
            raises=frozenset(stops),
            explains=self._explains,
            executor=self.search.get("executor"),
            metric=self.metric,
            reuses=self.search.get("reuse", True) and "seconds" not in task.judge.objectives,
            spared=not COSTS.keys().isdisjoint(task.judge.objectives),
        )

    def _report(
        self,
        student: Module,
        task: Task,
        rows: Rows,
        verdict: SearchEnd,
        engine: Engine,
        store: RunStore,
        events: SearchLog,
    ) -> OptimizationReport:
        is_measured = verdict.found == task.baseline and verdict.estimate.baseline is not None
        return OptimizationReport(
            optimizer=type(self).__name__,
            baseline=task.baseline,
            winner=verdict.winner,
            found=verdict.found,
            estimate=verdict.estimate,
            reason=verdict.reason,
            spent=events.spending.total,
            trials=trials_of(events.seen),
            refused=tuple(event for event, _ in events.seen if isinstance(event, RefusedText)),
            scores=task.judge.table.by_candidate(task.val),
            subscores=task.judge.table.subscores(task.val),
            **_several(task.judge, verdict, engine, task.val),
            costs=dict(engine.costs),
            texts=task.slots,
            warnings=(
                *engine.warnings(),
                *(event.text for event, _ in events.seen if isinstance(event, Warned)),
            ),
            kept_student=verdict.kept_student or (NONE_BETTER if is_measured else ""),
            resumed=store.resumed,
            reused=engine.reused,
            calls=engine.calls,
            winner_calls=engine.calls_of_candidate(verdict.winner.digest),
            segments=store.segments(),
            certificate=next((event.certificate for event, _ in events.seen if isinstance(event, Certified)), None),
        ).with_prompts(student, self.task_model)

    def _program(self, student: M, report: OptimizationReport) -> M:
        program = applied(student, report.winner)
        cast(Any, program).optimization = report
        self.finish_program(program, student, report)
        return program

    def finish_program(self, program: Any, student: Module, report: OptimizationReport) -> None:
        """Add the attributes of an optimizer's result to a compiled program, which has the report."""


def _several(judge: Judge, verdict: SearchEnd, engine: Engine, rows: Sequence[str]) -> dict[str, Any]:
    """Return what the report of a search with several objectives has besides."""
    if len(judge.objectives) == 1:
        return {}
    means = {digest: judge.means(each, rows) for digest, each in engine.candidates.items()}
    return {
        "objectives": judge.objectives,
        "outcomes": {digest: found for digest, found in means.items() if found},
        "front": verdict.front,
    }


def _best_until_now(task: Task, engine: Engine) -> SearchEnd:
    """Return the leader of an interrupted search."""
    candidates = list(engine.candidates.values())
    holding = [each for each in candidates if task.judge.holds(each, task.baseline, task.must_hold)]
    best = task.judge.ranked([task.baseline, *holding], task.val)[0]
    estimate = Estimate.of(task.judge, task.baseline, best, candidates, task.val, None)
    return SearchEnd(best, best, StopReason.INTERRUPTED, estimate)


def _without_refused(owner: str, refused: Mapping[str, str], given: SearchOptions) -> SearchOptions:
    """Return the options that have an effect. Raises ``ConfigurationError`` for another that asks for something."""
    for option, value in given.items():
        if value and option in refused:
            raise ConfigurationError(f"{owner} does not take {option} (making it): {refused[option]}.")
    return cast(SearchOptions, {option: value for option, value in given.items() if option not in refused})
