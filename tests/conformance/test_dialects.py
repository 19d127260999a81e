"""Tool calls written as text: every shared case of every dialect, whole, in chunks and truncated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sigwire.adapters.text_tools import ScanResult, TextReader, read_calls

EXCEPTIONS: Mapping[str, str] = {}
"""Cases that are read otherwise than expected, each with the reason."""

COUNTS = {
    "anthropic_legacy": 12, "bare_json": 38, "command_r": 23, "deepseek_dsml": 7, "deepseek_v3": 23, "deepseek_v31": 20,
    "functionary": 22, "gemma": 24, "glm45": 20, "granite": 25, "harmony": 25, "hermes": 41, "internlm": 22, "jamba": 21,
    "kimi_k2": 26, "llama3_json": 26, "llama4_pythonic": 12, "md_json": 31, "minimax": 28, "mistral_old": 25,
    "mistral_v11": 24, "none": 10, "other": 8, "phi4": 24, "pythonic": 28, "qwen3_coder": 22, "seed": 47, "toolace": 12,
    "xlam": 19,
}  # fmt: skip


@pytest.fixture(scope="module")
def cases(fixtures: Path) -> list[dict[str, Any]]:
    lines = (fixtures / "dialects" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def tools_of(case: Mapping[str, Any]) -> dict[str, Any]:
    return {tool["name"]: tool["parameters"] for tool in case["tools"]}


def good(scan: ScanResult) -> list[Any]:
    return [{"name": call.name, "arguments": call.arguments} for call in scan.calls if call.error is None]


def agrees(found: ScanResult, reading: Mapping[str, Any]) -> bool:
    """The acceptance rule of the cases: arguments as JSON, text with blanks collapsed, errors exactly."""
    codes = {call.error.code for call in found.calls if call.error}
    error = None if not codes else "unknown_tool" if codes == {"unknown_tool"} else "malformed"
    text = reading["text_remainder"]
    return (
        as_json(good(found)) == as_json(reading["calls"])
        and error == reading["error"]
        and (text is None or text.split() == found.text.split())
    )


def as_json(value: Any) -> str:
    """JSON where 4 is 4.0 and ``true`` is not 1."""
    return json.dumps(as_floats(value), sort_keys=True)


def as_floats(value: Any) -> Any:
    if isinstance(value, list):
        return [as_floats(item) for item in value]
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in value.items()}
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def read_chunks(chunks: Iterable[str], tools: Mapping[str, Any], **options: Any) -> ScanResult:
    reader = TextReader(tools, **options)
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    return reader.scan


def test_every_case_is_read_as_expected(cases: list[dict[str, Any]]) -> None:
    passed: Counter[str] = Counter()
    failed: dict[str, ScanResult] = {}
    for case in cases:
        found = read_calls(case["text"], tools_of(case))
        if any(agrees(found, reading) for reading in [case["expected"], *case.get("also_ok", [])]):
            passed[case["dialect"]] += 1
        else:
            failed[case["id"]] = found
    print(", ".join(f"{dialect} {passed[dialect]}/{count}" for dialect, count in sorted(COUNTS.items())))
    assert failed.keys() == EXCEPTIONS.keys(), {id: scan for id, scan in failed.items() if id not in EXCEPTIONS}
    assert passed == Counter(COUNTS) - Counter(id.rsplit("-", 2)[0] for id in EXCEPTIONS)


@pytest.mark.parametrize("thinking", ["unknown", "over"])
def test_trap_has_no_call(cases: list[dict[str, Any]], thinking: Any) -> None:
    traps = [case for case in cases if case["kind"] == "trap"]
    for case in traps:
        if thinking == "unknown" or "think" not in case["text"]:
            assert good(read_calls(case["text"], tools_of(case), thinking=thinking)) == [], case["id"]
    assert len(traps) >= 113


@pytest.mark.parametrize("thinking", ["unknown", "over"])
def test_a_case_fed_one_character_at_a_time_gives_the_same_as_the_whole(
    cases: list[dict[str, Any]], thinking: Any
) -> None:
    for case in cases:
        tools = tools_of(case)
        whole = read_chunks([case["text"]], tools, thinking=thinking)
        assert read_chunks(case["text"], tools, thinking=thinking) == whole, case["id"]
        if thinking == "unknown":
            assert read_calls(case["text"], tools) == whole, case["id"]


@pytest.mark.long
def test_a_case_cut_in_two_gives_the_same_as_the_whole(cases: list[dict[str, Any]]) -> None:
    for number, case in enumerate(cases):
        text, tools = case["text"], tools_of(case)
        whole = read_chunks([text], tools)
        for cut in range(1 + number % 7, len(text), 7):
            assert read_chunks([text[:cut], text[cut:]], tools) == whole, (case["id"], cut)


@pytest.mark.long
def test_prefix_of_a_case_has_no_additional_call(cases: list[dict[str, Any]]) -> None:
    for number, case in enumerate(cases):
        if case["kind"] not in ("clean", "damage"):
            continue
        tools = tools_of(case)
        whole = good(read_calls(case["text"], tools))
        for cut in range(number % 3, len(case["text"]), 3):
            calls = good(read_calls(case["text"][:cut], tools))
            assert calls == whole[: len(calls)], (case["id"], cut)


def test_taught_form_is_read_as_expected_when_strict(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        if case["dialect"] == "seed":
            found = read_calls(case["text"], tools_of(case), strict=True)
            assert any(agrees(found, reading) for reading in [case["expected"], *case.get("also_ok", [])]), case["id"]


def test_clean_cases_need_no_repair(cases: list[dict[str, Any]]) -> None:
    for case in (case for case in cases if case["kind"] == "clean"):
        strict, lenient = (read_calls(case["text"], tools_of(case), strict=strict) for strict in (True, False))
        assert strict == lenient, case["id"]
        assert set(strict.notes) <= {"calls in a code fence"}, case["id"]


def test_calls_of_whole_messages_are_a_subset_of_all_calls(cases: list[dict[str, Any]]) -> None:
    alone = 0
    for case in cases:
        tools = tools_of(case)
        found = read_calls(case["text"], tools, whole_message=True)
        anywhere = read_calls(case["text"], tools)
        assert found.calls in ((), anywhere.calls), case["id"]
        prose = case["expected"]["text_remainder"]
        if prose == "" and good(anywhere):
            assert found.calls == anywhere.calls, case["id"]
            alone += 1
        elif prose:
            assert found.calls == (), case["id"]
    assert alone > 200


def test_no_call_is_read_from_a_case_without_offered_tools(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert read_calls(case["text"], ()) == ScanResult(case["text"])
