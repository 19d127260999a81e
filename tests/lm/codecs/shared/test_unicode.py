"""Lone surrogates in JSON values."""

from __future__ import annotations

from sigwire.core.json import JsonValue
from sigwire.lm.histories.unicode import replace_surrogates


def test_replace_surrogates_returns_the_value_itself_if_it_has_none() -> None:
    value: JsonValue = {"é": [1, None, {"a": "b"}]}
    assert replace_surrogates(value) is value
    assert replace_surrogates({"\ud800": 1}) == {"\ufffd": 1}
