"""Real tools, by the hundred: every tool of the BFCL files can be offered as it is, and every reference call fits it.

The files are read in place (``fixtures``); without them these tests are skipped. Their README describes the files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.core.tools.tool import Tool
from tests.conformance.bfcl_cases import calls_of, read_all, tools_of

RULES = [
    NameRules(),
    NameRules(max_length=128),
    NameRules(allowed="a-zA-Z0-9_.-", first="a-zA-Z_"),
    NameRules(max_length=24, case_sensitive=False),
]


@pytest.fixture(scope="session")
def cases(fixtures: Path) -> list[dict[str, Any]]:
    return read_all(fixtures)


def test_there_is_something_to_test(cases: list[dict[str, Any]]) -> None:
    assert len(cases) > 800
    assert sum(len(case["tools"]) for case in cases) > 1_500
    assert sum(1 for case in cases for _ in calls_of(case)) > 800


@pytest.mark.long
def test_every_tool_is_offered_as_it_is(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        for spec, tool in zip(case["tools"], tools_of(case).values(), strict=True):
            assert tool.spec == spec, case["id"]
            assert Tool.from_json(json.loads(json.dumps(tool.to_json()))) == tool


def test_every_reference_call_fits_its_tool(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        tools = tools_of(case)
        for name, arguments in calls_of(case):
            assert tools[name].bind(arguments).kwargs == arguments, case["id"]
            read = ToolCall.read("call_0", name, json.dumps(arguments))
            assert (read.arguments, read.error) == (arguments, None)


@pytest.mark.parametrize("rules", RULES, ids=["64", "128", "dots", "24 caseless"])
def test_every_name_goes_out_legal_and_comes_back(cases: list[dict[str, Any]], rules: NameRules) -> None:
    everything = {spec["function"]["name"] for case in cases for spec in case["tools"]}
    mapped = NameMap(everything, rules)
    wire = {mapped.encode(name) for name in everything}
    assert len({rules.key(name) for name in wire}) == len(everything)
    assert all(rules.candidate(name) == name for name in wire)
    assert {mapped.decode(mapped.encode(name)) for name in everything} == everything
    for case in cases:
        names = [spec["function"]["name"] for spec in case["tools"]]
        own = NameMap(names, rules)
        assert [own.decode(own.encode(name)) for name in names] == names
