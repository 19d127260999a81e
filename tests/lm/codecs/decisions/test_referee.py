"""Decision endpoints against the official packages: their types, their clients, and the fake provider between them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from sigwire.core.json import JsonObject
from sigwire.lm.codecs.decisions import encode
from sigwire.testing import FakeProvider, Fault
from tests.lm.codecs.decisions.test_encoding import TALK
from tests.lm.codecs.decisions.triage import SCHEMA, TEXT, asked, body_of, decoded, target_of

SCRIPT: JsonObject = {
    "urgent": 0.75,
    "down": 0.25,
    "ticket.team": {"billing": 0.25, "tech": 0.75},
    "ticket.count": {"1": 0.5, "2": 0.125, "null": 0.375},
    "harm": [0.25, 0.75],
    "grade": {"low": 0.125, "mid": 0.25, "high": 0.625},
    "tags[vip]": 0.875,
    "tags[legal]": 0.125,
}
NUMBERED: JsonObject = {f"q{number}": answer for number, answer in enumerate(SCRIPT.values())}


def body(host: str) -> dict[str, Any]:
    turns = TALK if host == "openai" else (TALK[0], *TALK[3:])
    return json.loads(json.dumps(encode(asked(SCHEMA, *TALK if host != "system-one" else turns), target_of(host)).body))  # type: ignore[no-any-return]


def test_openai_body_fits_the_types_of_the_official_package() -> None:
    params = pytest.importorskip("openai.types.decision_create_params", reason="openai has no decisions")
    sent = body("openai")
    assert TypeAdapter(params.DecisionCreateParams).validate_python(sent, extra="forbid")
    # ``Iterable`` fields are read lazily: each member by itself.
    for question in sent["questions"]:
        TypeAdapter(params.Question).validate_python(question, strict=True)
    for item in sent["input"]:
        TypeAdapter(params.InputUnionMember1).validate_python(item)


def test_openai_reply_of_the_fake_provider_is_a_decision() -> None:
    decision = pytest.importorskip("openai.types", reason="the official openai package is not installed").Decision
    refused = {**SCRIPT, "urgent": None}
    with FakeProvider([json.dumps(SCRIPT), json.dumps(refused)]) as provider:
        for _ in range(2):
            _post(provider.url("decisions") + "/decisions", body("openai"))
        for sent in provider.requests:
            decision.model_validate_json(json.dumps(sent.answer), strict=True)
    assert [_kinds(sent.answer)[0] for sent in provider.requests] == ["predicate", "refusal"]


def _kinds(answer: Any) -> list[str]:
    return [each["type"] for each in answer["answers"]]


def _post(url: str, sent: Any) -> Any:
    from urllib.request import Request, urlopen

    headers = {"Authorization": "Bearer k", "Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(sent).encode(), headers)) as reply:
        return json.loads(reply.read())


def test_official_openai_client_reads_the_fake_provider_as_sigwire_does() -> None:
    openai = pytest.importorskip("openai", reason="the official openai package is not installed")
    with FakeProvider([json.dumps(SCRIPT)]) as provider:
        many = [{"type": "predicate", "instructions": "?", "name": str(n)} for n in range(401)]
        with openai.OpenAI(api_key="k", base_url=provider.url("decisions"), max_retries=0) as client:
            decision = client.decisions.create(**body("openai"))
            with pytest.raises(openai.BadRequestError, match="maximum length 400") as caught:
                client.decisions.create(model="m", input="x", questions=many)
    assert caught.value.param == "questions"
    by_name = {answer.name: answer for answer in decision.answers}
    assert (by_name["urgent"].probability, by_name["down"].choice, by_name["harm"].score) == (0.75, False, 0.75)
    assert by_name["ticket.count"].choice == "1"
    choice = decoded("openai", provider.requests[0].answer).choices[0]
    assert json.loads(choice.text) == TEXT


@pytest.mark.long  # the import of google-genai takes a second
def test_official_gemini_client_reads_the_fake_provider_as_sigwire_does() -> None:
    genai = pytest.importorskip("google.genai", reason="google-genai is not installed")
    if not hasattr(genai.Client, "decisions"):
        pytest.skip("google-genai has no decisions")
    with (
        FakeProvider([json.dumps(NUMBERED)]) as provider,
        genai.Client(api_key="k", http_options={"base_url": provider.url("gemini-decisions")}) as client,
    ):
        reply = client.decisions.create(**body("gemini"))
    assert provider.requests[0].body == body("gemini")
    assert (reply.answers["q0"].noul, reply.answers["q3"].choice, reply.answers["q4"].score) == (0.75, "1", 0.75)
    assert json.loads(decoded("gemini", provider.requests[0].answer).choices[0].text) == TEXT


def test_official_system_one_client_reads_the_fake_provider_as_sigwire_does() -> None:
    sdk = pytest.importorskip("typesafe_sdk", reason="typesafe-sdk is not installed")
    sent = body("system-one")
    with FakeProvider([json.dumps(SCRIPT)]) as provider:
        url = provider.url("system-one")
        with sdk.TypeSafeClient(api_key="k", base_url=url, retry=sdk.RetryPolicy(max_retries=0)) as client:
            reply = client.system_one(sent["state"], sent["questions"], model="m")
            many = {str(level): None for level in range(256)}
            with pytest.raises(
                sdk.TypeSafeUnprocessableEntityError, match=r"questions\.c\.criteria: Value should have at most"
            ):
                client.system_one("x", {"c": {"type": "choice", "instructions": "?", "criteria": many}}, model="m")
    received: Any = provider.requests[0].body
    assert received == sent
    assert (reply.nouls["urgent"].noul, reply.choices["ticket.count"].choice, reply.scores["harm"].score) == (
        0.75,
        "1",
        0.75,
    )
    assert json.loads(decoded("system-one", provider.requests[0].answer).choices[0].text) == TEXT


def test_official_system_one_client_may_leave_instructions_out_and_send_objects() -> None:
    sdk = pytest.importorskip("typesafe_sdk", reason="typesafe-sdk is not installed")
    questions = {
        "urgent": sdk.Noul(criteria={"true": {"rule": "down"}}),
        "team": sdk.Choice(instructions=["Which", "team"], criteria={"a": None, "b": {"of": "tech"}}),
        "harm": sdk.Score(criteria=["none", {"level": "severe"}]),
    }
    with FakeProvider(['{"urgent": 0.75, "team": "b", "harm": 1}']) as provider:
        url = provider.url("system-one")
        with sdk.TypeSafeClient(api_key="k", base_url=url, retry=sdk.RetryPolicy(max_retries=0)) as client:
            reply = client.system_one({"text": "x"}, questions, model="m")
    assert (reply.nouls["urgent"].noul, reply.choices["team"].choice, reply.scores["harm"].score) == (0.75, "b", 1)


@pytest.mark.long
def test_official_gemini_client_may_send_blocks() -> None:
    genai = pytest.importorskip("google.genai", reason="google-genai is not installed")
    if not hasattr(genai.Client, "decisions"):
        pytest.skip("google-genai has no decisions")
    text = {"type": "text", "text": "Urgent?"}
    sound = {"type": "audio", "data": "aGk=", "mime_type": "audio/wav"}
    document = {"type": "document", "uri": "https://a.example/b.pdf"}
    with (
        FakeProvider(['{"u": 0.75}'] * 2) as provider,
        genai.Client(api_key="k", http_options={"base_url": provider.url("gemini-decisions")}) as client,
    ):
        for given in ([sound, document, text], text):
            question = {"type": "noul", "instructions": [text]}
            reply = client.decisions.create(model="m", input=given, questions={"u": question})
            assert reply.answers["u"].noul == 0.75


def test_error_replies_of_the_fake_provider_are_errors_of_the_official_clients() -> None:
    sdk = pytest.importorskip("typesafe_sdk", reason="typesafe-sdk is not installed")
    openai = pytest.importorskip("openai", reason="the official openai package is not installed")
    slow = Fault("rate_limit", "Slow down.", retry_after=7)
    with FakeProvider([slow, slow]) as provider:
        url = provider.url("system-one")
        with (
            sdk.TypeSafeClient(api_key="k", base_url=url, retry=sdk.RetryPolicy(max_retries=0)) as client,
            pytest.raises(sdk.TypeSafeRateLimitError, match="Slow down") as limited,
        ):
            client.system_one("x", {"u": sdk.Noul(instructions="?")}, model="m")
        with (
            openai.OpenAI(api_key="k", base_url=provider.url("decisions"), max_retries=0) as asking,
            pytest.raises(openai.RateLimitError, match="Slow down"),
        ):
            asking.decisions.create(**body("openai"))
    assert (limited.value.retry_after_ms, bool(limited.value.request_id)) == (7000, True)


def test_replies_of_these_tests_fit_the_official_types() -> None:
    decision = pytest.importorskip("openai.types", reason="the official openai package is not installed").Decision
    details = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "total_tokens": 13}
    usage = {"input_tokens": 9, "output_tokens": 4, **details, "output_tokens_details": {"reasoning_tokens": 0}}
    decision.model_validate_json(json.dumps({**body_of("openai"), "usage": usage}), strict=True)
