"""Cascade: stages in order of price, their confidence, attempts, and the person at the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import pytest

from sigwire.adapters.json import JSONAdapter
from sigwire.core.events import FieldDelta, FieldEnd, FieldPartial, Finished
from sigwire.core.evidence import DecisionRule
from sigwire.core.example import Prediction
from sigwire.core.report import CallReport
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import BudgetSpent, ConfigurationError, InputError, LMServerError, StateError, Unsure
from sigwire.journal.errors import ApprovalNeeded
from sigwire.journal.journal import Journal
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.money.budget import Budget
from sigwire.modules.cascade import Cascade
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from tests.modules.deciding import choice, deciding_model, in_a_process
from tests.ways import in_every_way


class Triage(Signature):
    """Sort a ticket."""

    ticket: str = InputField()
    urgent: bool = OutputField()
    queue: Literal["billing", "shipping"] = OutputField()


def stage(
    confidence: float | Callable[[int], float], name: str = "cheap", value: bool = True, cost: float | None = None
) -> Predict[..., Any]:
    """Return a predictor whose ``urgent`` has a confidence; that of ``queue`` is 0.95."""

    def answer(row: int) -> Any:
        sure = confidence(row) if callable(confidence) else confidence
        return choice(urgent={value: sure, not value: 1 - sure}, queue={"billing": 0.95, "shipping": 0.05})

    return Predict(Triage, lm=deciding_model(answer, f"fake/{name}", cost))


def requests_of(cascade: Cascade) -> list[int]:
    return [len(each.lm.requests) for each in cascade.predictors()]


@in_every_way
def test_cascade_returns_the_first_stage_that_is_sure(way: Callable[..., Any]) -> None:
    cascade = Cascade([stage(0.6), stage(0.8, "better"), stage(0.99, "dear", False)], least=[0.9, 0.75, None])
    result = way(cascade, ticket="row 1")
    assert (result.urgent, requests_of(cascade)) == (True, [1, 1, 0])
    assert CallReport.of(result).evidence["urgent"].confidence == 0.8


@in_every_way
def test_attempts_are_those_of_all_stages_with_the_reason(way: Callable[..., Any]) -> None:
    cascade = Cascade([stage(0.62), stage(0.8, "better"), stage(0.55, "dear")], least=[0.9, 0.85, None])
    result = way(cascade, ticket="row 1")
    found = [(each.model, each.purpose, each.why) for each in result.attempts]
    assert found == [
        ("fake/cheap", "ask", None),
        ("fake/better", "fallback", "unsure: urgent 0.62 < 0.9"),
        ("fake/dear", "fallback", "unsure: urgent 0.80 < 0.85"),
    ]
    assert result.usage.input_tokens == 24


COSTS = (0.001, 0.01, 0.1)


@pytest.mark.parametrize("is_awaited", [False, True])
def test_two_hundred_rows_are_answered_by_the_cheapest_sure_stage_with_its_reason_and_cost(is_awaited: bool) -> None:
    def first(row: int) -> float:
        return 0.5 + row / 400

    def second(row: int) -> float:
        return 0.6 + (row % 2) * 0.39

    cascade = Cascade(
        [stage(first, cost=COSTS[0]), stage(second, "better", cost=COSTS[1]), stage(0.7, "dear", False, COSTS[2])],
        least=[0.9, 0.95, None],
    )

    async def awaited() -> list[Any]:
        return [await cascade.acall(ticket=f"row {row}") for row in range(200)]

    results = asyncio.run(awaited()) if is_awaited else [cascade(ticket=f"row {row}") for row in range(200)]
    expected = [0, 0, 0]
    for row, result in enumerate(results):
        at = 0 if first(row) >= 0.9 else 1 if row % 2 else 2
        expected = [each + (place <= at) for place, each in enumerate(expected)]
        reasons = [None, f"unsure: urgent {first(row):.2f} < 0.9", f"unsure: urgent {second(row):.2f} < 0.95"]
        names = ["fake/cheap", "fake/better", "fake/dear"]
        found = [(each.model, each.purpose, each.why) for each in result.attempts]
        assert found == list(zip(names, ["ask", "fallback", "fallback"], reasons, strict=True))[: at + 1]
        assert result.urgent is (at != 2)
        assert CallReport.of(result).cost == pytest.approx(sum(COSTS[: at + 1]))
    assert requests_of(cascade) == expected


def test_confidence_of_a_stage_is_the_least_of_the_fields_that_count() -> None:
    cascade = Cascade([stage(0.6), stage(0.9, "dear")], least=[0.9, None], fields=["queue"])
    assert requests_of(cascade) == [0, 0]
    cascade(ticket="row 1")
    assert requests_of(cascade) == [1, 0]


@in_every_way
def test_unsure_of_a_stage_goes_on_to_the_next(way: Callable[..., Any]) -> None:
    first = stage(0.62)
    first.decisions["urgent"] = DecisionRule(least=0.9)
    cascade = Cascade([first, stage(0.7, "dear", False)])
    result = way(cascade, ticket="row 1")
    assert result.urgent is False
    assert result.attempts[1].why == "unsure: urgent 0.62"


def test_unsure_that_a_program_raises_without_a_path_goes_on_to_the_next() -> None:
    class Doubting(Module):
        def forward(self, ticket: str) -> Any:
            raise Unsure("too short to say")

    result = Cascade([Doubting(), stage(0.7, "dear")], least=[0.9, None])(ticket="row 1")
    assert [each.why for each in result.attempts] == ["unsure"]
    with pytest.raises(Unsure, match=r"unsure about its outputs: 0\.00 \(deciding\)\. A person did not decide"):
        Cascade([stage(0.6), Doubting()], least=0.9, person=lambda call: False)(ticket="row 1")


def test_other_errors_of_a_stage_are_raised() -> None:
    broken = Predict(Triage, lm=deciding_model(lambda row: LMServerError("down")))
    cascade = Cascade([broken, stage(0.9)], least=[0.9, None])
    with pytest.raises(LMServerError):
        cascade(ticket="row 1")
    assert requests_of(cascade)[1] == 0


@in_every_way
def test_cascade_without_a_sure_stage_raises_unsure_with_the_last_outputs(way: Callable[..., Any]) -> None:
    cascade = Cascade([stage(0.6), stage(0.7, "dear")], least=0.9)
    with pytest.raises(
        Unsure, match=r"Cascade is unsure about urgent: 0\.70, least 0\.9 \(deciding\).*person="
    ) as found:
        way(cascade, ticket="row 1")
    assert (found.value.fields, found.value.partial.queue) == (("urgent",), "billing")
    assert [each.model for each in found.value.attempts] == ["fake/cheap", "fake/dear"]


def test_stage_with_a_number_above_one_is_not_asked() -> None:
    cascade = Cascade([stage(0.99), stage(0.7, "dear")], least=[2, None])
    cascade(ticket="row 1")
    assert requests_of(cascade) == [0, 1]


def test_stage_without_evidence_that_needs_a_confidence_is_refused() -> None:
    plain = Predict(Triage, lm=deciding_model(lambda row: choice(urgent=True, queue="billing")))
    with pytest.raises(ConfigurationError, match=r"Stage 0 .*Predict.* gives no evidence of its outputs.*evidence="):
        Cascade([plain], least=0.9)(ticket="row 1")
    with pytest.raises(ConfigurationError, match=r"no evidence of 'urgency'.*evidence of urgent, queue"):
        Cascade([stage(0.9)], least=0.9, fields=["urgency"])(ticket="row 1")
    assert Cascade([plain])(ticket="row 1").urgent is True


@pytest.mark.parametrize(
    ("stages", "options", "message"),
    [
        ([], {}, "one or more modules"),
        ([stage(0.9), "dear"], {}, "one or more modules"),
        ([stage(0.9), Predict("ticket -> urgent: bool")], {}, "Stage 1 of the cascade has no output 'queue'"),
        ([stage(0.9)], {"least": [0.9, 0.8]}, "2 numbers for 1 stages"),
        ([stage(0.9)], {"least": -0.1}, "least is a confidence from 0 to 1"),
        ([stage(0.9)], {"least": "high"}, "least is a confidence from 0 to 1"),
        ([stage(0.9)], {"least": 1.5}, "No stage is asked"),
        ([stage(0.9)], {"fields": "urgent"}, "fields is a list"),
        ([stage(0.9)], {"person": "Ann"}, "person is True or a function"),
    ],
)
def test_wrong_arguments_are_refused(stages: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Cascade(stages, **options)


@in_every_way
def test_budget_ends_a_cascade_between_stages(way: Callable[..., Any]) -> None:
    cascade = Cascade([stage(0.6), stage(0.9, "dear")], least=[0.9, None])
    with pytest.raises(BudgetSpent) as caught, Budget(calls=1):
        way(cascade, ticket="row 1")
    assert requests_of(cascade) == [1, 0]
    assert [each.model for each in CallReport.of(caught.value).attempts] == ["fake/cheap"]


def test_streamed_cascade_emits_the_outputs_of_the_sure_stage_whole() -> None:
    cascade = Cascade([stage(0.6, value=False), stage(0.9, "dear")], least=[0.8, None])
    events = list(cascade.stream(ticket="row 1"))
    assert [event for event in events if not isinstance(event, Finished)] == [
        FieldPartial("urgent", True, path="self"),
        FieldEnd("urgent", path="self"),
        FieldDelta("queue", "billing", path="self"),
        FieldEnd("queue", path="self"),
    ]


def test_cascade_is_a_stage_of_another() -> None:
    inner = Cascade([stage(0.6), stage(0.7, "better")], least=0.9)
    outer = Cascade([inner, stage(0.9, "dear", False)])
    result = outer(ticket="row 1")
    assert result.urgent is False
    assert [each.why for each in result.attempts] == [None, "unsure: urgent 0.60 < 0.9", "unsure: urgent 0.70"]


def test_reason_is_that_of_the_first_exchange_of_a_stage_that_is_a_program() -> None:
    class Twice(Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = stage(0.5, "first"), stage(0.9, "second")

        def forward(self, ticket: str) -> Any:
            self.first(ticket=ticket)
            return self.second(ticket=ticket)

    result = Cascade([stage(0.6), Twice()], least=[0.9, None])(ticket="row 1")
    assert [each.why for each in result.attempts] == [None, "unsure: urgent 0.60 < 0.9", None]


def test_least_is_saved_loaded_and_copied(tmp_path: Path) -> None:
    cascade = Cascade([Predict(Triage), Predict(Triage)], least=[0.9, None])
    cascade.save(path := tmp_path / "cascade.json")
    other = Cascade([Predict(Triage), Predict(Triage)])
    other.load(path)
    assert other.least == (0.9, None)
    copied = other.deepcopy()
    copied.least = 0.5
    assert (copied.least, other.least) == ((0.5, 0.5), (0.9, None))
    one = Cascade([Predict(Triage)])
    with pytest.raises(StateError, match="2 numbers for 1 stages"):
        one.load_state({**one.dump_state(), "policy": {"least": [0.9, None]}})


def test_cascade_shows_its_least_confidences() -> None:
    cascade = Cascade([Predict(Triage), Predict(Triage)], least=[0.9, None])
    assert "policy = CascadeLeast([0.9, None])" in repr(cascade)
    cascade.show(file=(shown := StringIO()))
    assert "2 predictors" in shown.getvalue()
    assert "CascadeLeast([0.9, None])" in shown.getvalue()


# --- a person


@in_every_way
@pytest.mark.parametrize(
    ("answer", "urgent", "queue"),
    [
        (True, True, "billing"),
        ({"urgent": False}, False, "billing"),
        ({"urgent": False, "queue": "shipping"}, False, "shipping"),
    ],
)
def test_function_of_a_person_approves_or_edits(way: Callable[..., Any], answer: Any, urgent: bool, queue: str) -> None:
    calls: list[ToolCall] = []

    def person(call: ToolCall) -> Any:
        calls.append(call)
        return answer

    result = way(Cascade([stage(0.6)], least=0.9, person=person), ticket="row 1")
    assert (result.urgent, result.queue, result.mode) == (urgent, queue, "person")
    assert [(call.name, call.arguments) for call in calls] == [("decide", {"urgent": True, "queue": "billing"})]
    assert not CallReport.of(result).evidence
    assert [each.model for each in result.attempts] == ["fake/cheap"]


async def _awaited_person(call: ToolCall) -> Any:
    return {"urgent": False}


def test_function_of_a_person_may_be_awaited() -> None:
    assert Cascade([stage(0.6)], least=0.9, person=_awaited_person)(ticket="row 1").urgent is False


@pytest.mark.parametrize(("answer", "reason"), [(False, "no reason was given"), ("ask Ann", "ask Ann")])
def test_cascade_is_unsure_without_a_decision_of_the_person(answer: Any, reason: str) -> None:
    with pytest.raises(Unsure, match=rf"unsure about urgent: 0\.60.*did not decide: {reason}"):
        Cascade([stage(0.6)], least=0.9, person=lambda call: answer)(ticket="row 1")


@in_every_way
def test_function_of_a_person_that_fails_is_an_error_and_no_abstention(way: Callable[..., Any]) -> None:
    def fails(call: ToolCall) -> Any:
        raise OSError("the desk is closed")

    with pytest.raises(OSError, match="the desk is closed"):
        way(Cascade([stage(0.6)], least=0.9, person=fails), ticket="row 1")
    with pytest.raises(ConfigurationError, match=r"person returned int \(deciding by a person\)\. Return True"):
        way(Cascade([stage(0.6)], least=0.9, person=lambda call: 5), ticket="row 1")


def test_wrong_edit_is_refused_with_the_name_of_the_output() -> None:
    with pytest.raises(InputError, match="queue"):
        Cascade([stage(0.6)], least=0.9, person=lambda call: {"queue": "sales"})(ticket="row 1")


@pytest.mark.parametrize("person", [True, lambda call: None])
def test_person_without_a_function_needs_a_journal(person: Any) -> None:
    cascade = Cascade([stage(0.6)], least=0.9, person=person)
    with pytest.raises(ConfigurationError, match=r"journal\.run\(cascade, run=\.\.\.\)"):
        cascade(ticket="row 1")
    assert requests_of(cascade) == [0 if person is True else 1]


@pytest.mark.parametrize(
    ("decision", "urgent"),
    [("approve", True), ({"edit": {"urgent": False}}, False), ({"edit": {"urgent": False, "queue": "billing"}}, False)],
)
def test_person_decides_through_a_journal(tmp_path: Path, decision: Any, urgent: bool) -> None:
    cascade = Cascade([stage(0.6), stage(0.7, "dear")], least=0.9, person=True)
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(ApprovalNeeded) as found:
            journal.run(cascade, run="ticket-1", ticket="row 1")
        (pending,) = found.value.pending
        assert (pending.name, pending.arguments) == ("decide", {"urgent": True, "queue": "billing"})
        result = journal.resume(cascade, "ticket-1", {pending.id: decision})
        again = journal.run(cascade, run="ticket-1", ticket="row 1")
    assert (result.urgent, result.mode, again.urgent) == (urgent, "person", urgent)
    assert requests_of(cascade) == [1, 1]


def test_denial_through_a_journal_raises_unsure(tmp_path: Path) -> None:
    cascade = Cascade([stage(0.6)], least=0.9, person=True)
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(ApprovalNeeded) as found:
            journal.run(cascade, run="ticket-1", ticket="row 1")
        with pytest.raises(InputError):
            journal.resume(cascade, "ticket-1", {found.value.pending[0].id: {"edit": {"queue": 3}}})
        with pytest.raises(Unsure, match="did not decide: ask Ann"):
            journal.resume(cascade, "ticket-1", {found.value.pending[0].id: {"deny": "ask Ann"}})


def test_killed_run_asks_stages_and_the_person_once(tmp_path: Path) -> None:
    """The process is killed while the function of the person runs in its second call; the answer of the first is kept."""

    def life(kill: bool) -> None:
        def person(call: ToolCall) -> Any:
            with (tmp_path / "asked").open("a") as file:
                file.write("x")
            if kill:
                os.kill(os.getpid(), signal.SIGKILL)
            return {"urgent": False}

        cascade = Cascade([stage(0.6), stage(0.7, "dear")], least=0.9, person=person)
        with Journal(tmp_path / "runs.sqlite3") as journal:
            result: Prediction = journal.run(cascade, run="ticket-1", ticket="row 1")
        (tmp_path / "result").write_text(json.dumps([result.urgent, requests_of(cascade)]))

    ends = [in_a_process(partial(life, kill)) for kill in (True, False, False)]
    assert ends == [signal.SIGKILL, 0, 0]
    assert json.loads((tmp_path / "result").read_text()) == [False, [0, 0]]
    assert (tmp_path / "asked").read_text() == "xx"  # the killed question, and the one that was answered


def stated_stage(p: float, **evidence: Any) -> Predict[..., Any]:
    """Return a predictor that states probabilities, those of ``urgent`` and others, or forgets them."""
    stated = {name: given for name, given in {"urgent": p, **evidence}.items() if given is not None}
    answer = {"urgent": p >= 0.5, "queue": "billing", "evidence_": stated}
    program: Predict[..., Any] = Predict(Triage, lm=FakeLM(lambda request: json.dumps(answer)), evidence="stated")
    program.adapter = JSONAdapter()
    return program


BILLING = {"billing": 0.98, "shipping": 0.02}


@in_every_way
@pytest.mark.parametrize("fields", [None, ["queue"]])
@pytest.mark.parametrize(
    ("first", "why"),
    [
        (stated_stage(0.97), "queue"),
        (stated_stage(0.97, queue={"billing": -1}), "queue"),
        (stated_stage(0.97, urgent=None), "urgent"),
    ],
)
def test_output_that_lacks_its_evidence_counts_with_confidence_0(
    way: Callable[..., Any], first: Any, why: str, fields: Any
) -> None:
    result = way(Cascade([first, stated_stage(0.02, queue=BILLING)], least=0.9, fields=fields), ticket="x")
    why = "queue" if fields else why
    assert result.urgent is False
    assert result.attempts[-1].why == f"unsure: {why} 0.00 < 0.9"


def test_cascade_whose_last_stage_lacks_evidence_is_unsure() -> None:
    with pytest.raises(Unsure, match=r"unsure about queue: 0\.00, least 0\.9"):
        Cascade([stated_stage(0.97)], least=0.9)(ticket="x")


@pytest.mark.parametrize(
    ("decision", "ends"),
    [
        ("approve", [True, "billing"]),
        ({"edit": {"urgent": False}}, [False, "billing"]),
        ({"deny": "ask Ann"}, "ask Ann"),
    ],
)
def test_person_decides_in_another_process_after_a_kill_and_is_asked_once(
    decision: Any, ends: Any, tmp_path: Path
) -> None:
    """The first process is killed after the question, the second while it goes on with the decision of the person."""

    def life(number: int) -> None:
        class Desk(Module):
            def __init__(self) -> None:
                super().__init__()
                self.sort = Cascade([stage(0.6), stage(0.7, "dear")], least=0.9, person=True)

            def forward(self, ticket: str) -> Any:
                try:
                    found: Any = self.sort(ticket=ticket)
                except Unsure as error:
                    found = error
                if number == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                if isinstance(found, Unsure):
                    raise found
                return found

        desk = Desk()
        with Journal(tmp_path / "runs.sqlite3") as journal:
            try:
                if number == 0:
                    journal.run(desk, run="ticket-1", ticket="row 1")
                elif number == 1:
                    journal.resume(desk, "ticket-1", {(tmp_path / "id").read_text(): decision})
                result = journal.run(desk, run="ticket-1", ticket="row 1")
                found: Any = [result.urgent, result.queue]
            except ApprovalNeeded as needed:
                (pending,) = needed.pending
                (tmp_path / "id").write_text(pending.id)
                os.kill(os.getpid(), signal.SIGKILL)
            except Unsure as error:
                found = str(error).partition("did not decide: ")[2].partition(".")[0]
        (tmp_path / "result").write_text(json.dumps([found, requests_of(desk.sort)]))

    assert [in_a_process(partial(life, number)) for number in range(3)] == [signal.SIGKILL, signal.SIGKILL, 0]
    assert json.loads((tmp_path / "result").read_text()) == [ends, [0, 0]]


def test_stage_whose_rule_lacks_evidence_is_passed_with_confidence_0() -> None:
    first = stated_stage(0.97, queue=None)
    first.decisions["queue"] = DecisionRule(least=0.9)
    result = Cascade([first, stated_stage(0.02, queue=BILLING)], least=0.8)(ticket="x")
    assert [attempt.why for attempt in result.attempts] == [None, "unsure: queue 0.00"]
