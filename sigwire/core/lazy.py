"""Names of a package that are loaded when they are first used (PEP 562): a first call pays for no more than it needs.

The package shows the same names to type checkers by imports under ``TYPE_CHECKING``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, **homes: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: the names (parted by blanks) that live in each of its modules.

    A name that is nowhere is an ``AttributeError``.

    >>> find = late("sigwire.core", json="dumps loads")
    >>> find("dumps")([1])
    '[1]'
    >>> find("dump")
    Traceback (most recent call last):
    AttributeError: sigwire.core has no public name 'dump'; late are dumps, loads.
    """
    home_of = {name: f"{package}.{module}" for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"{package} has no public name {name!r}; late are {', '.join(home_of)}.")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
