"""``dspy.load`` and the folder of ``save(..., save_program=True)``, which holds one file of ``sigwire.save_program``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path

from sigwire.core.example import Example
from sigwire.core.tools.tool import Tool
from sigwire.dspy.agents import ReAct, ReActV2
from sigwire.dspy.modules import ChainOfThought, Predict
from sigwire.dspy.predict.composites import BestOfN, MultiChainComparison, Parallel, Refine
from sigwire.dspy.saving import PROGRAM_FILE, written_classes
from sigwire.errors import StateError
from sigwire.lm.base import LanguageModel
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
    lm: LanguageModel | None = None,
    allow_unsafe_lm_state: bool = False,
) -> Module:
    """Return the program of a folder that ``save(folder, save_program=True)`` wrote. No pickle is read.

    The other options are those of ``sigwire.load_program``. ``allow_pickle=True`` trusts the file to name any
    module and signature that the process has defined once, as DSPy's programs do, or that it wrote to this folder. Demos
    are ``Example``. A signature that this process wrote is the same class again. Raises ``StateError`` for other folders.

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
    written = written_classes(path)
    trusted = _trusted(written.values()) if allow_pickle else []
    known = {cls.__name__: cls for cls in (*trusted, *classes)}
    program = load_program(
        file,
        classes=(*_CLASSES, *known.values()),
        functions=functions,
        lm=lm,
        allow_unsafe_lm_state=allow_unsafe_lm_state,
    )
    for name, part in program.named_sub_modules():
        if isinstance(part, CorePredict):
            part.demos = [Example(demo) for demo in part.demos]
            same = written.get((name, "signature"))
            part.signature = same if same is not None and same.equals(part.signature) else part.signature
    return program


_CLASSES = (Predict, ChainOfThought, ReAct, ReActV2, BestOfN, MultiChainComparison, Parallel, Refine)


def _trusted(written: Iterable[type]) -> list[type]:
    """Return the classes that a trusted file may name: those that the process has defined once, then those it wrote."""
    defined = [cls for cls in (*_subclasses(Module), *_subclasses(Signature)) if _is_foreign(cls)]
    count = Counter(cls.__name__ for cls in defined)
    declared: list[type] = [vars(cls).get(DECLARED, cls) for cls in written]
    return [*(cls for cls in defined if count[cls.__name__] == 1), *filter(_is_foreign, declared)]


def _is_foreign(cls: type) -> bool:
    """Return True for a class that another package declares, under a name that files do not have for classes of sigwire."""
    is_declared = DECLARED not in vars(cls)  # with_instructions(...) makes a class of the same name
    return is_declared and not cls.__module__.startswith("sigwire.") and cls.__name__ not in LIBRARY


def _subclasses(base: type) -> Iterator[type]:
    subclasses: list[type] = type.__subclasses__(base)
    for cls in subclasses:
        yield cls
        yield from _subclasses(cls)
