"""Where a module's parts are: one walker for everything that looks for modules inside modules.

A path is a tuple of steps: an attribute name (``AttributeStep``), a list or tuple index (``int``) or a dict key (``Key``).
Lists, tuples and dicts are searched at any depth, attributes of other objects are not. A module or parameter that is
found is not entered here; whoever walks decides that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

__all__ = ["AttributeStep", "ItemStep", "Parameter", "Path", "Walkable", "contained", "name_of"]


@dataclass(frozen=True, slots=True)
class AttributeStep:
    """A step to an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class ItemStep:
    """A step to a dict's value."""

    key: Any


Path: TypeAlias = tuple[AttributeStep | ItemStep | int, ...]


class Walkable:
    """What the walker finds: modules, and parameters."""


class Parameter(Walkable):
    """Something whose state is saved and learned: ``Predict`` is one."""


def contained(owner: object) -> Iterator[tuple[Path, Walkable]]:
    """The modules and parameters that an object's attributes hold, directly or in containers, in order."""
    seen: set[int] = set()
    waiting: list[tuple[Path, Any]] = [((AttributeStep(name),), value) for name, value in _reversed(vars(owner))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Walkable):
            yield path, value
        elif isinstance(value, (list, tuple, dict)) and id(cast(object, value)) not in seen:
            seen.add(id(cast(object, value)))
            waiting.extend((((*path, step), item) for step, item in _entries(value)))


def _reversed(attributes: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(attributes.items())[::-1]


def _entries(container: Any) -> Sequence[tuple[ItemStep | int, Any]]:
    """A container's items, last first: the stack gives them back in order."""
    if issubclass(type(container), dict):
        return [(ItemStep(key), item) for key, item in reversed(container.items())]
    return [(index, container[index]) for index in reversed(range(len(container)))]


def name_of(path: Path, *, quoted: bool = True) -> str:
    """A path as text; ``quoted`` writes string keys with quotes.

    >>> name_of((AttributeStep("steps"), 0, AttributeStep("predict"), Key("k")))
    "steps[0].predict['k']"
    """
    text = ""
    for step in path:
        if isinstance(step, AttributeStep):
            text += f".{step.name}" if text else step.name
        elif isinstance(step, ItemStep):
            text += f"[{step.key!r}]" if quoted else f"[{step.key}]"
        else:
            text += f"[{step}]"
    return text
