"""Decision endpoints: any change of a valid reply is an answer with whole evidence, a refusal, or ``LMUnexpectedError``."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwire.core.evidence import read_evidence
from sigwire.core.response import Choice
from sigwire.core.schema import validator
from sigwire.errors import LMServerError, LMUnexpectedError
from sigwire.lm.codecs.decisions.questions import read_questions
from tests.lm.codecs.decisions.triage import EVIDENCE, PROFILES, SCHEMA, body_of, decoded

HOSTS = pytest.mark.parametrize("host", PROFILES)
NUMBERS = st.sampled_from(
    [math.nan, math.inf, -math.inf, -0.0, 0, 1, 2, -1, -1e-9, 1 + 1e-9, 0.5, 1e308, 10**30, 10**400]
)
LEAVES = st.one_of(
    NUMBERS, st.floats(), st.booleans(), st.none(), st.sampled_from(["", "tech", "true", "0", "q0", "urgent"])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)
QUESTIONS = {question.path: question for question in read_questions(SCHEMA, "m")}
PROBLEMS = validator(SCHEMA)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container and key of a JSON value."""
    keys: Any = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def change(body: Any, draw: st.DataObject) -> None:
    """Change one place of the answers: another value, nothing, twice, or under another name."""
    found = [place for place in places(body) if place != (body, "usage") and place[1] != "model"]
    if not found:
        return
    holder, key = draw.draw(st.sampled_from(found))
    way = draw.draw(st.sampled_from(["set", "set", "drop", "twice", "rename"]))
    if way == "set":
        holder[key] = draw.draw(VALUES)
    elif way == "drop":
        del holder[key]
    elif isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    else:
        other = draw.draw(st.sampled_from([*holder, "x", "", "3"]))
        holder[other] = holder[key] if way == "twice" else holder.pop(key)


def check(choice: Choice) -> None:
    """Check the evidence of each path, and that the text is an instance of the schema."""
    evidence: Any = choice.evidence
    assert [*evidence] == [*EVIDENCE]
    for path, found in evidence.items():
        if "refused" in found:
            continue
        question = QUESTIONS[path]
        assert read_evidence(found, question) is not None
        assert found["values"] == [*question.values]
        assert all(type(p) is float and 0 <= p <= 1 for p in found["probabilities"])
        assert abs(math.fsum(found["probabilities"]) - 1) <= 0.005 * len(question.values) + 1e-6
        assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert choice.refusal or not PROBLEMS(json.loads(choice.text))


@HOSTS
@given(st.data())
def test_changed_reply_has_whole_evidence_or_is_an_error(host: str, data: st.DataObject) -> None:
    body = body_of(host)
    for _ in range(data.draw(st.integers(1, 3))):
        change(body["answers"], data)
    try:
        response = decoded(host, body)
    except (LMUnexpectedError, LMServerError) as found:
        error = found
    else:
        check(response.choices[0])
        return
    assert error.retryable
    assert isinstance(error, LMUnexpectedError) or not body["answers"]  # nothing is left of the answers


@HOSTS
@given(VALUES)
@example({"answers": {"error": 1}})
@example({"answers": [[]]})
@example({"answers": 7, "prompt_feedback": {}})
def test_any_json_in_place_of_a_reply_is_an_error(host: str, body: Any) -> None:
    for each in (body, {"answers": body}, {"answers": {"urgent": body}}, {"answers": [body]}):
        with pytest.raises((LMUnexpectedError, LMServerError)) as caught:
            decoded(host, each)
        assert caught.value.retryable or isinstance(each, str)


@HOSTS
@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_shares_are_taken_if_rounding_explains_their_sum(host: str, shares: list[float]) -> None:
    body, path = body_of(host), "ticket.count"
    answer: Any = (
        next(each for each in body["answers"] if each["name"] == path)
        if host == "openai"
        else body["answers"]["q3" if host == "gemini" else path]
    )
    labels = ("1", "2", "null")
    answer["probabilities"] = (
        [{"value": label, "probability": p} for label, p in zip(labels, shares, strict=True)]
        if host == "openai"
        else dict(zip(labels, shares, strict=True))
    )
    most = 0.005 * sum(share > 0 for share in shares)
    if not -0.015 - 1e-6 <= math.fsum(shares) - 1 <= most + 1e-6:
        with pytest.raises(LMUnexpectedError, match="probabilities sum to"):
            decoded(host, body)
        return
    evidence: Any = decoded(host, body).choices[0].evidence
    assert evidence[path]["probabilities"] == shares
