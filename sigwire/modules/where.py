"""Add the place in a program to an error on its way out: a note, and ``where`` on errors of sigwire.

Each module that an error leaves calls ``locate``; so the path ends as that of the innermost module in the called program.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sigwire.errors import SigwireError, Where

__all__ = ["locate"]

_NO_PATHS: Mapping[int, str] = {}


class _WhereNote(str):
    """The note of an error, with its facts and the id of the module at the path."""

    where: Where
    module: int
    behind: str  # the rest of the path, behind that module: through tools that do not hold what they call
    in_tool: str  # the path from the agent whose tool was called last


def locate(
    error: BaseException,
    module: object = None,
    paths: Mapping[int, str] = _NO_PATHS,
    *,
    is_innermost: bool = False,
    **facts: Any,
) -> None:
    """Add facts to the place of an error. ``paths`` are those of the modules inside ``module``, by id.

    ``is_innermost`` drops earlier facts: an exception object may be raised by several calls. Interrupts are not changed.
    ``hook``: the attribute of the next module around whose function raised it.
    """
    if not isinstance(error, Exception):
        return
    notes: list[str] = getattr(error, "__notes__", [])
    before = next((note for note in notes if isinstance(note, _WhereNote)), None)
    if before is None or is_innermost:
        where, key, behind, in_tool = Where(), 0, "", ""
    else:
        where, key, behind, in_tool = before.where, before.module, before.behind, before.in_tool
        if "tool" in facts:
            in_tool = _joined(f"tools[{facts['tool']!r}]", where.path)
    if (hook := facts.pop("hook", None)) is not None:
        key, in_tool = 0, _joined(hook, where.path)
    if module is not None:
        if key not in paths:
            key, behind = id(module), in_tool
        where = replace(where, path=_joined(paths[key], behind), module=where.module or _describe(module))
    note = _WhereNote(where := replace(where, **facts))
    note.where, note.module, note.behind, note.in_tool = where, key, behind, in_tool
    with suppress(Exception):  # a user's exception class may refuse attributes
        _attach(error, note, before)


def _joined(outer: str, inner: str) -> str:
    parts = [part for part in (outer, inner) if part not in ("", "self")]
    return ".".join(parts) or "self"


def _attach(error: Exception, note: _WhereNote, before: _WhereNote | None) -> None:
    """Add the note to the error, in the place of the note before."""
    if before is None:
        error.add_note(note)
    else:
        error.__notes__[error.__notes__.index(before)] = note
    if isinstance(error, SigwireError):
        error.where = note.where


def _describe(module: object) -> str:
    signature = getattr(getattr(module, "signature", None), "signature", None)
    return type(module).__name__ if signature is None else f"{type(module).__name__} {signature!r}"
