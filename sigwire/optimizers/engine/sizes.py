"""Sizes of the calls of a search, for its plan: tokens and money of a run and of a writing call, estimated before any call.

The first requests of student and teacher are made for a few training rows, by the code that sends; a candidate adds its demos,
whose sizes are those of the training rows, and its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sigwire.core.example import Example
from sigwire.core.json import dumps
from sigwire.core.messages import Message
from sigwire.core.record import to_plain
from sigwire.core.request import Request
from sigwire.core.response import Usage
from sigwire.evaluate.plain import dumped_example
from sigwire.lm.policy.money.estimates import estimated_tokens, output_bound
from sigwire.lm.preview.preview import Preview, preview_of
from sigwire.modules.field_types import FieldTypes, types_of
from sigwire.modules.module import Module
from sigwire.modules.preview.whole_program import first_previews
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.rule import Write
from sigwire.settings import context, current

__all__ = ["CallSize", "Load", "Sizes", "added_tokens", "size_of_program", "sizes_of", "written_tokens"]

_ROWS = 3  # that are previewed
_TEXT = 150  # tokens of a text that a model writes in place of another
_ANSWER = 100  # tokens of an answer that no row shows
_FRAME = 300  # tokens of the instructions of a writing request
_LEAST = 0.7  # of an estimated input


class _Asking(Protocol):
    """The models of an optimizer."""

    prompt_model: Any
    task_model: Any
    teacher_settings: dict[str, Any]


class CallSize(NamedTuple):
    """The tokens of a call: those that it reads, those that it likely writes, and the most; ``cost`` prices a usage."""

    read: int
    written: int
    most: int
    cost: Callable[[Usage], float | None]


class Load(NamedTuple):
    """Tokens and US dollars; ``money`` is ``None`` without a price."""

    tokens: int
    money: float | None


@dataclass(slots=True)
class Sizes:
    """The sizes of the calls of a plan. ``calls``: calls of a run; ``runs`` and ``writing`` are added by the forecast.

    ``runs``: the program of each run, and the tokens that its candidate adds; ``writing``: the tokens of each request.
    """

    student: CallSize
    teacher: CallSize
    writer: CallSize | None
    calls: int
    runs: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    writing: list[int] = field(default_factory=list[int])

    def bounds(self, least: int, likely: tuple[int, int], most: tuple[int, int]) -> tuple[Load, Load, Load]:
        """Return the least of a number of calls, and the expected and the most of numbers of runs and writing calls."""
        added = [tokens for _, tokens in self.runs] or [0]
        is_taught = [by == "teacher" for by, _ in self.runs] or [False]
        taught = sum(is_taught) / len(is_taught)
        sizes = [size for size, share in ((self.student, 1 - taught), (self.teacher, taught)) if share]
        shares = [share for share in (1 - taught, taught) if share]
        smallest = [_load(size, round(_LEAST * size.read), 1, least) for size in sizes]
        runs = [
            _load(size, size.read + round(_mean(added)), size.written, likely[0] * self.calls * share)
            for size, share in zip(sizes, shares, strict=True)
        ]
        largest = [_load(size, size.read + max(added), size.most, most[0] * self.calls) for size in sizes]
        writer, texts = self.writer, self.writing or [0]
        if writer is not None and most[1]:
            runs.append(_load(writer, round(_mean(texts)), writer.written, likely[1]))
            rest = _load(writer, max(texts), writer.most, most[1])
            largest = [_sum([each, rest]) for each in largest]
        return _bound(min, smallest), _sum(runs), _bound(max, largest)


def _load(size: CallSize, read: int, written: int, calls: float) -> Load:
    cost = size.cost(Usage(read, written))
    return Load(round((read + written) * calls), None if cost is None else cost * calls)


def _sum(loads: Sequence[Load]) -> Load:
    known = [each.money for each in loads if each.money is not None]
    return Load(sum(each.tokens for each in loads), sum(known) if len(known) == len(loads) else None)


def _bound(choose: Callable[..., Any], loads: Sequence[Load]) -> Load:
    known = [each.money for each in loads if each.money is not None]
    return Load(choose(each.tokens for each in loads), choose(known) if len(known) == len(loads) else None)


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


def sizes_of(optimizer: _Asking, student: Module, teacher: Module, rows: Sequence[Example], calls: int) -> Sizes | None:
    """Return the sizes of the calls of student, teacher and writing model; ``None`` without a model. ``calls``: of a run."""
    if optimizer.task_model is not None:
        student = student.deepcopy()
        student.set_lm(optimizer.task_model)
    asked = size_of_program(student, rows[:_ROWS])
    if asked is None:
        return None
    taught: CallSize | None = asked
    if teacher is not student or optimizer.teacher_settings:
        with context(**optimizer.teacher_settings):
            taught = size_of_program(teacher, rows[:_ROWS])
    return Sizes(asked, taught or asked, _size_of_model(optimizer.prompt_model or current().lm), calls)


def size_of_program(program: Module, rows: Sequence[Example]) -> CallSize | None:
    """Return the mean size of the first calls of a program on rows; ``None`` if no model is known."""
    previews = first_previews(program, *rows)
    if not previews:
        return None
    types = types_of(program)
    return CallSize(
        round(_mean([preview.tokens.count for preview in previews])),
        round(_mean([_answer_tokens(row.labels(), types) for row in rows])),
        max(map(_most_output, previews)),
        previews[0].cost,
    )


def _answer_tokens(labels: Example, types: FieldTypes) -> int:
    """Return the tokens of the labels of a row, or of an answer in general if it has none."""
    return estimated_tokens(dumps(dumped_example(labels, types))) if len(labels) else _ANSWER


def _most_output(preview: Preview) -> int:
    return output_bound(preview.request, None, 0)


def _size_of_model(lm: Any) -> CallSize | None:
    """Return the size of a writing call; ``None`` without a model."""
    if lm is None or not hasattr(lm, "model"):
        return None
    request = Request((Message.user(""),))
    preview: Preview = lm.preview(request) if hasattr(lm, "preview") else preview_of(lm, request)
    return CallSize(_FRAME, 2 * _TEXT, _most_output(preview), preview.cost)


def added_tokens(candidate: Candidate, baseline: Candidate) -> int:
    """Return the tokens that a candidate adds to each call of the student, about: of its demos, and of new texts."""
    demos = [
        to_plain(demo) for name, each in candidate.demos.items() for demo in each[len(baseline.demos.get(name, ())) :]
    ]
    texts = sum(text != baseline.texts.get(slot) for slot, text in candidate.texts.items())
    predictors = max(len(candidate.demos), 1)
    return estimated_tokens(dumps(demos)) // predictors * bool(demos) + texts * _TEXT


def written_tokens(effect: Write) -> int:
    """Return the tokens of a request to the writing model, about."""
    return _FRAME + estimated_tokens(dumps(to_plain(dict(effect.inputs))))
