"""The vocabulary check of the house: finds words that ``docs/glossary.md`` replaces by a standard term.

Four places are read: names (identifiers that the package defines), prose (docstrings and comments), messages (text of four
words and more in the code) and names of tests. Code inside backticks, doctest lines and quoted text are not prose. Tables of
words (``"a b".split()``) and texts for models (``adapters/prompts``) are not messages.

    python tests/language.py [PATH ...]    list every hit as file:line: place: word: text
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Hit", "hits_in"]

ROOT = Path(__file__).resolve().parent.parent

# The glossary's "replaces" column, as far as a word is never right in that place.
_EVERYWHERE = (
    "tell tells told telling trip trips piece pieces growing grown handed nobody somebody whoever anew mend mends mended "
    "mending begun spoken elsewhere heard hears farewell"
).split()
_IN_NAMES = frozenset(
    [
        *_EVERYWHERE,
        *"said say says saying hear who gone ear ears late leave leaves leaving left way ways".split(),
        *"home homes ours our theirs".split(),
        *"beside grows loose bury shut".split(),
    ]
)
_IN_TEST_NAMES = (_IN_NAMES - {"beside", "home", "late", "leave", "left", "way", "ways"}) | {"nor"}
_PUBLIC_NAMES = frozenset({"left"})  # ``Budget.left``
_IN_PROSE = re.compile(
    r"\b("
    + "|".join(_EVERYWHERE)
    + r"|who|whom|ours?|says?|said|saying|hear|nor|garbled|forgiv\w+|loose|spoke|speaks?"
    r"|hands? (?:in|on|over|out)|lets? go|puts? away|puts? back|gives? up|gave up|given up|once more|so far|so does|so do"
    r"|made fit|stands? there)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"|'[^' ]*'", re.DOTALL)
_CITED = re.compile(
    r"\b(?:RFC \d+|documentation|specification|page|docstring|PEP \d+) says\b"
    r"|\b(?:too few to say|one seed says nothing)\b"  # marks of figures, rows of the glossary
)
_OPENING = re.compile(r"\s*(?:What|Who|Whoever|Whatever|Something that)\b")
_TEST_NAME = re.compile(r"test_(?:nor|who|what|so_does)_|_(?:it|them|too)$")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PROMPTS = Path("sigwire/adapters/prompts")
_MESSAGE = re.compile(r"\w+\W+\w+\W+\w+\W+\w+")


class Hit(NamedTuple):
    """A word that the glossary replaces: where it was found and in which text."""

    path: Path
    line: int
    place: str
    word: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}: {self.place}: {self.word}: {self.text}"


def hits_in(path: Path) -> Iterator[Hit]:
    """Yield the hits of one Python file. Files below ``tests`` are read for prose and names of tests only."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    place = path.relative_to(ROOT)
    is_test = place.parts[0] == "tests"
    docstrings = dict(_docstrings(tree))
    no_messages = {*docstrings, *_word_tables(tree)}
    for line, text in [*docstrings.values(), *_comments(source)]:
        yield from _prose_hits(path, line, text)
    for line, text in docstrings.values():
        if _OPENING.match(text):
            yield Hit(path, line, "prose", "opening", text.strip().split("\n")[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in no_messages:
            if not is_test and place.parent != _PROMPTS and _MESSAGE.search(node.value):
                yield from (hit._replace(place="message") for hit in _prose_hits(path, node.lineno, node.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            words = [word for word in node.name.split("_") if word in _IN_TEST_NAMES]
            if words or _TEST_NAME.search(node.name):
                yield Hit(path, node.lineno, "test name", words[0] if words else "form", node.name)
    if not is_test:
        for line, name in _defined_names(tree):
            for word in (part.lower() for part in _WORDS.findall(name)):
                if word in _IN_NAMES and name not in _PUBLIC_NAMES:
                    yield Hit(path, line, "name", word, name)


def _prose_hits(path: Path, line: int, text: str) -> Iterator[Hit]:
    lines = (each for each in text.split("\n") if not each.lstrip().startswith((">>>", "...")))
    prose = _CITED.sub("", _CODE.sub("", "\n".join(lines)))
    for found in _IN_PROSE.finditer(prose):
        context = prose[max(0, found.start() - 40) : found.end() + 30].replace("\n", " ")
        yield Hit(path, line + prose[: found.start()].count("\n"), "prose", found[0].lower(), context.strip())


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.Constant, tuple[int, str]]]:
    """Yield every string that stands alone as a statement: docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value, (node.lineno, node.value.value)


def _word_tables(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield every string whose ``split`` is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "split" and isinstance(node.value, ast.Constant):
            yield node.value


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _defined_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.resolve().rglob("*.py")) if path.is_dir() else [path.resolve()]


def main() -> int:
    """Print every hit; return 1 if there is one."""
    files = _files(sys.argv[1:] or [str(ROOT / "sigwire"), str(ROOT / "tests")])
    hits = [hit for path in files for hit in hits_in(path)]
    print(*hits, sep="\n", end="\n" if hits else "")
    return 1 if hits else 0


if __name__ == "__main__":
    raise SystemExit(main())
