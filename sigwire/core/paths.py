"""Paths of the parts of a program, their names as text, and the marker of parts.

A path is a tuple of steps: an attribute name (``AttributeStep``), a list or tuple index (``int``), a dict key (``ItemStep``).
After a ``HeldStep`` the path leads through the function of a tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["HELD", "AttributeStep", "HeldStep", "ItemStep", "Path", "Walkable", "name_of"]


@dataclass(frozen=True, slots=True)
class AttributeStep:
    """A step to an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class ItemStep:
    """A step to the value of a dict key."""

    key: Any


@dataclass(frozen=True, slots=True)
class HeldStep:
    """No step: the steps behind it lead through a tool. At the end of a path, ``number`` separates parts of one name."""

    number: int = 1


HELD = HeldStep()

Path: TypeAlias = tuple[AttributeStep | ItemStep | HeldStep | int, ...]


class Walkable:
    """Marker of the objects that a walk yields: modules and parameters."""


def name_of(path: Path, *, quoted: bool = True) -> str:
    """Return a path as text; ``quoted`` writes string keys with quotes. Keys behind a ``HeldStep`` always have quotes.

    >>> name_of((AttributeStep("steps"), 0, AttributeStep("predict"), ItemStep("k")))
    "steps[0].predict['k']"
    >>> name_of((AttributeStep("d"), ItemStep("k"), HeldStep(), AttributeStep("tools"), ItemStep("ask")), quoted=False)
    "d[k].tools['ask']"
    """
    text = ""
    for step in path:
        if isinstance(step, AttributeStep):
            text += f".{step.name}" if text else step.name
        elif isinstance(step, ItemStep):
            text += f"[{step.key!r}]" if quoted else f"[{step.key}]"
        elif isinstance(step, HeldStep):
            quoted = True
            text += f"~{step.number}" if step.number > 1 else ""
        else:
            text += f"[{step}]"
    return text
