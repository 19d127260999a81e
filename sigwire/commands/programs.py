"""``app:program`` on the command line: import it, and give it a model and a saved state."""

from __future__ import annotations

import importlib
import inspect
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sigwire.commands.output import UsageError, place_of
from sigwire.errors import suggest

__all__ = ["RUNS_CODE", "add_program", "load_object", "load_program", "model_of_settings"]

RUNS_CODE = "The module is imported from the current directory, which runs its code."


def add_program(parser: ArgumentParser) -> None:
    """Add the program, its model and its state to a parser."""
    parser.add_argument("program", help=f"module:name of a program, such as app:program. {RUNS_CODE}")
    parser.add_argument("--lm", metavar="MODEL", help="the model of all predictors, such as offline/lexical")
    parser.add_argument("--load", metavar="FILE", help="a state that the program's save() or optimize wrote")


def load_object(target: str, kind: type | None = None) -> Any:
    """Import ``module:name``. Raises ``UsageError`` with the user's file and line if the import fails.

    ``kind``: the class whose instances an error names; by default programs and functions.
    """
    module, colon, name = target.partition(":")
    if not (module and colon and name) or "/" in module or module.endswith(".py"):
        raise UsageError(
            f"{target!r} is not module:name (reading the arguments). Write app:program for the name program of app.py, and "
            "pkg.app:program for pkg/app.py."
        )
    found: Any = _imported(module)
    for part in name.split("."):
        if not hasattr(found, part):
            hint = suggest(part, dir(found))
            file = getattr(found, "__file__", None) or module
            raise UsageError(f"{module} has no {name!r} (importing {target}). {hint}{_contents(found, file, kind)}")
        found = getattr(found, part)
    return found


def _contents(found: object, file: str, kind: type | None) -> str:
    """Return a sentence with the names that the command line can take: objects that are called, not those imported."""
    owner = getattr(found, "__name__", None)
    names = [
        name
        for name, value in getattr(found, "__dict__", {}).items()
        if not name.startswith("_") and (isinstance(value, kind) if kind else callable(value) and _is_own(value, owner))
    ]
    nothing = f"no {kind.__name__}" if kind else "no program and no function"
    return f"{file} has {', '.join(sorted(names)[:20])}." if names else f"{file} defines {nothing}."


def _is_own(value: object, owner: object) -> bool:
    return getattr(value, "__module__", owner) == _module_of(value, owner)


def _module_of(value: object, owner: object) -> object:
    """Return the module that a name must be of: its own for an object, which has that of its class."""
    return owner if inspect.isroutine(value) or inspect.isclass(value) else getattr(value, "__module__", owner)


def _imported(module: str) -> object:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise UsageError(_import_failure(module, error)) from error


def _import_failure(module: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and module.split(".")[0] == error.name.split(".")[0]:
        return (
            f"There is no module {module!r} in {Path.cwd()} (importing it). Run the command in the folder of the file."
        )
    return f"{module} cannot be imported{place_of(error)}: {type(error).__name__}: {error}. Correct that file."


def load_program(options: Namespace) -> Any:
    """Return the program of the arguments: a module, with ``--lm`` and ``--load``, or a function.

    A class of modules is called without arguments; a signature becomes a ``Predict``.
    """
    from sigwire.modules.module import Module

    program = _made(load_object(options.program), options.program)
    if not isinstance(program, Module):
        if options.load:
            raise UsageError(f"{options.program} is a function, which has no state (reading --load). Pass a module.")
        return program
    if options.lm or options.load:
        program = program.deepcopy()
    lm = _model(options.lm) if options.lm else None
    if options.load:
        program.load(options.load, lm=lm)
    if lm is not None:
        program.set_lm(lm)
    return program


def _made(found: Any, target: str) -> Any:
    """Return the program of an object: an instance of a class of modules, the ``Predict`` of a signature."""
    from sigwire.modules.module import Module
    from sigwire.modules.predict import Predict
    from sigwire.signatures.signature import SignatureMeta

    if isinstance(found, SignatureMeta):
        return Predict(found)
    if inspect.isclass(found) and issubclass(found, Module):
        return _instance(found, target)
    if callable(found):
        return cast(Any, found)
    raise UsageError(f"{target} is no program (importing it): {type(found).__name__} is not callable.")


def _instance(found: Any, target: str) -> Any:
    try:
        return found()
    except TypeError as error:
        raise UsageError(
            f"{target} is a class that needs arguments ({error}). Make a program of it in the file: program = ..."
        ) from error


def _model(name: str) -> Any:
    from sigwire.lm.client import LM

    return LM(name)


@contextmanager
def model_of_settings(name: str | None) -> Generator[None]:
    """Set the model of the settings inside the block, for predictors without one and for functions."""
    if name is None:
        yield
        return
    from sigwire.settings import context

    with context(lm=_model(name)):
        yield
