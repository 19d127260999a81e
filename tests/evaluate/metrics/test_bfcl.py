"""BFCL: the loader on the public layout, and the rules of acceptance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM, Predict, Prediction, ToolCalls
from sigwire.evaluate.metrics.bfcl import accepts_arguments

CASES = [
    {
        "id": "simple_java_0",
        "question": [[{"role": "user", "content": "List the open orders."}]],
        "function": [
            {
                "name": "Orders.list",
                "description": "List orders.",
                "parameters": {
                    "type": "dict",
                    "properties": {
                        "filter": {"type": "HashMap", "description": "Filters."},
                        "limit": {"type": "long"},
                        "ratio": {"type": "float", "optional": True},
                        "tags": {"type": "ArrayList", "items": {"type": "String"}, "enum": ["a", "b"]},
                        "open": {"type": "boolean"},
                        "session": {"type": "any"},
                        "note": {"type": "String", "default": None},
                        "type": {"type": "tuple", "items": {"type": "float"}},
                    },
                    "required": ["filter"],
                },
            }
        ],
    }
]
ANSWERS = [
    {
        "id": "simple_java_0",
        "ground_truth": [
            {
                "Orders.list": {
                    "filter": [{"state": ["open"], "format": "short", "size": [1, ""]}],
                    "limit": ["5"],
                    "ratio": [1, ""],
                    "tags": [["a"], ""],
                    "open": ["true", ""],
                    "session": ["dbSession", "null", ""],
                    "type": [[1, 2], ""],
                }
            }
        ],
    }
]


def write(path: Path, cases: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, cases)) + "\n", encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one category of calls, one without calls, one with any call, and one with more turns."""
    data = tmp_path / "berkeley-function-call-leaderboard" / "bfcl_eval" / "data"
    write(data / "BFCL_v4_simple_java.json", CASES)
    write(data / "possible_answer" / "BFCL_v4_simple_java.json", ANSWERS)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    plain = {"question": [messages], "function": [{"name": "f", "parameters": {"type": "dict", "properties": {}}}]}
    write(data / "BFCL_v4_irrelevance.json", [{"id": "irrelevance_0", **plain}])
    write(data / "BFCL_v4_live_relevance.json", [{"id": "live_relevance_0", **plain}])
    write(data / "BFCL_v4_multi_turn_base.json", [{"id": "multi_turn_base_0"}])
    write(data / "BFCL_v3_simple_java.json", [{"id": "old"}])
    return tmp_path


def made(*calls: tuple[str, dict[str, Any]]) -> Prediction:
    return Prediction(tool_calls=ToolCalls([{"name": name, "args": arguments} for name, arguments in calls]))


def test_types_of_the_data_become_types_of_json(checkout: Path) -> None:
    (example,) = sigwire.load_bfcl(checkout, "simple_java")
    (tool,) = example.tools
    properties: Any = tool.parameters["properties"]
    assert {name: schema.get("type") for name, schema in properties.items()} == {
        "filter": "object", "limit": "integer", "ratio": "number", "tags": "array", "open": "boolean",
        "session": None, "note": ["string", "null"], "type": "array",
    }  # fmt: skip
    assert "optional" not in properties["ratio"]
    assert properties["tags"]["items"] == {"type": "string", "enum": ["a", "b"]} | properties["tags"]["items"]
    assert properties["type"]["items"] == {"type": "number"}
    assert tool.parameters["required"] == ["filter"]


def test_cases_are_examples_with_inputs(checkout: Path) -> None:
    (example,) = sigwire.load_bfcl(checkout, ["simple_java"])
    assert (example.id, example.category, example.question) == ("simple_java_0", "simple_java", "List the open orders.")
    assert set(example.inputs()) == {"question", "tools"}
    assert example.ground_truth[0]["arguments"]["limit"] == [5]
    assert example.ground_truth[0]["arguments"]["open"] == [True, ""]
    (quiet,) = sigwire.load_bfcl(checkout, "irrelevance")
    assert quiet.question == "system: Be brief.\n\nuser: Hello"
    assert quiet.messages[0]["role"] == "system"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"filter": {"state": "Open", "format": "short"}, "limit": 5}, 1.0),
        ({"filter": {"state": "open", "format": "short", "size": 1}, "limit": 5, "ratio": 1.0}, 1.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": 5, "ratio": 1}, 1.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": 5, "type": [1, 2.0]}, 1.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": 5, "open": True}, 1.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": 5, "session": None}, 1.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": 5.0}, 0.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": "5"}, 0.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": 5, "open": "true"}, 0.0),
        ({"filter": {"state": "open"}, "limit": 5}, 0.0),
        ({"filter": {"state": "open", "format": "short"}}, 0.0),
        ({"filter": {"state": "open", "format": "short"}, "limit": 5, "more": 1}, 0.0),
    ],
)
def test_arguments_are_accepted_by_value_and_type(checkout: Path, arguments: dict[str, Any], expected: float) -> None:
    (example,) = sigwire.load_bfcl(checkout, "simple_java")
    assert sigwire.bfcl_match(example, made(("Orders.list", arguments))).value == expected


