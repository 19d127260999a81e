"""Words: stems bring forms of a word together, identifiers are cut at their seams."""

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
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("city", "cite"), ("start", "star"), ("customer", "custom")])
def test_other_words_do_not(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@pytest.mark.parametrize(
    "name", ["lion_den.ZooKeeper", "lionDenZooKeeper", "LION_DEN_ZOO_KEEPER", "lion-den zoo keeper"]
)
def test_identifiers_are_cut_at_their_seams(name: str) -> None:
    assert name_words(name) == tuple(map(stem, ["lion", "den", "zoo", "keeper"]))


def test_content_stems_leave_out_small_words_and_numbers() -> None:
    assert content_stems("What is the height of the 3 towers?") == [stem("height"), stem("towers")]


@given(st.text(max_size=80))
def test_tokens_lie_where_they_say(text: str) -> None:
    assert all(text[word.start : word.end] == word.text for word in words(text))
