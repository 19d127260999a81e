"""The stubs of ``sigwire``, ``sigwire.dspy`` and ``FACES``, and the names that only the door has: made from the tables of both.

``python docs/tables.py`` writes them. A stub is what type checkers read instead of ``__init__.py``: an import for each module
of the table, the groups as comments, and ``__all__``. It is formatted as ruff formats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import cast

import sigwire
import sigwire.dspy

__all__ = ["FILES", "GROUPS", "by_case"]

Groups = Mapping[str, Mapping[str, str]]
"""Group -> module -> names, space-separated: the form of the table of ``sigwire``."""

PACKAGE = Path(sigwire.__file__).parent
GROUPS = cast(Groups, vars(sigwire)["_NAMES"])
WIDTH = 120
FACES = ("sigwire.evaluate.metrics", "sigwire.interpreters", "sigwire.modules.code")
"""The packages that list no names again; see ``names_of_table``."""


def front_stub() -> str:
    """Return ``sigwire/__init__.pyi``."""
    return stub(sigwire, GROUPS)


def door_stub() -> str:
    """Return ``sigwire/dspy/__init__.pyi``: names in the groups of the core, then the names that only the door has."""
    module_of = cast(Mapping[str, str], vars(sigwire.dspy)["_MODULE_OF"])
    folders = cast("frozenset[str]", vars(sigwire.dspy)["_FOLDERS"])
    groups: dict[str, dict[str, str]] = {}
    for group, modules in GROUPS.items():
        found = [(module_of.get(name, module), name) for module, names in modules.items() for name in names.split()]
        groups[group] = by_module(found)
    only = [name for name in [*module_of, *folders] if name not in sigwire.__all__]
    groups["Only in sigwire.dspy"] = by_module((module_of.get(name, "sigwire.dspy"), name) for name in only)
    return stub(sigwire.dspy, groups)


def face_stub(path: str) -> str:
    """Return the stub of a package whose names are all in the table of ``sigwire``."""
    package = import_module(path)
    return stub(package, {"Names": by_module((getattr(package, name).__module__, name) for name in package.__all__)})


def by_module(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return pairs of module and name as module -> names."""
    modules: dict[str, list[str]] = {}
    for module, name in found:
        modules.setdefault(module, []).append(name)
    return {module: " ".join(names) for module, names in modules.items()}


def stub(package: ModuleType, groups: Groups) -> str:
    """Return the stub of a package that gives these names and no others."""
    table = "sigwire" if package.__name__ in FACES else package.__name__
    lines = [
        "# isort: skip_file",
        f"# Made by python docs/tables.py from the table of names in {table.replace('.', '/')}/__init__.py.",
    ]
    for group, modules in groups.items():
        imports = [line for module in sorted(modules) for line in import_of(package, module, modules[module].split())]
        lines += ["", f"# {group}", *imports]
    listed = [f'    "{name}",' for name in sorted(package.__all__, key=by_case)]
    return "\n".join([*lines, "", "__all__ = [", *listed, "]", ""])


def import_of(package: ModuleType, module: str, names: list[str]) -> Iterator[str]:
    """Yield the lines of an import; of a declaration for names that the package itself defines."""
    if module == "sigwire" and package is sigwire:
        yield from (f"{name}: {type(getattr(sigwire, name)).__name__}" for name in names)
        return
    names = sorted(names, key=by_case)
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        yield line
    else:
        yield from (f"from {module} import (", *(f"    {name}," for name in names), ")")


def by_case(name: str) -> tuple[int, str]:
    """Return the key of ruff's order: constants, classes, functions."""
    return 0 if name.isupper() else 1 if name[:1].isupper() else 2, name


def door_names() -> str:
    """Return ``sigwire/door_names.py``. Folders that ``sigwire`` has as well are left out: they are modules of both."""
    only = sorted({*sigwire.dspy.__all__} - {*sigwire.__all__}, key=by_case)
    listed = [f'        "{name}",' for name in only if not (PACKAGE / name).exists()]
    return "\n".join(
        [
            '"""The names that only the door has, for the advice of ``sigwire`` about an unknown name.',
            "",
            "Made by ``python docs/tables.py`` from the table of the door.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            '__all__ = ["DOOR_NAMES"]',
            "",
            "DOOR_NAMES = frozenset(",
            "    {",
            *listed,
            "    }",
            ")",
            "",
        ]
    )


FILES: Mapping[Path, Callable[[], str]] = {
    PACKAGE / "__init__.pyi": front_stub,
    PACKAGE / "dspy" / "__init__.pyi": door_stub,
    PACKAGE / "door_names.py": door_names,
    **{PACKAGE.joinpath(*path.split(".")[1:], "__init__.pyi"): partial(face_stub, path) for path in FACES},
}
"""The files that are made wholly, each with its maker."""
