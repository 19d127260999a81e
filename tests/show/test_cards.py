"""Cards: what is untrusted is text in every surface, and lines fit their width."""

from __future__ import annotations

import io
import re
from base64 import b64encode
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any, TypeAlias

import pytest

from sigwire.core.example import Example
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import display_width, inline
from sigwire.show.html import html_card
from sigwire.show.lines import CallLine, CardTag, PictureLine, ValueLine
from sigwire.show.style import HUES
from sigwire.show.text import text_card
from sigwire.show.values import short_repr
from tests.evaluate.runs import failed_cell, make_result, scored_cell

Colour: TypeAlias = tuple[float, float, float]
HOSTILE = "\x1b[31m\u202e\ud800\x00<img src=x onerror=alert(1)></script></details></div><a href='http://x'>"
FORBIDDEN = {"img", "script", "a", "iframe", "object", "embed", "link", "base", "form", "svg"}


class Tags(HTMLParser):
    """Collects the tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.content: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= set(attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.content.append(data)


def shown() -> dict[str, HasCard]:
    normal = make_result([1, 0, 1, 1, 0, 1], name="A", seconds=3)
    failing = make_result(
        [1, failed_cell("program", score=0.0), failed_cell("metric", "KeyError"), 0], path="runs/a.jsonl"
    )
    fields = [{HOSTILE: HOSTILE, "question": HOSTILE, "answer": HOSTILE}] * 2
    options: dict[str, Any] = {
        "name": HOSTILE,
        "metric_names": [HOSTILE],
        "path": HOSTILE,
        "status": HOSTILE,
        "header": {"devset": {"name": HOSTILE, "n": 2}, "lm": {"model": HOSTILE}},
        "fields": fields,
    }
    cell = scored_cell(0, outputs={HOSTILE: HOSTILE}, feedback=HOSTILE, subscores={HOSTILE + "2": 1.0})
    hostile = make_result([cell, failed_cell("program", HOSTILE, 0.0)], **options)
    long = make_result([scored_cell(0, outputs={"answer": "word " * 40_000})] * 300, name="long " * 4_000)
    empty = make_result([])
    return {
        "normal": normal,
        "failing": failing,
        "hostile": hostile,
        "long": long,
        "empty": empty,
        "comparison": normal.compare(make_result([1, 1, 1, 1, 1, 1], name="B")),
        "hostile comparison": hostile.compare(make_result([scored_cell(1), cell], **options)),
        "long comparison": long.compare(make_result([1] * 300)),
    }


NAMES = list(shown())


@pytest.mark.parametrize("name", NAMES)
def test_html_of_a_card_holds_no_element_of_a_value(name: str) -> None:
    page = shown()[name]._repr_html_()
    tags = Tags(page)
    assert tags.open == []
    assert not tags.tags & FORBIDDEN
    assert {attribute for attribute, _ in tags.attributes} <= {"class", "open"}
    assert not re.search("[\x00-\x08\x1b\u202e\ud800]", page)
    if "hostile" in name:
        text = "".join(tags.content)
        assert "<img src=x onerror=alert(1)>" in text
        assert r"\x1b[31m\u202e\ud800\x00" in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
def test_text_of_a_card_is_clean_and_fits_80_columns(name: str) -> None:
    texts: list[str] = []
    shown()[name]._repr_pretty_(type("Printer", (), {"text": staticmethod(texts.append)})(), False)
    file = io.StringIO()
    shown()[name].show(file, width=80)
    assert file.getvalue() == texts[0] + "\n"
    lines = texts[0].split("\n")
    assert all(display_width(line) <= 80 for line in lines)
    assert all(line.isprintable() for line in lines)
    assert len(lines) < 80


@pytest.mark.parametrize("name", NAMES)
def test_repr_of_a_shown_object_is_one_short_line(name: str) -> None:
    assert len(repr(shown()[name])) <= 500
    assert repr(shown()[name]).isprintable()


def test_html_is_small() -> None:
    assert len(shown()["normal"]._repr_html_()) < 8_000
    assert all(len(each._repr_html_()) < 256_000 for each in shown().values())


def test_html_reads_without_its_style() -> None:
    page = re.sub("<style>.*?</style>", "", shown()["failing"]._repr_html_())
    assert not re.search(r"</(b|small|td|th)><(b|small|td|th)", page)


def test_html_mixes_four_hues_with_the_colour_of_its_host() -> None:
    style = re.findall("<style>(.*?)</style>", html_card(Card("x")))[0]
    assert not re.search(r"rgb\(|url\(|@import|var\(|--", style)
    mixed = re.findall(r"color-mix\(in srgb,(#[0-9a-f]{6}) \d\d%,currentColor\)", style)
    assert set(mixed) == {hue for hue, _ in HUES.values()}
    assert len(re.findall("#[0-9a-f]{3,8}", style)) == len(mixed)
    assert len(style) < 2_700


@pytest.mark.parametrize(("host", "ground"), [((0, 0, 0), (255, 255, 255)), ((255, 255, 255), (17, 17, 17))])
def test_hues_have_a_contrast_of_4_5_on_light_and_dark_pages(host: Colour, ground: Colour) -> None:
    for hue, share in HUES.values():
        parts = zip(bytes.fromhex(hue[1:]), host, strict=True)
        mixed = tuple((colour * share + text * (100 - share)) / 100 for colour, text in parts)
        brighter, darker = sorted((luminance(mixed), luminance(ground)), reverse=True)
        assert (brighter + 0.05) / (darker + 0.05) >= 4.5


def luminance(colour: Sequence[float]) -> float:
    """Return the relative luminance of WCAG 2."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_picture_of_the_user_is_shown_if_it_is_small_and_of_a_known_format() -> None:
    small, large = (
        b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 100).decode(),
        b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 300_000),
    )
    script = b64encode(b"<svg onload=alert(1)>").decode()
    pictures = [("image/svg+xml", small), ("image/png", large.decode()), ("image/png", script), ("image/png", "%%%")]
    page = html_card(Card("x", rows=[("p", [PictureLine(*each) for each in pictures])]))
    assert re.findall('src="([^"]{30})', page) == [f"data:image/png;base64,{small}"[:30]]
    assert "image/png · 300 KB" in page


