"""Modules that the tools of a program use and do not hold, so that its copies share them; in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

from sigwire.core.bytecode import code_use
from sigwire.core.paths import Path, Walkable, name_of
from sigwire.core.tools.held import FUNCTIONS, HasHandler, HasTools, held_parts, held_values, holds
from sigwire.core.tools.inspection import function_name
from sigwire.modules.tree.walk import Parameter, tools_in, walk

__all__ = ["shared_modules"]


def shared_modules(program: Walkable) -> list[tuple[Path, str]]:
    """Return the modules that tools use by a global name or as attributes of other objects: path of the agent, and a sentence.

    >>> from sigwire.modules.module import Module
    >>> shared_modules(Module())
    []
    """
    found: dict[str, Path] = {}
    for path, part in walk(program, lambda part: not isinstance(part, Parameter)):
        for _, tool in () if isinstance(part, Parameter) else tools_in(vars(part)):
            for use in _uses(tool):
                found.setdefault(
                    f"the tool {_tool_name(tool)!r} uses the module {use}; copies share it. {_ADVICE}", path
                )
    return [(path, text) for text, path in found.items()]


_ADVICE = "Pass Tool(sub) or a closure."


def _tool_name(tool: Any) -> str:
    return function_name(tool) if isinstance(tool, FUNCTIONS) else str(tool.name)


def _uses(tool: object) -> Iterator[str]:
    for _, value in held_values(tool):
        if isinstance(value, FunctionType):
            yield from (f"{name!r} by a global name" for name in _global_names(value, set()))
        elif isinstance(value, MethodType):
            yield from _uses_of_object(value.__self__)
        else:
            yield from _uses_of_object(value)


def _uses_of_object(value: object) -> Iterator[str]:
    kind = type(value).__name__
    yield from (f"{name!r} of the object {kind}" for name in _module_attributes(value))


def _module_attributes(value: object) -> list[str]:
    """Return the attributes of an object that are or hold modules: of a function in a cache, those that the function holds."""
    if isinstance(value, (Walkable, HasHandler, HasTools, type, ModuleType, FunctionType)):
        return []
    attributes: Mapping[str, object] = getattr(value, "__dict__", {})
    held = [name_of(path) for path, _ in held_parts(attributes.get("__wrapped__"))]
    return [*held, *(name for name, each in attributes.items() if isinstance(each, _HOLDERS) and holds(each))]


_HOLDERS: Any = (Walkable, HasHandler, HasTools, list, tuple, dict)


def _global_names(function: FunctionType, seen: set[int]) -> Iterator[str]:
    """Yield the global names of modules that a function uses, itself or through functions of its file."""
    seen.add(id(function))
    for name, attributes in code_use(function.__code__).globals.items():
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType) and not holds(value):
            if id(value) not in seen and value.__globals__ is function.__globals__:
                yield from _global_names(value, seen)
        elif holds(value):
            yield name
        elif value is not None:
            yield from (f"{name}.{each}" for each in _read_modules(value, attributes))


def _read_modules(value: object, attributes: Collection[str]) -> list[str]:
    """Return the modules among the attributes of a Python module or object that a function reads, itself or by a method."""
    if isinstance(value, ModuleType):
        return [name for name in sorted(attributes) if isinstance(vars(value).get(name), Walkable)]
    is_called = any(isinstance(getattr(type(value), name, None), FunctionType) for name in attributes)
    return [name for name in _module_attributes(value) if is_called or name in attributes]
