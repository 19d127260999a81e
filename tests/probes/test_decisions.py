"""``verify`` of models that decide only: an honest host agrees, and every planted lie gives its rows and no other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sigwire
from sigwire.core.json import JsonObject
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.providers.registry import PROVIDERS
from sigwire.probes.decisions import DECISION_PROBES
from sigwire.probes.table import PROBES
from sigwire.probes.verify import plan_verification
from sigwire.testing import FakeProvider, Fault
from sigwire.testing.answers import Answer
from sigwire.testing.wire import FakeWire, ParsedRequest, ReceivedRequest, Rejected
from tests.lm.calls import forget_keys

KEY = "sk-canary-decide-51Qz"
WIRES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "decisions": ("openai/gpt-6-luna", {"wire": "decisions"}),
    "system-one": ("typesafe/jev-latest", {}),
    "gemini-decisions": ("gemini/gemini-decision-1", {"wire": "decisions"}),
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


class Decider(FakeProvider):
    """Decides every question, honestly but for one lie."""

    def __init__(self, wire: str, lie: str = "") -> None:
        super().__init__(self.decide, key=KEY, models={WIRES[wire][0].partition("/")[2]})
        self.lie = lie

    def decide(self, request: Request) -> Answer:
        asked: Any = request.response_format and request.response_format.schema
        questions, count = asked["properties"], len(asked["properties"])
        parts = [part for message in request.messages for part in message.parts]
        text = " ".join(message.text for message in request.messages)
        refused = {
            "images": any(isinstance(part, ImagePart) for part in parts),
            "results": any(message.role == "tool" for message in request.messages) or "get_weather ->" in text,
            "system": "Latin" in text,
            "many": count > 200,
            "values": any(len(each.get("enum", ())) > 100 for each in questions.values()),
        }
        if refused.get(self.lie):
            return Fault("bad_request", "This is too much for org-CanaryA1b2C3d4.")
        return json.dumps({name: self._shares(each) for name, each in questions.items()})

    def _shares(self, question: Any) -> Any:
        if question.get("type") == "boolean":
            return 0.125 if self.lie == "inverted" else 0.875
        count = len(question.get("x-levels") or question["enum"])
        return [0.5, 0.5, *[0.0] * (count - 2)]

    def _write(self, wire: FakeWire, parsed: ParsedRequest, reply: Response) -> JsonObject:
        body: Any = super()._write(wire, parsed, reply)
        answers = body["answers"]
        each: list[Any] = answers if isinstance(answers, list) else [*answers.values()]
        if self.lie == "usage":
            del body["usage"]
        if self.lie == "dropped" and len(each) > 1:
            del answers[0 if isinstance(answers, list) else next(iter(answers))]
        for answer in each:
            if self.lie == "levels" and answer["type"] == "score":
                answer["probabilities"] = type(answer["probabilities"])()
            if self.lie == "sums" and answer["type"] == "choice":
                shares = answer["probabilities"]
                if isinstance(shares, list):
                    shares[2 if len(shares) > 2 else 1]["probability"] = 1.0 if len(shares) <= 2 else 0.75
                    continue
                last = [*shares][-1]
                shares[last] = 1.0 if len(shares) <= 2 else 0.75
        return body  # type: ignore[no-any-return]

    def _read(self, wire: FakeWire, exchange: ReceivedRequest) -> ParsedRequest:
        try:
            return super()._read(wire, exchange)
        except Rejected as refusal:
            if self.lie == "class" and refusal.fault.kind == "not_found":
                raise Rejected(Fault("permission", "Go away.")) from None
            raise


class Lie(NamedTuple):
    """``rows``: the probes that find it, space-separated; ``wires``: those that can show it."""

    rows: str
    wires: tuple[str, ...] = tuple(WIRES)


LIES: Mapping[str, Lie] = {
    "sums": Lie("described choice optional values object", ("decisions",)),
    "levels": Lie("score levels"),
    "dropped": Lie("list object many"),
    "many": Lie("many"),
    "values": Lie("values"),
    "usage": Lie("usage"),
    "images": Lie("image", ("decisions", "gemini-decisions")),
    "results": Lie("tool_result"),
    "system": Lie("system"),
    "class": Lie("bad_model"),
    "inverted": Lie("sense"),
}


def model_at(provider: FakeProvider, wire: str) -> LM:
    model, options = WIRES[wire]
    return LM(model, base_url=provider.url(wire), api_key=KEY, limit=False, **options)


def verdicts(found: sigwire.Verification) -> Mapping[str, tuple[str, str]]:
    """Return the verdicts; of a behaviour with its count."""
    return {
        row.probe: (row.verdict, row.seen.split(" ")[0] if row.verdict == "behaviour" else "") for row in found.rows
    }


def verified(provider: FakeProvider, wire: str, **options: Any) -> sigwire.Verification:
    return sigwire.verify(model_at(provider, wire), **{"budget": sigwire.Budget(), **options})


@cache
def of_the_honest(wire: str) -> Mapping[str, tuple[str, str]]:
    with Decider(wire) as provider:
        return verdicts(verified(provider, wire))


@pytest.mark.parametrize("wire", WIRES)
def test_host_that_keeps_its_promises_agrees_within_the_requests_of_the_plan(wire: str) -> None:
    with Decider(wire) as provider:
        plan = plan_verification(model_at(provider, wire))
        found = verified(provider, wire)
    assert found.agrees, found.disagreements
    assert len(provider.requests) == found.requests == plan.requests <= 40
    assert {row.verdict for row in found.rows} == {"agrees", "behaviour"}
    assert (plan.ceiling is None) == (wire == "gemini-decisions")  # no price of its model is known


def _lies() -> list[Any]:
    """Return each lie on each wire that can show it; all but one wire of a lie are long."""
    return [
        pytest.param(name, wire, marks=() if wire == lie.wires[number % len(lie.wires)] else pytest.mark.long)
        for number, (name, lie) in enumerate(LIES.items())
        for wire in lie.wires
    ]


@pytest.mark.parametrize(("name", "wire"), _lies())
def test_planted_lie_of_a_decider_gives_its_rows_and_no_other(name: str, wire: str) -> None:
    honest = of_the_honest(wire)
    with Decider(wire, name) as provider:
        found = verdicts(verified(provider, wire))
    assert {row for row, verdict in found.items() if verdict != honest[row]} == {*LIES[name].rows.split()}
    assert {found[row][0] for row in LIES[name].rows.split()} <= {"worse", "behaviour"}
    assert len(provider.requests) <= 40


def test_awaited_verification_of_a_decider_has_the_rows_of_a_blocking_one() -> None:
    names = ["bool", "choice", "usage", "bad_key"]
    with Decider("system-one") as provider:
        blocking = verified(provider, "system-one", probes=names)
        lm = model_at(provider, "system-one")
        awaited = asyncio.run(sigwire.averify(lm, probes=names, budget=sigwire.Budget()))
    assert awaited.rows == blocking.rows


def test_cassette_of_a_decider_replays_to_equal_rows_and_has_no_secret(tmp_path: Path) -> None:
    path, names = tmp_path / "seen.jsonl", ["bool", "list", "image", "bad_key"]
    with Decider("decisions", "images") as provider:
        lm = model_at(provider, "decisions")
        found = sigwire.verify(lm, probes=names, budget=sigwire.Budget(), cassette=path)
    assert [row.verdict for row in found.rows] == ["agrees", "agrees", "worse", "agrees"]
    texts = path.read_text(encoding="utf-8") + json.dumps(found.to_json())
    assert KEY not in texts
    assert "org-Canary" not in texts
    with sigwire.Cassette(path, "replay"):
        replayed = sigwire.verify(lm, probes=names, budget=sigwire.Budget())
    assert [row.verdict for row in replayed.rows] == [row.verdict for row in found.rows]


def test_probe_of_texts_is_none_of_a_decider() -> None:
    with pytest.raises(ConfigurationError, match=r"no probe 'forced' of openai/gpt-6-luna .*They are bool, described"):
        sigwire.verify(LM("openai/gpt-6-luna", wire="decisions"), probes=["forced"])


def test_probes_of_deciders_take_40_requests_at_most_without_a_disagreement() -> None:
    repeated = [probe for probe in DECISION_PROBES.values() if probe.is_behaviour]
    assert sum(probe.requests for probe in DECISION_PROBES.values()) + 2 * len(repeated) <= 40


@pytest.mark.parametrize("prefix", [row.prefix for row in PROVIDERS.values() if row.capabilities.decides == "only"])
def test_every_row_of_deciders_promises_every_question(prefix: str) -> None:
    plan = plan_verification(LM(f"{prefix}/any", base_url="https://llm.example", api_key="k"))
    assert all(each.promised and not each.why_not for each in plan.probes)
    assert {*DECISION_PROBES} - {each.name for each in plan.probes} == {"image", "audio", "file"}


def test_deciders_have_the_names_of_the_probes_that_they_share() -> None:
    shared = {name for name in DECISION_PROBES if name in PROBES}
    features = [name for name in shared if DECISION_PROBES[name].feature != PROBES[name].feature]
    assert "bad_key" in shared
    assert not features
