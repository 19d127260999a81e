"""Walk the parts of a module: paths, names, and the markers of objects that a walk yields.

A path is a tuple of steps: an attribute name (``AttributeStep``), a list or tuple index (``int``) or a dict key (``ItemStep``).
Lists, tuples and dicts are searched at any depth, attributes of other objects are not. ``parts_of`` does not enter the
modules and parameters that it yields; the caller decides whether to walk further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject

__all__ = [
    "AttributeStep",
    "ItemStep",
    "Parameter",
    "Path",
    "Predictor",
    "Walkable",
    "name_of",
    "parts_of",
    "path_between",
]


@dataclass(frozen=True, slots=True)
class AttributeStep:
    """A step to an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class ItemStep:
    """A step to the value of a dict key."""

    key: Any


Path: TypeAlias = tuple[AttributeStep | ItemStep | int, ...]


class Walkable:
    """Marker of the objects that a walk yields: modules and parameters."""


class Parameter(Walkable):
    """Marker of objects with learned state that is saved and loaded by name."""

    if TYPE_CHECKING:

        def dump_state(self) -> JsonObject: ...

        def prepare_state(
            self, state: Mapping[str, object], *, allow_unsafe_lm_state: bool = False
        ) -> Callable[[], None]: ...


class Predictor(Parameter):
    """Marker of parameters that ask a model: ``Predict`` and its subclasses."""


def parts_of(owner: object) -> Iterator[tuple[Path, Walkable]]:
    """Yield the modules and parameters in an object's attributes, directly or in containers, in order."""
    seen: set[int] = set()
    stack: list[tuple[Path, object]] = [((AttributeStep(name),), value) for name, value in vars(owner).items()]
    stack.reverse()
    while stack:
        path, value = stack.pop()
        if isinstance(value, Walkable):
            yield path, value
        elif isinstance(value, (list, tuple, dict)) and id(cast(object, value)) not in seen:
            seen.add(id(cast(object, value)))
            stack.extend((((*path, step), item) for step, item in _reversed_items(cast("Sequence[object]", value))))


def path_between(root: object, part: object) -> str | None:
    """Return the name by which a walk from ``root``, breadth first, finds a module; ``None`` if it finds none.

    >>> path_between(Walkable(), Walkable())
    """
    for attribute, value in vars(root).items():
        if value is part:
            return attribute
        if isinstance(value, (list, tuple, dict)) and (step := _item_at(cast("Sequence[object]", value), part)):
            return f"{attribute}{step}"
    seen = {id(root)}
    queue: list[tuple[Path, object]] = [((), root)]
    for prefix, owner in queue:  # the loop body appends to the queue
        for path, found in parts_of(owner):
            if found is part:
                return name_of((*prefix, *path), quoted=False)
            if id(found) not in seen:
                seen.add(id(found))
                queue.append(((*prefix, *path), found))
    return None


def _item_at(container: Sequence[object] | dict[object, object], part: object) -> str:
    """Return the step to an item of a container, "" if the part is no item."""
    items = container.items() if isinstance(container, dict) else enumerate(container)
    return next((f"[{key}]" for key, item in items if item is part), "")


def _reversed_items(container: Sequence[object] | dict[object, object]) -> Iterator[tuple[ItemStep | int, object]]:
    """Yield the items of a container, last first: the stack of the walk reverses the order."""
    if isinstance(container, dict):
        yield from ((ItemStep(key), item) for key, item in reversed(container.items()))
    else:
        yield from ((index, container[index]) for index in reversed(range(len(container))))


def name_of(path: Path, *, quoted: bool = True) -> str:
    """Return a path as text; ``quoted`` writes string keys with quotes.

    >>> name_of((AttributeStep("steps"), 0, AttributeStep("predict"), ItemStep("k")))
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
