"""README and docs run: every ``python`` block of a page is executed, top to bottom, in one namespace a page.

A block fenced as ```python is a program; ```python no-run is shown only (it needs a key or another machine) and must still
compile. An ``# error: Name`` comment on the first line says that the block must raise that error. Text printed by a page can be
pinned by a ```text block directly after the program that prints it.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.observe.tracing import names as telemetry
from sigwire.observe.tracing.logs import LOGGERS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# The programs of tutorials read files of the checkout: tests/test_tutorials.py runs them.
PROGRAMS = [
    *PAGES,
    *(page for folder in ("api", "decisions") for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
FENCE = re.compile(r"^```(python|text)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One program of a page, with the line it starts at and what it must print."""

    line: int
    source: str
    runs: bool
    prints: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for position, match in enumerate(found):
        if match[1] != "python":
            continue
        after = found[position + 1] if position + 1 < len(found) else None
        pinned = after and after[1] == "text" and not text[match.end() : after.start()].strip()
        line = text.count("\n", 0, match.start()) + 2
        yield Block(line, match[3], "no-run" not in match[2], after[3] if after and pinned else None)


def test_every_public_name_is_on_the_page_of_names() -> None:
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    assert [name for name in sigwire.__all__ if f"| `{name}` |" not in page] == []


@pytest.fixture
def defaults() -> Iterator[None]:
    """Restore the settings that the programs of a page change."""
    before = {key: sigwire.settings[key] for key in sigwire.settings}
    yield
    sigwire.configure(**before)


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize(
    "page", [page for page in PROGRAMS if any(blocks(page))], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_the_programs_of_a_page_run(
    page: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("page"))
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        # Blank lines keep the page's own line numbers in tracebacks.
        code = compile("\n" * (block.line - 1) + block.source, str(page), "exec", dont_inherit=True)
        if block.runs:
            printed = run(code, namespace, expected_error(block.source))
            if block.prints is not None:
                assert printed.strip() == block.prints.strip(), f"{page.name}, line {block.line}"


def test_programs_of_every_page_run_here_or_in_the_test_of_tutorials() -> None:
    elsewhere = {*(ROOT / "docs").rglob("*.md")} - {*PROGRAMS}
    with_programs = [page for page in elsewhere if any(blocks(page))]
    assert [page for page in with_programs if page.parent.name != "tutorials"] == []


def expected_error(source: str) -> type[BaseException] | None:
    """The error that a block's first line announces."""
    match = re.match(r"# error: (\w+)\n", source)
    return getattr(sigwire, match[1], None) or getattr(builtins, match[1]) if match else None


def run(code: Any, namespace: dict[str, Any], error: type[BaseException] | None) -> str:
    out = io.StringIO()
    raises = pytest.raises(error) if error else contextlib.nullcontext()
    with contextlib.redirect_stdout(out), raises:
        exec(code, namespace)
    return out.getvalue()


ALL_PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


EVERY_PAGE = pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@EVERY_PAGE
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8"))
    inside = [(target, heading) for target, heading in links if "://" not in target and "mailto:" not in target]
    assert [link for link in inside if not leads_somewhere(page, *link)] == []


def leads_somewhere(page: Path, target: str, heading: str) -> bool:
    path = page.parent / target if target else page
    return path.exists() and (not heading or heading in headings(path))


def headings(page: Path) -> set[str]:
    """The headings of a page, as links write them."""
    found = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in found}


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@EVERY_PAGE
def test_every_file_target_and_name_in_the_prose_of_a_page_exists(page: Path) -> None:
    said = re.findall(r"`([^`\n]+)`", prose(page))
    files = [word for word in said if re.fullmatch(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|md|toml|jsonl?)", word)]
    targets = [word.removeprefix("make ") for word in said if re.fullmatch(r"make \w+", word)]
    names = [match[1] for word in said if (match := re.fullmatch(r"(sigwire(?:\.\w+)+)(?:\(.*\))?", word))]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [file for file in files if not any((place / file).exists() for place in (ROOT, ROOT / "sigwire"))] == []
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
    assert [name for name in names if name not in TELEMETRY and not found_in_package(name)] == []


TELEMETRY = {value for value in vars(telemetry).values() if isinstance(value, str)} | LOGGERS
"""Names with dots that are no names of Python: attributes of spans, and loggers."""


def found_in_package(name: str) -> bool:
    """Return True if a dotted name is a module of the package or an attribute of such a module.

    >>> found_in_package("sigwire.lm.providers.registry.register"), found_in_package("sigwire.lm.nobody")
    (True, False)
    """
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def test_every_decision_has_a_unique_number_and_a_line_in_the_index() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert [page.name for page in pages if f"]({page.name})" not in index] == []
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in pages]
    assert [page.name[:4] for page in pages] == [title[2:6] for title in titles]
    assert [title for title in titles if not re.match(r"# \d{4}\. \S", title)] == []
    assert len({page.name[:4] for page in pages}) == len(pages)


def test_every_page_is_listed_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if page.name != "index.md" and f"({page.name})" not in index] == []


def test_the_readme_opens_with_the_two_commands_and_a_program() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:45]
    assert "make demo" in "\n".join(first_screen)
    assert "make test" in "\n".join(first_screen)
    assert "```python" in first_screen
