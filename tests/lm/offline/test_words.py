"""Words: tokens, stems and the words of identifiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.lm.offline.words import content_stems, name_words, stem, words

SAME = [
    ("calculate", "calculations"), ("city", "cities"), ("box", "boxes"), ("plan", "planned"), ("movie", "films"),
    ("weigh", "weight"), ("order", "ordered"), ("conversion", "convert"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_stem_is_equal_for_forms_of_a_word(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("city", "cite"), ("start", "star"), ("customer", "custom")])
def test_stem_differs_for_different_words(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@pytest.mark.parametrize(
    "name", ["lion_den.ZooKeeper", "lionDenZooKeeper", "LION_DEN_ZOO_KEEPER", "lion-den zoo keeper"]
)
def test_name_words_splits_identifiers_of_any_style(name: str) -> None:
    assert name_words(name) == tuple(map(stem, ["lion", "den", "zoo", "keeper"]))


def test_content_stems_omits_stop_words_and_numbers() -> None:
    assert content_stems("What is the height of the 3 towers?") == [stem("height"), stem("towers")]


@given(st.text(max_size=80))
def test_words_have_the_place_of_their_text(text: str) -> None:
    assert all(text[word.start : word.end] == word.text for word in words(text))
