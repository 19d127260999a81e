"""The gallery: what every shown class does with normal, long, empty, hostile and huge values."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.show.cleaning import display_width
from tests.show.gallery.material import HOSTILE, MATERIALS, huge
from tests.show.gallery.page import SPECIMENS, gallery_page

CASES = [(name, kind) for name in SPECIMENS for kind in MATERIALS]
AS_PYTHON_WRITES = {"Example", "Message", "Module", "ReActStep", "SignatureMeta", "ToolCalls"}
"""Classes whose ``repr`` has all values, as DSPy's and those of dataclasses have."""
READS_ALL = {"OptimizationReport", "Preview"}
"""Classes that compare or count the words of a whole text."""
ELEMENTS = set(
    "b br code dd del details div dl dt header ins li pre small span style summary table tbody td th thead tr ul".split()
)
INLINE = {"b", "code", "small", "span"}
NOT_PRINTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
STYLE = re.compile("<style>.*?</style>", re.DOTALL)


@cache
def specimen(name: str, kind: str) -> Any:
    shown: Any = SPECIMENS[name](MATERIALS[kind])
    if name == "Preview":
        assert shown.price is None  # ``show`` reads the price, and later cards have a row for it
    return shown


@cache
def page_of(name: str, kind: str) -> str:
    shown = specimen(name, kind)
    page: str = type(shown)._repr_html_(shown)
    return page


@cache
def text_of(name: str, kind: str) -> str:
    shown, file = specimen(name, kind), io.StringIO()
    type(shown).show(shown, file, width=80)
    return file.getvalue()


