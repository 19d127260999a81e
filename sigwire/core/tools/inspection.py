"""Names, docstrings, parameters and type hints of callables: functions, methods, partials, callable objects, classes."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter
from typing import Any, TypeAlias, cast

from sigwire.core.typed_dict import TypeExpression
from sigwire.errors import ToolDefinitionError, suggest

__all__ = [
    "UserFunction", "bound_parameters", "check_bound", "check_partials", "function_docstring", "function_name", "in_partials",
    "inspect_signature", "is_async_function", "is_unpacked", "type_hints", "unwrap_partials",
]  # fmt: skip

UserFunction: TypeAlias = Callable[..., Any]
"""Code of the user: any parameters, any result."""


def function_name(function: UserFunction) -> str:
    """Return the name of a function, or of the class of a callable object."""
    inner = unwrap_partials(function)
    return getattr(inner, "__name__", None) or type(inner).__name__


def is_async_function(function: object) -> bool:
    """Return True if a call returns a coroutine, also for callable objects and partials."""
    function = unwrap_partials(function)  # a callable object has the method, which is not a test for callable()
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def unwrap_partials(function: Any) -> Any:
    """Return the function inside of partials."""
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    return function


def in_partials(handler: UserFunction, innermost: UserFunction) -> UserFunction:
    """Return a function in the partials of a handler, in place of the function inside of them.

    >>> in_partials(functools.partial(max, 3), min)(2)
    2
    """
    if not isinstance(handler, functools.partial):
        return innermost
    given = cast(Any, handler)
    return functools.partial(in_partials(given.func, innermost), *given.args, **given.keywords)


def bound_parameters(function: object) -> set[str]:
    """Return the parameters that partials bind by name."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound |= cast(Any, function).keywords.keys()
        function = cast(Any, function).func
    return bound


def function_docstring(function: UserFunction) -> str | None:
    """Return the docstring of a function; of a callable object that of its class or ``__call__``."""
    function = unwrap_partials(function)
    if inspect.isroutine(function) or inspect.isclass(function):
        return function.__doc__
    return type(function).__doc__ or getattr(type(function).__call__, "__doc__", None)


def inspect_signature(function: UserFunction, name: str) -> inspect.Signature:
    """Return the signature of a function. Raises ``ToolDefinitionError`` if Python does not know it."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        if (inner := unwrap_partials(function)) is not function:
            check_partials(function, name, inspect_signature(inner, name).parameters)
        raise ToolDefinitionError(
            f"The tool {name!r} cannot be offered: Python does not know its parameters. Wrap it in a function with type "
            "hints, or use Tool.from_schema(name, description, parameters, handler)."
        ) from error


def check_bound(function: UserFunction, name: str, parameters: Mapping[str, Parameter]) -> None:
    """Raise ``ToolDefinitionError`` for an unbound method, whose ``self`` no model can give."""
    first = next(iter(parameters.values()), None)
    inside, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    in_class = bool(inside) and not inside.endswith("<locals>")
    if first is not None and first.name in ("self", "cls") and first.annotation is Parameter.empty and in_class:
        raise ToolDefinitionError(
            f"The tool {name!r} cannot be offered: it is a method of a class, and a model cannot give {first.name!r}. "
            f"Pass a method of an object: Tool(an_object.{name})."
        )


def check_partials(function: object, name: str, known: Collection[str]) -> None:
    """Raise ``ToolDefinitionError`` if partials bind a name that is not ``known``: each call of the tool would fail."""
    if unknown := sorted(bound_parameters(function) - {*known}):
        raise ToolDefinitionError(
            f"The tool {name!r} cannot be offered: a partial binds {unknown[0]!r}, which {name} does not take (making a tool). "
            f"{suggest(unknown[0], known)}Bind one of {', '.join(known)}."
        )


def is_unpacked(hint: TypeExpression) -> bool:
    """Return True for ``Unpack[...]``."""
    return "Unpack" in str(typing.get_origin(hint))


def type_hints(function: UserFunction, name: str, known: set[str]) -> dict[str, TypeExpression]:
    """Return the resolved type hints of a call. Hints of ``known`` parameters need not be resolvable."""
    function = unwrap_partials(function)
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    if inspect.isclass(function):
        function = function.__init__
    function = inspect.unwrap(function)
    try:
        return typing.get_type_hints(function, include_extras=True, localns=_type_parameters(function))
    except NameError as error:
        return _hints_one_by_one(function, name, known, error)
    except TypeError:
        return {}


def _type_parameters(function: object) -> dict[str, TypeExpression] | None:
    return {parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())} or None


def _hints_one_by_one(
    function: UserFunction, name: str, known: set[str], error: NameError
) -> dict[str, TypeExpression]:
    """Resolve hints with local names. Names that the function closes over are resolvable; other parameters must be known."""
    annotations: dict[str, TypeExpression] = dict(getattr(function, "__annotations__", {}))
    is_function = isinstance(function, types.FunctionType)
    closure: Mapping[str, Any] = inspect.getclosurevars(function).nonlocals if is_function else {}
    local = {**closure, **(_type_parameters(function) or {})}
    hints: dict[str, TypeExpression] = {}
    for parameter, hint in annotations.items():
        if parameter in known or parameter == "return":
            continue
        try:
            hints |= _resolve_hints({parameter: hint}, getattr(function, "__globals__", {}), local)
        except NameError as unknown:
            raise ToolDefinitionError(
                f"The tool {name!r} cannot be offered: the type {hint!r} of its parameter {parameter!r} is not known here "
                f"({unknown}). Define the type at module level."
            ) from error
    return hints


def _resolve_hints(
    annotations: dict[str, TypeExpression], known: dict[str, Any], local: dict[str, Any]
) -> dict[str, TypeExpression]:
    def holder() -> None: ...

    holder.__annotations__ = annotations
    return typing.get_type_hints(holder, globalns=known, localns=local, include_extras=True)
