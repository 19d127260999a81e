"""Demos from runs: the calls of predictors in successful runs, and labelled rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from sigwire.core.json import JsonValue, dumps
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate, Demo
from sigwire.optimizers.events import Warned
from sigwire.optimizers.rule import RuleSteps, RunBy, measure, report
from sigwire.optimizers.task import Task
from sigwire.signatures.signature import SignatureClass

__all__ = [
    "Preference", "Success", "TraceSteps", "collect_successes", "demos_of", "diverse", "labelled", "taught",
    "with_success_demos",
]  # fmt: skip

TraceSteps: TypeAlias = Literal["last", "sampled", "all"]
Preference: TypeAlias = Literal["first", "diverse"]

_CHOICE = 3
"""Successes that are collected for each one that is chosen by diversity."""


@dataclass(frozen=True, slots=True)
class Success:
    """A successful run of the teacher on a training row, with its trace."""

    row: str
    round: int
    cell: Cell


def taught(task: Task, most_labelled: int) -> Candidate:
    """Return the candidate of the teacher: with labelled demos, unless the teacher was compiled."""
    teacher = task.teacher
    if not task.is_taught:
        for name, demos in labelled(task, most_labelled, "teacher").items():
            teacher = teacher.with_demos(name, demos)
    return teacher


def collect_successes(
    task: Task,
    teacher: Candidate,
    rows: Sequence[str],
    *,
    wanted: int | None = None,
    rounds: int = 1,
    by: RunBy = "teacher",
    wave: int = 8,
    prefer: Preference = "first",
) -> RuleSteps[list[Success]]:
    """Run the teacher on rows in waves until ``wanted`` runs are successful; return them in the order of ``rows``.

    A round after the first runs the rows that failed, at temperature 1 and as another sample. A wave runs at once, so up to
    ``wave - 1`` runs more are made than a serial search would make, and their successes are not used. ``prefer="diverse"``
    collects three times as many and returns those whose words differ most. Why runs were not used is a warning of the report.
    """
    if prefer == "diverse" and wanted is not None:
        more = wanted * _CHOICE
        made = yield from collect_successes(task, teacher, rows, wanted=more, rounds=rounds, by=by, wave=wave)
        return diverse(made, wanted)
    found = _Found(len(rows) if wanted is None else wanted)
    for number in range(rounds):
        left = [row for row in rows if row not in found.successes]
        asked = teacher if number == 0 else task.sampled(teacher, "round", number)
        while left and not found.is_enough():
            part, left = left[:wave], left[wave:]
            cells = yield from measure(asked, part, repeat=number, traced=True, by=by)
            for row, cell in zip(part, cells, strict=True):
                found.add(Success(row, number, cell), is_success=task.judge.is_success(cell))
    for text in _advice(found.successes, found.failures, task):
        yield from report(Warned(text))
    return [found.successes[row] for row in rows if row in found.successes]


class _Found:
    """The successes until now, at most ``wanted``, and the last run of each row without one."""

    def __init__(self, wanted: int) -> None:
        self.successes: dict[str, Success] = {}
        self.failures: dict[str, Cell] = {}
        self._wanted = wanted

    def is_enough(self) -> bool:
        return len(self.successes) >= self._wanted

    def add(self, made: Success, *, is_success: bool) -> None:
        if not is_success:
            self.failures[made.row] = made.cell
            return
        self.failures.pop(made.row, None)
        if not self.is_enough():
            self.successes[made.row] = made


def _advice(successes: dict[str, Success], failures: dict[str, Cell], task: Task) -> list[str]:
    """Return what the user may want to know about runs of the teacher."""
    found: list[str] = []
    if failures:
        kinds = Counter(_reason(cell) for cell in failures.values())
        shown = ", ".join(f"{count} {reason}" for reason, count in sorted(kinds.items()))
        found.append(f"{len(failures)} of the teacher's runs on training rows made no demo: {shown}.")
    scores = [each.cell.score or 0.0 for each in successes.values()]
    below = sum(score < max(scores) for score in scores)
    if below and task.judge.threshold is None:
        found.append(
            f"{below} of {len(scores)} runs that made demos scored below {max(scores):g}. metric_threshold= sets the least "
            "score of a demo."
        )
    return found


def _reason(cell: Cell) -> str:
    if cell.failure is not None:
        return cell.failure.type
    return "not scored" if cell.score is None else f"scored {cell.score:g}"


def diverse(successes: Sequence[Success], count: int) -> list[Success]:
    """Return ``count`` successes whose words differ most: each time the one farthest from those chosen."""
    left = list(successes)
    words = {each.row: _words(each) for each in left}
    chosen = left[:1]
    del left[:1]
    while left and len(chosen) < count:
        far = max(left, key=lambda each: min(_distance(words[each.row], words[other.row]) for other in chosen))
        left.remove(far)
        chosen.append(far)
    return chosen[:count]


def _words(success: Success) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", dumps([step.demo for step in success.cell.trace]).lower()))


def _distance(some: frozenset[str], others: frozenset[str]) -> float:
    either = len(some | others)
    return 1.0 - len(some & others) / either if either else 0.0


def demos_of(task: Task, success: Success, steps: TraceSteps = "sampled") -> dict[str, list[Demo]]:
    """Return the demos of a run by predictor. Of several calls of a predictor, ``steps`` keeps the last, a sampled one (half
    of the time the last) or all. A call whose conversation a later call continues is a part of that call's demo."""
    calls: dict[str, list[Demo]] = {}
    for step in success.cell.trace:
        if step.path in task.signatures:
            calls.setdefault(step.path, []).append(Demo(step.demo, success.row))
    calls = {name: _whole_conversations(demos, task.signatures[name]) for name, demos in calls.items()}
    if steps == "all":
        return calls
    kept: dict[str, list[Demo]] = {}
    for name, demos in calls.items():
        source = task.rng("trace step", success.row, name)
        is_last = steps == "last" or len(demos) == 1 or source.random() < 0.5
        kept[name] = [demos[-1] if is_last else source.choice(demos[:-1])]
    return kept


