"""The search of tools finds the tool of a question among all tools of the BFCL-style cases."""

from __future__ import annotations

from pathlib import Path

from sigwire.core.tools.tool import Tool
from sigwire.modules.agents.starting import FIRST_TOKENS, FIRST_TOOLS
from sigwire.modules.agents.tool_catalog import SearchedTools, fitting
from sigwire.modules.agents.toolbox import spec_size
from tests.conformance.bfcl_cases import read_all, tools_of

_ASKED = ("simple_python", "multiple", "live_simple", "live_multiple")


def test_first_20_tools_have_the_right_one_for_93_of_100_questions_in_6000_tokens(fixtures: Path) -> None:
    cases = read_all(fixtures)
    tools: dict[str, Tool] = {}
    for case in cases:
        for name, tool in tools_of(case).items():
            tools.setdefault(name, tool)
    catalog = SearchedTools([*tools.values()])
    asked = [case for case in cases if case["category"] in _ASKED]
    assert len(tools) > 600
    assert len(asked) > 400
    found, sizes = 0, [0]
    for case in asked:
        best = catalog.best("\n".join(turn["content"] for turn in case["messages"]), 20)
        sent = fitting(map(tools.__getitem__, best), FIRST_TOOLS, FIRST_TOKENS)
        found += any(tool.name == case["ground_truth"][0]["name"] for tool in sent)
        sizes.append(sum(map(spec_size, sent)))
    assert found / len(asked) >= 0.93
    assert max(sizes) <= 6_000
    assert sum(sizes) / len(sizes) <= 4_000
