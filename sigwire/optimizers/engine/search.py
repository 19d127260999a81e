"""One search: its rows, the run of its rule, and the comparison at its end.

The best of many noisy scores is too high, and some search always finds something. At the end the winner is therefore compared
with the student on the same rows, as the best of all candidates that were compared (``best_of_all_confidence``); if that is
not beyond noise, the student's texts stay. With a test set both are run on rows that no rule can see, and that choose nothing:
what they show is unbiased for accepted programs too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import cast

from sigwire.core.example import Example
from sigwire.core.json import dumps
from sigwire.core.record import to_plain
from sigwire.effects.steps import Steps
from sigwire.errors import BudgetSpent, InputError
from sigwire.evaluate.examples import check_devset
from sigwire.evaluate.plain import dumped_example
from sigwire.modules.field_types import FieldTypes, types_of
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.engine.engine import Engine
from sigwire.optimizers.objectives import unknown_objective
from sigwire.optimizers.operators.holding import held
from sigwire.optimizers.reports.front import FrontEntry, spread_out
from sigwire.optimizers.reports.report import Estimate, StopReason
from sigwire.optimizers.rule import Measure, Rule, RunKey, measure
from sigwire.optimizers.task import Task

__all__ = ["MOST_TESTED", "Rows", "SearchEnd", "finish", "halves", "held_out", "planned"]

MOST_TESTED = 8
"""The most entries of a front that run on test rows."""

LOST = "each promising candidate was worse on a row that must hold, or was not run on all of them"
"""The reason if rows that must hold keep the student."""

_PREFLIGHT = 2
_OPEN = (0.5, 0.99)  # how sure a comparison is that further rows may decide
_PART = 4  # rows that student and candidate run at once near the end of a budget
_BLOCK = 6
_MOST_TRIED = 4  # candidates that run on the rows that must hold


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a search: examples by id, and the ids of each set in their order. Equal examples are one row.

    ``drawn``: the training rows as they were given, equal ones repeatedly.
    """

    examples: Mapping[str, Example]
    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    drawn: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, train: Sequence[Example], val: Sequence[Example], test: Sequence[Example], student: object = None
    ) -> Rows:
        """Name examples by their content. Raises ``InputError`` for an example whose inputs are not those of the student."""
        examples: dict[str, Example] = {}
        for name, part in (("trainset", train), ("valset", val), ("testset", test)):
            if part:
                check_devset(part, student, name)
        types = types_of(student)
        drawn, *others = (tuple(_named(each, examples, types) for each in part) for part in (train, val, test))
        one, two = (tuple(dict.fromkeys(part)) for part in others)
        return cls(examples, tuple(dict.fromkeys(drawn)), one, two, drawn)

    def given(self, must_hold: object, student: object) -> tuple[str, ...]:
        """Return the rows of the examples that must hold; nothing for a function."""
        examples = [] if callable(must_hold) else list(cast("Sequence[Example]", must_hold))
        return tuple(dict.fromkeys(_named(each, {}, types_of(student)) for each in examples))

    def holding(self, must_hold: object, val: Sequence[str], student: object) -> tuple[str, ...]:
        """Return the validation rows that must hold: examples, or those of which a function returns True.

        Raises ``InputError`` for an example that is no validation row, and if no row is chosen.
        """
        if callable(must_hold):
            chosen = tuple(row for row in val if must_hold(self.examples[row]))
        else:
            chosen = self.given(must_hold, student)
        for row in chosen:
            if row not in val:
                why = "set apart by hold_out=" if row in self.test else "no validation row"
                shown = self.examples.get(row, row)
                raise InputError(
                    f"An example of must_hold is {why}: {shown!r:.120} (compiling). Put it into valset=, and give test rows as "
                    "testset=."
                )
        if not chosen:
            raise InputError(
                "must_hold chooses no validation row (compiling). Name rows of valset=, or change the function."
            )
        return chosen

    def warnings(self) -> list[str]:
        """Return what is wrong with the sets, in sentences. Rows with equal inputs are one, whatever their labels."""
        inputs = {name: _inputs_text(example) for name, example in self.examples.items()}
        train, val = ({inputs[row] for row in part} for part in (self.train, self.val))
        shared = sum(inputs[row] in train for row in self.val)
        leaked = sum(inputs[row] in train | val for row in self.test)
        found: list[str] = []
        if shared:
            found.append(
                f"{shared} of {len(self.val)} validation rows are training rows too: the choice flatters itself."
            )
        if leaked:
            found.append(f"{leaked} of {len(self.test)} test rows are training or validation rows too.")
        return found


