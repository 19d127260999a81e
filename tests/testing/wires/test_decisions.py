"""The decision endpoints of the fake provider: what they refuse, with status and body, and how a script is written."""

from __future__ import annotations

import copy
import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from sigwire import Choice, FakeLM
from sigwire.testing import FakeProvider, Fault, Raw

PATHS = {"decisions": "/decisions", "system-one": "/v1/systemone", "gemini-decisions": "/v1/decisions"}
QUESTION = {"type": "predicate", "name": "urgent", "instructions": "Now?"}
CHOICE = {"type": "choice", "name": "team", "instructions": "?", "choices": [{"value": "a"}, {"value": "b"}]}
SCORE = {"type": "score", "name": "harm", "instructions": "?", "levels": [{"label": "no"}, {"label": "yes"}]}
LISTED = {"model": "gpt-6-luna", "input": "The shop is down.", "questions": [QUESTION, CHOICE, SCORE]}
NAMED = {
    "urgent": {"type": "noul", "instructions": "Now?"},
    "team": {"type": "choice", "instructions": "?", "criteria": {"a": "", "b": "second"}},
    "harm": {"type": "score", "instructions": "?", "criteria": ["no", "yes"]},
}
BODIES: dict[str, Any] = {
    "decisions": LISTED,
    "system-one": {"model": "jev", "state": "The shop is down.", "questions": NAMED},
    "gemini-decisions": {"model": "m", "input": "The shop is down.", "questions": NAMED},
}
SCRIPT = json.dumps({"urgent": 0.75, "team": {"a": 0.25, "b": 0.75}, "harm": [0.5, 0.5]})
WIRES = pytest.mark.parametrize("wire", PATHS)


def post(provider: FakeProvider, wire: str, body: Any) -> tuple[int, Any]:
    headers = {"Authorization": "Bearer k", "Content-Type": "application/json"}
    try:
        with urlopen(Request(provider.url(wire) + PATHS[wire], json.dumps(body).encode(), headers)) as reply:
            return reply.status, json.loads(reply.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


@WIRES
def test_script_by_name_becomes_answers(wire: str) -> None:
    with FakeProvider([SCRIPT]) as provider:
        status, reply = post(provider, wire, BODIES[wire])
    assert status == 200
    answers = reply["answers"]
    by_name = {each["name"]: each for each in answers} if wire == "decisions" else answers
    assert by_name["urgent"]["probability" if wire == "decisions" else "noul"] == 0.75
    assert (by_name["team"]["choice"], by_name["harm"]["score"]) == ("b", 0.5)


@WIRES
@pytest.mark.parametrize(
    "script",
    ['{"urgent": true, "team": "b", "harm": 1}', '{"urgent": {"true": 1}, "team": {"b": 1}, "harm": {"yes": 1}}'],
    ids=["values", "labels"],
)
def test_value_in_a_script_is_certain(wire: str, script: str) -> None:
    with FakeProvider([script]) as provider:
        answers = post(provider, wire, BODIES[wire])[1]["answers"]
    by_name = {each["name"]: each for each in answers} if wire == "decisions" else answers
    assert [by_name["urgent"].get(name) for name in ("probability", "noul")].count(1.0) == 1
    assert (by_name["team"]["choice"], by_name["harm"]["score"]) == ("b", 1.0)


def test_null_in_a_script_is_a_refusal() -> None:
    with FakeProvider(['{"urgent": null, "team": "a", "harm": 0}']) as provider:
        answers = post(provider, "decisions", LISTED)[1]["answers"]
    assert answers[0] == {"type": "refusal", "name": "urgent"}


@WIRES
def test_raw_and_fault_and_function_are_answers(wire: str) -> None:
    with FakeProvider([Raw({"a": 1}), Fault("rate_limit"), lambda request: SCRIPT]) as provider:
        replies = [post(provider, wire, BODIES[wire]) for _ in range(3)]
    assert replies[0] == (200, {"a": 1})
    assert [status for status, _ in replies] == [200, 429, 200]


def test_model_that_decides_answers() -> None:
    evidence: Any = {"values": [True, False], "probabilities": [0.125, 0.875]}
    text = '{"urgent": false, "team": "a", "harm": 0.5}'
    with FakeProvider(FakeLM([Choice(text, evidence={"urgent": evidence})])) as provider:
        answers = post(provider, "decisions", LISTED)[1]["answers"]
    assert answers[0]["probability"] == 0.125
    assert answers[2]["score"] == 0.5


@WIRES
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("soon", "no JSON object"),
        ('{"team": "a"}', "no answer to 'urgent'"),
        ('{"urgent": 1, "team": "z", "harm": 0}', "'z' is no answer to 'team'"),
    ],
)
def test_script_that_does_not_fit_is_a_server_error(wire: str, script: str, problem: str) -> None:
    with FakeProvider([script]) as provider:
        status, reply = post(provider, wire, BODIES[wire])
    assert status == 500
    assert problem in str(reply)


