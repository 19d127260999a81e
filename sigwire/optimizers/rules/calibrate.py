"""Calibrate: fit the numbers by which outputs are decided, to a metric or to a bound on the loss of answered rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack, cast

from sigwire.core.evidence import least_confidence
from sigwire.core.json import JsonValue
from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.scores import MetricError
from sigwire.modules.cascade import Cascade
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.certificate import (
    NEVER,
    Policy,
    StageRow,
    certify,
    fewest_rows,
    has_graded_losses,
    policies,
    start_of,
)
from sigwire.optimizers.engine.engine import EngineSetup
from sigwire.optimizers.engine.search import Rows, halves
from sigwire.optimizers.events import Certified, Proposed, Warned
from sigwire.optimizers.operators.deciding import numbers_of
from sigwire.optimizers.operators.fitting_rules import RuleFit, is_one_call, no_evidence_text, rules_of, without_person
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.options import SearchOptions
from sigwire.optimizers.rule import Rule, RuleSteps, measure, report
from sigwire.optimizers.task import Task

__all__ = ["Calibrate"]

_ROUNDS = 2


class Calibrate(Optimizer):
    """Fit numbers beside the prompt: thresholds, weights and cuts of outputs, or the least confidences of a cascade.

    Without ``risk``, to the metric: for each output that has evidence, in program order, the numbers between neighbouring
    observed values are tried (at most ``max_candidates`` for each), twice; the best on the training rows stays, of equals that
    in the widest gap. The student is compared with the winner on the validation rows, as in every search. A run that ends
    unsure (``Unsure``) counts as a failure, unless the metric has ``accepts_unsure = True``: then it gets the error.

    With ``folds``, a number changes only if its gain holds on that many parts of the training rows, each set apart once. All
    rows fit then, equal ones as often as they are given; the report has no estimate.

    With ``risk``, to a bound: the metric is from 0 to 1, and the loss 1 less the metric. One half of the rows makes a path of
    least confidences, the other half tests it; ``program.optimization.certificate`` states that with ``confidence`` the mean
    loss of answered rows is at most ``risk``, if later rows are drawn like these, for any model and any calibration. It is
    ``None`` if no policy passes; then the student is returned, and the report has the reason. The program is a ``Cascade``, or
    a predictor, whose ``fields`` get one least confidence. Fit rules of outputs first, and on other rows.

    ``fields``: the paths that count, by default all with evidence; for the bound of a cascade, those of the cascade. No person
    is asked during a search.

    Cost: each row is run once, whatever is tried: the answers of equal requests are kept. Of a cascade each stage is run once a
    row. A number that changes a later request costs that request.

    >>> Calibrate(lambda example, prediction: 1.0, risk=0.05)
    Calibrate(metric=<lambda>)
    """

    _fixed_tunes: ClassVar[frozenset[str]] = frozenset({"decisions"})

    def __init__(
        self,
        metric: Any = None,
        *,
        risk: float | None = None,
        folds: int | None = None,
        fields: Collection[str] | None = None,
        max_candidates: int = 40,
        task_model: Any = None,
        num_threads: int | None = None,
        failure_score: float = 0.0,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(metric, task_model=task_model, num_threads=num_threads, failure_score=failure_score, **search)
        if risk is not None and not 0 < risk < 1:
            raise ConfigurationError(f"risk is a mean loss between 0 and 1, not {risk!r:.80} (making Calibrate).")
        if folds is not None and (folds < 2 or risk is not None):
            raise ConfigurationError(f"folds={folds} is 2 or more, without risk= (making Calibrate). Correct it.")
        if isinstance(fields, str):
            raise ConfigurationError(f"fields is a list of paths, not a text (making Calibrate). Write [{fields!r}].")
        if max_candidates < 1:
            raise ConfigurationError(f"max_candidates is a number above 0, not {max_candidates} (making Calibrate).")
        self.risk, self.fields, self.max_candidates = risk, None if fields is None else tuple(fields), max_candidates
        self.folds, self._chooses = folds, risk is None and folds is None

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        """Return the rule: fit to the metric, or to a bound."""
        return self._fitted(task) if self.risk is None else self._certified(task, self.risk)

    def check_options(self, student: object, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of ``compile``. Raises ``ConfigurationError`` for a program that no bound can be given for."""
        found = super().check_options(student, options)
        if self.risk is not None and not isinstance(student, Cascade) and not is_one_call(student):
            raise ConfigurationError(
                f"Calibrate(risk=) takes a Cascade or a Predict, not {type(student).__name__} (compiling). Compile the part "
                "that decides."
            )
        if self.risk is not None and isinstance(student, Cascade) and self.fields is not None:
            raise ConfigurationError(
                "A bound of a Cascade counts the fields of the Cascade (compiling). Give fields= to the Cascade, not to "
                "Calibrate."
            )
        return found

    def _setup(self, student: Module, teacher: Module, rows: Rows, task: Task) -> EngineSetup:
        return super()._setup(without_person(student), teacher, rows, task)

    def _task(self, student: Module, teacher: Module, rows: Rows, table: Any) -> Task:
        self._student = student
        return super()._task(student, teacher, rows, table)

    # --- to the metric

    def _fitted(self, task: Task) -> Rule:
        if task.plan:
            yield from measure(task.baseline, task.train, traced=True)
            return task.baseline if task.plan == "few" else task.baseline.with_numbers({"plan": 1.0})
        fit = RuleFit(task, is_one_call(self._student), rules_of(self._student), self.folds)
        try:
            yield from self._observe(task, fit)
            for _ in range(_ROUNDS):
                before = dict(fit.rules)
                for output in fit.outputs.values():
                    for number in range(numbers_of(output)):
                        yield from fit.improve(output, number, self.max_candidates)
                if fit.rules == before:
                    break
        except BudgetSpent:
            pass  # the rules until then
        found = fit.candidate()
        if found != task.baseline:
            yield from report(Proposed(found, f"fitted on {len(task.train)} rows", tuple(found.numbers)))
        return found

    def _observe(self, task: Task, fit: RuleFit) -> RuleSteps[None]:
        """Run the student, which does not abstain, and keep the evidence of its outputs."""
        first = fit.without_abstention()
        rows = task.train
        for part in (rows[:1], rows[1:]):  # the first row shows whether there is evidence
            cells = yield from measure(first, part, traced=True)
            for row, cell in zip(part, cells, strict=True):
                fit.observe(row, cell)
            if not fit.outputs and is_one_call(self._student) and all(cell.failure is None for cell in cells):
                raise ConfigurationError(no_evidence_text(None, ()))
        known = [output.path for output in fit.outputs.values()]
        for path in self.fields or ():
            if path not in known:
                raise ConfigurationError(no_evidence_text(path, known))
        if not fit.outputs:
            raise ConfigurationError(no_evidence_text(None, ()))
        fit.choose(self.fields)

    # --- to a bound

    def _certified(self, task: Task, risk: float) -> Rule:
        train, val = _two_sets(task)
        confidence = float(self.search.get("confidence", 0.9))
        if len(val) < (fewest := fewest_rows(risk, confidence)):
            raise ConfigurationError(
                f"A risk of {risk:g} with confidence {confidence:g} needs {fewest} rows that test it, and there are {len(val)} "
                f"(compiling). Give {2 * fewest} rows or more, or a larger risk."
            )
        stages = self._stages(task)
        cells: list[list[Cell]] = []
        for stage in stages:
            cells.append((yield from measure(stage, (*train, *val))))
        if task.plan:
            return task.baseline
        table = list(zip(*(self._stage_rows(at, found) for at, found in enumerate(cells)), strict=True))
        own, other = table[: len(train)], table[len(train) :]
        path = policies(own, risk)
        start = start_of(own, path, risk) if path else 0
        is_graded = has_graded_losses(own)
        certificate = certify(other, path[start:], risk, confidence, is_graded=is_graded) if path else None
        if certificate is None:
            reason = "no policy keeps the risk on the training half" if not path else "no policy passes the test"
            yield from report(
                Warned(
                    f"There is no certificate of risk {risk:g}: {reason}. Take more rows, a larger risk or a better model."
                )
            )
            return task.baseline
        yield from report(Certified(certificate))
        found = self._with_policy(task, certificate.least, [_has_evidence(each) for each in cells])
        yield from report(Proposed(found, str(certificate), tuple(found.numbers)))
        return found

    def _stages(self, task: Task) -> list[Candidate]:
        """Return for each stage the candidate that asks it alone; of a predictor the one that does not abstain."""
        if isinstance(self._student, Cascade):
            count = len(self._student.stages)
            only: list[list[JsonValue]] = [
                [None if at == each else NEVER for at in range(count)] for each in range(count)
            ]
            return [task.baseline.with_numbers({"self.least": least}) for least in only]
        return [RuleFit(task, True, rules_of(self._student)).without_abstention()]

    def _with_policy(self, task: Task, policy: Policy, has_evidence: Sequence[bool]) -> Candidate:
        if isinstance(self._student, Cascade):
            least: list[JsonValue] = [
                each if known or each >= NEVER else None for each, known in zip(policy, has_evidence, strict=True)
            ]
            return task.baseline.with_numbers({"self.least": least})
        rules = rules_of(self._student)
        paths = [slot for slot in rules if self.fields is None or slot.partition(".decisions.")[2] in self.fields]
        numbers = {slot: cast(JsonValue, replace(rules[slot], least=policy[0]).to_json()) for slot in paths}
        return task.baseline.with_numbers(numbers)

    def _stage_rows(self, stage: int, cells: Sequence[Cell]) -> list[StageRow]:
        """Return confidence and loss of one stage on each row. A stage that is unsure by its own rules does not answer."""
        found: list[StageRow] = []
        paths = self._counted_paths(stage, cells)
        for cell in cells:
            if cell.failure is not None:
                is_unsure = cell.failure.type == "Unsure"
                found.append(StageRow(-1.0 if is_unsure else 1.0, 1.0))
                continue
            score = cell.score
            if score is None or not 0 <= score <= 1:
                raise MetricError(f"A bound needs a metric from 0 to 1, and it returned {score} (calibrating).")
            found.append(StageRow(least_confidence(_confidences(cell), paths)[1] if paths else 1.0, 1 - score))
        return found

    def _counted_paths(self, stage: int, cells: Sequence[Cell]) -> tuple[str, ...]:
        """Return the paths that count for a stage; none if it gives no evidence, so that it answers always."""
        seen = dict.fromkeys(path for cell in cells for path in cell.evidence)
        if not seen:
            return ()
        if isinstance(self._student, Cascade):
            paths = self._student.counted_paths(stage, seen)
        else:
            own = [slot.partition(".decisions.")[2] for slot in rules_of(self._student)]
            paths = tuple(dict.fromkeys((*own, *seen))) if self.fields is None else self.fields
            seen |= dict.fromkeys(own)
        if missing := [path for path in paths if path not in seen]:
            raise ConfigurationError(no_evidence_text(missing[0], [*seen]))
        return paths


def _confidences(cell: Cell) -> dict[str, float]:
    return {path: cast(float, each.get("confidence", 0.0)) for path, each in cell.evidence.items()}


def _two_sets(task: Task) -> tuple[Sequence[str], Sequence[str]]:
    """Return the rows that make the path, and those that test it. Raises ``ConfigurationError`` for rows that would do both."""
    if not task.val:
        return halves(task.train, task.rng("validation").shuffle)
    if both := len({*task.train} & {*task.val}):
        raise ConfigurationError(
            f"{both} of {len(task.val)} validation rows are training rows too (compiling). A bound is tested by rows that "
            "chose no number: give others, or leave valset= out."
        )
    return task.train, task.val


def _has_evidence(cells: Iterable[Cell]) -> bool:
    return any(cell.evidence for cell in cells)
