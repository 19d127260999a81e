"""Which methods of sigwire's base classes a subclass may override.

A base class lists in ``fixed_methods`` the methods that some calls bypass, each with what to override instead. A subclass that
overrides one of them, itself or by a mixin, is refused in its ``class`` statement: its method would be called in some uses
and silently ignored in others. sigwire's own subclasses are exempt; an empty text in their table permits what a base refuses.
"""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.errors import OverrideError

__all__ = ["check_overrides"]


def check_overrides(cls: type) -> None:
    """Raise ``OverrideError`` if a class of the user overrides a method in a ``fixed_methods`` table of its bases.

    >>> class Base:
    ...     fixed_methods = {"run": "override 'step', which every run calls"}
    ...     def run(self): ...
    >>> check_overrides(type("Mine", (Base,), {"run": print, "__module__": "mine"}))
    Traceback (most recent call last):
        ...
    sigwire.errors.OverrideError: Mine overrides 'run' of Base, ... Instead, override 'step', which every run calls.
    """
    fixed: dict[str, tuple[type, str]] = {}
    for base in reversed(cls.__mro__):
        table: Mapping[str, str] = vars(base).get("fixed_methods", {})
        fixed.update((name, (base, instead)) for name, instead in table.items())
    for name, (base, instead) in fixed.items():
        owner = next((owner for owner in cls.__mro__ if name in vars(owner)), base)
        if instead and owner is not base and owner.__module__.partition(".")[0] != "sigwire":
            raise OverrideError(
                f"{cls.__name__} overrides {name!r} of {base.__name__}, which some calls would bypass "
                f"(creating the class). Instead, {instead}."
            )
