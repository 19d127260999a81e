"""The site of the documentation: its pages, its API reference, its build."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import llms
import pytest

import sigwire
import sigwire.dspy
import sigwire.testing

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
LISTED = [path for pages in llms.nav().values() for _, path in pages]


# --- pages ----------------------------------------------------------------------------------------------------


def test_nav_lists_every_page_but_the_single_decisions_once() -> None:
    assert sorted(LISTED) == [page for page in PAGES if not re.match(r"decisions/\d", page)]


OTHER_FORM = {"preview.md", "reports.md", "shown-objects.md", "tracing.md"}
"""Pages with headings of their own."""
EXPLAINED = [path for group in ("Guide", "Reliability", "Evaluate and optimize") for _, path in llms.nav()[group]]


@pytest.mark.parametrize("path", [path for path in EXPLAINED if path not in OTHER_FORM])
def test_page_of_the_guide_has_a_program_and_the_sections_of_limits_and_failures(path: str) -> None:
    text = (DOCS / path).read_text(encoding="utf-8")
    assert [heading for heading in ("## When not\n", "## What goes wrong\n") if heading not in text] == []
    assert "```python\n" in text


def test_pages_are_plain_markdown() -> None:
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        directives = re.findall(r"^(?::::|===|\?\?\?|!!!|\{%).*$", prose, re.MULTILINE)
        assert [line for line in directives if not (page.startswith("api/") and line.startswith("::: "))] == [], page


def test_every_public_name_has_one_entry_on_an_api_page() -> None:
    homes: dict[str, str] = vars(sigwire)["_MODULE_OF"]
    entries = api_entries()
    wanted = [f"{home}.{name}" for name, home in homes.items() if home != "sigwire"]
    assert [name for name in wanted if entries.count(name) != 1] == []


def test_every_name_of_the_test_kit_and_the_door_has_an_entry_on_an_api_page() -> None:
    names = {entry.rpartition(".")[2] for entry in api_entries()}
    values = {name: getattr(home, name) for home in (sigwire.testing, sigwire.dspy) for name in home.__all__}
    own = {name for name, value in values.items() if not isinstance(value, ModuleType)}
    assert own - {"__version__"} <= names


def api_entries() -> list[str]:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    return re.findall(r"^::: (\S+)$", text, re.MULTILINE)


# --- for language models ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    llms.main(site)
    return site


def test_llms_txt_lists_every_page(written: Path) -> None:
    text = (written / "llms.txt").read_text(encoding="utf-8")
    assert re.match(r"# sigwire\n\n> .+\n\n## Start\n\n- \[Home\]\(https://.+/index\.md\): .+", text)
    assert [page for page in PAGES if f"/{page}): " not in text] == []
    assert not re.search(r"\): (?:#|\*|$)", text, re.MULTILINE)
    assert list(re.findall(r"^## (.+)$", text, re.MULTILINE)) == [*llms.nav(), "Optional"]


def test_every_page_is_served_as_markdown_with_the_texts_of_its_api_entries(written: Path) -> None:
    assert [page for page in PAGES if not (written / page).is_file()] == []
    models = (written / "api" / "lm.md").read_text(encoding="utf-8")
    assert ":::" not in models
    assert re.search(r"^## sigwire\.deadline\n\n    deadline\(", models, re.MULTILINE)


def test_llms_full_txt_holds_the_pages_of_the_nav_and_no_single_decision(written: Path) -> None:
    text = (written / "llms-full.txt").read_text(encoding="utf-8")
    titles = [(DOCS / path).read_text(encoding="utf-8").partition("\n")[0] for path in LISTED]
    assert [title for title in titles if title not in text] == []
    assert "# 0006." not in text


# --- the build ----------------------------------------------------------------------------------------------------


class Requests(HTMLParser):
    """The addresses that a browser loads with a page, and the pages that it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe", "source"):
            self.loaded.append(of.get("src", ""))
        if tag == "link" and of.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(of.get("href", ""))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site that was just built strictly, ``SIGWIRE_SITE``, or build one."""
    if given := os.environ.get("SIGWIRE_SITE"):
        return Path(given)
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical is not installed; the extra docs has it")
    folder = tmp_path_factory.mktemp("build")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(DOCS, folder / "docs")
    (folder / "sigwire").symlink_to(ROOT / "sigwire")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return folder / "site"


@pytest.mark.long
def test_strict_build_makes_a_page_of_every_file(built: Path) -> None:
    paths = [Path(page) for page in PAGES]
    pages = [path.parent if path.stem in ("index", "README") else path.with_suffix("") for path in paths]
    assert [page for page in pages if not (built / page / "index.html").is_file()] == []


@pytest.mark.long
def test_api_pages_of_the_site_hold_signature_and_text_of_each_name(built: Path) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (built / "api").rglob("index.html"))
    assert [name for name in api_entries() if f'id="{name}"' not in text] == []


@pytest.mark.long
def test_signatures_of_the_api_pages_are_broken_into_lines(built: Path) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (built / "api").rglob("index.html"))
    found = re.findall(r'<div class="doc-signature highlight">(.*?)</div>', text, re.DOTALL)
    lines = [html.unescape(re.sub(r"<[^>]+>", "", line)) for each in found for line in each.splitlines()]
    assert len(found) > 500
    assert [line for line in lines if len(line) > 128] == []


@pytest.mark.long
def test_search_finds_the_page_about_costs_and_no_single_decision(built: Path) -> None:
    llms.unlist_decisions(built)
    found = json.loads((built / "search.json").read_text(encoding="utf-8"))["items"]
    assert {each["location"] for each in found} >= {"decisions/", "budgets/"}
    assert [each for each in found if each["location"].startswith("decisions/0")] == []
    assert "limit what a program costs" in " ".join(each["text"] for each in found if each["location"].startswith("#"))


@pytest.mark.long
def test_pages_of_the_site_load_nothing_from_another_host(built: Path) -> None:
    loaded = {url for page in built.rglob("*.html") for url in Requests(page.read_text(encoding="utf-8")).loaded}
    assert [url for url in loaded if re.match(r"(?:https?:)?//", url)] == []
    styles = "".join(style.read_text(encoding="utf-8") for style in built.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)]*", styles) == []
