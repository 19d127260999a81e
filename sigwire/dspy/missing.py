"""The names of DSPy that the door lacks on purpose, each with what to use instead."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from sigwire.errors import suggest

__all__ = ["INSTEAD", "advice", "advise", "check_import"]

_BATCHES = "`Embedder` batches texts, and `Module.batch` runs a program on many rows."
_FACTORY = "`configure(interpreter_factory=...)`, and the argument of that name of a module that runs code."
_FIELDS = "`InputField` and `OutputField`."
_LOGGERS = "`enable_logging` and `disable_logging`, or `logging.getLogger`."
_PROPOSALS = "`MIPROv2` and `GEPA` propose instructions, and try each one that they propose."
_RETRIEVAL = "`Embeddings` searches a corpus of yours; a function of yours may be a tool of a `ReAct`."
_RETRIES = (
    "`Refine` and `BestOfN` run a program until a function of yours accepts its outputs; `max_reasks` asks again for "
    "outputs of the wrong type."
)
_TRAINING = "No model is trained or started here: train it with its provider, and pass its name to `LM`."
_TYPED = "`Predict` and `ChainOfThought` take signatures with types."

INSTEAD: Mapping[str, str] = {
    "Assert": _RETRIES,
    "ColBERTv2": _RETRIEVAL,
    "Flex": "`CodeAct` and `ProgramOfThought` write code for a call; a program's own code is written by its author.",
    "LMCollectionLimitError": "A stream that is read whole has no limit here; `Budget` and `max_tokens` bound an answer.",
    "LMLockTimeoutError": "No file of credentials is locked here.",
    "OldField": _FIELDS,
    "OldInputField": _FIELDS,
    "OldOutputField": _FIELDS,
    "Provider": _TRAINING,
    "Suggest": _RETRIES,
    "TrainingJob": _TRAINING,
    "TypedChainOfThought": _TYPED,
    "TypedPredictor": _TYPED,
    "clients.Provider": _TRAINING,
    "clients.TrainingJob": _TRAINING,
    "clients.provider": _TRAINING,
    "datasets.Colors": "`Dataset` takes rows of yours, and `DataLoader` those of a file.",
    "configure_dspy_loggers": _LOGGERS,
    "lm15": "`LM` sends the requests; `respond` of a `BaseLM` takes and returns typed ones.",
    "primitives.assertions": _RETRIES,
    "primitives.resolve_interpreter_factory": _FACTORY,
    "propose": _PROPOSALS,
    "resolve_interpreter_factory": _FACTORY,
    **{f"signatures.{name}": _FIELDS for name in ("OldField", "OldInputField", "OldOutputField")},
    "utils.Unbatchify": _BATCHES,
    "utils.lazy_import": "`importlib.import_module` inside the function that needs the package.",
    "utils.magicattr": "`operator.attrgetter` reads a path of attributes, `primitives.set_attribute_by_name` sets one.",
    "utils.pretty_print_history": "`inspect_history` prints the last calls.",
    "utils.unbatchify": _BATCHES,
}


def advice(name: str) -> str:
    """Return what to use instead of a name of DSPy (``utils.magicattr``), else a similar name and the way to list the names.

    >>> advice("ColBERTv2")[:24], advice("Predictor")
    ('`Embeddings` searches a ', 'Did you mean Predict? dir(sigwire.dspy) lists them.')
    """
    if name in INSTEAD:
        return INSTEAD[name]
    hint = "" if name.startswith("_") else suggest(name, dir(sys.modules["sigwire.dspy"]))
    return f"{hint}dir(sigwire.dspy) lists them."


def advise(module: str) -> None:
    """Give the errors of missing names of a module of the door what to use instead.

    The module becomes a package without files: only for a package does a from-import ask the finders for a missing name.

    >>> from sigwire.dspy.clients import Provider
    Traceback (most recent call last):
    ModuleNotFoundError: sigwire.dspy has no 'clients.Provider' (importing it). No model is trained or started here: ...
    """
    below = module.removeprefix("sigwire.dspy.")

    def missing(name: str) -> NoReturn:
        raise AttributeError(f"{module} has no public name {name!r}. {advice(f'{below}.{name}')}")

    target = cast(Any, sys.modules[module])
    target.__path__, target.__getattr__ = getattr(target, "__path__", []), missing


def check_import(name: str) -> None:
    """Raise ``ModuleNotFoundError`` for a name that is missing on purpose. The finder of the door calls it last.

    >>> import sigwire.dspy.utils.magicattr
    Traceback (most recent call last):
    ModuleNotFoundError: sigwire.dspy has no 'utils.magicattr' (importing it). `operator.attrgetter` reads a path ...
    """
    if name in INSTEAD:
        # With the whole path as ``name``, a from-import would replace the error by its own.
        raise ModuleNotFoundError(f"sigwire.dspy has no {name!r} (importing it). {INSTEAD[name]}", name=name)
