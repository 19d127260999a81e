"""Names of importable objects, ``"module:attribute"``: what crosses a process instead of code."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

from sigwire.errors import ConfigurationError

__all__ = ["check_path", "digests_of", "load_path", "path_of"]

_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def path_of(value: object, role: str) -> str:
    """Return the path of a function or class that a module has by name. ``role``: for the error.

    >>> path_of(Path, "the program")
    'pathlib:Path'

    Raises ``ConfigurationError`` for a lambda, a local function and a name of ``__main__``.
    """
    name = getattr(value, "__qualname__", None)
    path = f"{getattr(value, '__module__', None)}:{name}"
    check_path(path, role)
    if not isinstance(name, str) or load_path(path) is not value:
        raise ConfigurationError(
            f"{role.capitalize()} {value!r:.80} has no name that a worker can import (making a job). Define it by def or class "
            "at the top of a module."
        )
    return path


def check_path(path: str, role: str) -> None:
    """Raise ``ConfigurationError`` for a path that no other process can import."""
    if path.startswith("__main__:"):
        raise ConfigurationError(
            f"{role.capitalize()} {path} is defined in __main__, which a worker cannot import (making a job). Put it into a "
            "file, such as app.py with %%writefile in a notebook, ship the file to the workers, and import it from there. A "
            "Predict or ReAct without own code needs no file."
        )
    if not _PATH.fullmatch(path):
        raise ConfigurationError(
            f"{role.capitalize()} {path!r:.80} is no name that a worker can import (making a job). Define it by def or class "
            'at the top of a module, and pass it, or "module:name".'
        )


def load_path(path: str) -> object:
    """Import the object of a path. Raises ``ImportError`` or ``AttributeError``.

    A package of this library lists in ``MOVED`` the objects that stored jobs name by an older path.

    >>> load_path("math:tau") > 6
    True
    """
    module, _, name = path.partition(":")
    try:
        return attrgetter(name)(import_module(module))
    except ModuleNotFoundError as error:
        if (moved := _moved_path(path, error.name or "")) is None:
            raise
    return load_path(moved)


def _moved_path(path: str, missing: str) -> str | None:
    """Return the path of today for one whose module ``missing`` is no longer in its package."""
    package = missing.rpartition(".")[0]
    if package.partition(".")[0] != __name__.partition(".")[0]:
        return None
    moved: Mapping[str, str] = getattr(sys.modules.get(package), "MOVED", {})
    inner = moved.get(path.removeprefix(f"{package}."))
    return None if inner is None else f"{package}.{inner}"


def digests_of(paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the source files of paths by module, without modules of sigwire and those that are not found."""
    found: dict[str, str] = {}
    for module in sorted({path.partition(":")[0] for path in paths}):
        if module.partition(".")[0] == "sigwire":
            continue
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.has_location and spec.origin is not None:
            found[module] = sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]
    return found
