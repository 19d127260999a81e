"""DSPy's module paths that have no file here: each is another name of a module that has its names."""

from __future__ import annotations

import sys

__all__ = ["add_paths"]


def add_paths(module: str, names: str, owner: str | None = None) -> None:
    """Make ``module.name`` importable for each of the names, as the module itself; ``owner`` is DSPy's path if it differs.

    >>> import sigwire.dspy.predict
    >>> from importlib import import_module
    >>> import_module("sigwire.dspy.predict.react").ReAct.__name__
    'ReAct'
    """
    target, prefix = sys.modules[module], owner or module
    sys.modules.update({f"{prefix}.{name}": target for name in names.split()})
    for name in names.split():
        if prefix == module and "." not in name and not hasattr(target, name):
            setattr(target, name, target)
