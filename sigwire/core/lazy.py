"""Lazy package attributes (PEP 562), so that a first call loads only the modules that it needs; and the version.

For type checkers a package declares the same names by imports under ``TYPE_CHECKING``. A package whose names are all in the
table of ``sigwire`` lists none again (``names_of_table``); its stub is made by ``python docs/tables.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["lazy_names", "names_of_table", "version"]


def version() -> str:
    """Return the version of sigwire. The front door has it, which is loaded with any module and imported by none."""
    return str(sys.modules["sigwire"].__version__)


def lazy_names(package: str, **names: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package. Each keyword is a module of the package; its value: space-separated names.

    The function raises ``AttributeError`` for other names.

    >>> find = lazy_names("sigwire.core", json="dumps loads")
    >>> find("dumps")([1])
    '[1]'
    >>> find("dump")
    Traceback (most recent call last):
    AttributeError: sigwire.core has no public name 'dump'; lazy names: dumps, loads.
    """
    modules = {name: f"{package}.{module}" for module, listed in names.items() for name in listed.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"{package} has no public name {name!r}; lazy names: {', '.join(modules)}.")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def names_of_table(package: str, **more: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return ``__all__`` and ``__getattr__`` of a package: the public names of sigwire that its files define, and ``more``.

    >>> names, find = names_of_table("sigwire.interpreters")
    >>> names, find("CodeLimits").__name__
    (['CodeLimits', 'MontyInterpreter', 'SubprocessInterpreter'], 'CodeLimits')
    """
    prefix, rows = f"{package}.", dict(more)
    for modules in vars(sys.modules["sigwire"])["_NAMES"].values():  # loaded with any module, as for the version
        for module, names in modules.items():
            if module.startswith(prefix):
                own = module.removeprefix(prefix)
                rows[own] = f"{rows.get(own, '')} {names}"
    return sorted(" ".join(rows.values()).split()), lazy_names(package, **rows)
