"""``verify``: every planted lie gives its row and no other; limits, dead providers and interrupts agree with nothing."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import ConfigurationError, LMRateLimitError
from sigwire.lm.http import HttpReply, HttpRequest, HttpTransport
from sigwire.lm.providers.registry import PROVIDERS
from sigwire.probes.table import PROBES
from sigwire.probes.verify import plan_verification
from sigwire.testing import FakeProvider, Fault
from tests.lm.calls import forget_keys
from tests.probes.provider import KEY, LIES, WIRES, Honest, Provider, model_at

PLENTY = 10_000
FEW = ("text", "tools", "named", "stream_text", "stream_calls", "cache", "bad_key", "text_tools")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


def verdicts(found: sigwire.Verification) -> Mapping[str, tuple[str, str]]:
    """Return the verdicts; of a behaviour with its count."""
    return {
        row.probe: (row.verdict, row.seen.split(" ")[0] if row.verdict == "behaviour" else "") for row in found.rows
    }


def verified(provider: FakeProvider, wire: str, **options: Any) -> sigwire.Verification:
    plenty: dict[str, Any] = {"budget": sigwire.Budget(calls=PLENTY), **options}
    return sigwire.verify(model_at(provider, wire), **plenty)


@cache
def of_the_honest(wire: str) -> Mapping[str, tuple[str, str]]:
    with Provider(wire) as provider:
        return verdicts(verified(provider, wire))


@pytest.mark.parametrize("wire", WIRES)
def test_model_that_keeps_its_promises_agrees_within_the_requests_of_the_plan(wire: str) -> None:
    with Provider(wire) as provider:
        plan = plan_verification(model_at(provider, wire))
        found = verified(provider, wire)
    assert found.agrees, found.disagreements
    assert len(provider.requests) == found.requests == plan.requests <= 40
    assert {row.verdict for row in found.rows} <= {"agrees", "behaviour", "not sent"}
    assert all(row.why.startswith("the wire has no place") for row in found.rows if row.verdict == "not sent")


def _lies() -> list[Any]:
    """Return each lie on each wire; all but one wire of a lie that can show it are long."""
    cases: list[Any] = []
    for number, (name, lie) in enumerate(LIES.items()):
        sampled = lie.wires[number % len(lie.wires)]
        cases += [pytest.param(name, wire, marks=() if wire == sampled else pytest.mark.long) for wire in WIRES]
    return cases


@pytest.mark.parametrize(("name", "wire"), _lies())
def test_planted_lie_gives_its_rows_and_no_other(name: str, wire: str) -> None:
    lie, honest = LIES[name], of_the_honest(wire)
    with Provider(wire, name) as provider:
        found = verdicts(verified(provider, wire))
    expected = {row for row in lie.rows.split() if honest.get(row, ("not sent",))[0] != "not sent"}
    assert {row for row, verdict in found.items() if verdict != honest[row]} == (
        expected if wire in lie.wires else set()
    )
    if wire in lie.wires:
        assert {found[row][0] for row in expected} <= {"worse", "behaviour"}
    assert len(provider.requests) <= 40


# --- promises


DENIED = ("native_tools", "parallel_tool_calls", "tool_choice", "json_schema", "tools_with_json_schema")


@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini", "bedrock"])
def test_model_that_does_what_the_table_denies_is_better(wire: str) -> None:
    with Provider(wire) as provider:
        lm = model_at(provider, wire)
        lm = lm.copy(capabilities=replace(lm.capabilities, **dict.fromkeys(DENIED, False)))
        found = sigwire.verify(lm, probes=["text", "forced", "schema", "schema_tools"], budget=sigwire.Budget())
    assert [(row.probe, row.table, row.verdict) for row in found.rows] == [
        ("text", "yes", "agrees"),
        ("forced", "no", "better"),
        ("schema", "no", "better"),
        ("schema_tools", "no", "better"),
    ]


def test_choice_that_the_encoder_cannot_place_is_sent_as_extra_body() -> None:
    model = "anthropic/claude-opus-5-5"  # its row promises no forced calls
    with FakeProvider(Honest(), key=KEY) as provider:
        lm = sigwire.LM(model, base_url=provider.url("anthropic"), api_key=KEY)
        found = sigwire.verify(lm, probes=["named"], budget=sigwire.Budget())
    (row,) = found.rows
    assert (row.table, row.verdict, row.seen) == ("no", "better", "get_time")
    bodies: list[Any] = [received.body for received in provider.requests]
    assert [body["tool_choice"] for body in bodies] == [{"type": "tool", "name": "get_time"}] * 2


def test_feature_that_a_wire_cannot_express_is_not_sent() -> None:
    with Provider("ollama") as provider:
        found = verified(provider, "ollama", probes=["forced"])
    assert provider.requests == ()
    assert [(row.table, row.verdict) for row in found.rows] == [("no", "not sent")]
    assert "no place for it: ollama/qwen3 cannot be forced" in found.rows[0].why
    assert found.stopped == ""


# --- answers that differ, and answers that decide nothing


@pytest.mark.parametrize(
    ("wrong", "verdict", "sent"), [((0,), "agrees", 3), ((0, 1), "worse", 2), ((0, 2), "worse", 3)]
)
def test_disagreement_is_decided_by_two_answers_of_three(wrong: tuple[int, ...], verdict: str, sent: int) -> None:
    count = iter(range(PLENTY))

    def answer(request: Request) -> str | ToolCall:
        return "no call" if next(count) in wrong else ToolCall("", "get_time", {"zone": "UTC"})

    with FakeProvider(answer) as provider:
        found = verified(provider, "openai", probes=["named"])
    assert [row.verdict for row in found.rows] == [verdict]
    assert len(provider.requests) == sent
    assert len(found.rows[0].evidence) == sent


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_answer_that_was_cut_off_is_unclear(reason: Any) -> None:
    with FakeProvider([Choice("Hel", finish_reason=reason)]) as provider:
        found = verified(provider, "openai", probes=["text"])
    assert [(row.verdict, row.why) for row in found.rows] == [("unclear", f"the answer ended by {reason}")]
    assert not found.agrees


def test_rate_limit_decides_nothing_and_a_second_one_ends_the_verification() -> None:
    with FakeProvider([LMRateLimitError("slow down")] * 2) as provider:
        found = verified(provider, "anthropic", probes=["text", "forced", "bad_key"])
    assert [row.verdict for row in found.rows] == ["unclear", "unclear", "not sent"]
    assert "slow down" in found.stopped


def test_host_that_checks_no_key_and_no_model_is_behaviour() -> None:
    with FakeProvider(lambda request: "Hello") as provider:
        found = verified(provider, "openai", probes=["bad_model", "bad_key"])
    assert [(row.verdict, row.seen) for row in found.rows] == [("behaviour", "not refused")] * 2
    assert found.agrees


def test_refused_key_ends_it_at_once() -> None:
    with FakeProvider([Fault("auth", "Unknown key.")] * 9) as provider:
        found = verified(provider, "openai")
    assert len(provider.requests) == 1
    assert {row.verdict for row in found.rows} == {"unclear", "not sent"}
    assert "Unknown key." in found.stopped


def test_dead_provider_agrees_with_nothing() -> None:
    with Provider("openai") as provider:
        lm = model_at(provider, "openai")
    found = sigwire.verify(lm, budget=sigwire.Budget())
    assert {row.verdict for row in found.rows} == {"unclear", "not sent"}
    assert not found.agrees


# --- limits


def test_budget_of_nothing_sends_nothing() -> None:
    with Provider("gemini") as provider:
        found = verified(provider, "gemini", budget=sigwire.Budget(calls=0))
    assert provider.requests == ()
    assert {row.verdict for row in found.rows} == {"not sent"}
    assert found.stopped.startswith("The budget is spent")


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_limit_of_requests_is_counted_at_the_provider(limit: int) -> None:
    with Provider("openai") as provider:
        found = verified(provider, "openai", requests=limit)
    assert len(provider.requests) == found.requests == limit
    assert found.stopped == f"the limit of {limit} requests is reached"
    assert [row.verdict for row in found.rows].count("agrees") <= limit


def test_lie_that_no_request_was_left_to_confirm_is_unclear() -> None:
    with Provider("openai", "obeys_name") as provider:
        found = verified(provider, "openai", probes=["text", "named"], requests=2)
    assert [row.verdict for row in found.rows] == ["agrees", "unclear"]
    assert found.rows[1].why == "1 of 1 answers disagree; the limit of 2 requests is reached"


def test_plan_sends_nothing_and_names_an_unknown_price(monkeypatch: pytest.MonkeyPatch) -> None:
    with Provider("openai") as provider:
        lm = model_at(provider, "openai", price=sigwire.Price(input=1, output=10))
        assert "$0." in str(plan_verification(lm, probes=["text"]))
        monkeypatch.setattr("sigwire.lm.preview.preview.Preview.ceiling", None)
        assert "50,000 tokens at most, as no price is known" in str(plan_verification(lm, probes=["text"]))
    assert provider.requests == ()


class Interrupting:
    """A transport that gets Ctrl-C in place of its third request."""

    def __init__(self) -> None:
        self.left, self._inner = 2, HttpTransport()

    def send(self, request: HttpRequest) -> HttpReply:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()


def test_interrupt_keeps_the_answers_until_then(tmp_path: Path) -> None:
    with Provider("openai") as provider:
        lm = model_at(provider, "openai", transport=Interrupting())
        with pytest.raises(sigwire.VerificationInterrupted) as caught:
            sigwire.verify(lm, budget=sigwire.Budget(), cassette=tmp_path / "c.jsonl")
    rows = caught.value.verification.rows
    assert [row.verdict for row in rows[:3]] == ["agrees", "agrees", "not sent"]
    assert {row.verdict for row in rows[2:]} == {"not sent"}
    assert (tmp_path / "c.jsonl.part").exists()


class Waiting:
    """A transport whose third request gets no reply until it is cancelled."""

    def __init__(self) -> None:
        self.left, self.waits, self._inner = 2, asyncio.Event(), HttpTransport()

    async def asend(self, request: HttpRequest) -> HttpReply:
        if not self.left:
            self.waits.set()
            await asyncio.Event().wait()
        self.left -= 1
        return await self._inner.asend(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
async def test_cancellation_of_an_awaited_verification_has_the_answers_until_then(how: str, tmp_path: Path) -> None:
    with Provider("openai") as provider:
        transport = Waiting()
        lm = model_at(provider, "openai", transport=transport)
        job = asyncio.create_task(sigwire.averify(lm, budget=sigwire.Budget(), cassette=tmp_path / "c.jsonl"))
        await transport.waits.wait()
        error: BaseException | None
        if how == "cancelled":
            job.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await job
            error = caught.value
        else:
            with pytest.raises(TimeoutError) as late:
                await asyncio.wait_for(job, 0)
            error = late.value.__cause__
    found: sigwire.Verification = getattr(error, "verification")  # noqa: B009
    assert [row.verdict for row in found.rows[:3]] == ["agrees", "agrees", "not sent"]
    assert {row.verdict for row in found.rows[2:]} == {"not sent"}
    assert found.rows[2].why == found.stopped == "cancelled"
    assert (tmp_path / "c.jsonl.part").exists()


# --- drivers and cassettes


@pytest.mark.parametrize("wire", ["openai", "bedrock"])
def test_awaited_verification_has_the_rows_of_a_blocking_one(wire: str) -> None:
    with Provider(wire) as provider:
        lm, blocking = model_at(provider, wire), verified(provider, wire, probes=FEW)
        awaited = asyncio.run(sigwire.averify(lm, probes=FEW, budget=sigwire.Budget()))
    assert awaited.rows == blocking.rows
    assert len(provider.requests) == 2 * blocking.requests


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_cassette_replays_to_equal_rows_and_has_no_secret(wire: str, tmp_path: Path) -> None:
    path = tmp_path / "seen.jsonl"
    with Provider(wire, "takes_system") as provider:
        provider.script = type(provider.script)(_with_account(provider.script))
        lm = model_at(provider, wire, headers={"x-canary": "canary-header-1"})
        found = sigwire.verify(lm, budget=sigwire.Budget(), cassette=path)
    assert found.disagreements
    texts = path.read_text(encoding="utf-8") + json.dumps(found.to_json())
    for secret in (KEY, "canary-header", "org-CanaryA1b2C3d4", "no-such-key"):
        assert secret not in texts
    with sigwire.Cassette(path, "replay"):
        replayed = sigwire.verify(lm, budget=sigwire.Budget())
    assert replayed.requests == found.requests
    assert [row.to_json() | {"evidence": None} for row in replayed.rows] == [
        row.to_json() | {"evidence": None} for row in found.rows
    ]
    with sigwire.Cassette(path, "replay"):
        assert asyncio.run(sigwire.averify(lm, budget=sigwire.Budget())).rows == replayed.rows


def _with_account(script: Any) -> Any:
    """Return the answers of a script; its refusals name an account."""

    def answer(request: Request) -> Any:
        reply = script.next(request).reply
        return replace(reply, message="Refused for org-CanaryA1b2C3d4.") if isinstance(reply, Fault) else reply

    return answer


# --- the report, and wrong arguments


def test_report_has_no_path_and_no_user_of_the_address() -> None:
    with Provider("openai") as provider:
        found = verified(provider, "openai", probes=["text", "tools"])
    report = json.loads(json.dumps(found.to_json()))
    assert report["verification"] == 1
    assert report["host"].startswith("127.0.0.1:")
    assert "/" not in report["host"]
    assert [row["verdict"] for row in report["rows"]] == ["agrees", "behaviour"]
    assert found.to_markdown().splitlines()[-1] == "| tools | | 3/3 (get\\_weather) | behaviour |".replace("\\_", "_")
    assert repr(found) == "Verification('openai/gpt-4.1', 1 agrees, 1 behaviour)"


def test_card_of_a_model_in_this_process_has_no_host_and_counts_in_words() -> None:
    found = sigwire.verify(sigwire.LM("offline/lexical"), probes=["text"])
    shown = io.StringIO()
    found.show(file=shown, width=80)
    assert "host" not in shown.getvalue()
    assert "  spent  1 request, " in shown.getvalue()


def test_digest_of_the_table_changes_with_the_capabilities() -> None:
    lm = sigwire.LM("offline/lexical")
    other = lm.copy(capabilities=replace(lm.capabilities, images=True))
    first, again, changed = (sigwire.verify(each, probes=["text"]) for each in (lm, lm, other))
    assert first.table == again.table != changed.table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probes": ["txt"]}, "Did you mean text?"),
        ({"requests": -1}, "requests=-1 is too small"),
        ({"repeat": 0}, "repeat=0 is too small"),
    ],
)
def test_wrong_argument_is_named(options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("?", r"\?")):
        sigwire.verify(sigwire.LM("offline/lexical"), **options)


def test_model_without_a_row_is_refused() -> None:
    lm: Any = sigwire.FakeLM(["a"])
    with pytest.raises(ConfigurationError, match="FakeLM has no row"):
        sigwire.verify(lm)


def test_probes_take_40_requests_at_most_without_a_disagreement() -> None:
    repeated = [probe for probe in PROBES.values() if probe.is_behaviour and probe.then is None]
    assert sum(probe.requests for probe in PROBES.values()) + 2 * len(repeated) <= 40


@pytest.mark.parametrize(
    "prefix", [row.prefix for row in PROVIDERS.values() if not row.backend and row.capabilities.decides != "only"]
)
def test_every_row_of_the_table_promises_text_within_40_requests(prefix: str) -> None:
    row = PROVIDERS[prefix]
    variables: dict[str, Any] = dict.fromkeys(row.variables, "x")
    rule = next(iter(row.rules), None)
    for name in ["any", *(rule.names[:1] if rule else ())]:
        lm = sigwire.LM(f"{prefix}/{name.replace('*', 'x')}", base_url="https://llm.example", **variables)
        plan = plan_verification(lm)
        assert plan.requests <= 40
        promised = {each.name for each in plan.probes if each.promised and not each.why_not}
        assert {"text", "usage", "system", "history", "stream_text", "length", "bad_option", "bad_model"} <= promised
