"""README and docs run: every ``python`` block of a page is executed, top to bottom, in one namespace a page.

A block fenced as ```python is a program; ```python no-run is shown only (it needs a key or another machine) and must still
compile. An ``# error: Name`` comment on the first line says that the block must raise that error. Text printed by a page can be
pinned by a ```text block directly after the program that prints it.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sigwire

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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


@pytest.fixture
def defaults() -> Iterator[None]:
    """Programs on a page configure the process; what they changed is put back."""
    before = {key: sigwire.settings[key] for key in sigwire.settings}
    yield
    sigwire.configure(**before)


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_programs_of_a_page_run(
    page: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("page"))
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        # Blank lines keep the page's own line numbers in tracebacks.
        code = compile("\n" * (block.line - 1) + block.source, str(page), "exec")
        if block.runs:
            printed = run(code, namespace, expected_error(block.source))
            if block.prints is not None:
                assert printed.strip() == block.prints.strip(), f"{page.name}, line {block.line}"


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


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    targets = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_is_listed_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if page.name != "index.md" and f"({page.name})" not in index] == []


def test_the_readme_opens_with_the_two_commands_and_a_program() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:45]
    assert "make demo" in "\n".join(first_screen)
    assert "make test" in "\n".join(first_screen)
    assert "```python" in first_screen
