"""Limits of prompt sizes, in characters instead of tokens: these need no vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from benchmarks.prompt_tokens import ADAPTERS, ROWS, prompt, table

# Characters of all messages and of native tools: chat, JSON, XML.
MOST: Mapping[str, tuple[int, int, int]] = {
    "QA": (391, 337, 332),
    "literals": (689, 598, 621),
    "nested": (692, 552, 619),
    "two tools, text": (1465, 1411, 1406),
    "two tools, native": (998, 944, 939),
    "QA, 8 demos": (1438, 1160, 1211),
    "literals, 8 demos": (1704, 1333, 1476),
    "nested, 8 demos": (2547, 2191, 2274),
    "two tools, text, 8 demos": (2512, 2234, 2285),
    "QA, 4 turns": (875, 709, 732),
}


@pytest.mark.parametrize("row", ROWS)
def test_prompt_has_no_more_characters_than_its_limit(row: str) -> None:
    sizes = {name: sum(len(text) for _, text in messages) + len(tools) for name, (messages, tools) in _prompts(row)}
    assert {
        name: size for name, size in sizes.items() if size > dict(zip(ADAPTERS, MOST[row], strict=True))[name]
    } == {}


def _prompts(row: str) -> list[tuple[str, tuple[list[tuple[str, str]], str]]]:
    return [(name, prompt(ROWS[row], name)) for name in ADAPTERS]


@pytest.mark.parametrize("name", ADAPTERS)
def test_demo_adds_only_its_exchange_to_the_prompt(name: str) -> None:
    one, eight = (prompt(replace(ROWS["QA"], demos=count), name)[0] for count in (1, 8))
    assert one[1:3] * 8 == eight[1:-1]
    assert len(eight[0][1]) - len(one[0][1]) < 10
    assert one[-1] == eight[-1]


def test_table_has_a_line_for_each_row() -> None:
    assert [line.split(" | ")[0].removeprefix("| ") for line in table().splitlines()[2:]] == list(ROWS)
