"""The figures of the house, counted from source: imports, circles, texts that hide an import, docstrings of packages, size.

Each function takes the folder of a package, so that tests run it on made-up packages; the default is ``sigwire``.
``tests/rules.py`` makes rules of some figures; the others are printed only:

python tests/figures.py    print every figure and the places behind it
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import inspect
import io
import re
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

__all__ = [
    "HiddenImport",
    "Layers",
    "any_per_thousand",
    "callers_of",
    "class_names_in_two_files",
    "code_lines",
    "complex_functions",
    "complexity",
    "docstring_names",
    "files_by_folder",
    "formatter_switches",
    "hand_layout",
    "hidden_imports",
    "import_circles",
    "imports_by_module",
    "layers",
    "line_counts",
    "lines_with",
    "modules",
    "nodes",
    "package_children",
    "private_members_of_the_door",
    "sibling_circles",
    "token_count",
    "trees",
    "uses",
]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sigwire"

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.Assert, ast.match_case)
_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

# --- files and trees ----------------------------------------------------------------------------------


@functools.cache
def trees(package: Path = PACKAGE) -> Mapping[Path, ast.Module]:
    """Return the syntax tree of each file of the package, parsed by the first figure: every test process loads this module.

    The trees are a million objects: garbage collection would scan them while they grow and in each later test.
    """
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    finally:
        gc.freeze()
        gc.enable()


@functools.cache
def nodes(tree: ast.Module) -> Sequence[ast.AST]:
    """Return all nodes of a tree, as ``ast.walk`` yields them. The walk is most of the time of a rule."""
    return [*ast.walk(tree)]


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return the dotted name of each module of the package, with its file."""
    return {_dotted(package, path): path for path in trees(package)}


def package_children(folder: Path) -> set[str]:
    """Return the names of the files and sub-packages of a package."""
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def _dotted(package: Path, path: Path) -> str:
    return ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")


def _shown(package: Path, path: Path) -> str:
    return path.relative_to(package.parent).as_posix()


# --- imports ------------------------------------------------------------------------------------------


@functools.cache
def imports_by_module(package: Path = PACKAGE, *, typing: bool = False) -> Mapping[str, set[str]]:
    """Return the modules of the package that each module imports, at its top or in a function.

    Args:
        package: The folder of the package.
        typing: True counts imports under ``TYPE_CHECKING``, too.
    """
    known = modules(package)
    return {name: set(_imported(trees(package)[path], known, typing=typing)) - {name} for name, path in known.items()}


def import_circles(package: Path = PACKAGE) -> list[list[str]]:
    """Return the groups of modules that import each other; imports in functions and for type checkers count."""
    groups = _strongly_connected(imports_by_module(package, typing=True))
    return sorted(sorted(group) for group in groups if len(group) > 1)


def sibling_circles(package: Path = PACKAGE) -> list[tuple[str, list[str]]]:
    """Return each folder with children that import each other in a circle, and those children.

    A child is a file of the folder or a sub-package, which imports what any of its files imports.
    Imports in functions count, imports for type checkers do not.
    """
    found: list[tuple[str, list[str]]] = []
    for name, path in modules(package).items():
        if path.name == "__init__.py":
            edges: defaultdict[str, set[str]] = defaultdict(set)
            for source, targets in imports_by_module(package).items():
                if child := _child(name, source):
                    edges[child] |= {each for target in targets if (each := _child(name, target))} - {child}
            groups = [sorted(group) for group in _strongly_connected(edges) if len(group) > 1]
            found += [(_shown(package, path.parent), group) for group in sorted(groups)]
    return found


def _child(folder: str, module: str) -> str:
    """Return the child of the folder that holds the module; "" if the module is not inside."""
    return module.removeprefix(f"{folder}.").partition(".")[0] if module.startswith(f"{folder}.") else ""


def _imported(tree: ast.Module, known: Mapping[str, Path], *, typing: bool) -> Iterator[str]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield from (name for name in [full if full in known else node.module] if name in known)
        waiting += node.orelse if not typing and _is_for_types(node) else ast.iter_child_nodes(node)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING"


