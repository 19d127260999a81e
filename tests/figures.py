"""The figures of the house: size, complexity, ``Any`` and import circles of the package, counted from its source.

python tests/figures.py    print every figure and the places behind it
"""

from __future__ import annotations

import ast
import functools
import gc
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = [
    "any_per_thousand",
    "class_names_in_two_files",
    "complex_functions",
    "complexity",
    "files_by_folder",
    "import_circles",
    "line_counts",
    "token_count",
    "trees",
]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sigwire"
FILES = sorted(PACKAGE.rglob("*.py"))

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


@functools.cache
def trees() -> Mapping[Path, ast.Module]:
    """Return the syntax tree of each file of the package, parsed by the first figure: every test process loads this module.

    The trees are a million objects: garbage collection would scan them while they grow and in each later test.
    """
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    finally:
        gc.freeze()
        gc.enable()


def line_counts() -> dict[str, int]:
    """Return the number of lines of each file of the package."""
    return {_shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}


def files_by_folder() -> dict[str, int]:
    """Return the number of files of each folder of the package."""
    return dict(Counter(_shown(path.parent) for path in FILES))


def class_names_in_two_files() -> dict[str, set[str]]:
    """Return the class names, leading underscores left out, that more than one file defines."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].add(_shown(path))
    return {name: files for name, files in homes.items() if len(files) > 1}


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


def complex_functions(bound: int = 10) -> tuple[dict[str, int], int]:
    """Return the functions whose complexity is over the bound, and the number of all functions."""
    over: dict[str, int] = {}
    total = 0
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                total += 1
                if (found := complexity(node)) > bound:
                    over[f"{_shown(path)}:{node.lineno} {node.name}"] = found
    return over, total


def any_per_thousand() -> float:
    """Return how often ``Any`` stands in 1,000 lines that hold code."""
    uses = code = 0
    for path in FILES:
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            uses += token.type == tokenize.NAME and token.string == "Any"
            if token.type not in _NOT_CODE and not token.string.startswith(('"""', 'r"""')):
                lines.update(range(token.start[0], token.end[0] + 1))
        code += len(lines)
    return 1000 * uses / code


def import_circles() -> list[list[str]]:
    """Return the groups of modules that import each other; imports in functions and for type checkers count."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
    imports = {name: set(_imported(trees()[path], modules)) - {name} for name, path in modules.items()}
    return [sorted(group) for group in _strongly_connected(imports) if len(group) > 1]


def token_count() -> int:
    """Return the number of tokens of code: docstrings, comments and layout left out. Formatting hardly moves it."""
    return sum(_tokens_of_code(path.read_text(encoding="utf-8")) for path in FILES)


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


def _imported(tree: ast.Module, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield from (name for name in [full if full in modules else node.module] if name in modules)


def _strongly_connected(edges: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Yield the strongly connected components of a graph (Kosaraju's algorithm)."""
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


def _shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main() -> None:
    lines = line_counts()
    over, total = complex_functions()
    print("tokens of code:", token_count())
    print("lines:", sum(lines.values()), "in", len(lines), "files")
    print("files over 500 lines:", {name: count for name, count in lines.items() if count > 500})
    print("folders over 15 files:", {name: count for name, count in files_by_folder().items() if count > 15})
    print("class names in two files:", class_names_in_two_files())
    print(f"functions over complexity 10: {len(over)} of {total}, {100 * len(over) / total:.1f} %")
    for name, count in sorted(over.items(), key=lambda item: -item[1]):
        print(f"    {count} {name}")
    print(f"Any per 1,000 code lines: {any_per_thousand():.1f}")
    print("import circles:", *import_circles(), sep="\n    ")


if __name__ == "__main__":
    main()
