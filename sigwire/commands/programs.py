"""``app:program`` on the command line: import it, and give it a model and a saved state."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sigwire.commands.status import UsageError
from sigwire.errors import suggest

if TYPE_CHECKING:
    from sigwire.modules.module import Module

__all__ = ["add_program", "input_names", "load_object", "load_program", "model_of_settings", "read_value"]

RUNS_CODE = "The module is imported from the current directory, which runs its code."


def add_program(parser: Any) -> None:
    """Add the program, its model and its state to a parser."""
    parser.add_argument("program", help=f"module:name of a program, such as app:program. {RUNS_CODE}")
    parser.add_argument("--lm", metavar="MODEL", help="the model of all predictors, such as offline/lexical")
    parser.add_argument("--load", metavar="FILE", help="a state that the program's save() or optimize wrote")


def load_object(target: str) -> Any:
    """Import ``module:name``. Raises ``UsageError`` with the user's file and line if the import fails."""
    module, colon, name = target.partition(":")
    if not (module and colon and name) or "/" in module or module.endswith(".py"):
        raise UsageError(
            f"{target!r} is not module:name (reading the arguments). Write app:program for the name program of app.py, and "
            "pkg.app:program for pkg/app.py."
        )
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise UsageError(_import_failure(module, error)) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(
                f"{module} has no {name!r} (importing {target}). {suggest(part, dir(found))}Its file is "
                f"{getattr(found, '__file__', None) or module}."
            )
        found = getattr(found, part)
    return found


def _import_failure(module: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and module.split(".")[0] == error.name.split(".")[0]:
        return f"There is no module {module!r} in {Path.cwd()} (importing it). Run the command in the folder of the file."
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<")]
    ours = os.path.dirname(os.path.dirname(__file__))
    users = [each for each in frames if not each.filename.startswith((ours, os.path.dirname(importlib.__file__)))]
    place = f" at {users[-1].filename}:{users[-1].lineno}" if users else ""
    if isinstance(error, SyntaxError):
        place = f" at {error.filename}:{error.lineno}"
    return f"{module} cannot be imported{place}: {type(error).__name__}: {error}. Correct that file."


def load_program(options: Any) -> Any:
    """Return the program of the arguments: a module, with ``--lm`` and ``--load``, or a function.

    A class of modules is called without arguments; a signature becomes a ``Predict``.
    """
    from sigwire.modules.module import Module
    from sigwire.modules.predict import Predict
    from sigwire.signatures.signature import SignatureMeta

    found = load_object(options.program)
    if isinstance(found, SignatureMeta):
        program: Any = Predict(found)
    elif isinstance(found, type) and issubclass(found, Module):
        program = _instance(found, options.program)
    else:
        program = found
    if not callable(program):
        raise UsageError(f"{options.program} is no program (importing it): {type(found).__name__} is not callable.")
    if not isinstance(program, Module):
        if options.load:
            raise UsageError(f"{options.program} is a function, which has no state (reading --load). Pass a module.")
        return program
    if options.lm or options.load:
        program = program.deepcopy()
    if options.load:
        program.load(options.load)
    if options.lm:
        program.set_lm(_model(options.lm))
    return program


def _instance(found: type[Module], target: str) -> Module:
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
def model_of_settings(name: str | None) -> Iterator[None]:
    """Set the model of the settings inside the block, for predictors without one and for functions."""
    if name is None:
        yield
        return
    from sigwire.settings import context

    with context(lm=_model(name)):
        yield


def input_names(program: object) -> Sequence[str]:
    """Return the names of a program's inputs: of its signature, else of its parameters."""
    import inspect

    from sigwire.modules.module import Module

    signature: Any = getattr(program, "signature", None)
    if signature is not None:
        return list(signature.input_fields)
    entries = [getattr(program, name, None) for name in ("forward", "aforward", "steps")]
    entry = next((each for each in entries if each), None) if isinstance(program, Module) else program
    parameters = inspect.signature(cast("Callable[..., object]", entry)).parameters.values()
    names = [each.name for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    if not names and isinstance(program, Module):  # forward(**inputs)
        names = [name for part in program.predictors()[:1] for name in part.signature.input_fields]
    return names


def read_value(program: object, name: str, text: str) -> object:
    """Return a field's value from the text of an argument or of a CSV cell: JSON, unless the field is text or unknown."""
    import json

    signature: Any = getattr(program, "signature", None)
    if signature is None:
        parts = program.predictors() if hasattr(program, "predictors") else []  # type: ignore[attr-defined]
        signature = next((part.signature for part in parts if name in part.signature.fields), None)
    field = None if signature is None else signature.fields.get(name)
    if field is None or field.annotation is str:
        return text
    try:
        return json.loads(text)
    except ValueError:  # a text of a type such as Literal, or one that the call refuses by name
        return text
