"""The programs of the tutorials run, each page top to bottom in one namespace, and print what the page shows.

A page runs in an empty folder with links to ``examples`` and ``docs``, as in a checkout.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import sigwire
from docs.pictures import browser, chromium
from tests.test_docs import Block, blocks, expected_error, run

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "tutorials"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "index.md")
TAKES_SECONDS = {"choose-demos.md", "tune-texts.md"}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder with the files that tutorials read; restore settings, path and modules afterwards."""
    for name in ("examples", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules, settings = set(sys.modules), {key: sigwire.settings[key] for key in sigwire.settings}
    yield
    sigwire.configure(**settings)
    sys.path_importer_cache.pop("examples", None)  # it has the absolute path of this folder
    for name in [name for name in set(sys.modules) - modules if (ROOT / "examples" / f"{name}.py").exists()]:
        del sys.modules[name]


def cases() -> Iterator[Any]:
    for page in PAGES:
        yield pytest.param(page, id=page.stem, marks=[pytest.mark.long] if page.name in TAKES_SECONDS else [])


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("page", list(cases()))
def test_tutorial_prints_the_output_on_its_page(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        execute(page, block, namespace)


def execute(page: Path, block: Block, namespace: dict[str, Any]) -> None:
    """Run a program of a page, and compare what it prints."""
    code = compile("\n" * (block.line - 1) + block.source, str(page), "exec", dont_inherit=True)
    if block.runs:
        printed = run(code, namespace, expected_error(block.source))
        if block.prints is not None:
            assert printed.strip() == block.prints.strip(), f"{page.name}, line {block.line}"


@pytest.mark.long
@pytest.mark.usefixtures("checkout")
@pytest.mark.skipif(browser() is None, reason="no Chromium: install Debian's package chromium to open the page")
def test_web_page_of_the_streamed_agent_shows_calls_and_answer_in_a_browser(tmp_path: Path) -> None:
    page = FOLDER / "stream-to-web.md"
    namespace: dict[str, Any] = {"__name__": "page"}
    *shown, last = blocks(page)
    for block in shown:
        execute(page, block, namespace)
    url = f"{namespace['url']}/?{urlencode({'question': namespace['QUESTION']})}"
    dom = chromium(url, tmp_path / "profile", "--dump-dom", "--virtual-time-budget=5000")
    assert '<p id="answer">36.817</p>' in dom
    assert re.findall(r"<li>(\w+) ", dom) == ["check_stock", "convert_weight", "submit"]
    execute(page, last, namespace)  # closes servers and providers


def test_index_of_tutorials_lists_every_page_in_order() -> None:
    titles = {page.name: page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES}
    numbered = sorted(PAGES, key=lambda page: titles[page.name])
    assert [titles[page.name][:4] for page in numbered] == [f"# {number}." for number in range(1, len(PAGES) + 1)]
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(([\w-]+\.md)\)", index) == [page.name for page in numbered]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_has_a_goal_a_number_and_next_steps(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    *_, last = [block.prints for block in blocks(page) if block.prints is not None]
    assert "**Goal**: " in text
    assert "## What to try next" in text
    assert re.search(r"\d", last), "the last printed block has the number of the tutorial"
