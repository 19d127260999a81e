"""Injected parameters of tools: values that the program sets, which no model reads or passes.

``Injected[T]`` marks a parameter. The values are those of ``context(injected={name: value})``, read when the function is
called. They are no arguments of the call, so no listener, journal, fingerprint or log sees them.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterable, Mapping
from functools import lru_cache
from inspect import Parameter
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from sigwire.core.tools.hooks import injected_values
from sigwire.core.tools.inspection import UserFunction, bound_parameters, type_hints, unwrap_partials
from sigwire.core.typed_dict import TypeExpression
from sigwire.errors import ConfigurationError, ToolDefinitionError

__all__ = ["Injected", "Injection", "injected_parameters", "injected_type", "injection_of", "values_of"]

T = TypeVar("T")
_MARK = "injected by the program"

if TYPE_CHECKING:
    Injected = Annotated[T, _MARK]
else:

    class Injected:
        """Marks a parameter of a tool whose value the program gives: ``user: Injected[User]``. Type checkers see a ``User``.

        The model does not see or pass it. ``context(injected={"user": user})`` sets the value, by the name of the parameter,
        for this task or thread and all programs in it. A missing value, or one that is no ``User``, is a
        ``ConfigurationError`` before the first request of the agent whose tool it is; a default makes it optional. Parameters
        of a module's ``forward`` are injected likewise.

        >>> from sigwire.core.tools.tool import Tool
        >>> from sigwire.settings import context
        >>> def refund(order: int, user: Injected[str]) -> str:
        ...     return f"{order} for {user}"
        >>> tool = Tool(refund)
        >>> with context(injected={"user": "ada"}):
        ...     list(tool.parameters["properties"]), tool(order=7)
        (['order'], '7 for ada')
        """

        def __class_getitem__(cls, kind: Any) -> Any:
            return Annotated[kind, _MARK]


class Injection(NamedTuple):
    """An injected parameter: its name, type and whether it has no default."""

    name: str
    kind: TypeExpression
    required: bool


def injected_type(hint: TypeExpression) -> TypeExpression:
    """Return the type inside of ``Injected[...]``, ``None`` for another hint.

    >>> injected_type(Injected[int]), injected_type(int)
    (<class 'int'>, None)
    """
    if hint == Injected:  # without a type
        return Any
    origin: TypeExpression = typing.get_origin(hint)
    arguments: tuple[TypeExpression, ...] = typing.get_args(hint)
    if origin is Annotated:
        return arguments[0] if _MARK in arguments[1:] else injected_type(arguments[0])
    if origin in (typing.Union, UnionType) and any(injected_type(each) is not None for each in arguments):
        found: TypeExpression = typing.Union
        return found[tuple(injected_type(each) or each for each in arguments)]
    return None


def injection_of(
    owner: str, parameter: Parameter, hint: TypeExpression, *, is_starred: bool = False
) -> Injection | None:
    """Return the injection of a parameter, ``None`` if a model passes it. ``is_starred``: the function takes ``*args``.

    Raises ``ToolDefinitionError`` for a parameter that cannot be passed by name.
    """
    kind = injected_type(hint)
    if kind is None:
        return None
    if parameter.kind is Parameter.KEYWORD_ONLY or (
        parameter.kind is Parameter.POSITIONAL_OR_KEYWORD and not is_starred
    ):
        return Injection(parameter.name, kind, parameter.default is Parameter.empty)
    raise ToolDefinitionError(
        f"The injected parameter {parameter.name!r} of {owner} cannot be passed by name (making a tool). Put it after a '*'."
    )


_KNOWN: WeakKeyDictionary[object, Mapping[str, Injection]] = WeakKeyDictionary()
_NONE: Mapping[str, Injection] = {}


def injected_parameters(function: UserFunction) -> Mapping[str, Injection]:
    """Return the injected parameters of a function by name, but for those that partials bind.

    >>> def ask(question: str, user: Injected[str] = "ada"): ...
    >>> injected_parameters(ask)
    {'user': Injection(name='user', kind=<class 'str'>, required=False)}
    """
    inner = unwrap_partials(function)
    key = getattr(inner, "__func__", inner)
    try:
        known = _KNOWN.get(key)
    except TypeError:  # a builtin, or an object without a hash
        return _NONE
    if known is None:
        known = _read(inner)
        try:
            _KNOWN[key] = known
        except TypeError:
            return known
    if known and (bound := bound_parameters(function)):
        return {name: each for name, each in known.items() if name not in bound}
    return known


def _read(function: UserFunction) -> Mapping[str, Injection]:
    try:
        parameters, hints = inspect.signature(function).parameters, type_hints(function, "", set())
    except Exception:  # hints that cannot be resolved: a call of a module must not fail because of them
        return _NONE
    is_starred = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters.values())
    owner = getattr(function, "__qualname__", type(function).__name__)
    found = (injection_of(owner, each, hints.get(each.name), is_starred=is_starred) for each in parameters.values())
    return {each.name: each for each in found if each is not None}


def values_of(injections: Iterable[Injection], owner: str, stage: str) -> dict[str, object]:
    """Return the values of this context by name. Raises ``ConfigurationError`` for a missing one, and one of another type."""
    given, found = injected_values(), dict[str, object]()
    for name, kind, required in injections:
        advice = f"Write: with sigwire.context(injected={{{name!r}: ...}})."
        if name not in given:
            if required:
                raise ConfigurationError(
                    f"{owner[:1].upper()}{owner[1:]} needs the injected {name!r}, which is not set ({stage}). {advice}"
                )
            continue
        if not _fits(given[name], kind):
            wanted, actual = getattr(kind, "__qualname__", None) or str(kind), type(given[name]).__name__
            raise ConfigurationError(
                f"The injected {name!r} of {owner} is no {wanted} but a value of the type {actual} ({stage}). {advice}"
            )
        found[name] = given[name]
    return found


def _fits(value: object, kind: TypeExpression) -> bool:
    if kind is Any or kind is object:
        return True
    if isinstance(kind, type) and typing.get_origin(kind) is None and not typing.is_typeddict(kind):
        try:
            return isinstance(value, kind) or (kind is float and type(value) is int)
        except TypeError:  # a protocol that is not for checks at run time
            return True
    validate = _validator(kind)
    if validate is None:
        return True
    try:
        validate(value, strict=True)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def _validator(kind: TypeExpression) -> Any:
    """Return pydantic's strict validation of a type, ``None`` for a type that it does not know."""
    from pydantic import ConfigDict, TypeAdapter

    for options in ({"config": ConfigDict(arbitrary_types_allowed=True)}, {}):
        try:
            return TypeAdapter(kind, **options).validate_python  # type: ignore[arg-type]
        except Exception:  # a type that takes no configuration, or that pydantic refuses
            continue
    return None