def _whole_conversations(demos: Sequence[Demo], signature: SignatureClass) -> list[Demo]:
    """Return the demos without those whose history is the beginning of the next one's."""
    field = signature.spec.history_field
    if field is None:
        return list(demos)
    turns = [_turns_of(demo.fields.get(field.name)) for demo in demos]
    ends = [at for at, (some, later) in enumerate(pairwise(turns)) if not (some and later[: len(some)] == some)]
    return [demos[at] for at in (*ends, len(demos) - 1)]


def _turns_of(history: JsonValue) -> list[JsonValue]:
    """Return the turns of a history's JSON."""
    turns = history.get("messages") if isinstance(history, dict) else history
    return turns if isinstance(turns, list) else []


def labelled(
    task: Task, count: int, purpose: str, rows: Sequence[str] | None = None, *, balance: bool = False
) -> dict[str, tuple[Demo, ...]]:
    """Return up to ``count`` labelled rows for each predictor, drawn at random without replacement.

    ``balance``: as many of each label, as far as there are rows.
    """
    rows = task.train if rows is None else rows
    drawn: dict[str, tuple[Demo, ...]] = {}
    for name in task.signatures:
        usable = [demo for row in rows if (demo := task.labeled_demo(row, name)) is not None]
        order = task.rng(purpose, name).sample(usable, len(usable) if balance else min(count, len(usable)))
        drawn[name] = tuple((_balanced(order, task.signatures[name].output_fields) if balance else order)[:count])
    return drawn


def _balanced(demos: Sequence[Demo], outputs: Collection[str]) -> list[Demo]:
    """Return demos in rounds, one of each label a round."""
    seen: Counter[str] = Counter()
    rounds: list[tuple[int, int]] = []
    for at, demo in enumerate(demos):
        mark = dumps([demo.fields.get(name) for name in outputs])
        rounds.append((seen[mark], at))
        seen[mark] += 1
    return [demos[at] for _, at in sorted(rounds)]


def with_success_demos(
    task: Task,
    base: Candidate,
    successes: Sequence[Success],
    *,
    most_labelled: int,
    purpose: str = "labelled",
    steps: TraceSteps = "sampled",
) -> Candidate:
    """Return a candidate with the demos of successes, filled up with labelled rows to ``most_labelled`` in all."""
    bootstrapped: dict[str, list[Demo]] = {name: [] for name in task.signatures}
    for success in successes:
        for name, demos in demos_of(task, success, steps).items():
            bootstrapped[name] += demos
    used = {success.row for success in successes}
    rest = [row for row in task.train if row not in used]
    fills = labelled(task, most_labelled, purpose, rest)
    candidate = base
    for name, demos in bootstrapped.items():
        fill = fills[name][: max(0, most_labelled - len(demos))]
        candidate = candidate.with_demos(name, (*demos, *fill), base.digest)
    return candidate