# --- what a provider refuses


def listed(**changes: Any) -> Any:
    return {**copy.deepcopy(LISTED), **changes}


def values(count: int) -> Any:
    return [{"value": str(number)} for number in range(count)]


LEVELS = [{"label": str(number)} for number in range(11)]
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "x"}
REFUSED: dict[str, tuple[Any, str]] = {
    "member": (listed(temperature=0), "Unknown parameter: 'temperature'."),
    "member of a question": (
        listed(questions=[{**QUESTION, "levels": []}]),
        "Unknown parameter: 'questions[0].levels'.",
    ),
    "no question": (listed(questions=[]), "Invalid 'questions': empty array"),
    "401 questions": (listed(questions=[{**QUESTION, "name": str(n)} for n in range(401)]), "maximum length 400"),
    "1 choice": (listed(questions=[{**CHOICE, "choices": values(1)}]), "minimum length 2"),
    "256 choices": (listed(questions=[{**CHOICE, "choices": values(256)}]), "maximum length 255"),
    "value twice": (listed(questions=[{**CHOICE, "choices": [*values(2), {"value": "1"}]}]), "Duplicate value"),
    "name twice": (listed(questions=[QUESTION, {**CHOICE, "name": "urgent"}]), "Duplicate question name: 'urgent'"),
    "11 levels": (listed(questions=[{**SCORE, "levels": LEVELS}]), "maximum length 10"),
    "no instructions": (listed(questions=[{"type": "predicate"}]), "'questions[0].instructions'"),
    "number as a value": (listed(questions=[{**CHOICE, "choices": [{"value": 1}, {"value": 2}]}]), "Invalid type"),
    "output without a call": (listed(input=[OUTPUT]), "No tool call found for function call output with call_id c"),
    "file": (listed(input=[{"role": "user", "content": [{"type": "input_file"}]}]), "Supported values are"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_openai_refuses_what_its_api_refuses(case: str) -> None:
    body, text = REFUSED[case]
    with FakeProvider([SCRIPT]) as provider:
        status, reply = post(provider, "decisions", body)
    assert (status, reply["error"]["type"]) == (400, "invalid_request_error")
    assert text in reply["error"]["message"]


def test_openai_takes_calls_with_their_outputs_and_typed_values() -> None:
    true_or_text = {**CHOICE, "choices": [{"value": True}, {"value": "true"}]}
    with FakeProvider(['{"team": {"true": 1}}']) as provider:
        assert post(provider, "decisions", listed(input=[CALL, OUTPUT], questions=[true_or_text]))[0] == 200


@pytest.mark.parametrize(
    ("questions", "place", "text"),
    [
        ({}, ["body", "questions"], "at least 1 item"),
        ({"x": {"type": "noul"}}, ["body", "questions", "x", "instructions"], "Field required"),
        (
            {"x": {"type": "noul", "instructions": "?", "levels": []}},
            ["body", "questions", "x", "levels"],
            "Extra inputs",
        ),
        (
            {"x": {"type": "choice", "instructions": "?", "criteria": {str(n): None for n in range(256)}}},
            ["body", "questions", "x", "criteria"],
            "at most 255",
        ),
        (
            {"x": {"type": "score", "instructions": "?", "criteria": ["a"] * 11}},
            ["body", "questions", "x", "criteria"],
            "at most 10",
        ),
    ],
)
def test_system_one_refuses_what_its_api_refuses(questions: Any, place: list[str], text: str) -> None:
    with FakeProvider([SCRIPT]) as provider:
        status, reply = post(provider, "system-one", {**BODIES["system-one"], "questions": questions})
    assert (status, reply["detail"][0]["loc"]) == (422, place)
    assert text in reply["detail"][0]["msg"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"temperature": 0}, "Unknown name"),
        ({"questions": {}}, "must not be empty"),
        ({"questions": {"a.b": NAMED["urgent"]}}, "Invalid question ID 'a.b'"),
        ({"questions": {str(n): NAMED["urgent"] for n in range(1001)}}, "At most 1000 questions"),
        ({"questions": {"x": {"type": "choice", "instructions": "?", "criteria": {"a": ""}}}}, "at least 2"),
    ],
)
def test_gemini_refuses_what_its_api_refuses(changes: Any, text: str) -> None:
    with FakeProvider([SCRIPT]) as provider:
        status, reply = post(provider, "gemini-decisions", {**BODIES["gemini-decisions"], **changes})
    assert (status, reply["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert text in reply["error"]["message"]


@WIRES
def test_key_and_model_are_checked(wire: str) -> None:
    with FakeProvider([SCRIPT], key="other") as provider:
        assert post(provider, wire, BODIES[wire])[0] in (400, 401)
    with FakeProvider([SCRIPT], models=["other"]) as provider:
        assert post(provider, wire, BODIES[wire])[0] in (400, 404)
