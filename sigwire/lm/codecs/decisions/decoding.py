"""Decision endpoints: body -> Response. Answers are checked one by one; a reply with a wrong one is no answer at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from sigwire.core.evidence import decide, normalized
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.record import UNSET
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.errors import LMError, LMServerError, LMUnexpectedError
from sigwire.lm.codecs.decisions.profiles import DecisionsProfile
from sigwire.lm.codecs.decisions.questions import AskedQuestion, answer_object
from sigwire.lm.codecs.decisions.tables import USAGE
from sigwire.lm.codecs.shared.choices import response_of_body
from sigwire.lm.codecs.shared.errors import ErrorRule, empty_reply_error, lm_error
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import is_number, object_of, string_of
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["decode", "decode_error"]

_Target: TypeAlias = Target[DecisionsProfile]


def decode(body: JsonValue, sent: EncodedRequest, target: _Target) -> Response:
    """Return the response of a reply with status 200. Raises an ``LMError`` for a failure and for a misfit."""
    if not isinstance(body, dict) or body.get("error"):
        raise _failure(body, target)
    feedback = object_of(body.get("prompt_feedback"))
    warnings: tuple[LMWarning, ...] = ()
    if not body.get("answers") and feedback:
        choice = _blocked(feedback, body)
    elif not body.get("answers"):
        raise empty_reply_error("answers", body, target)
    else:
        choice, warnings = _choice(body, cast("tuple[AskedQuestion, ...]", sent.questions or ()), target)
    counts = read_usage(body.get("usage"), USAGE)
    if not target.profile.bills_output:
        counts = counts._replace(usage=replace(counts.usage, unbilled_tokens=counts.usage.output_tokens))
    return response_of_body(body, (choice,), counts, sent, warnings)


def _failure(body: JsonValue, target: _Target) -> LMError:
    return decode_error(200, {}, body, target) if isinstance(body, dict) else empty_reply_error("answers", body, target)


def _blocked(feedback: JsonObject, body: JsonObject) -> Choice:
    reason = (
        string_of(feedback, "block_reason_message") or string_of(feedback, "block_reason") or "the input was blocked"
    )
    return Choice(refusal=reason, finish_reason="content_filter", raw=body.get("answers"))


def _choice(
    body: JsonObject, questions: tuple[AskedQuestion, ...], target: _Target
) -> tuple[Choice, tuple[LMWarning, ...]]:
    asked = [question for question in questions if question.is_asked]
    answers = _answers_by_path(body["answers"], asked, target)
    evidence: JsonObject = {question.path: _read_answer(question, answers[question.path], target) for question in asked}
    refused = {path for path, each in evidence.items() if "refused" in object_of(each)}
    # A list is decided by all its members.
    lists = {question.keys for question in questions if question.path in refused}
    decided = [(question, _decide(question, evidence, question.keys in lists)) for question in questions]
    lost = _names_of(question for question in questions if question.keys in lists and not _goes_without(question))
    if refused and (lost or len(refused) == len(evidence)):
        lost = lost or _names_of(question for question in questions if question.keys in lists)
        refusal = f"it gives no answer to {', '.join(lost)}"
        rest = answer_object(each for each in decided if each[0].keys not in lists)
        choice = Choice(
            dumps(rest), refusal=refusal, finish_reason="content_filter", evidence=evidence, raw=body["answers"]
        )
        return choice, ()
    text = dumps(answer_object(decided))
    warnings = tuple(
        LMWarning("evidence", f"{target.label} declined to answer {name!r}; the output has its default, or None.")
        for name in _names_of(question for question in questions if question.keys in lists)
    )
    return Choice(text, evidence=evidence, raw=body["answers"]), warnings


def _names_of(questions: Iterator[AskedQuestion]) -> list[str]:
    return [*dict.fromkeys(".".join(question.keys) for question in questions)]


def _goes_without(question: AskedQuestion) -> bool:
    return question.is_optional or question.is_nullable


def _decide(question: AskedQuestion, evidence: Mapping[str, JsonValue], is_refused: bool) -> Any:
    if not question.is_asked:
        return question.values[0]
    if is_refused:
        return None if question.is_nullable and not question.is_optional else UNSET
    found: Any = evidence[question.path]
    probabilities = normalized(found["probabilities"])
    answered = found.get("answered", UNSET)
    assert probabilities is not None, "a sum was checked"
    return decide(question.kind, question.values, probabilities, answered=answered, is_mean=question.is_mean)[0]


# --- answers


def _answers_by_path(given: JsonValue, asked: Sequence[AskedQuestion], target: _Target) -> Mapping[str, JsonObject]:
    """Return the answer to each question. Raises for an unknown, a missing and a double name."""
    paths = {each.name: each.path for each in asked}
    found: dict[str, JsonObject] = {}
    for name, answer in _named_answers(given, target.profile):
        path = paths.get(name) if isinstance(name, str) else None
        if path is None:
            raise _misfit(f"answer {name!r:.80}: no question has this name", target)
        if path in found:
            raise _misfit(f"answer {path!r}: it came twice", target)
        if not isinstance(answer, dict):
            raise _misfit(f"answer {path!r}: it is no object", target)
        found[path] = answer
    if missing := next((path for path in paths.values() if path not in found), None):
        raise _misfit(f"answer {missing!r}: it is missing", target)
    return found


def _named_answers(given: JsonValue, profile: DecisionsProfile) -> list[tuple[JsonValue, JsonValue]]:
    if profile.form == "listed":
        listed = given if isinstance(given, list) else [given]
        return [(object_of(each).get("name"), each) for each in listed]
    return [*object_of(given).items()] or [(None, given)]


def _read_answer(question: AskedQuestion, answer: JsonObject, target: _Target) -> JsonObject:
    """Return the evidence of an answer. Raises if it does not fit its question."""
    profile = target.profile
    form = question.form
    if answer.get("type") == "refusal" and profile.form == "listed":
        return {"refused": True}
    if answer.get("type") != (wanted := profile.kinds[form]):
        raise _misfit(f"answer {question.path!r}: its type is {answer.get('type')!r:.80}, not {wanted!r}", target)
    if form == "bool":
        true = _probability(answer.get("probability" if profile.form == "listed" else "noul"), question, target)
        return {"values": [True, False], "probabilities": [true, 1 - true]}
    shares = _shares(question, answer.get("probabilities"), target)
    answered = _score(question, answer, target) if form == "score" else _answered(question, answer, target)
    evidence: JsonObject = {"values": [*question.values], "probabilities": shares, "answered": answered}
    if is_number(confidence := answer.get("confidence")) and 0 <= confidence <= 1:
        evidence["confidence"] = confidence
    return evidence


def _place_of(key: JsonValue, question: AskedQuestion, target: _Target) -> int:
    at = question.places.get((type(key), key)) if type(key) in _KEY_TYPES else None
    if at is None:
        raise _misfit(f"answer {question.path!r}: {key!r:.80} is no value of it", target)
    return at


_KEY_TYPES = frozenset({str, int, bool})  # an answer may have a list in place of a value


def _shares(question: AskedQuestion, given: JsonValue, target: _Target) -> list[JsonValue]:
    """Return the probability of each value, in the order of the question."""
    if target.profile.form == "listed":
        members = given if isinstance(given, list) else ()
        pairs = [
            (each.get("value"), each.get("probability")) if isinstance(each, dict) else (None, None) for each in members
        ]
    else:
        pairs = [*object_of(given).items()]
    shares: list[Any] = [None] * len(question.places)
    for key, share in pairs:
        at = _place_of(key, question, target)
        if shares[at] is not None:
            raise _misfit(f"answer {question.path!r}: the value {key!r:.80} came twice", target)
        shares[at] = _probability(share, question, target)
    if None in shares:
        missing = [key for _, key in question.places][shares.index(None)]
        raise _misfit(f"answer {question.path!r}: the value {missing!r:.80} is missing", target)
    if not _is_whole(shares):
        raise _misfit(f"answer {question.path!r}: probabilities sum to {math.fsum(shares):.6g}", target)
    return shares


def _is_whole(shares: Sequence[float]) -> bool:
    """Return True if probabilities sum to 1, as nearly as hosts round: to two decimals, and no zero up."""
    excess = math.fsum(shares) - 1
    if abs(excess) <= 1e-6:
        return True
    least, most = -0.005 * len(shares) - 1e-6, 0.005 * sum(share > 0 for share in shares) + 1e-6
    return least <= excess <= most and any(shares)


def _score(question: AskedQuestion, answer: JsonObject, target: _Target) -> JsonValue:
    """Return the host's own answer to a score: the mean level."""
    score = answer.get("score")
    if not is_number(score) or not 0 <= score <= len(question.values) - 1:
        raise _misfit(f"answer {question.path!r}: {score!r:.80} is no level of it", target)
    return score


def _answered(question: AskedQuestion, answer: JsonObject, target: _Target) -> JsonValue:
    """Return the host's own answer to a choice: a value of the question."""
    value: JsonValue = question.values[_place_of(answer.get("choice"), question, target)]
    return value


def _probability(given: JsonValue, question: AskedQuestion, target: _Target) -> float:
    if not (isinstance(given, float) or type(given) is int) or not 0 <= given <= 1:
        raise _misfit(f"answer {question.path!r}: {given!r:.80} is no probability", target)
    return float(given)


def _misfit(what: str, target: _Target) -> LMUnexpectedError:
    error = LMUnexpectedError(
        f"The reply does not fit the questions: {what} (reading the reply). Ask again.",
        model=target.model,
        provider=target.provider,
        status=200,
    )
    error.retryable = True
    return error


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str | JsonValue, target: _Target) -> LMError:
    """Return the error of a reply with an error status."""
    fault = target.profile.read_error(status, headers, body)
    return lm_error(fault, (*target.profile.errors, ErrorRule(LMServerError, frozenset({200}))), target)
