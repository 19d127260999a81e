"""Predict(evidence=...): sources of distributions, rules, abstention, and what is refused before anything is sent."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.cassettes.cassette import Cassette
from sigwire.core.capabilities import Capabilities
from sigwire.core.events import FieldDelta, FieldEnd, FieldPartial, Finished
from sigwire.core.evidence import DecisionRule, Evidence, Question
from sigwire.core.example import Prediction
from sigwire.core.report import CallReport
from sigwire.core.response import Choice
from sigwire.errors import AdapterParseError, ConfigurationError, StateError, UnsupportedFeature, Unsure
from sigwire.journal.journal import Journal
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.lm.router import Router
from sigwire.modules.agents.react import ReAct
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.parallel import Parallel
from sigwire.modules.predict import Predict
from sigwire.modules.sampling.best_of_n import BestOfN
from sigwire.settings import context
from sigwire.signatures.criteria import Criteria
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature
from sigwire.testing.fake_provider import FakeProvider, Fault


class Area(Enum):
    BILLING = "billing"
    REPAIR = "repair"


class Ticket(BaseModel):
    area: Area
    loud: bool | None = None


class Triage(Signature):
    """Sort the ticket."""

    text: str = InputField()
    urgent: Annotated[bool, Criteria({True: "service is down"})] = OutputField()
    mood: Literal["calm", "angry", "sad"] = OutputField()
    harm: Annotated[float, Criteria("none", "minor", "severe")] = OutputField()
    ticket: Ticket = OutputField()
    tags: list[Literal["spam", "money"]] = OutputField()
    why: str = OutputField()


PATHS = ["urgent", "mood", "harm", "ticket.area", "ticket.loud", "tags[spam]", "tags[money]"]
VALUES = {
    "urgent": (True, False),
    "mood": ("calm", "angry", "sad"),
    "harm": (0, 1, 2),
    "ticket.area": (Area.BILLING, Area.REPAIR),
    "ticket.loud": (True, False, None),
    "tags[spam]": (True, False),
    "tags[money]": (True, False),
}
WRITTEN: dict[str, Any] = {
    "urgent": True,
    "mood": "angry",
    "harm": 1,
    "ticket": {"area": "repair", "loud": None},
    "tags": ["money"],
    "why": "because",
}
STATED = {
    "urgent": 0.75,
    "mood": {"calm": 0.25, "angry": 0.5, "sad": 0.25},
    "harm": {"0": 0.25, "1": 0.25, "2": 0.5},
    "ticket.area": {"billing": 0.25, "repair": 0.75},
    "ticket.loud": {"true": 0.25, "false": 0.25, "null": 0.5},
    "tags[spam]": 0.25,
    "tags[money]": 0.75,
}
MEASURED: dict[str, Any] = {
    path: {
        "values": [value.value if isinstance(value, Area) else value for value in values],
        "probabilities": [STATED[path], 1 - STATED[path]]  # type: ignore[operator]
        if isinstance(STATED[path], float)
        else [*STATED[path].values()],  # type: ignore[attr-defined]
    }
    for path, values in VALUES.items()
}
DECIDED = {
    "urgent": True,
    "mood": "angry",
    "harm": 1.25,
    "ticket": Ticket(area=Area.REPAIR, loud=None),
    "tags": ["money"],
    "why": "because",
}


def tokens_of(text: str) -> dict[str, Any]:
    """Return the tokens of a text as a provider sends them, each certain: words, and marks one by one."""
    import re

    content = [
        {"token": word, "logprob": 0.0, "bytes": list(word.encode()), "top_logprobs": []}
        for word in re.findall(r"\w+|\s+|.", text)
    ]
    return {"content": content}


def answer(adapter: Any, fields: Mapping[str, Any]) -> str:
    return str(adapter.plan(Triage).layout.write(fields))


def lm_for(source: str, adapter: Any, **more: Any) -> FakeLM:
    if source == "stated":
        return FakeLM([{**WRITTEN, "evidence_": STATED}] * 9, adapter=adapter)
    if source == "measured":
        text = answer(adapter, WRITTEN)
        return FakeLM([Choice(text, evidence=MEASURED)] * 9, capabilities=Capabilities(decides="also"))
    if source == "logprob":
        text = answer(adapter, WRITTEN)
        return FakeLM([Choice(text, logprobs=tokens_of(text))] * 9)
    return FakeLM([WRITTEN] * 90, adapter=adapter)


ADAPTERS = [ChatAdapter(), JSONAdapter(), XMLAdapter()]
SOURCES = ["measured", "logprob", "sampled", "stated"]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_evidence_of_equal_paths_and_values_with_every_layout(source: Any, adapter: Any) -> None:
    with context(adapter=adapter):
        result = Predict(Triage, lm=lm_for(source, adapter), evidence=source)(text="x")
    assert {path: each.values for path, each in result.evidence.items()} == VALUES
    assert {each.source for each in result.evidence.values()} == {source}
    assert all(math.isclose(sum(each.probabilities), 1) for each in result.evidence.values())
    assert "evidence_" not in result
    assert [each for each in result.warnings if each.feature == "evidence"] == []
    assert result.why == "because"


@pytest.mark.parametrize("source", ["measured", "stated"])
@pytest.mark.parametrize("run", ["sync", "async", "stream"])
def test_values_are_decided_by_the_distributions(source: Any, run: str) -> None:
    predict = Predict(Triage, lm=lm_for(source, ChatAdapter()), evidence=source)
    if run == "sync":
        result = predict(text="x")
    elif run == "async":
        result = asyncio.run(predict.acall(text="x"))
    else:
        result = [event for event in predict.stream(text="x") if isinstance(event, Finished)][-1].value
    assert result.toDict() == Prediction(DECIDED).toDict()
    assert isinstance(result.ticket, Ticket)
    assert result.evidence["urgent"].p(True) == 0.75
    assert result.evidence["ticket.loud"].value is None


@pytest.mark.parametrize(("wire", "model"), [("decisions", "openai/gpt-decides"), ("system-one", "system-one/m")])
def test_decision_wires_measure_the_paths_and_values_of_the_others_whether_asked_or_not(wire: str, model: str) -> None:
    signature = Triage.delete("why")
    script = {**STATED, "harm": [0.25, 0.25, 0.5]}
    with FakeProvider([json.dumps(script)] * 3) as provider:
        lm = LM(model, base_url=provider.url(wire), api_key="k", wire=wire if wire == "decisions" else None)
        unasked = Predict(signature, lm=lm)(text="x")
        predict = Predict(signature, lm=lm, evidence="auto", decisions={"urgent": DecisionRule(threshold=0.8)})
        asked, streamed = predict(text="x"), list[Any](predict.stream(text="x"))[-1].value
    assert {path: each.values for path, each in unasked.evidence.items()} == VALUES
    assert unasked.toDict() == Prediction(DECIDED).without("why").toDict()
    assert (asked.urgent, asked.evidence["urgent"].p(True)) == (False, 0.75)
    assert streamed.evidence == asked.evidence


def test_lexical_model_measures_the_paths_and_values_of_the_others() -> None:
    predict = Predict(Triage, lm=LM("offline/lexical"), evidence="auto")
    first, again = (
        predict(text="An angry billing complaint, urgent"),
        predict(text="An angry billing complaint, urgent"),
    )
    assert {path: each.values for path, each in first.evidence.items()} == VALUES
    assert first.evidence == again.evidence
    assert {each.source for each in first.evidence.values()} == {"measured"}
    assert first.evidence["mood"].p("angry") > 0.5
    assert first.mood == "angry"
    none = predict(text="zzz")
    assert none.evidence["mood"].probabilities == pytest.approx((1 / 3,) * 3)
    assert none.evidence["urgent"].probabilities == (0.5, 0.5)


# --- log probabilities


def sections(**values: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in values.items()) + "\n\n[[ ## completed ## ]]"


def tokenized(parts: Sequence[tuple[str, Mapping[str, float]]]) -> Choice:
    """Return a choice of tokens, each with its alternatives; the first alternative is the token that was written."""
    content: list[Any] = [
        {
            "token": text,
            "logprob": math.log(alternatives.get(text, 1.0)),
            "top_logprobs": [{"token": other, "logprob": math.log(p)} for other, p in alternatives.items()],
        }
        for text, alternatives in parts
    ]
    return Choice("".join(text for text, _ in parts), logprobs={"content": content})


def read_one(kind: Any, parts: Sequence[tuple[str, Mapping[str, float]]]) -> Prediction:
    signature = make_signature({"text": (str, InputField()), "found": (kind, OutputField())})
    lead: Any = ("[[ ## found ## ]]\n", {})
    end: Any = ("\n\n[[ ## completed ## ]]", {})
    result: Prediction = Predict(signature, lm=FakeLM([tokenized([lead, *parts, end])]), evidence="logprob")(text="x")
    return result


@pytest.mark.parametrize(
    ("kind", "parts", "probabilities", "coverage"),
    [
        (bool, [("true", {"true": 0.75, "false": 0.25})], (0.75, 0.25), 1.0),
        (
            bool,
            [("True", {"True": 0.5, " true": 0.25, "FALSE": 0.125, "maybe": 0.125})],
            (0.75 / 0.875, 0.125 / 0.875),
            0.875,
        ),
        (bool, [("y", {"y": 0.5, "n": 0.5}), ("es", {"es": 1.0})], (0.5, 0.5), 1.0),
        (Literal["a", "b"], [("a", {"a": 0.5, "b": 0.5})], (0.5, 0.5), 1.0),
        (Literal["a", "b"], [("a", {"a": 0.5, "bad": 0.5})], (1.0, 0.0), 0.5),
        (Literal["a", "ab"], [("ab", {"ab": 0.5, "a": 0.5})], (0.25, 0.75), 0.5),
        (
            Literal["refund_full", "refund_part"],
            [("refund", {"refund": 1.0}), ("_", {"_": 1.0}), ("full", {"full": 0.75, "part": 0.25})],
            (0.75, 0.25),
            1.0,
        ),
        (
            Literal["refund_full", "refund_part", "no"],
            [("refund", {"refund": 0.5, "no": 0.25, "re": 0.25}), ("_full", {"_full": 0.5, "_part": 0.5})],
            (0.375, 0.375, 0.25),
            0.75,
        ),
        (Annotated[int, Criteria("low", "mid", "high")], [("1", {"1": 0.5, "2": 0.5})], (0.0, 0.5, 0.5), 1.0),
        (bool | None, [("null", {"null": 0.5, "true": 0.25, "false": 0.25})], (0.25, 0.25, 0.5), 1.0),
        (Area, [("rep", {"rep": 0.75, "bill": 0.25}), ("air", {})], (0.25, 0.75), 1.0),
    ],
)
def test_tokens_give_the_distribution_of_labels(
    kind: Any, parts: Any, probabilities: tuple[float, ...], coverage: float
) -> None:
    evidence: Evidence = read_one(kind, parts).evidence["found"]
    assert evidence.probabilities == pytest.approx(probabilities)
    assert evidence.coverage == pytest.approx(coverage)


def test_members_of_a_list_are_read_where_an_element_or_the_end_could_stand() -> None:
    parts = [
        ("[", {"[": 0.75, "[]": 0.25}),
        ('"', {}),
        ("a", {"a": 0.5, "b": 0.5}),
        ('"', {}),
        ("]", {"]": 0.5, ",": 0.5}),
    ]
    evidence = read_one(list[Literal["a", "b"]], parts).evidence
    assert evidence["found[a]"].p(True) == pytest.approx(1 - (1 - 0.375) * (1 - 0.25))
    assert evidence["found[a]"].answered is True
    assert evidence["found[b]"].answered is False


def test_low_coverage_is_a_warning_and_a_value_beside_the_labels_has_no_evidence() -> None:
    low = read_one(Literal["a", "b"], [("a", {"a": 0.25, "x": 0.75})])
    assert [(each.feature, each.detail) for each in low.warnings] == [
        ("evidence", "found: labels cover 0.25 of the probability")
    ]
    odd = read_one(Literal["a", "b"], [("'a'", {"'a'": 1.0})])
    assert odd.evidence == {}
    assert "found has no evidence" in odd.warnings[0].detail


@pytest.mark.parametrize(
    "logprobs", [None, {"content": [{"token": "other text", "logprob": 0.0}]}, {"content": [3, None]}, []]
)
def test_answer_without_its_tokens_has_no_evidence_but_a_warning(logprobs: Any) -> None:
    choice = Choice(sections(found="true"), logprobs=logprobs)
    result = Predict("text -> found: bool", lm=FakeLM([choice]), evidence="logprob")(text="x")
    assert (result.found, result.evidence) == (True, {})
    assert "found has no evidence" in result.warnings[0].detail


LABELS = st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=2, max_size=5, unique_by=lambda label: label[0])


@given(LABELS, st.data())
def test_labels_without_a_common_beginning_are_read_exactly_whole_streamed_and_cut_anywhere(
    labels: list[str], data: Any
) -> None:
    masses = [data.draw(st.floats(0.05, 1)) for _ in labels]
    shares = [mass / sum(masses) for mass in masses]
    chosen = data.draw(st.integers(0, len(labels) - 1))
    layout = data.draw(st.sampled_from(["chat", "json"]))
    sizes = [data.draw(st.integers(1, len(label))) for label in labels]
    quote = '"' if layout == "json" else ""
    first = {quote + label[:size]: share for label, size, share in zip(labels, sizes, shares, strict=True)}
    head = quote + labels[chosen][: sizes[chosen]]
    rest = labels[chosen][sizes[chosen] :] + quote
    before, after = ('{"found": ', "}") if layout == "json" else ("[[ ## found ## ]]\n", "\n\n[[ ## completed ## ]]")
    parts = [(before, {}), (head, {head: first[head], **first}), *([(rest, {})] if rest else []), (after, {})]
    choice = tokenized(parts)
    kind = Literal[tuple(labels)]  # type: ignore[valid-type]
    signature = make_signature({"text": (str, InputField()), "found": (kind, OutputField())})
    with context(adapter=JSONAdapter() if layout == "json" else ChatAdapter()):
        predict: Any = Predict(signature, lm=FakeLM([choice] * 2), evidence="logprob")
        whole = predict(text="x").evidence["found"]
        streamed = [event for event in predict.stream(text="x") if isinstance(event, Finished)][-1].value.evidence[
            "found"
        ]
    assert whole == streamed
    assert whole.coverage > 0.999999
    assert whole.probabilities == pytest.approx(shares, abs=1e-9)


# --- sampled and stated


def test_each_output_votes_alone_over_the_choices_that_can_be_parsed() -> None:
    rows: list[Any] = [
        {"urgent": True, "mood": "calm"},
        {"urgent": False, "mood": "sad"},
        {"urgent": False, "mood": "calm"},
        "no fields",
    ]
    lm = FakeLM(rows)
    result = Predict("text -> urgent: bool, mood: Literal['calm', 'sad']", lm=lm, evidence="sampled", n=4)(text="x")
    assert lm.requests[0].options == {"n": 4}
    assert (result.urgent, result.mood) == (False, "calm")
    assert result.evidence["urgent"].probabilities == pytest.approx((1 / 3, 2 / 3))
    assert result.evidence["mood"].samples == 3
    assert [row.urgent for row in result.completions] == [True, False, False]
    assert [each.feature for each in result.warnings] == ["choices"]


def test_sampling_asks_for_five_answers_and_warns_of_temperature_zero() -> None:
    lm = FakeLM([{"urgent": True}] * 5)
    result = Predict("text -> urgent: bool", lm=lm, evidence="sampled", temperature=0)(text="x")
    assert lm.requests[0].options["n"] == 5
    assert "temperature 0" in result.warnings[0].detail
    with pytest.raises(ConfigurationError, match="n to 2 or more"):
        Predict("text -> urgent: bool", lm=lm, evidence="sampled", n=1)(text="x")


@pytest.mark.parametrize(
    ("stated", "probabilities", "repairs", "problem"),
    [
        ({"mood": {"calm": 0.5, "sad": 0.5}}, (0.5, 0.5), 0, ""),
        ({"mood": {"calm": 1}}, (1.0, 0.0), 0, ""),
        ({"mood": {"calm": 0.5, "sad": 1.5}}, (0.25, 0.75), 1, ""),
        ({"mood": {"calm": -1, "sad": 2}}, None, 0, "negative, not finite or all 0"),
        ({"mood": {"calm": 0, "sad": 0}}, None, 0, "negative, not finite or all 0"),
        ({"mood": {"calm": 0.5, "odd": 0.5}}, None, 0, "'odd'"),
        ({"mood": "calm"}, None, 0, "'calm'"),
        ({}, None, 0, "nothing"),
        ("calm", None, 0, "mood has no evidence"),
    ],
)
def test_stated_probabilities_are_normalized_or_left_out_with_a_warning(
    stated: Any, probabilities: Any, repairs: int, problem: str
) -> None:
    lm = FakeLM([Choice(sections(mood="sad", evidence_=json.dumps(stated)))])
    result = Predict("text -> mood: Literal['calm', 'sad']", lm=lm, evidence="stated")(text="x")
    found = result.evidence.get("mood")
    assert (None if found is None else found.probabilities) == probabilities
    assert len(result.repairs) == repairs
    assert [each for each in result.warnings if problem not in each.detail] == []
    assert bool(result.warnings) is bool(problem)
    assert "evidence_" not in result


def test_stated_probabilities_are_asked_for_again_while_reasks_are_left() -> None:
    broken, good = Choice(sections(urgent="true")), Choice(sections(urgent="true", evidence_='{"urgent": 0.75}'))
    lm = FakeLM([broken, good])
    result = Predict("text -> urgent: bool", lm=lm, evidence="stated", max_reasks=1)(text="x")
    assert result.evidence["urgent"].probabilities == (0.75, 0.25)
    assert "evidence_" in lm.requests[1].messages[-1].text
    lone = Predict("text -> urgent: bool", lm=FakeLM([broken]), evidence="stated")(text="x")
    assert (lone.urgent, lone.evidence) == (True, {})
    with pytest.raises(AdapterParseError, match="urgent"):
        Predict("text -> urgent: bool", lm=FakeLM(["nothing"]), evidence="stated")(text="x")


# --- refusals before sending, "auto"

MODELS = [
    ("openai/gpt-4.1", "openai", "logprob"),
    ("openai/o3", "openai", "stated"),
    ("groq/llama-3.3-70b-versatile", "openai", "stated"),
    ("deepseek/deepseek-chat", "openai", "logprob"),
    ("anthropic/claude-sonnet-4-5", "anthropic", "stated"),
    ("gemini/gemini-2.0-flash", "gemini", "logprob"),
    ("ollama/llama3.2", "ollama", "logprob"),
    ("offline/lexical", "", "measured"),
]


@pytest.mark.parametrize(("model", "wire", "source"), MODELS)
def test_auto_takes_the_best_source_and_a_source_that_the_model_lacks_is_refused_before_sending(
    model: str, wire: str, source: str
) -> None:
    with FakeProvider([Choice(sections(urgent="true", evidence_='{"urgent": 0.75}'))]) as provider:
        lm = LM(model) if not wire else LM(model, base_url=provider.url(wire), api_key="k", num_retries=0)
        predict = Predict("text -> urgent: bool", lm=lm)
        lacking = {"measured", "logprob"} - {source, "stated"}
        for other in sorted(lacking - ({"logprob"} if source == "logprob" else set())):
            with pytest.raises(UnsupportedFeature, match=r"choosing evidence\)\. Use evidence="):
                predict(text="x", config={"evidence": other})
        assert not provider.requests
        result = predict(text="x", config={"evidence": "auto"})
        if source != "logprob":
            assert result.evidence["urgent"].source == source
        elif not wire:
            assert not provider.requests
        else:
            sent = json.dumps(provider.requests[0].body)
            assert "ogprobs" in sent


def several(provider: FakeProvider, kind: str, *names: str) -> Any:
    """Return models as one: the first with the others as fallbacks, or targets of a router."""
    wires = {"openai": "openai", "groq": "openai", "anthropic": "anthropic", "gemini": "gemini", "decides": "decisions"}
    models: list[Any] = []
    for name in names:
        model, wire = {"decides": ("openai/gpt-decides", "decisions")}.get(name, (name, "chat"))
        more = {"wire": wire} if model.startswith("openai/") else {}
        url = provider.url(wires[name.partition("/")[0]])
        models.append(LM(model, base_url=url, api_key="k", num_retries=0, **more))
    return Router(models) if kind == "router" else models[0].copy(fallbacks=models[1:])


@pytest.mark.parametrize("kind", ["router", "fallbacks"])
@pytest.mark.parametrize(
    ("names", "source", "said"),
    [
        (("openai/gpt-4.1", "anthropic/claude-sonnet-4-5"), "logprob", "anthropic/claude-sonnet-4-5 gives no logprobs"),
        (("gemini/gemini-2.0-flash", "groq/llama-3.3-70b-versatile"), "logprob", "groq/llama-3.3-70b-versatile gives"),
        (("openai/gpt-4.1", "decides"), "measured", "openai/gpt-4.1 answers with texts only"),
        (
            ("decides", "openai/gpt-4.1"),
            "stated",
            "openai/gpt-decides(, openai/gpt-4.1)? answers with distributions only",
        ),
    ],
)
def test_source_that_one_of_several_models_lacks_is_refused_before_sending(
    names: tuple[str, ...], source: Any, said: str, kind: str
) -> None:
    with FakeProvider() as provider:
        predict = Predict("text -> urgent: bool", lm=several(provider, kind, *names), evidence=source)
        with pytest.raises(UnsupportedFeature, match=f"^{said}.*choosing evidence"):
            predict(text="x")
        assert provider.requests == ()


@pytest.mark.parametrize("kind", ["router", "fallbacks"])
@pytest.mark.parametrize(
    ("names", "source"),
    [
        (("openai/gpt-4.1", "anthropic/claude-sonnet-4-5"), "stated"),
        (("openai/gpt-4.1", "openai/gpt-4o"), "logprob"),
    ],
)
def test_auto_takes_the_best_source_that_each_of_several_models_has(
    names: tuple[str, ...], source: str, kind: str
) -> None:
    text = sections(urgent="true", evidence_='{"urgent": 0.75}') if source == "stated" else sections(urgent="true")
    with FakeProvider([Fault("server"), Choice(text, logprobs=tokens_of(text))]) as provider:
        result = Predict("text -> urgent: bool", lm=several(provider, kind, *names), evidence="auto")(text="x")
    assert [attempt.model for attempt in result.attempts] == [*names]
    assert result.evidence["urgent"].source == source
    assert [each for each in result.warnings if each.feature == "evidence"] == []


def test_rule_abstains_if_the_fallback_that_answered_measures_nothing() -> None:
    with FakeProvider([Fault("server"), '{"urgent": true}'] * 2) as provider:
        lm = several(provider, "fallbacks", "decides", "groq/llama-3.3-70b-versatile")
        predict = Predict("text -> urgent: bool", lm=lm, decisions={"urgent": DecisionRule(threshold=0.8)})
        result = predict(text="x")
        assert (result.urgent, result.evidence) == (True, {})
        assert [each.detail for each in result.warnings if each.feature == "evidence"] == [
            "urgent has no evidence: the answer has no numbers for it"
        ]
        predict.decisions["urgent"] = DecisionRule(least=0.6)
        with pytest.raises(Unsure, match=r"urgent: no evidence, least 0\.6"):
            predict(text="x")


def test_evidence_of_another_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean logprob"):
        Predict("text -> urgent: bool", evidence="logprobs")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="is no source"):
        Predict("text -> urgent: bool", lm=FakeLM())(text="x", config={"evidence": 3})


def test_plain_text_layout_has_no_place_for_stated_probabilities() -> None:
    lm = FakeLM()
    with context(adapter=TwoStepAdapter(FakeLM())), pytest.raises(UnsupportedFeature, match='evidence="sampled"'):
        Predict("text -> urgent: bool", lm=lm, evidence="stated")(text="x")
    assert lm.requests == []


def test_agents_take_no_evidence() -> None:
    with pytest.raises(ConfigurationError, match="ReAct takes no evidence"):
        ReAct("question -> answer: bool", tools=[], evidence="auto")


def test_second_request_of_two_steps_has_the_evidence() -> None:
    second = FakeLM(
        [
            tokenized(
                [
                    ("[[ ## urgent ## ]]\n", {}),
                    ("true", {"true": 0.75, "false": 0.25}),
                    ("\n\n[[ ## completed ## ]]", {}),
                ]
            )
        ]
    )
    first = FakeLM(["It is urgent."])
    with context(adapter=TwoStepAdapter(second)):
        predict = Predict("text -> urgent: bool", lm=first, evidence="logprob")
        predict.decisions["urgent"] = DecisionRule(threshold=0.8)
        result = predict(text="x")
    assert "logprobs" not in first.requests[0].options
    assert second.requests[0].options["logprobs"] is True
    assert (result.urgent, result.evidence["urgent"].p(True)) == (False, pytest.approx(0.75))


# --- rules, abstention


def test_changed_rule_changes_no_byte_of_the_next_request() -> None:
    lm = lm_for("stated", ChatAdapter())
    predict = Predict(Triage, lm=lm, evidence="stated")
    assert predict(text="x").urgent is True
    predict.decisions["urgent"] = DecisionRule(threshold=0.8)
    predict.decisions["tags[spam]"] = DecisionRule(threshold=0.2)
    predict.decisions["mood"] = DecisionRule(weights={"sad": 3})
    result = predict(text="x")
    assert (result.urgent, result.tags, result.mood) == (False, ["spam", "money"], "sad")
    assert lm.requests[0].to_json() == lm.requests[1].to_json()


@pytest.mark.parametrize("run", ["sync", "async", "stream"])
def test_output_that_allows_none_abstains_and_another_raises_after_all_are_decided(run: str) -> None:
    predict = Predict(Triage, lm=lm_for("stated", ChatAdapter()), evidence="stated")
    predict.decisions["ticket.loud"] = DecisionRule(least=0.9)
    assert predict(text="x").ticket.loud is None
    predict.decisions["urgent"] = DecisionRule(threshold=0.5, least=0.9)
    predict.decisions["mood"] = DecisionRule(least=0.6)
    calls: dict[str, Callable[[], object]] = {
        "sync": lambda: predict(text="x"),
        "async": lambda: asyncio.run(predict.acall(text="x")),
        "stream": lambda: list(predict.stream(text="x")),
    }
    with pytest.raises(Unsure) as caught:
        calls[run]()
    error = caught.value
    said = "Predict is unsure about urgent: 0.75, least 0.9; mood: 0.5, least 0.6 (deciding). Use .partial, ask another model"
    assert str(error).startswith(said)
    assert "declare bool | None" in str(error)
    assert error.fields == ("urgent", "mood")
    assert error.partial.toDict() == Prediction(DECIDED).toDict()
    assert error.evidence["urgent"].value is None
    assert len(error.attempts) == 1
    assert CallReport.of(error).evidence == error.evidence


@pytest.mark.parametrize(
    ("path", "rule", "said"),
    [
        ("urgnt", DecisionRule(), "no deciding output 'urgnt'.*Did you mean urgent.*They are: urgent, mood"),
        ("mood", DecisionRule(weights={"odd": 2}), r"decisions\['mood'\]: 'odd' is no value"),
        ("harm", DecisionRule(cuts=(1,)), r"decisions\['harm'\]: 3 levels have 2 cuts"),
        ("urgent", 0.8, "is a DecisionRule, not float"),
    ],
)
def test_rule_that_fits_no_output_is_refused_before_sending(path: str, rule: Any, said: str) -> None:
    lm = lm_for("stated", ChatAdapter())
    predict = Predict(Triage, lm=lm, evidence="stated", decisions={path: rule})
    with pytest.raises(ConfigurationError, match=said):
        predict(text="x")
    assert lm.requests == []


def test_rule_without_evidence_is_refused_before_sending() -> None:
    lm = FakeLM([{"urgent": True}])
    predict = Predict("text -> urgent: bool", lm=lm, decisions={"urgent": DecisionRule(least=0.9)})
    with pytest.raises(ConfigurationError, match=r"rule for urgent, and nothing gives evidence.*evidence=\"auto\""):
        predict(text="x")
    assert lm.requests == []


def test_measured_evidence_is_kept_unasked_and_nothing_else_is_asked_for() -> None:
    measured: Any = {"urgent": {"values": [True, False], "probabilities": [0.25, 0.75]}}
    lm = FakeLM([Choice(sections(urgent="true"), evidence=measured)])
    result = Predict("text -> urgent: bool", lm=lm)(text="x")
    assert (result.urgent, result.evidence["urgent"].p(True)) == (False, 0.25)
    assert lm.requests[0].options == {}
    plain = Predict("text -> urgent: bool", lm=FakeLM([{"urgent": True}]))(text="x")
    assert (plain.evidence, plain._meta.evidence) == ({}, None)


def test_field_named_evidence_hides_the_attribute_but_not_the_report() -> None:
    lm = FakeLM([{"evidence": "seen", "urgent": True, "evidence_": {"urgent": 0.75}}])
    result = Predict("text -> evidence, urgent: bool", lm=lm, evidence="stated")(text="x")
    assert result.evidence == "seen"
    assert CallReport.of(result).evidence["urgent"].p(True) == 0.75


class Graded(BaseModel):
    harm: Annotated[int, Criteria("none", "minor", "severe")]


LEVELS = [
    (Annotated[int, Criteria("none", "minor", "severe")], 3, 2),
    (Annotated[float, Criteria("none", "minor", "severe")], 2.5, 1.5),
    (Annotated[float, Criteria("none", "minor", "severe")], -0.5, 0),
    (Graded, {"harm": -1}, {"harm": 1}),
]


@pytest.mark.parametrize(("kind", "outside", "inside"), LEVELS)
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: type(each).__name__)
def test_number_outside_of_its_levels_is_asked_again_and_then_an_error(
    kind: Any, outside: Any, inside: Any, adapter: Any
) -> None:
    signature = make_signature({"text": (str, InputField()), "found": (kind, OutputField())})
    with context(adapter=adapter):
        plan = adapter.plan(signature)
        wrong, right = (str(plan.layout.write({"found": each})) for each in (outside, inside))
        lm = FakeLM([wrong, right])
        result = Predict(signature, lm=lm, max_reasks=1)(text="x")
        assert (result.found.harm if kind is Graded else result.found) == (1 if kind is Graded else inside)
        assert "should be a level from 0 (none) to 2 (severe), not" in lm.requests[1].messages[-1].text
        with pytest.raises(AdapterParseError, match=r"from 0 \(none\) to 2 \(severe\)"):
            Predict(signature, lm=FakeLM([wrong]))(text="x")


# --- streams, state, storage


def test_report_of_a_call_keeps_evidence_through_json() -> None:
    report = CallReport.of(Predict(Triage, lm=lm_for("stated", ChatAdapter()), evidence="stated")(text="x"))
    read = CallReport.from_json(json.loads(json.dumps(report.to_json())))
    areas = Question("ticket.area", "choice", VALUES["ticket.area"])
    assert read == report
    assert {**read.evidence, "ticket.area": read.evidence["ticket.area"].typed(areas)} == report.evidence
    assert "evidence" not in CallReport(name="Predict").to_json()
    for broken in ({"urgent": {"source": "stated"}}, {"urgent": 3}, [3]):
        with pytest.raises(StateError):
            CallReport.from_json({**report.to_json(), "evidence": broken})


def test_error_of_an_unsure_call_survives_a_pickle_with_its_evidence() -> None:
    predict = Predict(Triage, lm=lm_for("stated", ChatAdapter()), evidence="stated")
    predict.decisions["urgent"] = DecisionRule(least=0.9)
    with pytest.raises(Unsure) as caught:
        predict(text="x")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.fields, error.evidence, error.partial) == (
        ("urgent",),
        caught.value.evidence,
        caught.value.partial,
    )
    assert error.partial.evidence == caught.value.evidence


def test_stream_holds_deciding_outputs_back_until_they_are_decided() -> None:
    predict = Predict(Triage, lm=lm_for("stated", ChatAdapter()), evidence="stated")
    events = list(predict.stream(text="x"))
    fields = [event.field for event in events if isinstance(event, FieldDelta | FieldPartial | FieldEnd)]
    assert "evidence_" not in fields
    assert set(fields[: fields.index("urgent")]) == {"why"}
    shown = {event.field: event.value for event in events if isinstance(event, FieldPartial)}
    assert (shown["harm"], shown["ticket"]) == (1.25, {"area": "repair", "loud": None})
    assert {event.field for event in events if isinstance(event, FieldEnd)} == set(DECIDED)


def test_state_keeps_the_source_and_the_rules(tmp_path: Path) -> None:
    predict = ChainOfThought(
        Triage, evidence="stated", decisions={"mood": DecisionRule(weights={"sad": 3}, least=0.25)}
    )
    predict.save(tmp_path / "program.json")
    other = ChainOfThought(Triage)
    other.load(tmp_path / "program.json")
    assert (other.predict.evidence, other.predict.decisions) == ("stated", predict.predict.decisions)
    assert pickle.loads(pickle.dumps(predict)).predict.decisions == predict.predict.decisions
    assert {"evidence", "decisions"}.isdisjoint(Predict(Triage).dump_state())
    state = Predict(Triage, evidence="stated").dump_state()
    with pytest.raises(StateError, match=r"no deciding output 'odd'.*Nothing was changed"):
        Predict(Triage).load_state({**state, "decisions": {"odd": {}}})
    with pytest.raises(StateError, match="DecisionRule"):
        Predict(Triage).load_state({**state, "decisions": {"urgent": {"threshold": 7}}})


def test_prediction_keeps_evidence_through_json_and_pickle() -> None:
    result = Predict(Triage, lm=lm_for("stated", ChatAdapter()), evidence="stated")(text="x")
    read = Prediction.from_json(json.loads(json.dumps(result.to_json())), signature=Triage)
    assert read.evidence == result.evidence
    assert type(read.evidence["ticket.area"].value) is Area
    assert pickle.loads(pickle.dumps(result)).evidence == result.evidence
    assert "evidence" not in Predict("a -> b", lm=FakeLM([{"b": "x"}]))(a="x").to_json()


@pytest.mark.parametrize("source", ["logprob", "sampled", "stated"])
def test_answers_of_the_cache_a_cassette_and_a_journal_have_equal_evidence(source: Any, tmp_path: Path) -> None:
    text = sections(urgent="true", evidence_='{"urgent": 0.75}') if source == "stated" else sections(urgent="true")
    choice = Choice(text, logprobs=tokens_of(text))
    with FakeProvider([choice] * 15) as provider:
        configure_cache(disk_cache_dir=tmp_path / "cache")
        lm = LM("openai/gpt-4.1", base_url=provider.url("openai"), api_key="k", wire="chat")
        predict = Predict("text -> urgent: bool", lm=lm, evidence=source)
        first, count = predict(text="x"), len(provider.requests)
        assert predict(text="x").evidence == first.evidence
        assert len(provider.requests) == count
        predict.lm = lm.copy(cache=False)
        with Cassette(tmp_path / "tape.jsonl", mode="new"):
            recorded = predict(text="x")
        count = len(provider.requests)
        with Cassette(tmp_path / "tape.jsonl", mode="replay"):
            assert predict(text="x").evidence == recorded.evidence == first.evidence
        with Journal(tmp_path / "runs.sqlite3") as journal:
            journaled = journal.run(predict, "one", text="x")
            assert journal.run(predict, "one", text="x").evidence == journaled.evidence == first.evidence


WIRES: list[tuple[str, str, dict[str, Any]]] = [
    ("openai/gpt-4.1", "openai", {"wire": "chat"}),
    ("openai/gpt-4.1", "openai-responses", {"wire": "responses"}),
    ("gemini/gemini-2.0-flash", "gemini", {}),
    ("ollama/llama3.2", "ollama", {}),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("model", "wire", "more"), WIRES)
def test_tokens_of_every_wire_give_evidence_whole_and_streamed(
    model: str, wire: str, more: dict[str, Any], streamed: bool
) -> None:
    text = answer(ChatAdapter(), WRITTEN)
    with FakeProvider([Choice(text, logprobs=tokens_of(text))] * 2) as provider:
        lm = LM(model, base_url=provider.url(wire), api_key="k", cache=False, **more)
        predict = Predict(Triage, lm=lm, evidence="logprob")
        result: Any = list[Any](predict.stream(text="x"))[-1].value if streamed else predict(text="x")
    assert {path: each.values for path, each in result.evidence.items()} == VALUES
    assert result.evidence["mood"].p("angry") == pytest.approx(1)


@pytest.mark.parametrize(("model", "wire", "more"), WIRES)
def test_distribution_of_tokens_is_equal_whole_streamed_and_from_the_cache(
    model: str, wire: str, more: dict[str, Any], tmp_path: Path
) -> None:
    spread = {"refund": 0.625, "repair": 0.25, "other": 0.125}
    choice = tokenized([("[[ ## found ## ]]\n", {}), ("refund", spread), ("\n\n[[ ## completed ## ]]", {})])
    configure_cache(disk_cache_dir=tmp_path / "cache")
    with FakeProvider([choice] * 3) as provider:
        lm = LM(model, base_url=provider.url(wire), api_key="k", **more)
        predict = Predict("text -> found: Literal['refund', 'repair', 'bill']", lm=lm, evidence="logprob")
        whole, cached = predict(text="x"), predict(text="x")
        streamed = list[Any](predict.stream(text="x", config={"cache": False}))[-1].value
        from_cache = list[Any](predict.stream(text="x"))[-1].value
        assert len(provider.requests) == 2
    found = whole.evidence["found"]
    assert found.probabilities == pytest.approx((5 / 7, 2 / 7, 0))
    assert found.coverage == pytest.approx(0.875)
    assert cached.evidence == streamed.evidence == from_cache.evidence == whole.evidence


def test_requests_without_evidence_are_those_of_a_predictor_that_knows_none() -> None:
    def sent(**more: Any) -> dict[str, Any]:
        lm = FakeLM([WRITTEN])
        Predict(Triage, lm=lm, **more)(text="x")
        return dict(lm.requests[0].to_json())

    assert sent() == sent(evidence=None, decisions=None)
    assert "evidence" not in json.dumps(sent())


def test_call_without_evidence_loads_none_of_its_modules() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from sigwire import FakeLM, Predict\n"
        "Predict('a -> b: bool', lm=FakeLM([{'b': True}]))(a='x')\n"
        "print([name for name in sys.modules if name.endswith(('.evidence', '.deciding', '.criteria'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_programs_around_a_predictor_pass_its_evidence_on() -> None:
    def predict() -> Any:
        return Predict(Triage, lm=lm_for("stated", ChatAdapter()), evidence="stated")

    expected = predict()(text="x").evidence
    best: Any = BestOfN(predict(), N=2, reward_fn=lambda inputs, prediction: 1.0, threshold=1.0)
    assert best(text="x").evidence == expected
    both: Any = Parallel(num_threads=2)([(predict(), {"text": "x"}), (predict(), {"text": "y"})])
    assert [result.evidence for result in both] == [expected, expected]
    assert [result.evidence for result in predict().batch([{"text": "x"}])] == [expected]


def test_card_of_a_prediction_has_a_line_for_each_output_with_evidence() -> None:
    predict = Predict(Triage, lm=lm_for("stated", ChatAdapter()), evidence="stated")
    predict.decisions["urgent"] = DecisionRule(threshold=0.8)
    page = predict(text="x")._repr_html_()
    assert "urgent  False 0.57 (stated)" in page
    assert "ticket.area  &lt;Area.REPAIR" in page
    assert "threshold=0.8" in predict._repr_html_()
    assert "evidence='stated'" in repr(predict)


def test_request_of_a_call_is_the_one_that_is_sent() -> None:
    lm = lm_for("stated", ChatAdapter())
    predict = Predict(Triage, lm=lm, evidence="stated")
    predict(text="x")
    assert predict.request_of({"text": "x"})[2].to_json() == lm.requests[0].to_json()


@pytest.mark.parametrize(("form", "ends"), [("bool", "Unsure"), ("bool | None", None)])
@pytest.mark.parametrize("stated", [{}, {"urgent": -1}, {"urgent": "high"}])
def test_value_without_evidence_is_not_sure_enough_for_a_rule(form: str, ends: str | None, stated: Any) -> None:
    program = Predict(f"ticket -> urgent: {form}", evidence="stated")
    program.set_lm(FakeLM(lambda request: json.dumps({"urgent": True, "evidence_": stated})))
    with context(adapter=JSONAdapter()):
        assert program(ticket="x").urgent is True
        program.decisions["urgent"] = DecisionRule(least=0.9)
        if ends is None:
            assert program(ticket="x").urgent is None
        else:
            with pytest.raises(Unsure, match=r"urgent: no evidence, least 0\.9") as caught:
                program(ticket="x")
            assert (caught.value.fields, caught.value.partial.urgent) == (("urgent",), True)


class Owner(BaseModel):
    known: bool


@pytest.mark.parametrize(
    ("kind", "written", "path", "value"),
    [
        ("list[Literal['a', 'b']]", ["b"], "found[b]", ["b"]),
        ("list[Literal['a', 'b']] | None", ["b"], "found[b]", None),
        (Owner, {"known": True}, "found.known", Owner(known=True)),
        (Owner | None, None, "found.known", None),
    ],
)
@pytest.mark.parametrize("source", ["stated", "measured"])
def test_rule_abstains_without_evidence_of_a_member_or_of_a_place_that_the_answer_lacks(
    kind: Any, written: Any, path: str, value: Any, source: Any
) -> None:
    if isinstance(kind, str):
        program: Any = Predict(f"ticket -> found: {kind}, urgent: bool", evidence=source)
    else:
        fields: Any = {"ticket": (str, InputField()), "found": (kind, OutputField()), "urgent": (bool, OutputField())}
        program = Predict(make_signature(fields), evidence=source)
    answer = {"found": written, "urgent": True, "evidence_": {"urgent": 1}}
    measured: Any = {"urgent": {"values": [True, False], "probabilities": [1, 0]}}
    program.set_lm(
        FakeLM(lambda request: Choice(json.dumps(answer), evidence=measured), capabilities=Capabilities(decides="also"))
    )
    program.decisions[path] = DecisionRule(least=0.9)
    with context(adapter=JSONAdapter()):
        if value is None and kind != Owner | None:
            assert program(ticket="x").found is None
        else:
            with pytest.raises(Unsure, match=r"no evidence, least 0\.9") as caught:
                program(ticket="x")
            assert caught.value.partial.found == value
