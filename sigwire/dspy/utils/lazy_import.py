"""``require`` and ``is_available`` of ``dspy.utils.lazy_import``: packages that are imported on first use."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

__all__ = ["is_available", "require"]


@cache
def is_available(module: str) -> bool:
    """Return True if a module can be imported; nothing is imported but the packages around it.

    >>> is_available("json"), is_available("no_such_package")
    (True, False)
    """
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def require(module: str, *, extra: str | None = None, feature: str | None = None) -> ModuleType:
    """Return a module that is imported when its first attribute is read or set.

    If it is not installed, that raises ``ImportError``, which names the ``feature`` and the package (``extra``) to install.

    >>> require("json").dumps([1])
    '[1]'
    """
    if module in sys.modules:
        return import_module(module)  # waits for an import that runs in another thread
    return LazyModule(module, extra or module.partition(".")[0], feature or module)


class LazyModule(ModuleType):
    """A module before its import."""

    def __init__(self, name: str, package: str, feature: str) -> None:
        super().__init__(name)
        vars(self).update(_hint=f"{feature} needs {name} (importing it). Install it: pip install {package}")

    def _load(self) -> ModuleType:
        if not is_available(self.__name__):
            raise ImportError(vars(self)["_hint"], name=self.__name__)
        return import_module(self.__name__)

    def __getattr__(self, name: str) -> object:
        return getattr(self._load(), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._load(), name, value)

    def __dir__(self) -> list[str]:
        return dir(self._load())
