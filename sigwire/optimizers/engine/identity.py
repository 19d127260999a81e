"""The identity of a search in its journal: digests of options, programs and rows, and a fingerprint of what it runs.

Threads, files and listeners change none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Protocol

from sigwire.core.json import JsonObject
from sigwire.core.lazy import version
from sigwire.core.record import to_plain
from sigwire.evaluate.fingerprint.identity import run_fingerprint
from sigwire.evaluate.metric_plan import MetricPlan
from sigwire.evaluate.records import program_facts
from sigwire.journal.packing import digest_of
from sigwire.modules.module import Module
from sigwire.settings import current

__all__ = ["options_digest", "program_digest", "search_facts", "search_header", "writer_of"]

_NO_PART_OF_A_PATH = {
    "frontier",  # as strategy and confidence, which are in ``search``: another path finds the runs that it shares
    "num_threads",
    "search",
    "budget",
    "metric",
    "prompt_model",
    "task_model",
    "teacher_settings",
}


def model_name(lm: object) -> str | None:
    """Return the name of a model, or of its class; None for no model.

    >>> model_name(None), model_name(3)
    (None, 'int')
    """
    return None if lm is None else str(getattr(lm, "model", type(lm).__name__))


def options_digest(options: Mapping[str, Any]) -> str:
    """Return the digest of the options that decide the path of a search. Objects count by their class.

    >>> options_digest({"rounds": 3, "num_threads": 1}) == options_digest({"rounds": 3, "num_threads": 8})
    True
    """
    plain: JsonObject = {
        name: value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
        for name, value in options.items()
        if name not in _NO_PART_OF_A_PATH
    }
    return digest_of(plain)


def program_digest(program: Module) -> str:
    """Return the digest of a program: its class, its state, its text."""
    return digest_of([type(program).__qualname__, to_plain(program.dump_state()), repr(program)])


def rows_digest(*sets: Sequence[str]) -> str:
    """Return the digest of the rows of a search, by their ids."""
    return digest_of([list(each) for each in sets])


def search_facts(student: Module, task_model: object) -> JsonObject:
    """Return the facts of each part of a journal beside the identity of the search, which has a seed of its own."""
    return {name: fact for name, fact in program_facts(student, task_model).items() if name != "seed"}


class _Identified(Protocol):
    """The part of an optimizer that a journal identifies."""

    search: Any
    prompt_model: Any
    task_model: Any
    teacher_settings: dict[str, Any]

    def get_params(self) -> dict[str, Any]: ...


def search_header(
    optimizer: _Identified,
    student: Module,
    teacher: Module,
    sets: Sequence[Sequence[str]],
    plan: MetricPlan | None,
    options: Mapping[str, Any],
) -> JsonObject:
    """Return what identifies a search in its journal. ``sets``: the ids of the rows; ``options``: those of ``compile``."""
    return {
        "optimizer": type(optimizer).__name__,
        "options": options_digest({**optimizer.get_params(), **options}),
        "seed": optimizer.search.get("seed", 0),
        "student": program_digest(student),
        "teacher": program_digest(teacher),
        "prompt_model": model_name(writer_of(optimizer)),
        "teacher_lm": model_name(optimizer.teacher_settings.get("lm")),
        "rows": rows_digest(*sets),
        "sigwire": version(),
        "fingerprint": search_fingerprint(
            student,
            teacher,
            plan,
            optimizer.task_model,
            optimizer.prompt_model,
            optimizer.teacher_settings,
            optimizer.search.get("choices"),
        ),
    }


def writer_of(optimizer: Any) -> object:
    """Return the model that writes texts for an optimizer: its own, else that of the settings if it writes at all.

    An optimizer writes if its constructor takes a ``prompt_model``; one that runs others writes if one of them does.
    """
    is_default = optimizer.prompt_model is None and _writes(optimizer)
    return current().lm if is_default else optimizer.prompt_model


def _writes(optimizer: Any) -> bool:
    steps: Mapping[str, object] | None = getattr(optimizer, "optimizers", None)
    make: Callable[..., object] = optimizer.__class__
    return any(map(_writes, steps.values())) if steps else "prompt_model" in signature(make).parameters


def search_fingerprint(
    student: Module,
    teacher: Module,
    plan: MetricPlan | None,
    task_model: object,
    prompt_model: object,
    teacher_settings: Mapping[str, Any],
    choices: object = None,
) -> JsonObject:
    """Return the fingerprint of a search: its programs, its metric and the models that it asks, by their content."""
    parts: dict[str, object] = {
        "program": student,
        "teacher": teacher,
        "task model": task_model,
        "prompt model": prompt_model,
        "settings of the teacher": teacher_settings,
        **({"choices": choices} if choices else {}),
    }
    settings = current()
    return run_fingerprint(parts, settings.lm, settings.adapter, {} if plan is None else plan.metrics)
