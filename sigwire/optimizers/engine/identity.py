"""The digests that identify a search in its journal: options, programs, rows. Threads, files and listeners change none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.core.record import to_plain
from sigwire.journal.packing import digest_of
from sigwire.modules.module import Module

__all__ = ["model_name", "options_digest", "program_digest", "rows_digest"]

_NO_PART_OF_A_PATH = {
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
