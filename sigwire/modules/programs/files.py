"""``save_program`` and ``load_program``: a file ``{"format": 1, "program": ..., "state": ..., "frozen": [...]}``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from os import PathLike

from sigwire.core.json import JsonObject
from sigwire.core.paths import AttributeStep, name_of
from sigwire.core.tools.tool import Tool
from sigwire.errors import StateError
from sigwire.lm.base import LanguageModel
from sigwire.modules.module import Module, held_names
from sigwire.modules.programs.decoding import ProgramRegistry
from sigwire.modules.programs.encoding import ProgramEncoder
from sigwire.modules.tree import saving
from sigwire.modules.tree.walk import Parameter, is_held, walk

__all__ = ["load_program", "save_program", "write_program"]

_FORMAT = 1


def save_program(program: Module, path: str | PathLike[str]) -> None:
    """Write a whole program to a ``.json`` file: its class by name, the arguments of its constructor, and its state.

    The arguments of a user's class are the attributes with the names of the constructor's parameters (``self.k = k``): JSON,
    modules, models, signatures, and functions and tools by name. Code, keys and headers are not written. Raises
    ``StateError`` if the file could not make the program again, and warns of a model that ``load_program`` refuses without
    ``lm=``.
    """
    saving.warn_of_refusal(type(program).__name__, write_program(program, path))


def write_program(program: Module, path: str | PathLike[str]) -> Callable[[], object]:
    """Write a whole program as ``save_program`` does, without a warning. Return the check that a load without ``lm=`` makes."""
    arguments = ProgramEncoder().encode(program)
    parameters, held = _all_parameters(program)
    state: JsonObject = {name: each.dump_state() for name, each in parameters.items()}
    data: JsonObject = {"format": _FORMAT, "program": arguments, "state": state}
    if frozen := [name for name, part in program.named_sub_modules() if _is_frozen(part)]:
        data["frozen"] = list(frozen)
    saving.write(path, data, saving.report_of(program))
    return partial(saving.prepare, type(program).__name__, parameters, state, False, held)


def load_program(
    path: str | PathLike[str],
    *,
    classes: Iterable[type] = (),
    functions: Iterable[Callable[..., object] | Tool] = (),
    lm: LanguageModel | None = None,
    allow_unsafe_lm_state: bool = False,
) -> Module:
    """Return the program of a file of ``save_program``. Only registered names are used: nothing is imported by name.

    ``classes``: the user's modules, signature classes and types of fields; ``functions``: functions and tools. The modules
    of sigwire are registered. The program has copies of the modules that functions and tools hold. ``lm``: used in place of
    each model that the file has. Raises ``StateError`` with the names that are missing, before any constructor runs, and for
    an address of a model unless ``allow_unsafe_lm_state`` trusts it.

    >>> import tempfile, pathlib
    >>> from sigwire.modules.agents.react import ReAct
    >>> def double(n: int) -> int:
    ...     return 2 * n
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "agent.json")
    ...     save_program(ReAct("question -> answer: int", tools=[double], max_iters=5), path)
    ...     agent = load_program(path, functions=[double])
    >>> agent.max_iters, list(agent.tools)
    (5, ['double', 'submit'])
    """
    data, report = saving.read(path)
    found, state = data.get("format"), data.get("state")
    if found != _FORMAT or not isinstance(state, dict):
        raise StateError(
            f"The file is no program of format {_FORMAT} (loading a program; its format: {found!r:.40}). A state is loaded by "
            "program.load(...); a newer format by a newer sigwire."
        )
    registry = ProgramRegistry(classes, functions, allow_unsafe_lm_state, lm)
    program = registry.decode(data.get("program"))
    parts = dict(program.named_sub_modules())
    frozen = data.get("frozen", [])
    if not isinstance(frozen, list) or not parts.keys() >= set(map(str, frozen)):
        raise StateError(
            "The frozen parts of the file are not parts of the program (loading a program). Write it again."
        )
    for name in frozen:
        parts[str(name)]._compiled = True  # pyright: ignore[reportPrivateUsage]
    parameters, held = _all_parameters(program)
    given = state if lm is None else saving.with_model(state, lm)
    for change in saving.prepare(type(program).__name__, parameters, given, allow_unsafe_lm_state, held):
        change()
    registry.check_options()
    if report is not None:
        program.optimization = report
    return program


def _all_parameters(program: Module) -> tuple[dict[str, Parameter], list[str]]:
    """Return the parameters by name, those of frozen modules included, and the names of those in tools."""
    found, held = dict(program.named_parameters()), held_names(program)
    for path, part in walk(program, lambda part: True, breadth_first=True):
        if part is not program and isinstance(part, Module) and _is_frozen(part) and not isinstance(part, Parameter):
            name = name_of((AttributeStep("self"), *path), quoted=False)
            found |= {f"{name}.{inner}": parameter for inner, parameter in part.named_parameters()}
            inside = [inner for inner, _ in part.named_parameters()] if is_held(path) else held_names(part)
            held += [f"{name}.{inner}" for inner in inside]
    return found, held


def _is_frozen(part: Module) -> bool:
    return bool(getattr(part, "_compiled", False))
