"""Cutting texts, the tokens of each part, and the gate that holds events."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.errors import ConfigurationError
from sigwire.testing import Streamed
from sigwire.testing.chunking import Gate, cutter, split_at, tokens_by_text

CUTS = st.one_of(
    st.none(), st.integers(1, 9), st.lists(st.integers(-3, 40)), st.just(list[str]), st.just(lambda text: [text, ""])
)


@given(text=st.text(), cut=CUTS)
def test_parts_join_to_the_text_for_any_cut(text: str, cut: object) -> None:
    assert "".join(cutter(cut, None)(text)) == text  # type: ignore[arg-type]


@given(text=st.text(), seed=st.integers())
def test_seed_cuts_at_reproducible_positions(text: str, seed: int) -> None:
    pieces = cutter(None, seed)(text)
    assert "".join(pieces) == text
    assert "" not in pieces
    assert cutter(None, seed)(text) == pieces


def test_default_cut_splits_words_and_signs() -> None:
    assert cutter(None, None)('{"city": "Oslo, Norway"}') == ['{"', "city", '":', ' "', "Oslo", ",", " Norway", '"}']


def test_cut_positions_count_from_the_start_of_each_text() -> None:
    assert [list(split_at(text, [2, 1, 2, 9])) for text in ("abcd", "a", "")] == [["a", "b", "cd"], ["a"], []]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cut": 3, "seed": 7}, "exclude each other"),
        ({"cut": 0}, "cut=0 is too small"),
        ({"packets": 0}, "packets=0 is too small"),
        ({"ping_every": -1}, "Give 0 or more"),
        ({"stop_after": -1}, "Give 0 or more"),
    ],
    ids=str,
)
def test_invalid_streamed_arguments_are_refused_at_construction(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Streamed("Hello", **how)


def test_cut_function_that_loses_text_or_fails_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"made \['Hell'\] of 'Hello'"):
        cutter(lambda text: [text[:4]], None)("Hello")
    with pytest.raises(ConfigurationError, match="raised ZeroDivisionError"):
        cutter(lambda text: [text[: 1 // 0]], None)("Hello")


@given(text=st.text(min_size=1), cuts=st.lists(st.integers(0, 40)), seed=st.integers())
def test_every_token_is_in_one_share(text: str, cuts: list[int], seed: int) -> None:
    tokens = [{"token": token} for token in cutter(None, seed)(text)]
    texts = list(split_at(text, cuts))
    found = list(tokens_by_text(tokens, texts))
    assert len(found) == len(texts)
    assert [token for share in found for token in share] == tokens


def test_gate_releases_events_and_calls_check_while_waiting() -> None:
    gate, looked, through = Gate(1), threading.Event(), list[int]()

    def enter(number: int) -> None:
        gate.enter(looked.set)
        through.append(number)

    enter(0)
    assert not looked.is_set()
    waiting = threading.Thread(target=enter, args=(1,))
    waiting.start()
    assert looked.wait(60)
    assert through == [0]
    gate.release()
    waiting.join(60)
    assert through == [0, 1]
    assert gate.waits()
    gate.open()
    enter(2)
    enter(3)
    assert through == [0, 1, 2, 3]


def test_waiting_at_a_gate_ends_when_check_raises() -> None:
    def look() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        Gate().enter(look)
