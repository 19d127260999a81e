"""Rules: generators that search for a better candidate. They yield what they want to know, and decide by the answers alone.

A rule holds no model, opens no file, starts no thread and reads no clock; its random numbers come from ``Task.rng``. The
engine performs what a rule yields (``Measure``, ``Write``, ``Report``), so that budget, journal, parallel runs, errors and
resuming are written once. With the same seed and the same answers a rule takes the same path, whatever the number of threads.
When a budget is spent, ``BudgetSpent`` is raised at the yield; the rule returns its best candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from sigwire.core.json import JsonValue
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.errors import RuleError
from sigwire.show.values import short_repr
from sigwire.signatures.signature import SignatureClass

if TYPE_CHECKING:
    from sigwire.optimizers.events import SearchEvent

__all__ = [
    "Measure",
    "Report",
    "Rule",
    "RuleEffect",
    "RuleSteps",
    "RunKey",
    "Write",
    "checked_rule",
    "measure",
    "report",
    "through",
    "write",
]

T = TypeVar("T")
RunBy: TypeAlias = Literal["student", "teacher"]


@dataclass(frozen=True, slots=True)
class RunKey:
    """One run: a candidate on a row. ``repeat`` counts the samples of that run, from 0."""

    candidate: Candidate
    row: str
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Measure:
    """Run candidates on rows; the answer is a list of cells in the order of ``runs``.

    ``traced``: cells have the calls of predictors. ``by``: the program to which candidates are applied. Runs that were made
    before are not made again.
    """

    runs: tuple[RunKey, ...]
    traced: bool = False
    by: RunBy = "student"


@dataclass(frozen=True, slots=True)
class Write:
    """Ask the writing model ``count`` times; the answer is a list of outputs by name, ``None`` for an unusable answer.

    ``inputs`` are those of ``signature``, as JSON. A function of the user in its place writes by itself, and returns the
    outputs. ``rows`` are the training rows that they quote: a row of the validation set is refused. ``sample`` sets apart the
    samples of equal requests.
    """

    signature: SignatureClass | Callable[..., Any]
    inputs: Mapping[str, JsonValue]
    rows: tuple[str, ...] = ()
    count: int = 1
    temperature: float | None = 1.0
    sample: int = 0

    @property
    def name(self) -> str:
        """The name of the signature or function."""
        return str(getattr(self.signature, "__name__", type(self.signature).__name__))


@dataclass(frozen=True, slots=True)
class Report:
    """Emit an event to callbacks, progress and the journal; the answer is ``None``.

    ``is_cut``: the rule stops here because it leaves the rest of the budget to the end of the search.
    """

    event: SearchEvent = field()
    is_cut: bool = False


RuleEffect: TypeAlias = "Measure | Write | Report"
RuleSteps: TypeAlias = Generator[RuleEffect, Any, T]
Rule: TypeAlias = RuleSteps[Candidate]


def through(rule: Generator[Any, Any, T], around: Callable[[Any], RuleSteps[object]]) -> RuleSteps[T]:
    """Run a rule; ``around(effect)`` are the steps that perform each of its effects and return the answer."""
    advance: Callable[[], object] = partial(next, rule)
    while True:
        try:
            effect = advance()
        except StopIteration as stop:
            return cast(T, stop.value)
        try:
            answer = yield from around(effect)
        except RuleError:
            raise
        except BaseException as error:
            advance = partial(rule.throw, error)
        else:
            advance = partial(rule.send, answer)


def _nothing(slot: str, text: str) -> None:
    return None


def checked_rule(owner: str, rule: object, lacking: Callable[[str, str], str | None] = _nothing) -> Rule:
    """Run the rule of an optimizer. Raises ``RuleError`` if it is no generator, yields no effect, or returns no candidate, and
    if it runs a candidate with a text of which ``lacking(slot, text)`` returns a passage."""
    if not isinstance(rule, Generator):
        raise RuleError(
            f"{owner}.rule returned {short_repr(rule)}, not a generator (searching). Write a generator: cells = yield from "
            "measure(candidate, task.train) ... return candidate."
        )
    found = yield from through(cast("Generator[Any, Any, object]", rule), partial(_checked_effect, owner, lacking))
    if not isinstance(found, Candidate):
        raise RuleError(
            f"{owner}.rule returned {short_repr(found)}, not a Candidate (searching). Return the best candidate, such as "
            "task.baseline."
        )
    return found


def _checked_effect(owner: str, lacking: Callable[[str, str], str | None], effect: object) -> RuleSteps[object]:
    if not isinstance(effect, Measure | Write | Report):
        raise RuleError(
            f"{owner}.rule yielded {short_repr(effect)}, which is no effect (searching). Write yield from measure(...), "
            "yield from write(...) or yield from report(...)."
        )
    if isinstance(effect, Measure) and effect.by == "student":
        texts = dict.fromkeys(text for run in effect.runs for text in run.candidate.texts.items())
        for slot, text in texts:
            if (passage := lacking(slot, text)) is not None:
                raise RuleError(
                    f"{owner}.rule runs a candidate whose {slot} lacks the fixed passage {passage!r:.200} (searching). Leave "
                    "out texts for which task.lacking(slot, text) is not None."
                )
    answer: object = yield effect
    return answer


def measure(
    candidate: Candidate,
    rows: Sequence[str],
    *,
    repeat: int = 0,
    traced: bool = False,
    by: RunBy = "student",
) -> RuleSteps[list[Cell]]:
    """Run one candidate on rows; return the cells in order."""
    cells: list[Cell] = yield Measure(tuple(RunKey(candidate, row, repeat) for row in rows), traced, by)
    return cells


def write(
    signature: SignatureClass | Callable[..., Any],
    inputs: Mapping[str, JsonValue],
    *,
    rows: Sequence[str] = (),
    count: int = 1,
    temperature: float | None = 1.0,
    sample: int = 0,
) -> RuleSteps[list[Mapping[str, Any] | None]]:
    """Ask the writing model; return the outputs of each answer, ``None`` for an unusable one."""
    answers: list[Mapping[str, Any] | None] = yield Write(signature, inputs, tuple(rows), count, temperature, sample)
    return answers


def report(event: SearchEvent) -> RuleSteps[None]:
    """Emit an event."""
    yield Report(event)
