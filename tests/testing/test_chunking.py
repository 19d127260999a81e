"""Where texts are cut, which tokens a piece has, and the gate that holds events back."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.errors import ConfigurationError
from sigwire.testing import Streamed
from sigwire.testing.chunking import Gate, cutter, shares, split_at

CUTS = st.one_of(
    st.none(), st.integers(1, 9), st.lists(st.integers(-3, 40)), st.just(list[str]), st.just(lambda text: [text, ""])
)


@given(text=st.text(), cut=CUTS)
def test_the_pieces_make_the_text_however_it_is_cut(text: str, cut: object) -> None:
    assert "".join(cutter(cut, None)(text)) == text  # type: ignore[arg-type]


@given(text=st.text(), seed=st.integers())
def test_a_seed_cuts_the_same_places_again(text: str, seed: int) -> None:
    pieces = cutter(None, seed)(text)
    assert "".join(pieces) == text
    assert "" not in pieces
    assert cutter(None, seed)(text) == pieces


def test_without_a_cut_words_and_signs_stand_alone() -> None:
    assert cutter(None, None)('{"city": "Oslo, Norway"}') == ['{"', "city", '":', ' "', "Oslo", ",", " Norway", '"}']


def test_places_are_counted_from_the_beginning_of_every_text() -> None:
    assert [list(split_at(text, [2, 1, 2, 9])) for text in ("abcd", "a", "")] == [["a", "b", "cd"], ["a"], []]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cut": 3, "seed": 7}, "not by both"),
        ({"cut": 0}, "cut=0 is too small"),
        ({"packets": 0}, "packets=0 is too small"),
        ({"ping_every": -1}, "Give 0 or more"),
        ({"stop_after": -1}, "Give 0 or more"),
    ],
    ids=str,
)
def test_what_cannot_be_streamed_is_refused_where_it_is_scripted(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Streamed("Hello", **how)


def test_a_function_that_loses_text_or_fails_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"made \['Hell'\] of 'Hello'"):
        cutter(lambda text: [text[:4]], None)("Hello")
    with pytest.raises(ConfigurationError, match="raised ZeroDivisionError"):
        cutter(lambda text: [text[: 1 // 0]], None)("Hello")


@given(text=st.text(min_size=1), cuts=st.lists(st.integers(0, 40)), seed=st.integers())
def test_every_token_is_in_one_share(text: str, cuts: list[int], seed: int) -> None:
    tokens = [{"token": token} for token in cutter(None, seed)(text)]
    texts = list(split_at(text, cuts))
    found = list(shares(tokens, texts))
    assert len(found) == len(texts)
    assert [token for share in found for token in share] == tokens


def test_a_gate_lets_through_what_was_released_and_looks_around_meanwhile() -> None:
    gate, looked, through = Gate(1), threading.Event(), list[int]()

    def enter(number: int) -> None:
        gate.enter(looked.set)
        through.append(number)

    enter(0)
    assert not looked.is_set()
    waiting = threading.Thread(target=enter, args=(1,))
    waiting.start()
    assert looked.wait(5)
    assert through == [0]
    gate.release()
    waiting.join(5)
    assert through == [0, 1]
    assert gate.waits()
    gate.open()
    enter(2)
    enter(3)
    assert through == [0, 1, 2, 3]


def test_who_waits_at_a_gate_leaves_when_looking_around_raises() -> None:
    def look() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        Gate().enter(look)