def _last_name(node: ast.expr) -> str:
    """Return ``name`` of ``name`` and of ``module.name``; "" for another expression."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _strongly_connected(edges: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Yield the strongly connected components of a graph (Kosaraju's algorithm)."""
    edges = {**{target: set[str]() for targets in edges.values() for target in targets}, **edges}
    order: list[str] = []
    seen: set[str] = set()
    backwards: defaultdict[str, set[str]] = defaultdict(set)
    for source, targets in edges.items():
        for target in targets:
            backwards[target].add(source)
    for start in edges:
        stack = [(start, iter(edges[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            node, targets_left = stack[-1]
            following = next((each for each in targets_left if each not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(edges[following])))
    assigned: set[str] = set()
    for start in reversed(order):
        group: set[str] = set()
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in assigned:
                assigned.add(node)
                group.add(node)
                waiting += backwards[node]
        if group:
            yield group


# --- layers, and imports as text ----------------------------------------------------------------------


class Layers(NamedTuple):
    """A contract of import-linter: the layers of one container ("" for the package itself), highest first.

    A layer has the names of its modules; ``independent`` is False for layers whose modules may import each other.
    """

    container: str
    rows: tuple[tuple[str, ...], ...]
    independent: tuple[bool, ...]

    def problem(self, source: str, target: str) -> str:
        """Return what is wrong with an import: "upwards", "sideways", or "" for a sound one."""
        above, mine = self._row(target), self._row(source)
        if above is None or mine is None or (above == mine and self._name(source) == self._name(target)):
            return ""
        if above == mine:
            return "sideways" if self.independent[mine] else ""
        return "upwards" if above < mine else ""

    def _name(self, module: str) -> str:
        return _child(self.container, module)

    def _row(self, module: str) -> int | None:
        name = self._name(module)
        return next((place for place, row in enumerate(self.rows) if name in row), None)


def layers(package: Path = PACKAGE) -> list[Layers]:
    """Return the contracts of layers in the ``pyproject.toml`` beside the package; the first orders the rooms."""
    settings = tomllib.loads((package.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return [
        Layers(
            container,
            tuple(
                tuple(name.strip(" ()").removeprefix(f"{container}.") for name in re.split(r"[|:]", row))
                for row in contract["layers"]
            ),
            tuple(":" not in row for row in contract["layers"]),
        )
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
        for container in contract.get("containers", [package.name])
    ]


class HiddenImport(NamedTuple):
    """An import path as text: ``package.module:name``, ``package.module.Class``, or a module that is imported by name."""

    source: str
    file: str
    line: int
    text: str
    target: str
    """The module that the text names; "" if there is none."""


@functools.cache
def hidden_imports(package: Path = PACKAGE) -> list[HiddenImport]:
    """Return the texts of the package that name a module of it, docstrings left out.

    A text counts if it has a colon, if it has two names below the package of which the first is a child of it, or if it is
    the argument of ``import_module``. The beginning of an f-string counts with its last dot, as the package that it names.
    """
    known = modules(package)
    return [
        HiddenImport(name, _shown(package, path), line, text, _named_module(package, text, known))
        for name, path in known.items()
        for line, text in _paths_in(trees(package)[path], package)
    ]


def _paths_in(tree: ast.Module, package: Path) -> Iterator[tuple[int, str]]:
    pattern = re.compile(rf"{package.name}((?:\.[A-Za-z_]\w*)+)(:\w+|\.|)")
    rooms = package_children(package)
    statements = {id(node.value) for node in nodes(tree) if isinstance(node, ast.Expr)}
    # A text that is imported, or the beginning of one, may name a room; another text may be the name of a logger.
    certain: set[int] = set()
    for node in nodes(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in ("import_module", "__import__"):
            certain |= {id(each) for each in node.args}
            certain |= {id(each.values[0]) for each in node.args if isinstance(each, ast.JoinedStr)}
    for node in nodes(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in statements:
            continue
        if found := pattern.fullmatch(node.value):
            room, _, inner = found[1][1:].partition(".")
            if found[2].startswith(":") or id(node) in certain or (inner and room in rooms):
                yield node.lineno, node.value


def _named_module(package: Path, text: str, known: Mapping[str, Path]) -> str:
    """Return the module that a text names; "" if it names none, or a name that the module does not define."""
    path, _, name = text.removesuffix(".").partition(":")
    if path in known and not name:
        return path if not text.endswith(".") or known[path].name == "__init__.py" else ""
    if not name:
        path, _, name = path.rpartition(".")
    # A builder of cards is named by its beginning: ``module:tool`` stands for ``tool_card`` and ``tool_line``.
    defined = _defined(trees(package)[known[path]]) if path in known else set()
    return path if any(each == name or each.startswith(f"{name}_") for each in defined) else ""


def _defined(tree: ast.Module) -> set[str]:
    """Return the names that the top level of a file defines or imports."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names


# --- facts, docstrings, layout -------------------------------------------------------------------------


def uses(name: str, package: Path = PACKAGE) -> list[str]:
    """Return the files that use a module (``fcntl``: any import of it) or a name of one (``sqlite3.connect``)."""
    return [_shown(package, path) for path, names in _used_names(package).items() if name in names]


@functools.cache
def _used_names(package: Path) -> Mapping[Path, set[str]]:
    """Return the modules that each file imports and the names that it uses of them, under their full names."""
    return {path: set(_names_used(tree)) for path, tree in trees(package).items()}


def _names_used(tree: ast.Module) -> Iterator[str]:
    bound: dict[str, str] = {}
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from (alias.name, alias.name.partition(".")[0])
                bound[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            yield f"{bound[node.value.id]}.{node.attr}"


def docstring_names(text: str) -> tuple[set[str], set[str]]:
    """Return the names in the map of a package docstring: those of its cells, and the words in double backticks.

    A line of the map has cells with two blanks or more between them: names, phrase, names, phrase. Names are separated by
    blanks or commas.

    >>> cells, quoted = docstring_names("Values.\\n\\nparts, json   the parts     tools   what ``Tool`` is")
    >>> sorted(cells), quoted
    (['json', 'parts', 'tools'], {'Tool'})
    """
    cells: set[str] = set()
    for line in text.splitlines():
        parts = re.split(r"\s{2,}", line.strip())
        for cell in parts[::2] if len(parts) > 1 else []:
            if re.fullmatch(r"[a-z_]\w*/?(?:,? [a-z_]\w*/?)*", cell):
                cells |= set(re.findall(r"\w+", cell))
    return cells, set(re.findall(r"``(\w+)``", text))


def hand_layout(package: Path = PACKAGE) -> dict[str, list[int]]:
    """Return the lines with a switch of the formatter, by file, that are not the end of a table of literals of a module."""
    found: dict[str, list[int]] = {}
    for path, tree in trees(package).items():
        source = path.read_text(encoding="utf-8")
        if "fmt:" in source:
            tables = {node.end_lineno for node in tree.body if _is_table(node)}
            switches = [
                token.start[0]
                for token in tokenize.generate_tokens(io.StringIO(source).readline)
                if token.type == tokenize.COMMENT and re.match(r"# *(fmt: *(skip|off|on)|yapf:)", token.string)
            ]
            if wrong := [
                line for line in switches if line not in tables or "skip" not in source.splitlines()[line - 1]
            ]:
                found[_shown(package, path)] = wrong
    return found


def _is_table(node: ast.stmt) -> bool:
    """Return True if a statement assigns a display of literals: constants, names, rows made by calls; no code."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    code = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.Await, ast.NamedExpr)
    displays = (ast.Dict, ast.List, ast.Tuple, ast.Set)
    parts = [*ast.walk(node.value)]
    return any(isinstance(each, displays) for each in parts) and not any(isinstance(each, code) for each in parts)


# --- classes and size ---------------------------------------------------------------------------------


def class_names_in_two_files(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Return the class names, leading underscores left out, that more than one file defines."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in trees(package).items():
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].add(_shown(package, path))
    return {name: files for name, files in homes.items() if len(files) > 1}


def token_count(package: Path = PACKAGE) -> int:
    """Return the number of tokens of code: docstrings, comments and layout left out. Formatting hardly moves it."""
    return sum(_tokens_of_code(path.read_text(encoding="utf-8")) for path in trees(package))


def _tokens_of_code(source: str) -> int:
    count = 0
    at_line_start = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _NOT_CODE:
            at_line_start = at_line_start or token.type == tokenize.NEWLINE
        else:
            # A string that is a statement is a docstring.
            count += not (at_line_start and token.type == tokenize.STRING)
            at_line_start = False
    return count


def line_counts(package: Path = PACKAGE) -> dict[str, int]:
    """Return the number of lines of each file of the package."""
    return {_shown(package, path): len(path.read_text(encoding="utf-8").splitlines()) for path in trees(package)}


def files_by_folder(package: Path = PACKAGE) -> dict[str, int]:
    """Return the number of files of each folder of the package."""
    return dict(Counter(_shown(package, path.parent) for path in trees(package)))


def complexity(function: Function) -> int:
    """Return the cyclomatic complexity of a function: 1 + branches + further operands of and/or; inner functions excluded."""
    count = 1
    waiting = [*ast.iter_child_nodes(function)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.ClassDef):
            continue
        if isinstance(node, _BRANCHES):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        waiting += ast.iter_child_nodes(node)
    return count


def complex_functions(bound: int = 10, package: Path = PACKAGE) -> tuple[dict[str, int], int]:
    """Return the functions whose complexity is over the bound, and the number of all functions."""
    over: dict[str, int] = {}
    total = 0
    for path, tree in trees(package).items():
        for node in nodes(tree):
            if isinstance(node, Function):
                total += 1
                if (found := complexity(node)) > bound:
                    over[f"{_shown(package, path)}:{node.lineno} {node.name}"] = found
    return over, total


def any_per_thousand(package: Path = PACKAGE) -> float:
    """Return how often ``Any`` stands in 1,000 lines that hold code."""
    uses = code = 0
    for path in trees(package):
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            uses += token.type == tokenize.NAME and token.string == "Any"
            if token.type not in _NOT_CODE and not token.string.startswith(('"""', 'r"""')):
                lines.update(range(token.start[0], token.end[0] + 1))
        code += len(lines)
    return 1000 * uses / code


# --- the door, and what stands twice ------------------------------------------------------------------


def private_members_of_the_door() -> list[str]:
    """Return the private members of core classes that classes of ``sigwire.dspy`` write in their bodies. Imports the door."""
    found: list[str] = []
    for path, tree in trees(PACKAGE).items():
        if path.is_relative_to(PACKAGE / "dspy"):
            classes = {
                each
                for each in vars(importlib.import_module(_dotted(PACKAGE, path))).values()
                if isinstance(each, type)
            }
            by_name = {each.__qualname__: each for each in classes}
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and node.name in by_name:
                    bases = [
                        base for base in by_name[node.name].__mro__ if not base.__module__.startswith("sigwire.dspy")
                    ]
                    private = [name for name in _written(node) if name.startswith("_") and not name.endswith("__")]
                    inherited = {name for base in bases for name in _members(base)}
                    found += [f"{node.name}.{name}" for name in private if name in inherited]
    return found


def _members(cls: type) -> set[str]:
    return {*vars(cls), *inspect.get_annotations(cls)} if cls.__module__.startswith("sigwire.") else set()


def _written(node: ast.ClassDef) -> Iterator[str]:
    """Return the names that the body of a class writes."""
    for each in node.body:
        if isinstance(each, Function | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Assign | ast.AnnAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def lines_with(word: str, package: Path = PACKAGE, *, but: str = "") -> dict[str, int]:
    """Return the number of lines of each file that have a word in any case; ``but``: a folder that is left out."""
    lower = word.lower()
    counts = {
        _shown(package, path): sum(lower in line.lower() for line in path.read_text(encoding="utf-8").splitlines())
        for path in trees(package)
        if not but or not path.is_relative_to(package / but)
    }
    return {name: count for name, count in counts.items() if count}


def callers_of(*names: str, package: Path = PACKAGE) -> list[str]:
    """Return the files that call one of the functions or classes by its plain name."""
    return [
        _shown(package, path)
        for path, tree in trees(package).items()
        if any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
            for node in nodes(tree)
        )
    ]


def formatter_switches(package: Path = PACKAGE) -> tuple[int, int]:
    """Return the switches of the formatter inside functions and classes, and those at the top level of modules."""
    inside = outside = 0
    for path, tree in trees(package).items():
        lines = path.read_text(encoding="utf-8").splitlines()
        blocks = [node for node in tree.body if isinstance(node, Function | ast.ClassDef)]
        for number, line in enumerate(lines, 1):
            if "# fmt: skip" in line:
                within = any(node.lineno <= number <= (node.end_lineno or 0) for node in blocks)
                inside, outside = inside + within, outside + (not within)
    return inside, outside


def code_lines(package: Path = PACKAGE) -> int:
    """Return the number of lines that hold code: docstrings, comments and blank lines left out."""
    return sum(_lines_of_code(path.read_text(encoding="utf-8")) for path in trees(package))


def _lines_of_code(source: str) -> int:
    lines: set[int] = set()
    at_line_start = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _NOT_CODE:
            at_line_start = at_line_start or token.type == tokenize.NEWLINE
        else:
            if not (at_line_start and token.type == tokenize.STRING):
                lines.update(range(token.start[0], token.end[0] + 1))
            at_line_start = False
    return len(lines)


# --- print --------------------------------------------------------------------------------------------


def main() -> None:
    lines = line_counts()
    over, total = complex_functions()
    wide = {name: len(found) for name, found in imports_by_module().items()}
    texts = hidden_imports()
    packages = {name: path for name, path in modules().items() if path.name == "__init__.py"}
    unnamed = [
        name
        for name, path in packages.items()
        if package_children(path.parent) - set().union(*docstring_names(ast.get_docstring(trees()[path]) or ""))
    ]
    origin = lines_with("dspy", but="dspy")
    inside, outside = formatter_switches()
    door = private_members_of_the_door()
    print("tokens of code:", token_count())
    print("code lines:", code_lines(), "of", sum(lines.values()), "lines in", len(lines), "files")
    print("circles among siblings:", sibling_circles())
    print("circles of modules:", import_circles())
    print("package docstrings that do not name each child:", len(unnamed), "of", len(packages), unnamed)
    for name in ("os.register_at_fork", "sqlite3.connect", "fcntl"):
        print(f"files that use {name}:", uses(name))
    print("files that run rows (cell_steps, Driver):", callers_of("cell_steps", "Driver"))
    print("private members of core classes that the door writes:", len(door), door)
    print("lines of the core with DSPy:", sum(origin.values()), "in", len(origin), "files", origin)
    colons = [each for each in texts if ":" in each.text]
    print("imports as text:", len(colons), "with a colon,", len(texts), "in all")
    print("    without a module:", [each.text for each in texts if not each.target])
    upwards = {each.text: each.file for each in texts for row in layers() if row.problem(each.source, each.target)}
    print("    not downwards:", upwards)
    print(f"# fmt: skip: {inside} inside functions and classes, {outside} at the top level")
    print("    not at the end of a table of literals:", sum(map(len, hand_layout().values())))
    print(f"imports of a file: most {max(wide.values())}, median {median(wide.values()):.0f}; over 25:")
    for name, count in sorted(wide.items(), key=lambda item: -item[1]):
        if count > 25:
            print(f"    {count} {name}")
    print("files over 500 lines:", {name: count for name, count in lines.items() if count > 500})
    print("folders over 15 files:", {name: count for name, count in files_by_folder().items() if count > 15})
    print(f"functions over complexity 10: {len(over)} of {total}, {100 * len(over) / total:.1f} %")
    for name, count in sorted(over.items(), key=lambda item: -item[1]):
        print(f"    {count} {name}")
    print(f"Any per 1,000 code lines: {any_per_thousand():.1f}")


if __name__ == "__main__":
    main()
