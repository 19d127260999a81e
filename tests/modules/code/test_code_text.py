"""The code of a reply is the body of its one fenced block of Python, whatever stands around the block."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.modules.code.code_text import fenced_code
from sigwire.signatures.types import Code
from tests.strategies import texts

lines = texts.map(lambda text: text.replace("\r", "").replace("\n", ""))
prose = st.lists(lines.filter(lambda line: "```" not in line), max_size=3).map("\n".join)
sources = st.lists(lines, max_size=5).map("\n".join)
tags = st.sampled_from(["python", "py", "Python", "python3"])


@given(prose, sources, prose)
def test_fenced_code_returns_the_code_that_fenced_wrote(before: str, source: str, after: str) -> None:
    code = Code(source)
    assert fenced_code(f"{before}\n{code.fenced()}\n{after}") == code.code


@given(prose, tags, sources.filter(lambda source: "```" not in source))
def test_fenced_code_ignores_blocks_of_other_languages_beside_python(before: str, tag: str, source: str) -> None:
    text = f"{before}\n```sh\nrm -r /\n```\n```{tag}\n{source}\n```\n```\nthe output\n```"
    assert fenced_code(text) == source


@given(prose)
def test_fenced_code_refuses_text_outside_a_block(text: str) -> None:
    with pytest.raises(ValueError, match="no closed block"):
        fenced_code(text)


@given(texts)
def test_fenced_code_is_a_part_of_its_text(text: str) -> None:
    with suppress(ValueError):
        assert fenced_code(text) in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no closed block"),
        ("```python\nprint(1)", "no closed block"),
        ("```sh\nls\n```", "no closed block"),
        ("```python\na = 1\n```\n```python\nb = 2\n```", "2 blocks"),
        ("```\na = 1\n```\n```\nb = 2\n```", "2 blocks"),
    ],
)
def test_fenced_code_refuses(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        fenced_code(text)