def test_irrelevance_accepts_no_call_and_relevance_any_offered_one(checkout: Path) -> None:
    (quiet,), (free,) = (sigwire.load_bfcl(checkout, name) for name in ("irrelevance", "live_relevance"))
    assert sigwire.bfcl_match(quiet, made()).value == 1
    assert sigwire.bfcl_match(quiet, made(("f", {}))).feedback == "expected no call, got f()"
    assert sigwire.bfcl_match(free, made(("f", {"x": 1}))).value == 1
    assert sigwire.bfcl_match(free, made()).feedback == "expected a call of an offered tool, got no call"
    assert sigwire.bfcl_match(free, made(("g", {}))).feedback == "unknown tools: g"


def test_all_single_turn_categories_are_loaded_by_default(checkout: Path) -> None:
    assert [example.id for example in sigwire.load_bfcl(checkout)] == [
        "irrelevance_0", "live_relevance_0", "simple_java_0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("category", "message"),
    [
        ("multi_turn_base", "it has more turns, and only single turns are graded"),
        ("simple_jav", r"no such file\. Did you mean simple_java\? The folder has irrelevance"),
    ],
)
def test_a_category_that_cannot_be_loaded_is_refused(checkout: Path, category: str, message: str) -> None:
    with pytest.raises(sigwire.ConfigurationError, match=message):
        sigwire.load_bfcl(checkout, category)


def test_a_folder_without_cases_and_a_case_without_answers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sigwire.ConfigurationError, match=r"has no files BFCL_v4_<category>\.json"):
        sigwire.load_bfcl(tmp_path)
    write(tmp_path / "BFCL_v3_simple.json", CASES)
    with pytest.raises(sigwire.ConfigurationError, match=r"'simple_java_0' has no accepted calls"):
        sigwire.load_bfcl(tmp_path)


@pytest.mark.parametrize(
    ("accepted", "given", "expected"),
    [
        ({"a": ["New York"]}, {"a": "new-york."}, True),
        ({"a": ["it's"]}, {"a": 'IT"S'}, True),
        ({"a": [1.5]}, {"a": 1.5}, True),
        ({"a": [2.0]}, {"a": 2}, True),
        ({"a": [2]}, {"a": 2.0}, False),
        ({"a": [1]}, {"a": True}, False),
        ({"a": [True]}, {"a": 1}, False),
        ({"a": ["1"]}, {"a": 1}, False),
        ({"a": [[1, 2]]}, {"a": [2, 1]}, False),
        ({"a": [[{"b": [1, ""]}]]}, {"a": [{}]}, True),
        ({"a": [None]}, {"a": None}, True),
        ({"a": [1, ""]}, {}, True),
        ({"a": [1]}, {}, False),
        ({}, {"a": 1}, False),
    ],
)
def test_accepted_arguments(accepted: dict[str, Any], given: dict[str, Any], expected: bool) -> None:
    assert accepts_arguments(accepted, given) is expected


def test_a_program_that_calls_the_tools_is_scored(checkout: Path) -> None:
    (example,) = sigwire.load_bfcl(checkout, "simple_java")
    calls = [{"name": "Orders.list", "args": {"filter": {"state": "open", "format": "short"}, "limit": 5}}]
    choose = Predict(
        "question, tools: list[sigwire.Tool] -> tool_calls: sigwire.ToolCalls", lm=FakeLM([ToolCalls(calls)])
    )
    assert sigwire.bfcl_match(example, choose(**example.inputs())).value == 1


# --- the shared cases --------------------------------------------------------------------------------
