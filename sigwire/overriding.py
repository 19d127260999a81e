"""Which members of sigwire's base classes a subclass may override, and in which form.

A base class lists in ``fixed_methods`` the methods that some calls bypass, each with what to override instead. A subclass that
overrides one of them, itself or by a mixin, is refused in its ``class`` statement: its method would be called in some uses
and silently ignored in others. sigwire's own subclasses are exempt; an empty text in their table permits what a base refuses.

A base class lists in ``_hooks`` the members that calls use and a subclass may override. An override that calls could not use is
refused likewise: a method that does not take the arguments of the hook, or a value of another type. A user's class may have the
name for something of its own, from before the hook was there.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from functools import cached_property
from types import FunctionType
from typing import Any, cast

from sigwire.errors import OverrideError

__all__ = ["check_overrides"]


def check_overrides(cls: type) -> None:
    """Raise ``OverrideError`` if a class of the user overrides what its bases fix, or a hook of theirs in another form.

    >>> class Base:
    ...     fixed_methods = {"run": "override 'step', which every run calls"}
    ...     _hooks = {"step"}
    ...     def run(self): ...
    ...     def step(self, number): ...
    >>> Base.__module__ = "sigwire.base"
    >>> check_overrides(type("Mine", (Base,), {"run": print, "__module__": "mine"}))
    Traceback (most recent call last):
        ...
    sigwire.errors.OverrideError: Mine overrides 'run' of Base, ... Instead, override 'step', which every run calls.
    >>> check_overrides(type("Mine", (Base,), {"step": lambda self: 1, "__module__": "mine"}))
    Traceback (most recent call last):
        ...
    sigwire.errors.OverrideError: Mine overrides the hook 'step' of Base, ... Write step(self, number), or rename yours.
    """
    fixed: dict[str, tuple[type, str]] = {}
    for base in reversed(cls.__mro__):
        table: Mapping[str, str] = vars(base).get("fixed_methods", {})
        if not isinstance(table, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _form_error(cls, "fixed_methods", base, "fixed_methods = {name: what to override instead}")
        fixed.update((name, (base, instead)) for name, instead in table.items())
    for name, (base, instead) in fixed.items():
        owner = next((owner for owner in cls.__mro__ if name in vars(owner)), base)
        if instead and owner is not base and not _is_own(owner):
            raise OverrideError(
                f"{cls.__name__} overrides {name!r} of {base.__name__}, which some calls would bypass "
                f"(creating the class). Instead, {instead}."
            )
    _check_hooks(cls)


def _check_hooks(cls: type) -> None:
    for base in filter(_is_own, cls.__mro__):
        hooks: Collection[str] = vars(base).get("_hooks", ())
        for name in hooks:
            owner = next(each for each in cls.__mro__ if name in vars(each))
            if not _is_own(owner) and not _fits(vars(owner)[name], hook := vars(base)[name]):
                is_method = isinstance(hook, FunctionType)
                form = _definition(name, hook) if is_method else f"{name} = {type(hook).__name__}(...)"
                raise _form_error(cls, name, base, form)


def _is_own(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "sigwire"


def _form_error(cls: type, name: str, base: type, form: str) -> OverrideError:
    return OverrideError(
        f"{cls.__name__} overrides the hook {name!r} of {base.__name__}, which calls use, in another form (creating the "
        f"class). Write {form}, or rename yours."
    )


def _definition(name: str, hook: FunctionType) -> str:
    parameters = inspect.signature(hook).parameters.values()
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return f"{name}{inspect.Signature(bare)}"


def _fits(value: object, hook: object) -> bool:
    """Return whether calls can use a value of a class in the place of a hook."""
    if isinstance(hook, FunctionType):
        return _takes(value, list(inspect.signature(hook).parameters.values()))
    if type(hook) is not list:
        return isinstance(value, type(hook))
    kind = type(cast("list[object]", hook)[0])
    return type(value) in (list, tuple) and all(isinstance(each, kind) for each in cast("list[object]", value))


def _takes(value: object, parameters: list[inspect.Parameter]) -> bool:
    kind, given = type(value), cast("Any", value)
    if kind in (classmethod, staticmethod):
        given = given.__func__
    elif kind is not FunctionType and hasattr(kind, "__get__") and not issubclass(kind, property | cached_property):
        return True  # a descriptor that makes the method
    if not callable(given) or inspect.iscoroutinefunction(given):
        return False
    try:
        signature = inspect.signature(given, follow_wrapped=False)
    except (TypeError, ValueError):  # a callable without a known signature
        return True
    passed = parameters[0 if kind in (FunctionType, classmethod) else 1 :]
    by_name = {each.name: None for each in passed if each.kind is each.KEYWORD_ONLY}
    try:
        signature.bind(*(None for each in passed if each.name not in by_name), **by_name)
    except TypeError:
        return False
    return True
