"""The taught form of calling, read by the rules of the shared dialect cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sigwire.adapters.text_tools import Scan, read_calls


def _cases(fixtures: Path) -> list[dict[str, Any]]:
    lines = (fixtures / "dialects" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if case["dialect"] == "seed"]


def _agrees(found: Scan, reading: Mapping[str, Any]) -> bool:
    """The acceptance rule of the cases: arguments as JSON, text with blanks collapsed, errors exactly."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in found.calls if call.error is None]
    error = "malformed" if any(call.error for call in found.calls) else None
    text = reading["text_remainder"]
    return (
        json.dumps(calls, sort_keys=True) == json.dumps(reading["calls"], sort_keys=True)
        and error == reading["error"]
        and (text is None or text.split() == found.text.split())
    )


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_every_case_of_the_taught_form_is_read_as_expected(fixtures: Path, strict: bool) -> None:
    cases = _cases(fixtures)
    failed: dict[str, Scan] = {}
    for case in cases:
        found = read_calls(case["text"], {tool["name"] for tool in case["tools"]}, strict=strict)
        if not any(_agrees(found, reading) for reading in [case["expected"], *case.get("also_ok", [])]):
            failed[case["id"]] = found
    assert not failed
    assert len(cases) >= 47


def test_no_prefix_of_a_case_has_a_call_that_the_whole_has_not(fixtures: Path) -> None:
    for case in _cases(fixtures):
        if case["kind"] not in ("clean", "damage"):
            continue
        names = {tool["name"] for tool in case["tools"]}
        whole = [(call.name, call.arguments) for call in read_calls(case["text"], names).calls if not call.error]
        for cut in range(len(case["text"])):
            calls = read_calls(case["text"][:cut], names).calls
            good = [(call.name, call.arguments) for call in calls if not call.error]
            assert good == whole[: len(good)], (case["id"], cut)


def test_nothing_is_a_call_where_no_tools_were_offered(fixtures: Path) -> None:
    for case in _cases(fixtures):
        assert read_calls(case["text"], ()).calls == ()
