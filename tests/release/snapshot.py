"""The public interface as text: ``tests/release/api.txt``, a line for each name and each member with its parameters.

``python docs/tables.py`` writes it. A line that goes or changes needs a line in CHANGELOG.md. Annotations are left out: they
differ between versions of Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import sigwire

__all__ = ["PATH", "lines"]

PATH = Path(__file__).resolve().parent / "api.txt"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def lines() -> Iterator[str]:
    """Yield the lines of the public names, in the order of ``sigwire.__all__``."""
    for name in sigwire.__all__:
        value = getattr(sigwire, name)
        if name.startswith("__"):
            continue
        if inspect.isclass(value):
            bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
            yield f"class {name}({bases}){_parameters(value)}"
            yield from (f"{name}.{member}" for member in _members(value))
        else:
            yield f"{name}{_parameters(value)}" if callable(value) else f"{name}: {type(value).__name__}"


def _members(cls: type) -> Iterator[str]:
    """Yield the public members that sigwire's classes define, without those that a public base has under its own name."""
    public = [getattr(sigwire, name) for name in sigwire.__all__]
    bases = [base for base in cls.__mro__ if base.__module__.startswith("sigwire")]
    owned = {name for base in bases if base is cls or base not in public for name in vars(base)}
    for name in sorted(owned):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, classmethod | staticmethod):
            yield f"{name}{_parameters(cast(Any, value).__func__)} {type(value).__name__}"
        else:
            yield f"{name}{_parameters(value)}" if inspect.isfunction(value) else name


def _parameters(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    return _ADDRESS.sub("", str(found.replace(parameters=bare, return_annotation=found.empty)))