def _inputs_text(example: Example) -> str:
    inputs = dict(sorted(Example.items(Example.inputs(example))))
    try:
        return dumps(to_plain(inputs))  # whole values: the ``repr`` of a message or a history is cut
    except ValueError:  # only its field knows a JSON form
        return repr(inputs)


def _named(example: Example, examples: dict[str, Example], types: FieldTypes) -> str:
    try:
        data = dumped_example(example, types)
    except ValueError as error:
        raise InputError(f"An example cannot be used: {error} ({example!r:.120}).") from error
    name = sha256(dumps(data).encode(errors="surrogatepass")).hexdigest()[:12]
    examples.setdefault(name, example)
    return name


def held_out(
    rows: Sequence[Example], share: float, shuffle: Callable[[list[int]], None]
) -> tuple[list[Example], list[Example]]:
    """Set a share of rows apart, for the estimate of what the others choose.

    >>> kept, apart = held_out([Example(n=n) for n in range(8)], 0.25, lambda order: None)
    >>> [row.n for row in kept], [row.n for row in apart]
    ([2, 3, 4, 5, 6, 7], [0, 1])
    """
    order = [*range(len(rows))]
    shuffle(order)
    apart = frozenset(order[: round(share * len(rows))])
    return [row for at, row in enumerate(rows) if at not in apart], [row for at, row in enumerate(rows) if at in apart]


