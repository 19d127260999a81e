"""The rules of the house: what a file may depend on, and what its maps name. No rule counts lines, files or branches.

Each rule is a function of the folder of a package, and of a table if the rule has one; it returns a ``Break`` for each place
that breaks the rule. ``tests/test_house.py`` has the tables and runs the rules on sigwire; ``tests/test_rules.py`` runs each
rule on small made-up packages. The graph, the texts and the docstrings behind the rules are read by ``tests/figures.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests import figures

__all__ = [
    "MOST_IMPORTS",
    "Break",
    "class_names_are_unique",
    "contributing_lists_the_layers",
    "docstrings_are_maps",
    "facts_have_one_home",
    "imports_are_few",
    "layout_is_not_by_hand",
    "modules_have_no_circle",
    "siblings_have_no_circle",
    "texts_name_modules",
    "texts_point_down",
    "waits_are_in_slices",
]

MOST_IMPORTS = 25


class Break(NamedTuple):
    """A broken rule: its file or folder, what is wrong there, and the way out."""

    place: str
    problem: str
    advice: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}. {self.advice}."


# --- imports ------------------------------------------------------------------------------------------


def siblings_have_no_circle(package: Path) -> list[Break]:
    """No circle among the files and sub-packages of a folder. Imports in functions count, those for type checkers do not."""
    return [
        Break(
            folder,
            f"its children import each other in a circle: {', '.join(group)}",
            f"Move what several of them need to a file that imports none of them ({'; '.join(edges)})",
        )
        for folder, group in figures.sibling_circles(package)
        for edges in [_edges(package, folder, set(group))]
    ]


def _edges(package: Path, folder: str, group: set[str]) -> list[str]:
    """Return one import for each arrow of a circle, as files."""
    known, inside = figures.modules(package), folder.replace("/", ".") + "."
    found: dict[tuple[str, str], str] = {}
    for source, targets in sorted(figures.imports_by_module(package).items()):
        for target in sorted(targets):
            if source.startswith(inside) and target.startswith(inside):
                start, end = (each.removeprefix(inside).partition(".")[0] for each in (source, target))
                if {start, end} <= group and start != end:
                    shown = f"{_shown(package, known[source])} -> {_shown(package, known[target])}"
                    found.setdefault((start, end), shown)
    return [*found.values()]


def modules_have_no_circle(package: Path) -> list[Break]:
    """No circle of modules. Imports in functions and for type checkers count."""
    known = figures.modules(package)
    return [
        Break(
            _shown(package, known[group[0]]),
            f"modules import each other in a circle: {', '.join(group)}",
            "Move what they share to a module that imports none of them",
        )
        for group in figures.import_circles(package)
    ]


def imports_are_few(package: Path, wide: Mapping[str, str]) -> list[Break]:
    """A file imports at most 25 modules of the package, or has a row with its reason in ``wide``. A row is for a wide file."""
    known = figures.modules(package)
    counts = {_shown(package, known[name]): len(found) for name, found in figures.imports_by_module(package).items()}
    over = {name: count for name, count in counts.items() if count > MOST_IMPORTS}
    return [
        *(
            Break(
                name,
                f"imports {count} modules of the package, more than {MOST_IMPORTS}",
                "Split the file by subject, or add a row with the reason to WIDE in tests/test_house.py",
            )
            for name, count in over.items()
            if name not in wide
        ),
        *(
            Break(name, f"imports {counts.get(name, 0)} modules and has a row in WIDE", "Remove the row")
            for name in wide
            if name not in over
        ),
        *(Break(name, "has a row without a reason in WIDE", "Write the reason") for name in wide if not wide[name]),
    ]


def texts_name_modules(package: Path, in_files: Collection[str] = ()) -> list[Break]:
    """An import path as text names a module of the package, and a name (or the beginning of one) that the module defines.

    Names that only files have (``in_files``: old paths of classes that moved) are left out, as they are data.
    """
    return [
        Break(
            each.file,
            f"the text {each.text!r} in line {each.line} names no module of the package",
            "Correct the path or the name",
        )
        for each in figures.hidden_imports(package)
        if not each.target and each.text not in in_files
    ]


def texts_point_down(package: Path) -> list[Break]:
    """An import path as text keeps the layers of ``pyproject.toml``, as an import would."""
    contracts = figures.layers(package)
    return [
        Break(
            each.file,
            f"the text {each.text!r} in line {each.line} is an import that points {problems[0]} (layers of pyproject.toml)",
            "Take the object as an argument from the layer above, or move the table that names it there",
        )
        for each in figures.hidden_imports(package)
        if (problems := [word for rows in contracts if (word := rows.problem(each.source, each.target))])
    ]


# --- maps ---------------------------------------------------------------------------------------------


def docstrings_are_maps(package: Path) -> list[Break]:
    """A package docstring names each file and sub-package, in a cell of its map or in double backticks, and no others."""
    found: list[Break] = []
    for path in figures.modules(package).values():
        if path.name == "__init__.py":
            cells, quoted = figures.docstring_names(ast.get_docstring(figures.trees(package)[path]) or "")
            children = figures.package_children(path.parent)
            # A folder without Python and a data file may be named.
            others = {each.stem for each in path.parent.iterdir()}
            place = _shown(package, path)
            if missing := sorted(children - cells - quoted):
                problem = f"the docstring does not name {', '.join(missing)}"
                found.append(Break(place, problem, "Add a line of the map for each: its name, two blanks, a phrase"))
            if unknown := sorted(cells - children - others):
                problem = f"the docstring names {', '.join(unknown)}, and the package has no such file"
                found.append(Break(place, problem, "Remove or rename the line of the map"))
    return found


def contributing_lists_the_layers(package: Path) -> list[Break]:
    """``CONTRIBUTING.md`` lists the layers of import-linter in its order, and every room of the package is in one."""
    written = (package.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.search(r"^ {4}\S+(?: .*)? →(?:.|\n {4})*", written, re.MULTILINE)
    shown = [frozenset(re.findall(r"\w+", row)) for row in listed[0].split("→")] if listed else []
    linted = [frozenset(row) for row in figures.layers(package)[0].rows]
    advice = "Write the list again: {}".format(" → ".join(" | ".join(sorted(row)) for row in linted))
    rooms = figures.package_children(package) - {"__main__"}
    return [
        *(
            [Break("CONTRIBUTING.md", "its list of layers differs from pyproject.toml", advice)]
            if shown != linted
            else []
        ),
        *(
            Break(f"{package.name}/{room}", "is in no layer of pyproject.toml", "Add it to the layers of the rooms")
            for room in sorted(rooms - frozenset().union(*linted))
        ),
    ]


# --- homes, names, layout -----------------------------------------------------------------------------


def facts_have_one_home(package: Path, homes: Mapping[str, Collection[str]]) -> list[Break]:
    """A module or a name of a module is used in its homes only: ``{"fcntl": ["files/lock.py"]}``, paths below the package."""
    return [
        Break(
            place,
            f"uses {name}, whose home is {' and '.join(allowed)}",
            "Call the home, or move the code there; a new home is a row of HOMES in tests/test_house.py",
        )
        for name, files in homes.items()
        for allowed in [[f"{package.name}/{file}" for file in files]]
        for place in figures.uses(name, package)
        if place not in allowed
    ] + [
        Break(
            f"{package.name}/{file}",
            f"is the home of {name} and does not use it",
            "Remove the home from its row of HOMES",
        )
        for name, files in homes.items()
        for file in files
        if f"{package.name}/{file}" not in figures.uses(name, package)
    ]


_UNTIMED = {"acquire": 0, "communicate": 0, "join": 0, "result": 1, "select": 0, "wait": 0}
"""Methods that block, and the most arguments that they wait with; one more is another method of that name."""


def waits_are_in_slices(package: Path, others: Mapping[str, str]) -> list[Break]:
    """Blocking waits are calls of ``sigwire/effects/waiting.py``. ``others``: files below the package, each with the reason.

    What is awaited is none, and with 0 seconds (``future.result(0)``) nothing waits.
    """
    found = {
        path.relative_to(package).as_posix(): lines
        for path, tree in figures.trees(package).items()
        if (lines := sorted({node.lineno for node in _blocking_waits(tree)}))
    }
    return [
        Break(
            f"{package.name}/{file}",
            f"an untimed wait in line {', '.join(map(str, lines))}",
            "Call a function of effects/waiting.py, or write result(0) for a future that is done",
        )
        for file, lines in sorted(found.items())
        if not others.get(file)
    ] + [
        Break(f"{package.name}/{file}", "has no untimed wait and has a row in WAITS", "Remove the row")
        for file in others
        if file not in found
    ]


def _blocking_waits(tree: ast.Module) -> Iterator[ast.Call]:
    awaited = {
        id(inner) for node in figures.nodes(tree) if isinstance(node, ast.AsyncFunctionDef) for inner in ast.walk(node)
    }
    for node in figures.nodes(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or id(node) in awaited:
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        is_over = any(isinstance(each, ast.Constant) and each.value in (0, False) for each in given)
        if len(given) <= _UNTIMED.get(node.func.attr, -1) and not is_over:
            yield node


def class_names_are_unique(package: Path, door: str = "") -> list[Break]:
    """A class name, leading underscores left out, is in one file. The door subclasses public classes under their names."""
    return [
        Break(place, f"the class {name} is also in {', '.join(homes[:-1])}", "Rename one by what it is")
        for name, files in sorted(figures.class_names_in_two_files(package).items())
        if len(homes := sorted(file for file in files if not door or not file.startswith(f"{package.name}/{door}/")))
        > 1
        for place in homes[-1:]
    ]


def layout_is_not_by_hand(package: Path) -> list[Break]:
    """``# fmt: skip`` stands only at the end of a table of literals of a module."""
    return [
        Break(
            file,
            f"layout by hand in line {', '.join(map(str, lines))}",
            "Remove the switch and format the file; # fmt: skip is for tables of literals at the top level",
        )
        for file, lines in figures.hand_layout(package).items()
    ]


def _shown(package: Path, path: Path) -> str:
    return path.relative_to(package.parent).as_posix()
