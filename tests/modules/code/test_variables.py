"""A prompt describes variables by type, size and beginning: its length does not depend on the values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonValue
from sigwire.errors import InputError
from sigwire.modules.code.variables import describe_variables, json_variables
from sigwire.signatures.types import Image
from tests.strategies import json_values


@given(st.dictionaries(st.sampled_from(["a", "b"]), json_values))
def test_variables_are_described_in_a_bounded_line_each(values: dict[str, JsonValue]) -> None:
    lines = describe_variables(values, {}).splitlines()
    assert [line.partition(":")[0] for line in lines] == list(values)
    assert all(len(line) < 300 for line in lines)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000_000,
        ["y" * 1000] * 10_000,
        {f"k{n}": ["z" * 100] for n in range(50_000)},
        [[[["deep"] * 9] * 9] * 9] * 9,
    ],
    ids=["text", "list", "object", "nested"],
)
def test_large_variable_is_described_in_a_short_line(value: JsonValue) -> None:
    assert len(describe_variables({"data": value}, {"data": "all the data"})) < 320


def test_small_variable_is_described_whole() -> None:
    assert describe_variables({"ok": True, "none": None, "rows": [{"a": 1}]}, {}) == (
        "ok: bool: True\nnone: NoneType: None\nrows: list of 1 items: [{'a': 1}]"
    )


def test_inputs_are_variables_in_their_json_form() -> None:
    assert json_variables({"day": (1, 2), "text": "é"}) == {"day": [1, 2], "text": "é"}


@pytest.mark.parametrize("value", [object(), Image("https://example.com/a.png"), [Image("https://example.com/a.png")]])
def test_input_that_code_cannot_read_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="'picture'"):
        json_variables({"picture": value})
