"""Mentions: values of a text, found by their form."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.lm.offline.mentions import Date, find_mentions

CASES: list[tuple[str, list[tuple[str, Any]]]] = [
    ("about 1,250 people", [("number", 1250)]),
    ("it took five minutes", [("number", 5)]),
    ("at 298K", [("number", 298)]),
    ("$1.2M in sales", [("number", 1200000)]),
    ("a field of 2e-9 tesla", [("number", 2e-09)]),
    ("on March 5th, 2024", [("date", Date(2024, 3, 5))]),
    ("on the 5th of march", [("date", Date(None, 3, 5))]),
    ("by 2024.3.5", [("date", Date(2024, 3, 5))]),
    ("at 6:30 PM sharp", [("time", "18:30")]),
    ("at 12 am", [("time", "00:00")]),
    ("write to a.b@c.example.com", [("email", "a.b@c.example.com")]),
    ("see https://x.example/a?b=1.", [("url", "https://x.example/a?b=1")]),
    ("host 'db.example.org'", [("url", "db.example.org")]),
    ("call it 'the one'", [("quoted", "the one")]),
    ("don't use Bob's car", [("name", "Bob")]),
    ("order #1042 and part A-17", [("id", "#1042"), ("id", "A-17")]),
    ("sort [3, 1.5, 2]", [("list", [3, 1.5, 2])]),
    ("the table [[1, 2], [3, 4]]", [("list", [[1, 2], [3, 4]])]),
    ("words ['a', 'b']", [("list", ["a", "b"])]),
    (
        "a letter by Ludwig van Beethoven from Vienna, Austria",
        [("name", "Ludwig van Beethoven"), ("name", "Vienna, Austria")],
    ),
    ("a flat in san diego", [("name", "San Diego")]),
    ("Send it. Then rest.", []),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_find_mentions_reads_values_by_their_form(text: str, expected: list[tuple[str, Any]]) -> None:
    assert [(mention.kind, mention.value) for mention in find_mentions(text)] == expected


def test_find_mentions_returns_the_units_of_numbers() -> None:
    units = [mention.unit for mention in find_mentions("5 kg, 12 m/s, 4%, 3-year, $7 and 8")]
    assert units == ["kg", "m/s", "%", "year", "$", ""]


@given(st.text(alphabet=st.sampled_from("aZ1 .,'\"[]{}()$%:-/#@é\n"), max_size=60))
def test_find_mentions_returns_disjoint_mentions_for_any_text(text: str) -> None:
    mentions = find_mentions(text)
    assert all(a.end <= b.start for a, b in pairwise(mentions))
    assert all(0 <= mention.start < mention.end <= len(text) for mention in mentions)
