"""Compressed bytes: deflate and inflate, damage, and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.files.packing import deflate, inflate


@given(st.binary(max_size=5000), st.integers(1, 9))
def test_inflated_bytes_are_those_that_were_deflated(data: bytes, level: int) -> None:
    assert inflate(deflate(data, level), max(len(data), 1)) == data


@pytest.mark.parametrize(
    "data",
    [b"", b"no data", deflate(b"text" * 99, 6)[:-3], deflate(b"text", 6) + b"more", deflate(bytes(10_001), 9)],
    ids=["empty", "foreign", "torn", "more behind it", "longer than the bound"],
)
def test_damaged_and_long_data_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="compressed data is damaged"):
        inflate(data, 10_000)
