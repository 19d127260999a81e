"""The test for openers: a text that it refuses is one in which a scan finds nothing and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.text_tools.grammar import ToolCatalog
from sigwire.adapters.text_tools.reader import ScanResult, TextReader, read_calls
from sigwire.adapters.text_tools.registry import BUILT_IN, current_scanner
from sigwire.adapters.text_tools.scan.compiled import CompiledGrammars

TOOLS = ["ping", "tell me", "look_up"]
PIECES = [
    "\n", "\n\n", "\r\n", " ", "\t", "   ", "[[ ## answer ## ]]", "[[ ## calls ## ]]", "[[##calls##]]", "[[ ## ", "[[", "[",
    "]", "{", "}", "(", ")", "`", "```", "```json", "~~~", "~~~json", "~~~tool_call", ">", "> ", ">>>", "<think>", "</think>",
    "</tool_call>", "ping", "tell me", "look", "functions.", "[ARGS]", "Action:", "Action: ping", "ping(a=1)", "{}", "[]",
    '{"name": "ping", "arguments": {}}', '"', "'", "\\", "Sure.", "the answer", "1. ", "- ", "é", "<", "<|im_end|>", "print(",
    "x = 1", "Thought: ",
]  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {}, {"thinking": "over"}, {"thinking": "open"}, {"whole_message": True}, {"truncated": True},
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.sampled_from(["", "calls"]),
    st.sampled_from(OPTIONS),
)
def test_text_without_openers_is_scanned_to_itself(text: str, output: str, options: dict[str, Any]) -> None:
    catalog = ToolCatalog.of(TOOLS, output=output)
    if current_scanner(catalog.fields).can_hold_calls(text, catalog):
        return
    truncated = options.get("truncated", False)
    reader = TextReader(catalog, **{name: value for name, value in options.items() if name != "truncated"})
    reader.feed(text)
    reader.close(truncated=truncated)
    assert reader.scan == ScanResult(text) == read_calls(text, catalog, **options)


@pytest.mark.parametrize(
    ("text", "output", "expected"),
    [
        ("The answer is 4.", "", False),
        ("[[ ## answer ## ]]\nIt is `[ping()]` in code.\n\n[[ ## completed ## ]]", "calls", False),
        ("[[ ## answer ## ]]\n> quoted", "", True),
        ("[[ ## calls ## ]]\n\nping(a=1)", "calls", True),
        ("[[ ## calls ## ]]", "calls", True),
        ("[[ ## calls ## ]]", "", False),
        ("please look_up", "", False),
        ("  look_up\n{}", "", True),
        ("looking", "", False),
        ("functions.ping", "", True),
        ("tell me", "", True),
        ("tell", "", False),
        ("a\n[ping()]", "", True),
        ("a\n {", "", True),
        ("a {", "", False),
        ("```\ncode\n```", "", False),
        ("```tool_code\n", "", True),
        ("the <tool_call> of", "", True),
    ],
)
def test_openers_are_found(text: str, output: str, expected: bool) -> None:
    assert current_scanner().can_hold_calls(text, ToolCatalog.of(TOOLS, output=output)) is expected


@pytest.mark.parametrize("grammar", BUILT_IN, ids=lambda grammar: f"{grammar.name} {grammar.openers[:1]}")
def test_every_opener_is_an_opener(grammar: Any) -> None:
    table = CompiledGrammars(BUILT_IN)
    for opener in grammar.openers:
        catalog = ToolCatalog.of(TOOLS, output="calls")
        assert table.can_hold_calls(f"Well.\n{opener}calls", catalog)
