"""Walk the parts of a module, and the markers of objects with learned state.

Lists, tuples and dicts are searched at any depth, attributes of other objects are not. The functions of tools are searched for
the modules that they hold (``sigwire.core.tools.held``), after all attributes: a part that an attribute reaches has the name
that it has without the tools.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from sigwire.core.paths import HELD, AttributeStep, HeldStep, ItemStep, Path, Walkable, name_of
from sigwire.core.tools.held import FUNCTIONS, HasHandler, HasTools, held_parts, holds

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject

__all__ = ["Parameter", "Predictor", "Tools", "is_held", "parts_of", "path_between", "tools_in", "walk"]

Tools: TypeAlias = list[tuple[Path, object]]
"""Tools of a module, and functions in its attribute ``tools``, with their paths."""
_TOOLBOX, _TOOLS = AttributeStep("toolbox"), AttributeStep("tools")


class Parameter(Walkable):
    """Marker of objects with learned state that is saved and loaded by name."""

    if TYPE_CHECKING:

        def dump_state(self) -> JsonObject: ...

        def prepare_state(
            self, state: Mapping[str, object], *, allow_unsafe_lm_state: bool = False
        ) -> Callable[[], None]: ...


class Predictor(Parameter):
    """Marker of parameters that ask a model: ``Predict`` and its subclasses."""


def parts_of(owner: object, tools: Tools | None = None) -> Iterator[tuple[Path, Walkable]]:
    """Yield the modules and parameters in an object's attributes, directly or in containers, in order.

    They are not entered. Tools are added to ``tools``: those of an attribute ``toolbox`` by the path of ``tools``.
    """
    return _parts(vars(owner), tools)


def _parts(attributes: Mapping[str, object], tools: Tools | None) -> Iterator[tuple[Path, Walkable]]:
    seen: set[int] = set()
    stack: list[tuple[Path, object]] = [((AttributeStep(name),), value) for name, value in attributes.items()]
    stack.reverse()
    while stack:
        path, value = stack.pop()
        if isinstance(value, Walkable):
            yield path, value
        elif isinstance(value, (list, tuple, dict)):
            if id(cast(object, value)) not in seen:
                seen.add(id(cast(object, value)))
                stack.extend((((*path, step), item) for step, item in _reversed_items(cast("Sequence[object]", value))))
        elif tools is None:
            continue
        elif isinstance(value, HasHandler) or (path[0] == _TOOLS and isinstance(value, FUNCTIONS)):
            tools.append((path, value))
        elif isinstance(value, HasTools):
            around = () if path == (_TOOLBOX,) else path
            tools.extend(((*around, _TOOLS, ItemStep(name)), tool) for name, tool in value.tools.items())


def path_between(root: object, part: object) -> str | None:
    """Return the name by which a walk from ``root``, breadth first, finds a module; ``None`` if it finds none.

    >>> path_between(Parameter(), Parameter())
    """
    if not isinstance(root, Walkable):
        return None
    for attribute, value in vars(root).items():  # most are found here
        if value is part:
            return attribute
        if isinstance(value, (list, tuple, dict)) and (step := _item_at(cast("Sequence[object]", value), part)):
            return f"{attribute}{step}"
    found = walk(root, lambda _: True, breadth_first=True)
    return next((name_of(path, quoted=False) for path, each in found if each is part), None)


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


def tools_in(attributes: Mapping[str, object]) -> Tools:
    """Return the tools among attributes, and the functions in an attribute ``tools``, with their paths."""
    tools: Tools = []
    deque(_parts(attributes, tools), maxlen=0)
    return tools


def walk(
    root: Walkable, is_entered: Callable[[Walkable], bool], *, breadth_first: bool = False
) -> Iterator[tuple[Path, Walkable]]:
    """Yield an object and the parts inside of it, each once, with paths that have different names.

    Parts that attributes reach are first, then those that only tools hold. ``is_entered`` decides about the parts of a part.
    """
    waiting: deque[tuple[Path, Walkable]] = deque([((), root)])
    tools: deque[tuple[Path, object]] = deque()
    held, seen, names, paths = _held_by(tools), set[int](), set[str](), list[Path]()
    while True:
        if not waiting:
            if (entry := next(held, None)) is None:
                return
            names.update(map(name_of, paths))
            paths.clear()
            waiting.append((_free(entry[0], names), entry[1]))
        path, part = waiting.popleft()
        if id(part) in seen:
            continue
        seen.add(id(part))
        paths.append(path)
        yield path, part
        if part is root or is_entered(part):
            own: Tools = []
            inside = parts_of(part, None if isinstance(part, Parameter) else own)
            found = [((*path, *steps), each) for steps, each in inside]
            waiting.extend(found) if breadth_first else waiting.extendleft(reversed(found))
            tools.extend(((*path, HELD, *steps), tool) for steps, tool in own if holds(tool))


def _held_by(tools: deque[tuple[Path, object]]) -> Iterator[tuple[Path, Walkable]]:
    known: set[int] = set()
    while tools:
        path, tool = tools.popleft()
        if id(tool) not in known:
            known.add(id(tool))
            yield from (((*path, *steps), part) for steps, part in held_parts(tool))


def _free(path: Path, names: set[str]) -> Path:
    """Return the path, with a number at its end if there is a part of that name."""
    tried, number = path, 2
    while name_of(tried) in names:
        tried, number = (*path, HeldStep(number)), number + 1
    return tried


def is_held(path: Path) -> bool:
    """Return True if a path leads through a tool."""
    return any(isinstance(step, HeldStep) for step in path)
