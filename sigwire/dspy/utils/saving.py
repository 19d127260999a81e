"""``dspy.load`` and the folder of ``save(..., save_program=True)``, which holds one file of ``sigwire.save_program``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path

from sigwire.core.example import Example
from sigwire.core.tools.tool import Tool
from sigwire.dspy.modules import ChainOfThought, Predict, ReAct, ReActV2
from sigwire.dspy.saving import PROGRAM_FILE
from sigwire.errors import StateError
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict as CorePredict
from sigwire.modules.programs.files import load_program
from sigwire.modules.programs.library import LIBRARY
from sigwire.signatures.signature import DECLARED, Signature

__all__ = ["load"]


def load(
    path: str | PathLike[str],
    allow_pickle: bool = False,
    *,
    classes: Iterable[type] = (),
    functions: Iterable[Callable[..., object] | Tool] = (),
) -> Module:
    """Return the program of a folder that ``save(folder, save_program=True)`` wrote. No pickle is read.

    ``classes`` and ``functions`` are those of ``sigwire.load_program``. ``allow_pickle=True`` trusts the file to name any
    module and signature that the process has defined once, as DSPy's programs do. Demos are ``Example``. Raises
    ``StateError`` for other folders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Predict("question -> answer").save(folder, save_program=True)
    ...     load(folder).signature.output_fields.keys()
    dict_keys(['answer'])
    """
    file = Path(path, PROGRAM_FILE)
    if not file.is_file():
        raise StateError(
            f"{path} holds no {PROGRAM_FILE} (loading a program). Save it with save(folder, save_program=True); load a pickle "
            "of DSPy in DSPy, and save its state as .json."
        )
    defined = [*_defined(Module), *_defined(Signature)] if allow_pickle else []
    count = Counter(cls.__name__ for cls in defined)
    known = {cls.__name__: cls for cls in (*(cls for cls in defined if count[cls.__name__] == 1), *classes)}
    program = load_program(
        file, classes=(Predict, ChainOfThought, ReAct, ReActV2, *known.values()), functions=functions
    )
    for _, part in program.named_sub_modules():
        if isinstance(part, CorePredict):
            part.demos = [Example(demo) for demo in part.demos]
    return program


def _defined(base: type) -> Iterator[type]:
    """Yield the subclasses that other packages define, under names that files do not have for classes of sigwire."""
    subclasses: list[type] = type.__subclasses__(base)
    for cls in subclasses:
        is_declared = DECLARED not in vars(cls)  # with_instructions(...) makes a class of the same name
        if is_declared and not cls.__module__.startswith("sigwire.") and cls.__name__ not in LIBRARY:
            yield cls
        yield from _defined(cls)