def test_pictures_of_a_card_are_bounded_together() -> None:
    picture = PictureLine("image/png", b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 90_000).decode())
    assert html_card(Card("x", rows=[("p", [picture] * 9)])).count("<img") == 2


def test_long_value_is_folded_and_cut_with_the_number_of_the_rest() -> None:
    page = html_card(Card("x", rows=[("long", [ValueLine("y" * 30_000)])]))
    assert page.count("y") < 21_000
    assert "… 10,000 more characters</pre></details>" in page


def test_value_of_160_characters_is_not_folded() -> None:
    page = html_card(Card("x", rows=[("short", [ValueLine("y" * 160, is_code=True)])]))
    assert f"<dd><code>{'y' * 160}</code></dd>" in page


def test_parts_that_do_not_fit_are_left_out_with_a_mark() -> None:
    rows = [(str(at), [ValueLine("\U000e0001" * 20_000)]) for at in range(50)]
    page = html_card(Card("x", rows=rows))
    assert len(page.encode()) < 262_144
    assert Tags(page).open == []


def test_text_of_a_run_has_a_line_for_each_call() -> None:
    calls = [
        CallLine("add", "a=2, b=3", "5"),
        CallLine("rate", "currency='USD'", "The tool failed. KeyError: 'USD'", True),
    ]
    turn = Card("turn 1", "59 ms", calls=calls, is_open=True)
    tags = [CardTag("submit", "right"), CardTag("1 tool error")]
    card = Card("Prediction", "answer", [("answer", [ValueLine("5")])], children=[turn], tags=tags)
    assert text_card(card).split("\n") == [
        "Prediction  answer                                       [submit] [1 tool error]",
        "  answer  5",
        "  turn 1  59 ms",
        "    add(a=2, b=3)           → 5",
        "    rate(currency='USD')    ✗ The tool failed. KeyError: 'USD'",
    ]


def test_card_whose_builder_raises_names_the_class_and_the_error() -> None:
    class Broken(HasCard):
        def _card(self) -> Card:
            raise KeyError("x")

    file = io.StringIO()
    Broken().show(file, width=80)
    assert file.getvalue() == "<unshowable Broken: KeyError>\n"


def test_field_with_the_name_of_a_method_does_not_change_the_card() -> None:
    row = Example(_card="x", _repr_html_="y", _shown_by="z", _safe_card="w", show="v")
    assert "_shown_by" in Example._repr_html_(row)
    assert repr(row).startswith("Example(_card='x'")


def test_repr_of_a_large_value_is_cut_before_it_is_written() -> None:
    assert short_repr(["x" * 1_000] * 1_000_000, 20) == "['xxxxxxxxxxxxxxxxx…"
    deep: list[object] = []
    deep.append(deep)
    assert short_repr(deep) == "[[[[[[[…]]]]]]]"


def test_large_value_is_cut_before_it_is_cleaned() -> None:
    assert inline("\x1b" * 50_000_000, 10) == r"\x1b\x1b" + "\\…"


def test_value_whose_repr_raises_is_shown_by_its_class() -> None:
    class Invoice:
        def __repr__(self) -> str:
            raise ValueError("no")

    assert inline(Invoice()) == "<unshowable Invoice: ValueError>"


def test_wide_characters_take_two_columns() -> None:
    text = text_card(Card("日本" * 60, rows=[("日本語", ["漢字 " * 40])], table=[["列", "x"], ["値" * 40, "1"]]), 40)
    assert all(display_width(line) <= 40 for line in text.split("\n"))


def test_deep_and_many_children_are_bounded() -> None:
    card = Card("leaf", is_open=True)
    for _ in range(30):
        card = Card("level", children=[card] * 60, is_open=True)
    assert len(html_card(card)) < 260_000
    assert len(text_card(card).split("\n")) <= 1_000


def test_ipython_shows_the_card_and_lists_show_the_repr() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    result = make_result([1, 0], name="A")
    assert pretty(result).startswith("EvaluationResult  A · 2 examples")
    assert pretty(result.compare(make_result([1, 1], name="B"))).startswith("Comparison  A · B")
    assert repr([result]) == "[EvaluationResult(exact=0.500, n=2)]"
