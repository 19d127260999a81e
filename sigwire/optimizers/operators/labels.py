"""Choices of a search by label: models, adapters and options of requests that the caller offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from sigwire.core.narrow import is_items, is_mapping
from sigwire.errors import ConfigurationError, suggest
from sigwire.lm.option_aliases import OPTION_NAMES
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.task import Task

__all__ = ["Labels", "other_labels", "picked", "read_choices", "sizes_of_choices"]

Labels: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By name ("model", "adapter", an option of requests) the values by label."""

_PREFIX = "choice/"
_NEEDED = {"model": "respond", "adapter": "plan"}  # a method that the values have


def read_choices(given: object) -> Labels:
    """Return the choices that a caller offers; values in a list are their own labels.

    Raises ``ConfigurationError`` for an unknown name, an empty choice, and a value of a wrong kind.

    >>> read_choices({"temperature": [0, 0.7]})
    {'temperature': {'0': 0, '0.7': 0.7}}
    """
    if not is_mapping(given):
        raise ConfigurationError(
            f'choices is a dict such as {{"model": {{"mini": lm}}}}, not {given!r:.80} (making it).'
        )
    return {name: _read_choice(name, values) for name, values in given.items()}


def _read_choice(name: str, given: object) -> Mapping[str, Any]:
    if name not in {*_NEEDED, *OPTION_NAMES}:
        known = (*_NEEDED, *sorted(OPTION_NAMES))
        raise ConfigurationError(
            f"choices has {name!r} (making the optimizer). {suggest(name, known)}Choose a model, an adapter, or an option of "
            'requests such as "temperature".'
        )
    listed: Mapping[Any, Any] = {f"{each}": each for each in given} if is_items(given) else {}
    named: Mapping[Any, Any] | None = given if is_mapping(given) else None
    values = listed if named is None else named
    method = _NEEDED.get(name)
    fits = all(not isinstance(each, type) and hasattr(each, method) for each in values.values()) if method else True
    if not values or not fits or (method and named is None) or not all(isinstance(key, str) for key in values):
        kind = f"{name}s" if method else "values"
        raise ConfigurationError(
            f"The choice {name!r} has {kind} by label, not {given!r:.80} (making the optimizer). Write "
            f'choices={{{name!r}: {{"first": ..., "second": ...}}}}.'
        )
    return dict(cast("Mapping[str, Any]", values))


def sizes_of_choices(task: Task) -> dict[str, int]:
    """Return the parts that a sampler draws besides, with their numbers of options. The first of each is the student's."""
    return {f"{_PREFIX}{name}": 1 + len(values) for name, values in task.labels.items()}


def picked(task: Task, candidate: Candidate, choice: Mapping[str, int]) -> Candidate:
    """Return a candidate with the labels that a sampler drew."""
    for name, values in task.labels.items():
        if number := choice.get(f"{_PREFIX}{name}", 0):
            label = list(values)[number - 1]
            candidate = candidate.with_choice(name, label, values[label], task.baseline.digest)
    return candidate


def other_labels(task: Task, parent: Candidate) -> list[Candidate]:
    """Return the candidates that differ from a parent in one label."""
    return [
        parent.with_choice(name, label, value)
        for name, values in task.labels.items()
        for label, value in values.items()
        if parent.choices.get(name) != label
    ]