def halves(rows: Sequence[str], shuffle: Callable[[list[str]], None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split rows into two sets for training and validation."""
    order = list(rows)
    shuffle(order)
    val = frozenset(order[: len(order) // 2])
    return tuple(row for row in rows if row not in val), tuple(row for row in rows if row in val)


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """The candidate that a search returns, and why."""

    winner: Candidate
    found: Candidate
    reason: StopReason
    estimate: Estimate
    kept_student: str = ""
    front: tuple[FrontEntry, ...] = ()


def preflight(task: Task) -> Rule:
    """Run the student on two rows: a wrong key, a broken metric or an unknown objective ends the search before anything else
    is paid."""
    rows = (task.val or task.train)[:_PREFLIGHT]
    yield from measure(task.baseline, rows)
    judge = task.judge
    for name in () if task.plan else judge.objectives:
        if judge.table.scores(task.baseline, rows) and not judge.amounts(task.baseline, name, rows):
            raise unknown_objective(name, sorted(judge.table.subscores(rows).get(task.baseline.digest, {})))
    return task.baseline


def finish(
    engine: Engine, task: Task, rows: Rows, rule: Rule, *, chooses: bool, keeps_student: bool
) -> Steps[SearchEnd]:
    """Run a rule to its end, compare its candidate with the student, and return what is kept."""

    def watched() -> Rule:
        try:
            if chooses:
                yield from preflight(task)
            found = yield from rule
        except BudgetSpent:
            return task.baseline
        return found

    def perform(rule: Rule) -> Steps[Candidate]:
        return engine.steps(held(task, rule))

    found = yield from perform(watched())
    if engine.is_spent:
        found = task.judge.promising([found, *engine.candidates.values()], task.baseline, task.val)
    lost = ""
    if task.must_hold:
        if task.judge.table.fallen and found == task.baseline:
            found = task.judge.promising([found, *engine.candidates.values()], task.baseline, task.val)
        is_lost = bool(task.judge.table.fallen) or found != task.baseline
        found = yield from perform(_holding(task, found, engine.candidates))
        lost = LOST if is_lost and found == task.baseline else ""
    is_new = found.digest != task.baseline.digest
    if chooses and is_new:
        yield from perform(_compared(task, found, engine.candidates))
    judge, front, shared = task.judge, list[Candidate](), list[str]()
    has_front = chooses and len(judge.objectives) > 1
    if has_front:
        yield from perform(_completed(task, engine.candidates))
        shared = list(judge.table.scores(found, task.val))
        holding_ones = [each for each in engine.candidates.values() if judge.holds(each, task.baseline, task.must_hold)]
        front = judge.front([task.baseline, *holding_ones], shared)
    engine.end_search()
    if rows.test:
        yield from engine.steps(_measured(task, found, rows.test))
        for each in spread_out(front, MOST_TESTED):
            yield from engine.steps(_measured(task, each, rows.test))
    reason = StopReason.BUDGET if engine.is_spent else StopReason.FINISHED  # perhaps by the runs above
    end = _ended(engine, task, rows.test, found, reason, chosen=chooses and is_new, keeps_student=keeps_student)
    end = replace(end, kept_student=lost) if lost and not is_new else end
    return (
        replace(end, front=tuple(FrontEntry.of(judge, each, shared, rows.test) for each in front)) if has_front else end
    )


def _holding(task: Task, found: Candidate, candidates: Mapping[str, Candidate]) -> Rule:
    """Run a candidate on all rows that must hold; if it falls, the most promising one that does not, at last the student."""
    tried = set[str]()
    while found != task.baseline and len(tried) < _MOST_TRIED:
        yield from _measured(task, found, task.must_hold)
        if task.judge.holds(found, task.baseline, task.must_hold):
            return found
        tried.add(found.digest)
        others = [each for digest, each in candidates.items() if digest not in tried]
        found = task.judge.promising([task.baseline, *others], task.baseline, task.val)
    return task.baseline


def _completed(task: Task, candidates: Mapping[str, Candidate]) -> Rule:
    """Run the candidates that may be on the front on all validation rows, as far as the budget goes."""
    hopeful = task.judge.hopeful(candidates.values(), task.baseline, task.val)
    for each in _stand_ins(task) if task.plan else spread_out(hopeful, MOST_TESTED):
        yield from _measured(task, each, task.val)
    return task.baseline


def _stand_ins(task: Task) -> list[Candidate]:
    """Return candidates of a plan in place of the entries of a front: with much luck there are many, with little none."""
    most = MOST_TESTED if task.plan == "many" else 0
    return [task.baseline.with_lm_options({"front": number}) for number in range(most)]


def _ended(
    engine: Engine,
    task: Task,
    test: Sequence[str],
    found: Candidate,
    reason: StopReason,
    *,
    chosen: bool,
    keeps_student: bool,
) -> SearchEnd:
    """Return the end of a search: the candidate that was found, or the student if it is not shown to be better."""
    judge, candidates = task.judge, list(engine.candidates.values())
    sure = judge.sure(found, task.baseline, candidates, (*task.val, *task.evidence)) if chosen else None
    estimate = Estimate.of(judge, task.baseline, found, candidates, task.val, sure)
    estimate = estimate.with_test(judge, task.baseline, found, test)
    why = ""
    if keeps_student and judge.strategy == "paired" and sure is not None and sure < judge.confidence:
        why = f"not shown to be better: {sure:.2f} sure, {judge.confidence:.2f} asked"
    return SearchEnd(task.baseline if why else found, found, reason, estimate, why)


def _compared(task: Task, found: Candidate, candidates: Mapping[str, Candidate]) -> Rule:
    """Run the student and a candidate on the validation rows, and on further ones if these do not decide.

    These two looks have bounds as those of O'Brien and Fleming (1979): the first decides beyond 0.99 only.
    """
    yield from _measured(task, found, task.val)
    if task.plan:
        decided = task.plan == "few"
    else:
        sure = task.judge.sure(found, task.baseline, list(candidates.values()), task.val)
        decided = not _OPEN[0] <= sure < _OPEN[1]
    for at in range(0, 0 if decided else len(task.evidence), _BLOCK):
        yield from _measured(task, found, task.evidence[at : at + _BLOCK])
    return found


def _measured(task: Task, found: Candidate, rows: Sequence[str]) -> Rule:
    """Run the student and a candidate on rows, as far as the budget goes: first those that one of them has already."""
    known = [task.judge.table.scores(each, rows) for each in (task.baseline, found)]
    order = sorted(rows, key=lambda row: sum(row not in scores for scores in known))
    for size in (len(order), _PART) if order else ():  # all at once; if that is over the budget, a few at a time
        with suppress(BudgetSpent):
            for at in range(0, len(order), size):
                part = order[at : at + size]
                yield Measure(tuple(RunKey(each, row) for row in part for each in (task.baseline, found)))
            break
    return found


def planned(task: Task, rows: Rows, rule: Rule, *, chooses: bool) -> Rule:
    """Return all runs of a search as one rule, for a plan."""
    if chooses:
        yield from preflight(task)
    found = yield from held(task, rule)
    if chooses:
        yield from _compared(task, found, {})
    for each in _stand_ins(task)[:_MOST_TRIED] if task.must_hold else []:
        yield from held(task, _measured(task, each, task.must_hold))
    yield from _measured(task, found, rows.test)
    if chooses and len(task.judge.objectives) > 1:
        yield from _completed(task, {})
        for each in _stand_ins(task):
            yield from _measured(task, each, rows.test)
    return found