class Page(HTMLParser):
    """The elements, attributes and text of a card. Fails for elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.texts: list[str] = []
        self.unseparated: list[str] = []
        self._ended: str | None = None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._ended in INLINE and tag in INLINE:
            self.unseparated.append(f"{self._ended} {tag}: {''.join(self.texts)[-40:]}")
        self._ended = None
        self.elements.add(tag)
        self.attributes |= set(attrs)
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._ended = tag

    def handle_data(self, data: str) -> None:
        self._ended = None
        self.texts.append(data)


def shown_classes() -> Iterator[str]:
    """Yield the name of every class of the package that defines its card or names its builders."""
    package = Path(sigwire.__path__[0])
    for path in package.rglob("*.py"):
        owner = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            owner = found[1] if (found := re.match(r"class (\w+)", line)) else owner
            if re.match(r"    (_shown_by = |def _card\()", line):
                yield owner


def test_gallery_has_every_class_with_a_card() -> None:
    assert set(shown_classes()) - SPECIMENS.keys() == {"HasCard", "Record"}


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_html_of_a_shown_class_has_no_element_attribute_or_url_of_a_value(name: str, kind: str) -> None:
    page = Page(page_of(name, kind))
    assert page.elements <= ELEMENTS | {"img"}
    pictures = {value or "" for attribute, value in page.attributes if attribute == "src"}
    assert {attribute for attribute, _ in page.attributes} <= {"class", "open", "src", "alt"}
    assert all(re.fullmatch("data:image/png;base64,[A-Za-z0-9+/=]+", each) for each in pictures)
    assert {value for attribute, value in page.attributes if attribute == "alt"} <= {"image"}
    assert not NOT_PRINTED.search(page_of(name, kind))


@pytest.mark.parametrize("name", [name for name in SPECIMENS if name != "Usage"])
def test_html_of_hostile_values_shows_them_as_visible_text(name: str) -> None:
    text = "".join(Page(page_of(name, "hostile")).texts)
    assert "<img src=x onerror=alert(1)></script>" in text
    if name != "Module":  # its parts are cut before the controls
        assert r"\x1b[31m\u202e" in text


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_html_of_a_shown_class_separates_inline_parts_without_its_style(name: str, kind: str) -> None:
    assert Page(STYLE.sub("", page_of(name, kind))).unseparated == []


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_text_of_a_shown_class_is_visible_and_fits_80_columns(name: str, kind: str) -> None:
    texts: list[str] = []
    shown, text = specimen(name, kind), text_of(name, kind)
    type(shown)._repr_pretty_(shown, type("Printer", (), {"text": staticmethod(texts.append)})(), False)
    assert [f"{each}\n" for each in texts] == [text]
    lines = texts[0].split("\n")
    assert [line for line in lines if display_width(line) > 80] == []
    assert not NOT_PRINTED.search(texts[0])
    assert len(lines) <= 1_000


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_repr_of_a_shown_class_is_a_short_visible_line(name: str, kind: str) -> None:
    line = repr(specimen(name, kind))
    assert not NOT_PRINTED.search(line)
    if name not in AS_PYTHON_WRITES:
        assert len(line) <= 500
        assert "\n" not in line


@pytest.mark.parametrize("name", SPECIMENS)
def test_repr_of_a_shown_class_has_a_builder(name: str) -> None:
    assert "<unshowable" not in repr(SPECIMENS[name](MATERIALS["normal"]))


@pytest.mark.parametrize("name", SPECIMENS)
@pytest.mark.parametrize("kind", ["normal", "empty"])
def test_html_of_small_values_is_under_8_kb(name: str, kind: str) -> None:
    assert len(page_of(name, kind).encode()) < 8_192


@pytest.mark.parametrize("name", SPECIMENS)
def test_html_of_long_values_is_under_256_kb(name: str) -> None:
    assert len(page_of(name, "long").encode()) < 262_144


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SPECIMENS.keys() - AS_PYTHON_WRITES - READS_ALL))
def test_html_text_and_repr_of_a_text_of_50_million_characters_are_bounded(name: str) -> None:
    shown, file = SPECIMENS[name](huge()), io.StringIO()
    assert len(type(shown)._repr_html_(shown).encode()) < 262_144
    type(shown).show(shown, file, width=80)
    assert len(file.getvalue()) < 100_000
    assert len(repr(shown)) <= 500


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in SPECIMENS for kind in ("normal", "hostile")])
def test_rich_prints_a_shown_class_without_reading_its_markup(name: str, kind: str) -> None:
    console = pytest.importorskip("rich.console").Console
    plain, coloured = io.StringIO(), io.StringIO()
    console(file=plain, width=80, color_system=None).print(specimen(name, kind))
    assert not NOT_PRINTED.search(plain.getvalue())
    if name == "SignatureMeta":  # rich takes no classes, so it prints the repr
        return
    assert plain.getvalue() == text_of(name, kind)
    console(file=coloured, width=80, color_system="standard", force_terminal=True).print(specimen(name, kind))
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured.getvalue()) == plain.getvalue()
    assert not re.search("\x1b\\[[0-9;]*m[^\x1b]*\\[red\\][^\x1b]*\x1b\\[31m", coloured.getvalue())


@pytest.mark.long
def test_gallery_page_names_every_class_and_kind() -> None:
    page = gallery_page()
    assert [f"{name}, {kind}" for name, kind in CASES if f"<h3>{name}, {kind}</h3>" not in page] == []
    assert not NOT_PRINTED.search(page)


def test_hostile_text_holds_what_the_gallery_is_to_prove() -> None:
    parts = (
        "<img",
        "onerror=",
        "</script>",
        "</style>",
        "</details>",
        "<a href",
        "<iframe",
        "\x1b",
        "\u202e",
        "\ud800",
    )
    assert [part for part in parts if part not in HOSTILE] == []


@pytest.mark.parametrize("name", SPECIMENS)
def test_ipython_shows_the_card_of_a_class_and_lists_show_the_repr(name: str) -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    shown, text = specimen(name, "normal"), text_of(name, "normal")
    assert formatters.HTMLFormatter()(shown) == page_of(name, "normal")
    assert f"{pretty(shown)}\n" == text
    assert repr([shown]) == f"[{shown!r}]"
