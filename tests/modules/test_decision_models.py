"""Predict with models that decide only: every way of calling, caches and files, refused questions, failures."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import sigwire
from sigwire import (
    LM,
    Budget,
    CallReport,
    Cassette,
    ChainOfThought,
    InputField,
    Journal,
    LMRateLimitError,
    LMUnexpectedError,
    OutputField,
    Parallel,
    Predict,
    Prediction,
    ReAct,
    Refused,
    Response,
    Signature,
    UnsupportedFeature,
)
from sigwire.core.events import collect, events_of
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import UnsupportedOption
from sigwire.lm.codecs.shared.choices import join_responses
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.testing import FakeProvider, Fault, Raw
from tests.grids import grid
from tests.ways import called, in_every_way


class Team(Enum):
    BILLING = "billing"
    TECH = "tech"


class Ticket(BaseModel):
    team: Team
    known: bool | None


class Triage(Signature):
    """Sort the ticket."""

    text: str = InputField()
    urgent: bool = OutputField(desc="Must someone act within the hour?")
    ticket: Ticket = OutputField()
    tags: list[Literal["vip", "legal"]] = OutputField()


SCRIPT: dict[str, Any] = {
    "urgent": 0.75, "ticket.team": {"billing": 0.25, "tech": 0.75}, "ticket.known": {"null": 0.5, "true": 0.5},
    "tags[vip]": 0.875, "tags[legal]": 0.25,
}  # fmt: skip
EVIDENCE: dict[str, Any] = {
    "urgent": [0.75, 0.25], "ticket.team": [0.25, 0.75], "ticket.known": [0.5, 0.0, 0.5],
    "tags[vip]": [0.875, 0.125], "tags[legal]": [0.25, 0.75],
}  # fmt: skip
HOSTS: dict[str, tuple[str, dict[str, Any]]] = {
    "decisions": ("openai/gpt-6-luna", {"wire": "decisions"}),
    "system-one": ("system-one/jev", {}),
    "gemini-decisions": ("gemini/decisions-1", {"wire": "decisions"}),
}


def script(host: str, answers: dict[str, Any] = SCRIPT) -> str:
    named = {f"q{number}": answer for number, answer in enumerate(answers.values())}
    return json.dumps(named if host == "gemini-decisions" else answers)


def lm_of(provider: FakeProvider, host: str = "decisions", **options: Any) -> LM:
    model, wire = HOSTS[host]
    return LM(model, base_url=provider.url(host), api_key="k", **{"num_retries": 0, **wire, **options})


def shares_of(prediction: Any) -> Any:
    response = CallReport.of(prediction).response
    assert response is not None
    evidence: Any = response.choices[0].evidence
    return {path: each["probabilities"] for path, each in evidence.items()}


def check(prediction: Any) -> None:
    assert (prediction.urgent, prediction.tags) == (True, ["vip"])
    assert prediction.ticket == Ticket(team=Team.TECH, known=True)
    assert shares_of(prediction) == EVIDENCE


@in_every_way
@pytest.mark.parametrize("host", HOSTS)
def test_predict_returns_typed_outputs_and_their_evidence(host: str, way: Any) -> None:
    with FakeProvider([script(host)]) as provider:
        prediction = way(Predict(Triage, lm=lm_of(provider, host)), text="The shop is down.")
    check(prediction)
    assert CallReport.of(prediction).mode == "decisions"
    assert len(provider.requests) == 1


def test_prompt_has_instructions_demos_and_inputs_only() -> None:
    predict = Predict(Triage)
    predict.demos = [{"text": "Hi", "urgent": False, "ticket": Ticket(team=Team.TECH, known=None), "tags": []}]
    with FakeProvider([script("decisions")]) as provider:
        predict(text="The shop is down.", lm=lm_of(provider))
    body: Any = provider.requests[0].body
    system, asked, answer, last = body["input"]
    assert system["content"].splitlines() == [
        "The first exchange is an example of the task, not part of the conversation.",
        "",
        "Sort the ticket.",
    ]
    assert (asked["content"], last["content"]) == ("[[ ## text ## ]]\nHi", "[[ ## text ## ]]\nThe shop is down.")
    assert json.loads(answer["content"]) == {"urgent": False, "ticket": {"team": "tech", "known": None}, "tags": []}


def test_request_without_demos_has_the_bare_instructions() -> None:
    with FakeProvider([script("decisions")]) as provider:
        Predict(Triage, lm=lm_of(provider))(text="x")
    body: Any = provider.requests[0].body
    assert [item["content"] for item in body["input"]] == ["Sort the ticket.", "[[ ## text ## ]]\nx"]


@pytest.mark.parametrize("adapter", [sigwire.ChatAdapter(demos="system"), sigwire.XMLAdapter(), sigwire.JSONAdapter()])
def test_every_adapter_asks_the_questions(adapter: Any) -> None:
    with FakeProvider([script("decisions")]) as provider, sigwire.context(adapter=adapter):
        check(Predict(Triage, lm=lm_of(provider))(text="x"))


# --- stored answers


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[None]:
    configure_cache(disk_cache_dir=tmp_path / "cache")
    yield
    configure_cache(enable_disk_cache=False, enable_memory_cache=False)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("host", HOSTS)
def test_cached_answer_has_its_evidence(host: str) -> None:
    with FakeProvider([script(host)]) as provider:
        predict = Predict(Triage, lm=lm_of(provider, host))
        for _ in range(2):
            check(predict(text="The shop is down."))
    assert len(provider.requests) == 1


def streamed_value(predict: Any) -> Any:
    return [*predict.stream(text="x")][-1].value


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_cassette_replays_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamed: bool) -> None:
    monkeypatch.delenv("CI", raising=False)
    with FakeProvider([script("decisions")]) as provider:
        predict = Predict(Triage, lm=lm_of(provider))
        for _ in range(2):
            with Cassette(tmp_path / "run.jsonl"):
                check(streamed_value(predict) if streamed else predict(text="x"))
    assert len(provider.requests) == 1


def test_journal_replays_evidence(tmp_path: Path) -> None:
    with FakeProvider([script("decisions")]) as provider, Journal(tmp_path / "runs.sqlite3") as journal:
        predict = Predict(Triage, lm=lm_of(provider))
        for _ in range(2):
            check(journal.run(predict, "one", text="x"))
    assert len(provider.requests) == 1


def test_response_with_evidence_survives_json_pickle_events_and_joining() -> None:
    with FakeProvider([script("decisions")]) as provider:
        prediction = Predict(Triage, lm=lm_of(provider))(text="x")
    response: Any = CallReport.of(prediction).response
    assert Response.from_json(json.loads(json.dumps(response.to_json()))) == response
    assert pickle.loads(pickle.dumps(response)) == response
    evidence = response.choices[0].evidence
    assert collect(events_of(response)) == response
    assert [choice.evidence for choice in join_responses([response, response]).choices] == [evidence, evidence]


def test_json_of_a_response_without_evidence_is_as_before() -> None:
    assert "evidence" not in json.dumps(Response((sigwire.Choice("4"),)).to_json())


def test_parallel_calls_keep_their_evidence() -> None:
    with FakeProvider(lambda request: script("decisions")) as provider:
        predict = Predict(Triage, lm=lm_of(provider))
        for prediction in Parallel(num_threads=2)([(predict, {"text": str(number)}) for number in range(3)]):
            check(prediction)


# --- refused questions


class Guarded(Signature):
    text: str = InputField()
    urgent: bool = OutputField(default=False)
    known: bool | None = OutputField()
    team: Literal["a", "b"] = OutputField()


FULL: dict[str, Any] = {"urgent": 1, "known": {"true": 1}, "team": "b"}


@in_every_way
def test_refused_outputs_with_a_default_or_none_go_without_an_answer(way: Any) -> None:
    with FakeProvider([json.dumps({**FULL, "urgent": None, "known": None})]) as provider:
        prediction = way(Predict(Guarded, lm=lm_of(provider)), text="x")
    assert (prediction.urgent, prediction.known, prediction.team) == (False, None, "b")
    report = CallReport.of(prediction)
    named = [warning.detail.split("'")[1] for warning in report.warnings if warning.feature == "evidence"]
    assert named == ["urgent", "known"]
    assert report.usage.output_tokens is not None
    assert len(provider.requests) == 1


@grid("refused, way", [("team",), ("urgent", "team"), ("urgent", "known", "team")], in_every_way.args[1])
def test_refused_output_without_a_default_raises_an_error_with_its_name(refused: tuple[str, ...], way: Any) -> None:
    answers = {**FULL, **dict.fromkeys(refused)}
    with FakeProvider([json.dumps(answers)]) as provider, pytest.raises(Refused, match="team") as caught:
        way(Predict(Guarded, lm=lm_of(provider)), text="x")
    error = caught.value
    assert isinstance(error.partial, Prediction)
    assert [*error.partial.keys()] == ["urgent", "known"]  # an output with a default, or None, has it
    assert [attempt.usage.input_tokens for attempt in error.attempts] == [provider_tokens(provider)]
    assert len(provider.requests) == 1  # a refusal is not asked again


def provider_tokens(provider: FakeProvider) -> int:
    answer: Any = provider.requests[0].answer
    tokens: int = answer["usage"]["input_tokens"]
    return tokens


def test_refusal_of_another_wire_has_no_partial_answer() -> None:
    with pytest.raises(Refused) as caught:
        Predict("text -> answer", lm=sigwire.FakeLM([sigwire.Choice(refusal="No.")]))(text="x")
    assert caught.value.partial is None


# --- failures and policies


@in_every_way
def test_reply_that_does_not_fit_is_asked_again_and_counted(way: Any) -> None:
    broken: Any = {"answers": [{"type": "predicate", "name": "urgent", "probability": 1.7}], "model": "m", "usage": {}}
    with FakeProvider([Raw(broken), Fault("rate_limit", retry_after=0), json.dumps(FULL)]) as provider:
        prediction = way(Predict(Guarded, lm=lm_of(provider, num_retries=2)), text="x")
    purposes = [(attempt.purpose, attempt.error) for attempt in CallReport.of(prediction).attempts]
    assert purposes == [("ask", "unexpected"), ("retry", "rate_limit"), ("retry", None)]


def test_reply_that_does_not_fit_gives_no_prediction() -> None:
    with FakeProvider([Raw({"answers": [], "model": "m"}), Raw({"answers": [{"name": "x"}]})]) as provider:
        predict = Predict(Guarded, lm=lm_of(provider))
        with pytest.raises(sigwire.LMError):
            predict(text="x")
        with pytest.raises(LMUnexpectedError, match="no question has this name"):
            predict(text="x")


@in_every_way
@pytest.mark.parametrize("other", ["system-one", "openai"])
def test_other_model_answers_after_a_failure(other: str, way: Any) -> None:
    answers = {"system-one": json.dumps(FULL), "openai": '{"urgent": true, "known": true, "team": "b"}'}
    with FakeProvider([Fault("server"), answers[other]]) as provider:
        plain = LM("groq/llama-3.3-70b", base_url=provider.url("openai"), api_key="k", num_retries=0)
        fallback = lm_of(provider, "system-one") if other == "system-one" else plain
        prediction = way(Predict(Guarded, lm=lm_of(provider, fallbacks=[fallback])), text="x")
    assert (prediction.urgent, prediction.known, prediction.team) == (True, True, "b")
    assert [attempt.purpose for attempt in CallReport.of(prediction).attempts] == ["ask", "fallback"]


def text_lm(provider: FakeProvider, **options: Any) -> LM:
    return LM("openai/gpt-4.1", base_url=provider.url("openai"), api_key="k", num_retries=0, **options)


@pytest.mark.parametrize("evidence", [None, "auto", "measured"])
def test_text_model_that_answers_for_a_decider_gives_no_evidence_and_a_warning(evidence: Any) -> None:
    with FakeProvider([Fault("server"), '{"urgent": true, "known": true, "team": "b"}']) as provider:
        lm = lm_of(provider, fallbacks=[text_lm(provider)])
        prediction = Predict(Guarded, lm=lm, evidence=evidence)(text="x")
    assert (prediction.team, dict(prediction.evidence)) == ("b", {})
    report = CallReport.of(prediction)
    assert [attempt.model for attempt in report.attempts] == ["openai/gpt-6-luna", "openai/gpt-4.1"]
    named = [warning.detail.split(" ")[0] for warning in report.warnings if warning.feature == "evidence"]
    assert named == ([] if evidence is None else ["urgent", "known", "team"])


def test_evidence_of_a_decider_that_answers_for_a_text_model_is_measured() -> None:
    with FakeProvider([Fault("server"), json.dumps(FULL)]) as provider, sigwire.context(adapter=sigwire.JSONAdapter()):
        prediction = Predict(Guarded, lm=text_lm(provider, fallbacks=[lm_of(provider)]))(text="x")
    assert {path: found.source for path, found in prediction.evidence.items()} == dict.fromkeys(
        ["urgent", "known", "team"], "measured"
    )


@pytest.mark.parametrize(
    ("evidence", "adapter"),
    [(None, "chat"), ("stated", "json"), ("sampled", "json"), ("logprob", "json")],
)
def test_request_that_only_texts_can_answer_is_not_sent_to_a_decider(evidence: Any, adapter: str) -> None:
    layout = sigwire.ChatAdapter() if adapter == "chat" else sigwire.JSONAdapter()
    with FakeProvider([Fault("server")] * 5) as provider, sigwire.context(adapter=layout):
        lm = text_lm(provider, fallbacks=[lm_of(provider)])
        with pytest.raises(sigwire.LMServerError, match="No other model is left"):
            Predict(Guarded, lm=lm, evidence=evidence)(text="x")
    assert {sent.path for sent in provider.requests} == {"/v1/chat/completions"}


def test_budget_counts_a_decision() -> None:
    with FakeProvider([json.dumps(FULL)] * 2) as provider, Budget(calls=1) as budget:
        predict = Predict(Guarded, lm=lm_of(provider))
        with sigwire.context(budget=budget):
            predict(text="x")
            with pytest.raises(sigwire.BudgetSpent):
                predict(text="y")
    assert len(provider.requests) == 1


def test_error_of_the_host_has_its_class_and_text() -> None:
    with (
        FakeProvider([Fault("rate_limit", "Slow down")]) as provider,
        pytest.raises(LMRateLimitError, match="Slow down"),
    ):
        Predict(Guarded, lm=lm_of(provider, "system-one"))(text="x")


# --- what is refused before anything is sent


@in_every_way
@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (Predict("text -> answer"), "'answer' is of type string"),
        (Predict("text -> score: float"), "'score' is a number without levels"),
        (ChainOfThought("text -> urgent: bool"), "'reasoning' is of type string"),
        (ReAct("text -> urgent: bool", tools=[len]), "has tools"),
    ],
    ids=["text", "number", "reasoning", "agent"],
)
def test_module_that_a_decider_cannot_answer_is_refused(module: Any, problem: str, way: Any) -> None:
    with FakeProvider() as provider, sigwire.context(lm=lm_of(provider)):
        with pytest.raises(UnsupportedFeature, match=problem):
            way(module, text="x")
        assert provider.requests == ()


def test_request_with_tools_is_refused_in_words_about_deciders() -> None:
    tool: Any = {"type": "function", "function": {"name": "f"}}
    with FakeProvider() as provider, pytest.raises(UnsupportedFeature, match="has no place for tools"):
        lm_of(provider).respond(Request((Message.user("x"),), (tool,)))
    assert provider.requests == ()


@pytest.mark.parametrize(
    ("options", "kind"), [({"n": 2}, UnsupportedFeature), ({"temperature": 0.5}, UnsupportedOption)]
)
def test_option_that_a_decider_does_not_have_is_refused(options: dict[str, Any], kind: type[Exception]) -> None:
    with FakeProvider() as provider, pytest.raises(kind):
        Predict(Guarded, lm=lm_of(provider))(text="x", config=options)
    assert provider.requests == ()


def test_capabilities_are_those_of_the_wire() -> None:
    plain = LM("openai/gpt-6-luna", api_key="k")
    assert (plain.capabilities.decides, plain.copy(wire="decisions").capabilities.decides) == ("no", "only")
    given = replace(plain.capabilities, decides="also")
    assert LM("openai/gpt-6-luna", api_key="k", wire="decisions", capabilities=given).capabilities.decides == "also"
    assert LM("typesafe/jev-latest", api_key="k").capabilities.decides == "only"


@pytest.mark.parametrize("host", HOSTS)
def test_address_of_the_endpoint_is_a_base_url(host: str) -> None:
    paths = {"decisions": "/decisions", "system-one": "/v1/systemone", "gemini-decisions": "/v1/decisions"}
    model, wire = HOSTS[host]
    answers = {"urgent": 1.0, "known": {"true": 1}, "team": "b"}
    with FakeProvider([script(host, answers)]) as provider:
        lm = LM(model, base_url=provider.url(host) + paths[host], api_key="k", **wire)
        assert called(Predict(Guarded, lm=lm), text="x").team == "b"


def test_decisions_have_no_batch_api(tmp_path: Path) -> None:
    from sigwire import BatchLM

    with pytest.raises(sigwire.ConfigurationError, match="no batch API"):
        BatchLM(LM("openai/gpt-6-luna", wire="decisions", api_key="k"), store=tmp_path / "b.batch")
