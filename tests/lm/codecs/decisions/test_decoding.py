"""Decision endpoints: replies. Evidence and text, refused questions, and replies that fit no question."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sigwire.core.json import JsonObject
from sigwire.errors import (
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMRateLimitError,
    LMServerError,
    LMUnexpectedError,
)
from sigwire.lm.codecs.decisions import decode_error
from tests.lm.codecs.decisions.triage import EVIDENCE, PROFILES, SCHEMA, TEXT, body_of, decoded, target_of

HOSTS = pytest.mark.parametrize("host", PROFILES)


@HOSTS
def test_reply_becomes_a_text_and_evidence(host: str) -> None:
    body = body_of(host)
    response = decoded(host, body)
    choice = response.choices[0]
    assert json.loads(choice.text) == TEXT
    evidence: Any = choice.evidence
    shares = {path: {name: each[name] for name in ("values", "probabilities")} for path, each in evidence.items()}
    assert shares == EVIDENCE
    assert (evidence["ticket.team"]["answered"], evidence["harm"]["answered"]) == ("tech", 0.75)
    assert "answered" not in evidence["urgent"]
    assert (response.usage.input_tokens, response.usage.output_tokens) == (9, 4)
    assert (choice.finish_reason, response.raw, response.warnings) == ("stop", body, ())


def test_answers_are_read_by_name_in_any_order() -> None:
    body = body_of("openai")
    body["answers"].reverse()
    assert decoded("openai", body).choices[0].text == decoded("openai", body_of("openai")).choices[0].text


@HOSTS
def test_probabilities_that_a_host_rounded_are_taken(host: str) -> None:
    body = body_of(host)
    answer = answer_of(body, host, "ticket.count")
    shares = [0.33, 0.33, 0.33]
    if host == "openai":
        for each, share in zip(answer["probabilities"], shares, strict=True):
            each["probability"] = share
    else:
        answer["probabilities"] = dict(zip(answer["probabilities"], shares, strict=True))
    evidence: Any = decoded(host, body).choices[0].evidence
    assert evidence["ticket.count"]["probabilities"] == shares  # as sent


@HOSTS
def test_zeros_do_not_explain_a_sum_above_one(host: str) -> None:
    values: Any = [f"n{number}" for number in range(100)]
    schema: JsonObject = {"properties": {"n": {"enum": values}}, "required": ["n"]}
    shares = dict.fromkeys(values, 0.0) | {"n0": 0.7, "n1": 0.7}
    answer: Any = {"type": "choice", "choice": "n0", "confidence": 0.7, "probabilities": shares}
    name = "q0" if host == "gemini" else "n"
    if host == "openai":
        answer |= {"name": "n", "probabilities": [{"value": v, "probability": p} for v, p in shares.items()]}
    with pytest.raises(LMUnexpectedError, match=r"probabilities sum to 1\.4"):
        decoded(host, {"answers": [answer] if host == "openai" else {name: answer}}, schema)


def test_ties_go_to_what_the_host_answered() -> None:
    body = body_of("openai")
    answer = answer_of(body, "openai", "ticket.team")
    answer["choice"] = "tech"
    for each in answer["probabilities"]:
        each["probability"] = 0.5
    assert json.loads(decoded("openai", body).choices[0].text)["ticket"]["team"] == "tech"


# --- broken replies


def answer_of(body: Any, host: str, path: str) -> Any:
    if host == "openai":
        return next(answer for answer in body["answers"] if answer["name"] == path)
    names = [*EVIDENCE]
    return body["answers"][f"q{names.index(path)}" if host == "gemini" else path]


def set_share(answer: Any, key: Any, share: Any) -> None:
    if isinstance(answer["probabilities"], list):
        next(each for each in answer["probabilities"] if each["value"] == key)["probability"] = share
    else:
        answer["probabilities"][str(key)] = share


def drop_share(answer: Any, key: Any) -> None:
    if isinstance(answer["probabilities"], list):
        answer["probabilities"] = [each for each in answer["probabilities"] if each["value"] != key]
    else:
        del answer["probabilities"][str(key)]


def add_share(answer: Any, key: Any) -> None:
    if isinstance(answer["probabilities"], list):
        answer["probabilities"].append({"value": key, "label": str(key), "probability": 0.0})
    else:
        answer["probabilities"][str(key)] = 0.0


def set_bool(answer: Any, value: Any) -> None:
    answer["probability" if "probability" in answer else "noul"] = value


_Break = Callable[[Any], Any]
BROKEN: dict[str, tuple[str, _Break, str]] = {
    "bool above 1": ("urgent", lambda a: set_bool(a, 1.1), "1.1 is no probability"),
    "bool below 0": ("urgent", lambda a: set_bool(a, -0.1), "-0.1 is no probability"),
    "bool of infinity": ("urgent", lambda a: set_bool(a, float("inf")), "inf is no probability"),
    "bool of a text": ("urgent", lambda a: set_bool(a, "0.5"), "'0.5' is no probability"),
    "bool of true": ("urgent", lambda a: set_bool(a, True), "True is no probability"),
    "bool of null": ("urgent", lambda a: set_bool(a, None), "None is no probability"),
    "kind of another question": ("urgent", lambda a: a.update(type="score"), "its type is 'score'"),
    "no kind": ("ticket.team", lambda a: a.pop("type"), "its type is None"),
    "choice above 1": ("ticket.team", lambda a: set_share(a, "tech", 1.45), "1.45 is no probability"),
    "choice of too much": ("ticket.team", lambda a: set_share(a, "tech", 0.95), "probabilities sum to 1.2"),
    "choice of too little": ("ticket.team", lambda a: set_share(a, "tech", 0.5), "probabilities sum to 0.75"),
    "choice of nothing": ("ticket.team", lambda a: a.update(probabilities=[]), "'billing' is missing"),
    "unknown value": ("ticket.team", lambda a: add_share(a, "sales"), "'sales' is no value"),
    "missing value": ("ticket.count", lambda a: drop_share(a, "null"), "'null' is missing"),
    "unknown answer": ("ticket.team", lambda a: a.update(choice="sales"), "'sales' is no value"),
    "no answer": ("ticket.team", lambda a: a.pop("choice"), "None is no value"),
    "score outside": ("grade", lambda a: a.update(score=2.5), "2.5 is no level"),
    "score of a text": ("grade", lambda a: a.update(score="high"), "'high' is no level"),
    "level outside": ("grade", lambda a: add_share(a, 3), "is no value"),
    "value without a name": ("grade", lambda a: add_share(a, None), "is no value"),
}


@HOSTS
@pytest.mark.parametrize("case", BROKEN)
def test_answer_that_does_not_fit_its_question_is_an_error(host: str, case: str) -> None:
    path, break_, problem = BROKEN[case]
    body = body_of(host)
    break_(answer_of(body, host, path))
    with pytest.raises(LMUnexpectedError, match=problem) as caught:
        decoded(host, body)
    assert f"answer {path!r}" in str(caught.value)
    assert caught.value.retryable


def test_value_that_comes_twice_is_an_error() -> None:
    body = body_of("openai")
    answer_of(body, "openai", "ticket.team")["probabilities"].append({"value": "tech", "probability": 0.0})
    with pytest.raises(LMUnexpectedError, match="the value 'tech' came twice"):
        decoded("openai", body)


def test_member_of_probabilities_that_is_no_object_is_an_error() -> None:
    body = body_of("openai")
    answer_of(body, "openai", "ticket.team")["probabilities"].append("tech")
    with pytest.raises(LMUnexpectedError, match="None is no value"):
        decoded("openai", body)


def test_text_of_a_boolean_is_no_boolean() -> None:
    body = body_of("openai")
    answer_of(body, "openai", "down")["probabilities"][0]["value"] = "true"
    with pytest.raises(LMUnexpectedError, match="'true' is no value"):
        decoded("openai", body)


@HOSTS
@pytest.mark.parametrize("case", ["missing", "unknown", "no object"])
def test_answers_with_other_names_are_an_error(host: str, case: str) -> None:
    body = body_of(host)
    if isinstance(answers := body["answers"], list):
        changed = {"missing": answers[1:], "unknown": [*answers, {"name": "x"}], "no object": ["x", *answers[1:]]}
        body["answers"] = changed[case]
    else:
        name = next(iter(answers))
        rest = {each: answer for each, answer in answers.items() if each != name}
        body["answers"] = {"missing": rest, "unknown": {**answers, "x": {}}, "no object": {**rest, name: 5}}[case]
    with pytest.raises(LMUnexpectedError, match=r"missing|no question|no object"):
        decoded(host, body)


def test_name_that_comes_twice_is_an_error() -> None:
    body = body_of("openai")
    body["answers"].append(body["answers"][0])
    with pytest.raises(LMUnexpectedError, match="answer 'urgent': it came twice"):
        decoded("openai", body)


@HOSTS
@pytest.mark.parametrize("body", [{}, {"answers": None}, {"answers": []}, {"answers": {}}, [], "soon", None])
def test_reply_without_answers_is_an_error(host: str, body: Any) -> None:
    with pytest.raises((LMServerError, LMUnexpectedError), match="no answers"):
        decoded(host, body)


# --- refused questions


def schema_with(**changes: JsonObject) -> JsonObject:
    members: Any = SCHEMA["properties"]
    required: Any = [name for name in [*members] if name not in changes]
    return {**SCHEMA, "properties": {**members, **changes}, "required": required}


def refusing(*paths: str) -> Any:
    body = body_of("openai")
    body["answers"] = [
        {"type": "refusal", "name": answer["name"]} if answer["name"] in paths else answer for answer in body["answers"]
    ]
    return body


def test_refused_question_of_an_output_with_a_default_is_left_out() -> None:
    response = decoded("openai", refusing("urgent"), schema_with(urgent={"type": "boolean", "default": False}))
    choice, evidence = response.choices[0], response.choices[0].evidence or {}
    assert json.loads(choice.text) == {name: value for name, value in TEXT.items() if name != "urgent"}
    assert (choice.refusal, evidence["urgent"]) == (None, {"refused": True})
    assert [(warning.feature, "'urgent'" in warning.detail) for warning in response.warnings] == [("evidence", True)]


def test_refused_question_of_an_output_that_allows_none_is_none() -> None:
    choice = decoded("openai", refusing("ticket.count")).choices[0]
    assert json.loads(choice.text)["ticket"] == {"team": "tech", "count": None}


@pytest.mark.parametrize(
    ("paths", "named"),
    [
        (("urgent",), "urgent"),
        (("urgent", "ticket.team", "ticket.count"), "urgent, ticket.team"),
        (("tags[vip]",), "tags"),
        (tuple(EVIDENCE), "urgent, down, ticket.team, harm, grade, tags"),
    ],
    ids=["one", "some", "member", "all"],
)
def test_refused_question_of_another_output_is_a_refusal(paths: tuple[str, ...], named: str) -> None:
    choice = decoded("openai", refusing(*paths)).choices[0]
    assert choice.refusal == f"it gives no answer to {named}"
    assert choice.finish_reason == "content_filter"
    kept = json.loads(choice.text)
    assert "version" in kept
    assert not any(path in kept for path in paths)


def test_all_questions_refused_is_a_refusal_though_each_has_a_default() -> None:
    schema: JsonObject = {"properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}
    body = {"answers": [{"type": "refusal", "name": "a"}, {"type": "refusal", "name": "b"}], "model": "m"}
    assert decoded("openai", body, schema).choices[0].refusal == "it gives no answer to a, b"


def test_blocked_input_of_gemini_is_a_refusal() -> None:
    choice = decoded("gemini", {"prompt_feedback": {"block_reason": "safety"}}).choices[0]
    assert (choice.refusal, choice.finish_reason, choice.evidence) == ("safety", "content_filter", None)


# --- error replies


def google(detail: JsonObject) -> JsonObject:
    return {"error": {"code": 400, "message": "No", "status": "INVALID_ARGUMENT", "details": [detail]}}


@pytest.mark.parametrize(
    ("host", "status", "body", "kind", "message"),
    [
        (
            "system-one",
            429,
            {"detail": {"error_type": "rate_limit_error", "message": "Slow"}},
            LMRateLimitError,
            "Slow",
        ),
        ("openai", 429, {"error": {"code": "rate_limit_exceeded", "message": "Slow"}}, LMRateLimitError, "Slow"),
        (
            "openai",
            400,
            {"error": {"code": "content_policy_violation", "message": "No"}},
            LMContentFilteredError,
            "No",
        ),
        ("gemini", 429, {"error": {"status": "RESOURCE_EXHAUSTED", "message": "Slow"}}, LMRateLimitError, "Slow"),
        ("gemini", 400, google({"reason": "API_KEY_INVALID"}), LMAuthenticationError, "No"),
        ("gemini", 429, google({"violations": [{"quotaId": "RequestsPerDay"}]}), LMBillingError, "tomorrow"),
    ],
)
def test_error_reply_has_its_kind_and_its_text(
    host: str, status: int, body: JsonObject, kind: type[Exception], message: str
) -> None:
    error = decode_error(status, {}, json.dumps(body), target_of(host))
    assert type(error) is kind
    assert message in str(error)


def test_code_of_a_detail_is_the_code_of_the_error() -> None:
    body = '{"detail": {"error_type": "authentication_error", "message": "Invalid API key."}}'
    error = decode_error(401, {}, body, target_of("system-one"))
    assert (error.provider_code, "Invalid API key" in str(error)) == ("authentication_error", True)
