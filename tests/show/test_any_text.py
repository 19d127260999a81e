"""Any text is cleaned, escaped and wrapped by a card."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sigwire.show.card import Card
from sigwire.show.cleaning import display_width, inline, visible
from sigwire.show.html import html_card
from sigwire.show.lines import CallLine, CardTag, ValueLine
from sigwire.show.text import text_card
from sigwire.show.values import short_repr
from tests.show.test_gallery import ELEMENTS, NOT_PRINTED, Page
from tests.strategies import at_most

TEXTS = st.text(st.characters(), max_size=300) | st.text("<>&'\"/= abc\x1b\u202e\ud800日\u0301\n\t[]", max_size=300)
"""``characters()`` includes controls; lone surrogates are in the second alphabet."""


def card_of(text: str) -> Card:
    call = CallLine(text, text, text, is_error=True)
    part = Card(text, text, [(text, [text, ValueLine(text, "wrong", is_code=True)])], is_open=True, calls=[call, call])
    return Card(text, text, [(text, [text])], [[text, text], [text, "x"]], [part, part], tags=[CardTag(text)])


@at_most(40)
@given(TEXTS)
def test_html_of_any_text_has_only_the_elements_of_a_card(text: str) -> None:
    page = Page(html_card(card_of(text)))
    assert page.elements <= ELEMENTS
    assert {name for name, _ in page.attributes} <= {"class", "open"}


@at_most(40)
@given(TEXTS, st.integers(40, 100))
def test_lines_of_any_text_fit_their_width(text: str, width: int) -> None:
    shown = text_card(card_of(text), width)
    assert [line for line in shown.split("\n") if display_width(line) > width] == []
    assert not NOT_PRINTED.search(shown)


@at_most(60)
@given(TEXTS, st.integers(2, 90))
def test_short_forms_of_any_text_are_one_visible_line(text: str, most: int) -> None:
    for shown in (inline(text, most), short_repr(text, most), short_repr({text: [text]}, most)):
        assert len(shown) <= most
        assert "\n" not in shown
        assert not NOT_PRINTED.search(shown)
    assert visible(visible(text)) == visible(text)
