"""Drawings: what is written can be parsed, and holds a text as it was given."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from sigwire.show.svg import Scale, label, mark, svg

TEXTS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cn"]), min_size=1)


@given(TEXTS, TEXTS)
def test_texts_and_attributes_hold_any_text(text: str, value: str) -> None:
    root = ElementTree.fromstring(svg(10, text, [mark("rect", text, css=value), label(1, 2, text)]))
    title, rect, shown = root
    assert (root.get("aria-label"), title.text, rect[0].text, shown.text) == (text, text, text, text)
    assert rect.get("class") == value


def test_scale_runs_either_way_and_ends_at_its_ends() -> None:
    down = Scale(0.0, 1.0, 100, 20)
    assert [down.at(value) for value in (0.0, 0.25, 1.0, 7.0, float("-inf"))] == [100, 80, 20, 20, 100]
